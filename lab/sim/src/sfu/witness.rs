//! A controller of the server, and the response times of the feedback that it gets.

use std::cell::Cell;

use weir::controller::Controller;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir::{FeedbackReport, Metrics, RateLimits, SentPacket, Target};

/// Passes everything on and notes the shortest feedback response time since the last look.
pub(super) struct Witness {
    controller: Box<dyn Controller + Send>,
    rtt: Cell<Option<TimeDelta>>,
    is_paced: bool,
}

/// Packets of a server without a pacer leave at this rate.
const UNPACED: Bitrate = Bitrate::from_kbps(100_000);

impl Witness {
    pub(super) fn new(controller: Box<dyn Controller + Send>) -> Self {
        Self { controller, rtt: Cell::new(None), is_paced: true }
    }

    /// The same for a server that sends what comes at once.
    pub(super) fn unpaced(mut self) -> Self {
        self.is_paced = false;
        self
    }

    /// The shortest feedback response time since the last call.
    pub(super) fn take_rtt(&self) -> Option<TimeDelta> {
        self.rtt.take()
    }
}

impl Controller for Witness {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        self.controller.on_media_queued(now, added, queued);
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.controller.on_packet_sent(now, packet);
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        let least = self.rtt.get().into_iter().chain(report.rtt(now)).min();
        self.rtt.set(least);
        self.controller.on_feedback(now, report);
    }

    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.controller.on_round_trip_time(now, rtt);
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.controller.on_receiver_limit(now, limit);
    }

    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.controller.set_limits(now, limits);
    }

    fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        self.controller.set_desired_bitrate(now, desired);
    }

    fn on_route_change(&mut self, now: Timestamp) {
        self.controller.on_route_change(now);
    }

    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.controller.on_shared_rate(now, share);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.controller.on_timeout(now);
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.controller.next_timeout()
    }

    fn target(&self) -> Target {
        let mut target = self.controller.target();
        if !self.is_paced {
            target.pacing_rate = target.pacing_rate.max(UNPACED);
        }
        target
    }

    fn metrics(&self) -> Metrics {
        self.controller.metrics()
    }
}
