//! Google congestion control as Chromium runs it today.
//!
//! ```text
//! FeedbackReport --by arrival--> ArrivalGroups -> Trendline -> OveruseDetector
//!   |                                                               | usage
//!   +-> AcknowledgedBitrate ------------> RateControl <-------------+
//!   |                                      ^      | delay-based estimate
//!   +-> ProbeEstimator --probe result------+      v
//!   +-> LossBased (LossModel) --loss-based estimate--> min -> RttBackoff --+
//!   +-> LossRules, if the reports have no arrival times ------------+ bitrate, pacing, padding
//!   |                                                              v
//!   +-> CongestionWindow ------------source bitrate---------> Target <--probe-- ProbeController
//!            ^                                                                      ^
//! SentPacket-+-------------------------> AlrDetector -------------------------------+
//! ```
//!
//! Where it departs from libwebrtc, a comment in the source names the deviation, from GOOGCC-D1 on.

mod acknowledged_bitrate;
mod alr_detector;
mod arrival_groups;
mod arrivals;
mod congestion_window;
mod delay_based;
mod delay_signal;
mod link_capacity;
mod loss_based;
mod loss_model;
mod loss_rules;
mod overuse_detector;
mod probe_controller;
mod probe_estimator;
mod rate_control;
mod rtt_backoff;
#[cfg(test)]
mod tests;
mod trendline;

use alloc::vec::Vec;

use self::acknowledged_bitrate::{AcknowledgedBitrate, Packet};
use self::alr_detector::AlrDetector;
use self::arrivals::Arrivals;
use self::congestion_window::CongestionWindow;
use self::delay_based::DelayBased;
use self::delay_signal::BandwidthUsage;
use self::loss_based::{Conditions, LossBased, LossState};
use self::loss_rules::LossRules;
use self::probe_controller::ProbeController;
use self::probe_estimator::ProbeEstimator;
use self::rtt_backoff::RttBackoff;
use crate::controller::{
    Burst, Controller, Metrics, RateLimits, Reason, Settings, Signals, Target,
};
use crate::feedback::{ArrivalTimes, FeedbackReport, PacketReport, SentPacket};
use crate::units::{Bitrate, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §GoogCcNetworkController].
/// Pacing rate over target bitrate before the first transport-wide feedback, and after it.
const INITIAL_PACING_FACTOR: f64 = 2.5;
const PACING_FACTOR: f64 = 1.1;
/// The pacer's burst interval [LIBWEBRTC §PacingController].
const BURST: TimeDelta = TimeDelta::from_millis(40);
/// A probe's result does not lower the estimate below this share of the acknowledged bitrate.
const PROBE_DROP_SHARE: f64 = 0.85;
/// Interval at which the rate control takes over the round-trip time if only feedback measures it.
/// libwebrtc takes it from receiver reports, which video gets once a second. It therefore works
/// with a value from before the queue grew.
const RTT_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// After this time without a receiver report, feedback measures the round-trip time again: five
/// report intervals [RFC3550 §6.3.5].
const REPORT_TIMEOUT: TimeDelta = TimeDelta::from_secs(5);
/// Upper limit of the round-trip time.
const MAX_RTT: TimeDelta = TimeDelta::from_secs(10);

/// The controller of libwebrtc.
#[derive(Clone, Debug)]
pub struct Gcc {
    settings: Settings,
    delay_based: DelayBased,
    /// Delay-based estimate that limits the target; `None` without measured arrival times.
    delay_limit: Option<Bitrate>,
    loss_based: LossBased,
    loss_rules: LossRules,
    acknowledged: AcknowledgedBitrate,
    /// Acknowledged bitrate as of the last report.
    acknowledged_bitrate: Option<Bitrate>,
    probing: Probing,
    round_trip: RoundTrip,
    window: CongestionWindow,
    receiver_limit: Option<Bitrate>,
    /// Kind of arrival times in the last report; `None` before the first report.
    arrival_times: Option<ArrivalTimes>,
    /// State at the last update of the probe controller.
    seen: Option<Seen>,
    /// Estimate before the receiver's limit is applied.
    estimate: Explained,
    /// Target in effect.
    target: Explained,
    /// Space for the packets of a report that did not arrive in order.
    reordered: Vec<PacketReport>,
}

