//! A controller whose limits may change while it runs.
//!
//! Controllers get their limits when they are built. A new maximum below the built one is applied
//! as a receiver's limit, which every controller obeys. Any other change needs a new controller,
//! which starts at the old one's target bitrate.

use weir::controller::{Controller, Metrics, Probe, ProbeId, Settings, Target};
use weir::feedback::{FeedbackReport, PacketReport, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir::{ControllerFactory, RateLimits};

use std::sync::{Arc, Mutex, PoisonError};

/// The limits that the application wants, shared with the controller that obeys them.
#[derive(Clone, Debug)]
pub(crate) struct Limits(Arc<Mutex<RateLimits>>);

impl Limits {
    pub(crate) fn new(limits: RateLimits) -> Self {
        Self(Arc::new(Mutex::new(limits)))
    }

    pub(crate) fn set(&self, limits: RateLimits) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    fn get(&self) -> RateLimits {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A controller that follows changes of its [`Limits`].
pub(crate) struct Adjustable {
    factory: ControllerFactory,
    inner: Box<dyn Controller + Send>,
    wanted: Limits,
    /// The limits that `inner` was built with.
    built: RateLimits,
    /// The limits that `inner` obeys now.
    applied: RateLimits,
    /// The receiver's own limit (REMB).
    receiver_limit: Option<Bitrate>,
    /// The pacer starts a probe only if its id is new. The ids of a new controller start at the
    /// beginning, so they are raised by this number.
    first_probe: u32,
    next_probe: u32,
}

impl Adjustable {
    pub(crate) fn new(factory: ControllerFactory, wanted: Limits) -> Self {
        let limits = wanted.get();
        Self {
            inner: factory.build(Settings::new(limits)),
            factory,
            wanted,
            built: limits,
            applied: limits,
            receiver_limit: None,
            first_probe: 0,
            next_probe: 0,
        }
    }

    /// The controller, with the limits that are wanted now.
    fn adjusted(&mut self, now: Timestamp) -> &mut dyn Controller {
        let wanted = self.wanted.get();
        if wanted != self.applied {
            self.applied = wanted;
            if wanted.min() != self.built.min() || wanted.max() > self.built.max() {
                self.rebuild(wanted);
            }
            self.inner.on_receiver_limit(now, self.limit());
        }
        &mut *self.inner
    }

    fn rebuild(&mut self, wanted: RateLimits) {
        let start = wanted.clamp(self.inner.target().bitrate);
        // The clamped start lies between the other two.
        self.built = RateLimits::new(wanted.min(), start, wanted.max()).unwrap_or(wanted);
        self.inner = self.factory.build(Settings::new(self.built));
        self.first_probe = self.next_probe;
    }

    /// The lower one of the receiver's limit and a lowered maximum.
    fn limit(&self) -> Option<Bitrate> {
        let lowered = Some(self.applied.max()).filter(|&max| max < self.built.max());
        [lowered, self.receiver_limit].into_iter().flatten().min()
    }

    /// The id by which `inner` knows a probe; `None` for a probe of an earlier controller.
    fn own_probe(&self, probe: Option<ProbeId>) -> Option<ProbeId> {
        probe.and_then(|id| id.0.checked_sub(self.first_probe)).map(ProbeId)
    }

    fn own_report(&self, report: &FeedbackReport) -> FeedbackReport {
        let own = |packet: &PacketReport| packet.with_probe(self.own_probe(packet.probe));
        FeedbackReport::new(report.packets.iter().map(own).collect())
            .with_missing_feedback(report.missing_feedback)
            .with_arrival_times(report.arrival_times)
            .with_new_clock(report.new_clock)
    }
}

impl Controller for Adjustable {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        self.adjusted(now).on_media_queued(now, added, queued);
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        if let Some(probe) = packet.probe {
            self.next_probe = self.next_probe.max(probe.0 + 1);
        }
        let own = packet.with_probe(self.own_probe(packet.probe));
        self.adjusted(now).on_packet_sent(now, &own);
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        if self.first_probe == 0 {
            self.adjusted(now).on_feedback(now, report);
        } else {
            let own = self.own_report(report);
            self.adjusted(now).on_feedback(now, &own);
        }
    }

    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.adjusted(now).on_round_trip_time(now, rtt);
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        self.adjusted(now);
        let limit = self.limit();
        self.inner.on_receiver_limit(now, limit);
    }

    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.adjusted(now).on_shared_rate(now, share);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.adjusted(now).on_timeout(now);
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.inner.next_timeout()
    }

    fn target(&self) -> Target {
        let target = self.inner.target();
        let raised = |probe: Probe| {
            let id = ProbeId(probe.id.0 + self.first_probe);
            Probe::new(id, probe.rate, probe.size, probe.packets)
        };
        target.with_probe(target.probe.map(raised))
    }

    fn metrics(&self) -> Metrics {
        self.inner.metrics()
    }
}