/// What decides when to probe, and measures the result.
#[derive(Clone, Debug)]
struct Probing {
    controller: ProbeController,
    estimator: ProbeEstimator,
    alr: AlrDetector,
    was_in_alr: bool,
}

/// The round-trip time, and what watches it.
#[derive(Clone, Debug, Default)]
struct RoundTrip {
    rtt: Option<TimeDelta>,
    /// Round-trip time last passed to the rate control, in whole ms.
    reported_ms: Option<i64>,
    /// Earliest time at which feedback may update the round-trip time.
    due: Timestamp,
    backoff: RttBackoff,
}

/// A bitrate, and the reason of its last change.
#[derive(Clone, Copy, Debug)]
struct Explained {
    rate: Bitrate,
    reason: Reason,
}

/// State whose change updates the probe controller. While it is unchanged, the probe controller
/// keeps its last `is_allowed`, as in libwebrtc [LIBWEBRTC §GoogCcNetworkController].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    target: Bitrate,
    source_bitrate: Bitrate,
    loss_state: LossState,
    rtt_ms: Option<i64>,
    in_alr: bool,
}

fn bounded(rtt: TimeDelta) -> TimeDelta {
    rtt.clamp(TimeDelta::ZERO, MAX_RTT)
}

impl Gcc {
    /// A controller at the start bitrate.
    pub fn new(settings: impl Into<Settings>) -> Self {
        let settings = settings.into();
        let Settings { limits, compete_with_tcp, probe_when_limited, .. } = settings;
        let start = limits.start();
        Self {
            settings,
            delay_based: DelayBased::new(limits, compete_with_tcp),
            delay_limit: None,
            loss_based: LossBased::new(limits),
            loss_rules: LossRules::default(),
            acknowledged: AcknowledgedBitrate::default(),
            acknowledged_bitrate: None,
            probing: Probing {
                controller: ProbeController::new(limits, probe_when_limited),
                estimator: ProbeEstimator::default(),
                alr: AlrDetector::new(start),
                was_in_alr: false,
            },
            round_trip: RoundTrip::default(),
            window: CongestionWindow::new(),
            receiver_limit: None,
            arrival_times: None,
            seen: None,
            estimate: Explained { rate: start, reason: Reason::Start },
            target: Explained { rate: start, reason: Reason::Start },
            reordered: Vec::new(),
        }
    }

    /// Handles a report with arrival times of the receiver [LIBWEBRTC §GoogCcNetworkController].
    fn on_measured(&mut self, now: Timestamp, report: &FeedbackReport) {
        if report.new_clock || self.arrival_times != Some(report.arrival_times) {
            self.delay_based.restart();
            self.acknowledged = AcknowledgedBitrate::default();
        }
        let mut buffer = core::mem::take(&mut self.reordered);
        let arrivals = Arrivals::of(&report.packets, &mut buffer);
        self.on_arrivals(now, report, &arrivals);
        self.reordered = buffer;
    }

    fn on_arrivals(&mut self, now: Timestamp, report: &FeedbackReport, arrivals: &Arrivals) {
        if arrivals.count == 0 {
            self.on_losses(now, report);
            self.update_target(now);
            return;
        }
        let longest_rtt = self.measure_rtt(now, arrivals);
        self.note_alr_end(now);
        let packets = arrivals.iter().map(|(packet, arrival_time)| {
            let (send_time, size) = (packet.send_time, packet.size);
            Packet { arrival_time, send_time, size }
        });
        self.acknowledged.on_sorted(arrivals.first, arrivals.count, packets);
        let acknowledged = self.acknowledged.bitrate();
        self.acknowledged_bitrate = acknowledged;
        let probed = self.probe_result(acknowledged, arrivals);
        let packets = arrivals.iter().map(|(packet, arrival)| (packet.send_time, arrival));
        let outcome = self.delay_based.on_arrivals(now, packets, acknowledged, probed);
        if let Some(reason) = outcome.reason {
            let delay_based = self.delay_based.estimate();
            if reason == Reason::Probe {
                self.estimate.rate = delay_based;
            }
            self.delay_limit = Some(delay_based);
            self.estimate.reason = reason;
        }
        self.on_losses(now, report);
        self.update_target(now);
        if outcome.recovered {
            self.probing.controller.on_recovered(now, self.probing.alr.since().is_some());
        }
        self.window.on_rtt(longest_rtt, self.estimate.rate);
    }

    /// Handles a report made of receiver reports only, which has no delay gradient.
    fn on_round_trip(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.delay_limit = None;
        let Some(rtt) = report.rtt(now).map(bounded) else {
            return;
        };
        self.round_trip.rtt = Some(rtt);
        self.round_trip.backoff.on_rtt(now, rtt);
        let counts = report.loss_counts();
        let ruled = self.loss_rules.on_counts(now, counts, rtt, self.estimate.rate);
        if let Some((estimate, reason)) = ruled {
            // GOOGCC-D4: without arrival times, only this ends the growth of an application-limited
            // source.
            if estimate < self.estimate.rate || self.probing.alr.since().is_none() {
                self.estimate.rate = self.settings.limits.clamp(estimate);
                self.estimate.reason = reason;
            }
        }
        self.update_target(now);
        self.window.on_rtt(rtt, self.estimate.rate);
    }

    /// Measures the shortest round-trip time of a report, excluding the time that the receiver held
    /// the feedback back. Returns the longest one, including that time.
    fn measure_rtt(&mut self, now: Timestamp, arrivals: &Arrivals) -> TimeDelta {
        let longest = bounded(now - arrivals.first_sent);
        // Each packet was held from its arrival until the last one's.
        let rtt = bounded(now - arrivals.last + arrivals.least_delay);
        self.round_trip.rtt = Some(rtt);
        self.round_trip.backoff.on_rtt(now, rtt);
        if now >= self.round_trip.due {
            self.round_trip.due = now + RTT_INTERVAL;
            self.set_reported_rtt(rtt);
        }
        longest
    }

    fn set_reported_rtt(&mut self, rtt: TimeDelta) {
        self.round_trip.reported_ms = Some(libm::round(rtt.as_millis_f64()) as i64);
        self.delay_based.set_rtt(rtt);
    }

    fn note_alr_end(&mut self, now: Timestamp) {
        let in_alr = self.probing.alr.since().is_some();
        if self.probing.was_in_alr && !in_alr {
            self.probing.controller.on_alr_ended(now);
        }
        self.probing.was_in_alr = in_alr;
    }

    /// The last probe result of a report, raised to a floor: a result far below the acknowledged
    /// bitrate is not a valid measurement.
    fn probe_result(
        &mut self,
        acknowledged: Option<Bitrate>,
        arrivals: &Arrivals,
    ) -> Option<Bitrate> {
        if !arrivals.has_probes {
            return None;
        }
        let mut result = None;
        for (packet, arrival) in arrivals.iter() {
            let PacketReport { send_time, size, probe, .. } = *packet;
            let measured =
                probe.and_then(|id| self.probing.estimator.on_packet(id, send_time, arrival, size));
            result = measured.or(result);
        }
        let floor = acknowledged.map_or(Bitrate::ZERO, |rate| {
            (rate * PROBE_DROP_SHARE).min(self.delay_based.estimate())
        });
        result.map(|measured| measured.max(floor))
    }

    /// Runs the loss-based control on a report and adopts its estimate. Without one, adopts the
    /// delay-based estimate [LIBWEBRTC §SendSideBandwidthEstimation].
    fn on_losses(&mut self, now: Timestamp, report: &FeedbackReport) {
        let conditions = Conditions {
            delay_based: self.delay_limit.unwrap_or(self.estimate.rate),
            acknowledged: self.acknowledged_bitrate,
            in_alr: self.probing.alr.since().is_some(),
        };
        self.loss_based.on_report(report, &conditions);
        if self.back_off(now) {
            return;
        }
        let limit = self.delay_limit.unwrap_or(Bitrate::MAX);
        let loss_based = self.loss_based.estimate();
        let wanted = loss_based.unwrap_or_else(|| self.estimate.rate.max(conditions.delay_based));
        let estimate = self.settings.limits.clamp(wanted.min(limit));
        if loss_based.is_some_and(|rate| rate < limit) && estimate != self.estimate.rate {
            let is_cut = estimate < self.estimate.rate;
            let reason = if is_cut { self.loss_based.decrease_reason() } else { Reason::Increase };
            self.estimate.reason = reason;
        }
        self.estimate.rate = estimate;
    }

    /// Cuts the target while feedback is missing or very late. Returns true while it is.
    fn back_off(&mut self, now: Timestamp) -> bool {
        if !self.round_trip.backoff.is_above_limit() {
            return false;
        }
        if let Some(cut) = self.round_trip.backoff.cut(now, self.estimate.rate) {
            self.estimate.rate = self.settings.limits.clamp(cut);
            self.estimate.reason = Reason::FeedbackLost;
        }
        true
    }

    /// Derives the target from the estimate and passes it to the parts that depend on it.
    fn update_target(&mut self, now: Timestamp) {
        let target = self.settings.limits.cap(self.estimate.rate, self.receiver_limit);
        self.probing.alr.set_estimate(target);
        self.window.update();
        let seen = Seen {
            target,
            source_bitrate: self.window.push_back(target),
            loss_state: self.loss_based.state(),
            rtt_ms: self.round_trip.reported_ms,
            in_alr: self.probing.alr.since().is_some(),
        };
        if self.seen != Some(seen) {
            self.seen = Some(seen);
            let is_allowed = self.delay_based.usage() == BandwidthUsage::Normal
                && self.loss_based.state() == LossState::DelayBased
                && !self.round_trip.backoff.is_above_limit();
            self.probing.controller.set_estimate(now, target, is_allowed);
        }
        if target != self.target.rate {
            self.target.reason = self.explain(target);
            self.target.rate = target;
        }
    }

    fn explain(&self, target: Bitrate) -> Reason {
        let rises = target > self.target.rate;
        match self.estimate.reason {
            _ if target < self.estimate.rate => Reason::ReceiverLimit,
            // The target rises although the estimate was cut, because a limit was lifted.
            Reason::OverUse | Reason::Loss | Reason::Ecn | Reason::FeedbackLost if rises => {
                Reason::Increase
            }
            cause => cause,
        }
    }
}

impl Controller for Gcc {
    /// GOOGCC-D1: Chromium runs its timed steps every 25 ms. They have no effect while nothing is
    /// sent. So each sent packet runs them here and catches up on missed ones; there is no timer.
    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.round_trip.backoff.on_packet_sent(now);
        self.probing.alr.on_packet_sent(now, packet.size);
        self.window.on_time(now, self.estimate.rate);
        self.window.on_packet_sent(now, packet);
        if let Some(probe) =
            self.probing.controller.probe().filter(|probe| packet.probe == Some(probe.id))
        {
            self.probing.estimator.on_probe(probe);
        }
        self.probing.controller.on_packet_sent(now, packet);
        self.back_off(now);
        self.update_target(now);
        self.probing.controller.process(now, self.probing.alr.since());
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        if report.packets.is_empty() {
            return;
        }
        self.window.on_time(now, self.estimate.rate);
        self.window.on_report(report);
        match report.arrival_times {
            ArrivalTimes::Measured | ArrivalTimes::Acknowledged => self.on_measured(now, report),
            ArrivalTimes::RoundTrip => self.on_round_trip(now, report),
        }
        self.arrival_times = Some(report.arrival_times);
    }

    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.round_trip.due = now + REPORT_TIMEOUT;
        self.set_reported_rtt(bounded(rtt));
        self.update_target(now);
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        self.estimate.reason = Reason::ReceiverLimit;
        self.update_target(now);
    }

    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.settings.limits = limits;
        self.delay_based.set_min(limits.min());
        self.loss_based.set_limits(limits);
        self.estimate.rate = limits.clamp(self.estimate.rate);
        self.estimate.reason = Reason::Limits;
        self.update_target(now);
        self.probing.controller.set_max(now, limits.max());
    }

    fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        self.probing.controller.set_desired(now, desired, self.probing.alr.since().is_some());
    }

    /// Resets all but the limits and the numbers of the probes [LIBWEBRTC
    /// §GoogCcNetworkController].
    ///
    /// [LIBWEBRTC §GoogCcNetworkController]: https://github.com/signalapp/webrtc
    fn on_route_change(&mut self, now: Timestamp) {
        let mut fresh = Self::new(self.settings);
        fresh.probing.controller.continue_from(&self.probing.controller);
        fresh.receiver_limit = self.receiver_limit;
        fresh.estimate.reason = Reason::NewRoute;
        fresh.target.reason = Reason::NewRoute;
        *self = fresh;
        self.update_target(now);
    }

    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.delay_based.share(share);
        self.delay_limit = self.delay_limit.map(|_| self.delay_based.estimate());
        self.estimate.rate = self.settings.limits.clamp(share);
        self.estimate.reason = Reason::Coupled;
        self.update_target(now);
    }

    fn on_timeout(&mut self, _now: Timestamp) {}

    fn next_timeout(&self) -> Option<Timestamp> {
        None
    }

    fn target(&self) -> Target {
        let is_measured = self.arrival_times.is_some_and(ArrivalTimes::is_per_packet);
        let factor = if is_measured { PACING_FACTOR } else { INITIAL_PACING_FACTOR };
        let pads = self.loss_based.state() == LossState::IncreaseUsingPadding;
        Target {
            bitrate: self.target.rate,
            source_bitrate: self.window.push_back(self.target.rate),
            pacing_rate: self.target.rate * factor,
            burst: Burst::Whole(self.settings.burst.unwrap_or(BURST).max(TimeDelta::ZERO)),
            window: None,
            padding_rate: if pads { self.target.rate } else { Bitrate::ZERO },
            probe: self.probing.controller.probe(),
        }
    }

    fn metrics(&self) -> Metrics {
        let detector = self.delay_based.detector();
        let loss_based = self.loss_based.estimate().unwrap_or(self.settings.limits.max());
        let is_measured = self.arrival_times != Some(ArrivalTimes::RoundTrip);
        Metrics {
            reason: self.target.reason,
            state: match self.loss_based.state() {
                _ if !is_measured => "loss rules",
                LossState::DelayBased => self.delay_based.state().as_str(),
                LossState::IncreaseUsingPadding => "loss, increase",
                LossState::Decreasing => "loss, decrease",
            },
            rtt: self.round_trip.rtt,
            // The algorithm uses only the gradient of the delay.
            queuing_delay: None,
            loss_ratio: if is_measured {
                self.loss_based.loss_ratio()
            } else {
                self.loss_rules.loss_ratio()
            },
            acknowledged_bitrate: self.acknowledged_bitrate,
            signals: Signals::new([
                ("trend_ms", detector.trend_ms()),
                ("threshold_ms", detector.threshold_ms()),
                ("delay_based_kbps", self.delay_based.estimate().as_kbps_f64()),
                ("loss_based_kbps", loss_based.as_kbps_f64()),
            ]),
        }
    }
}
