//! Google congestion control as in draft-ietf-rmcat-gcc-02, with all its parts at the sender.
//!
//! ```text
//! FeedbackReport --by arrival--> PreFilter -> ArrivalTimeFilter -> OveruseDetector
//!      |                         [GCC §5.2]     [GCC §5.3]            [GCC §5.4]
//!      |                                                                  | usage
//!      +--> AcknowledgedBitrate --R_hat--> RateControl [GCC §5.5] <-------+
//!      |                                     | A_hat
//!      +--> LossBased [GCC §6] --As_hat--> min(A_hat, As_hat) -> Target
//! ```
//!
//! Comments in the source name the deviations from the draft, GCC-D1 to GCC-D18.

pub(super) mod acknowledged_bitrate;
mod arrival_time_filter;
mod convergence;
#[cfg(test)]
mod evidence;
mod loss_based;
mod overuse_detector;
mod pre_filter;
mod rate_control;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use self::acknowledged_bitrate::AcknowledgedBitrate;
use self::arrival_time_filter::ArrivalTimeFilter;
use self::loss_based::LossBased;
use self::overuse_detector::OveruseDetector;
use self::pre_filter::{Grouping, PreFilter};
use self::rate_control::{RateControl, Update};
use crate::delay_signal::BandwidthUsage;
use weir::controller::{
    Controller, EcnMode, Metrics, RateLimits, Reason, Settings, Signals, Target,
};
use weir::feedback::{ArrivalTimes, Ecn, FeedbackReport, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Pacing rate as a multiple of the target bitrate, GCC-D16.
const PACING_FACTOR: f64 = 1.5;
/// The estimate is cut if a packet was sent longer ago than this plus a round-trip time, and no
/// feedback has come since: GCC-D13.
const FEEDBACK_TIMEOUT: TimeDelta = TimeDelta::from_secs(1);
/// Upper limit of the round-trip time.
const MAX_RTT: TimeDelta = TimeDelta::from_secs(10);

/// The controller of draft-ietf-rmcat-gcc-02.
#[derive(Clone, Debug)]
pub struct GccDraft {
    pre_filter: PreFilter,
    filter: ArrivalTimeFilter,
    detector: OveruseDetector,
    acknowledged: AcknowledgedBitrate,
    rate_control: RateControl,
    loss_based: LossBased,
    /// The detector's last signal.
    usage: BandwidthUsage,
    /// Time at which feedback on packets in flight is overdue; `None` if none is awaited.
    feedback_deadline: Option<Timestamp>,
    rtt: Option<TimeDelta>,
    settings: Settings,
    /// Kind of arrival times in the last report.
    arrival_times: ArrivalTimes,
    receiver_limit: Option<Bitrate>,
    target: Bitrate,
    reason: Reason,
    /// Arrivals of the current report. Its allocation is reused.
    arrivals: Vec<Arrival>,
}

/// A packet that arrived. Sorts by arrival time, because that is the first field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    arrival_time: Timestamp,
    send_time: Timestamp,
    size: DataSize,
}

impl GccDraft {
    /// A controller at the start bitrate.
    pub fn new(settings: impl Into<Settings>) -> Self {
        let settings = settings.into();
        let limits = settings.limits;
        Self {
            pre_filter: PreFilter::default(),
            filter: ArrivalTimeFilter::new(),
            detector: OveruseDetector::new(),
            acknowledged: AcknowledgedBitrate::new(),
            rate_control: RateControl::new(limits),
            loss_based: LossBased::new(limits),
            usage: BandwidthUsage::Normal,
            feedback_deadline: None,
            rtt: None,
            settings,
            arrival_times: ArrivalTimes::Measured,
            receiver_limit: None,
            target: limits.start(),
            reason: Reason::Start,
            arrivals: Vec::new(),
        }
    }

    /// Passes the arrivals of a report through the delay-based control [GCC §5]. Returns the reason
    /// that applies if `A_hat` changed.
    fn run_delay_based(&mut self, now: Timestamp) -> Reason {
        let mut overuse = false;
        let arrivals = core::mem::take(&mut self.arrivals);
        for arrival in &arrivals {
            self.acknowledged.on_packet(arrival.arrival_time, arrival.size);
            match self.pre_filter.on_packet(arrival.send_time, arrival.arrival_time) {
                Grouping::Pending => {}
                Grouping::Complete(delta) => {
                    let gradient_ms = self.filter.update(&delta);
                    self.usage = self.detector.on_gradient(gradient_ms, delta.arrival);
                    overuse |= self.usage == BandwidthUsage::Overuse;
                }
                Grouping::Restarted => self.restart_detection(),
            }
        }
        self.arrivals = arrivals;
        // The rate control runs once per report; it must not miss over-use within the report.
        let usage = if overuse { BandwidthUsage::Overuse } else { self.usage };
        let (acknowledged, rtt) = (self.acknowledged.bitrate(), self.rtt.unwrap_or_default());
        self.rate_control.update(now, &Update { usage, acknowledged, rtt })
    }

    /// Resets gradient and usage, which no longer apply.
    fn restart_detection(&mut self) {
        self.filter = ArrivalTimeFilter::new();
        self.detector.restart();
        self.usage = BandwidthUsage::Normal;
    }

    /// Handles arrival times on another clock than before.
    fn on_new_clock(&mut self) {
        self.restart_detection();
        self.pre_filter = PreFilter::default();
        self.acknowledged = AcknowledgedBitrate::new();
    }

    /// GCC-D18: without arrival times there is no gradient, so loss alone decides [GCC §3].
    /// `As_hat` starts from the bitrate in use. `A_hat` follows it, so that it can take over again
    /// later.
    fn run_without_delay(&mut self) -> Reason {
        if self.arrival_times.is_per_packet() {
            self.loss_based.start_from(self.rate_control.estimate());
        }
        for arrival in &self.arrivals {
            self.acknowledged.on_packet(arrival.arrival_time, arrival.size);
        }
        let acknowledged = self.acknowledged.bitrate();
        self.rate_control.follow(self.loss_based.estimate(), acknowledged)
    }

    /// Number of packets that count as lost because they were marked, GCC-D17.
    fn marked(&self, report: &FeedbackReport) -> u64 {
        let marked = report.received().filter(|p| p.ecn == Ecn::Ce && !p.recovered);
        if self.settings.ecn == EcnMode::Off { 0 } else { marked.count() as u64 }
    }

    /// Collects the arrived packets in arrival order. Reports are sorted by sequence number, which
    /// is the same order unless the path reordered packets.
    fn collect_arrivals(&mut self, report: &FeedbackReport) {
        self.arrivals.clear();
        self.arrivals.extend(report.packets.iter().filter_map(|packet| {
            let (send_time, size) = (packet.send_time, packet.size);
            packet.arrival_time.map(|arrival_time| Arrival { arrival_time, send_time, size })
        }));
        if !self.arrivals.is_sorted() {
            self.arrivals.sort_unstable();
        }
    }

    /// Measures the time since the newest received packet was sent. Packets reported lost before
    /// are left out, because their time is not a round trip.
    fn measure_rtt(&mut self, now: Timestamp, report: &FeedbackReport) {
        let mut newest_first = report.packets.iter().rev();
        let newest = newest_first.find(|packet| packet.arrival_time.is_some() && !packet.recovered);
        if let Some(packet) = newest {
            self.rtt = Some((now - packet.send_time).clamp(TimeDelta::ZERO, MAX_RTT));
        }
    }

    /// Sets the target to the lower of the two estimates [GCC §6].
    fn retarget(&mut self, delay_based: Reason) {
        let (a_hat, as_hat) = (self.rate_control.estimate(), self.loss_based.estimate());
        let estimate = a_hat.min(as_hat);
        let target = self.settings.limits.cap(estimate, self.receiver_limit);
        if target == self.target {
            return;
        }
        self.reason = match (target > self.target, as_hat < a_hat) {
            _ if target < estimate => Reason::ReceiverLimit,
            (false, true) => self.loss_based.cause(),
            (true, true) => Reason::Increase,
            // The target rises although over-use cut `A_hat`, because the bound by loss rose above
            // it.
            (true, false) if delay_based == Reason::OverUse => Reason::Increase,
            (_, false) => delay_based,
        };
        self.target = target;
    }
}

impl Controller for GccDraft {
    fn on_packet_sent(&mut self, now: Timestamp, _packet: &SentPacket) {
        if self.feedback_deadline.is_none() {
            let rtt = self.rtt.unwrap_or_default();
            self.feedback_deadline = Some(now + FEEDBACK_TIMEOUT + rtt);
        }
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        if report.packets.is_empty() {
            return;
        }
        self.feedback_deadline = None;
        self.measure_rtt(now, report);
        self.collect_arrivals(report);
        if report.new_clock {
            self.on_new_clock();
        }
        let marked = self.marked(report);
        let in_use = self.rate_control.estimate();
        self.loss_based.on_counts(now, report.loss_counts(), marked, in_use);
        let delay_based = match report.arrival_times {
            _ if self.arrivals.is_empty() => self.reason,
            ArrivalTimes::Measured | ArrivalTimes::Acknowledged => self.run_delay_based(now),
            ArrivalTimes::RoundTrip => self.run_without_delay(),
        };
        self.arrival_times = report.arrival_times;
        self.retarget(delay_based);
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        self.retarget(Reason::ReceiverLimit);
    }

    fn set_limits(&mut self, _now: Timestamp, limits: RateLimits) {
        self.settings.limits = limits;
        self.rate_control.set_limits(limits);
        self.loss_based.set_limits(limits);
        self.retarget(Reason::Limits);
    }

    fn on_route_change(&mut self, _now: Timestamp) {
        let fresh = Self::new(self.settings);
        *self = Self { receiver_limit: self.receiver_limit, reason: Reason::NewRoute, ..fresh };
        self.retarget(Reason::NewRoute);
    }

    fn on_shared_rate(&mut self, _now: Timestamp, share: Bitrate) {
        self.rate_control.set_estimate(share);
        self.loss_based.rise_to(share);
        self.retarget(Reason::Coupled);
    }

    /// GCC-D13: the draft has no rule for missing feedback.
    fn on_timeout(&mut self, now: Timestamp) {
        if self.feedback_deadline.is_some_and(|deadline| deadline <= now) {
            self.feedback_deadline = None;
            self.rate_control.back_off();
            self.retarget(Reason::FeedbackLost);
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.feedback_deadline
    }

    fn target(&self) -> Target {
        // GCC-D16: at exactly the target bitrate the send queue would never drain.
        Target::new(self.target, self.target * PACING_FACTOR)
    }

    fn metrics(&self) -> Metrics {
        // The draft uses only the gradient of the delay, so there is no queuing delay.
        Metrics::new(self.reason, self.rate_control.state().as_str())
            .with_rtt(self.rtt)
            .with_loss_ratio(self.loss_based.loss_ratio())
            .with_acknowledged_bitrate(self.acknowledged.bitrate())
            .with_signals(Signals::new([
                ("gradient_ms", self.detector.scaled_gradient_ms()),
                ("threshold_ms", self.detector.threshold_ms()),
                ("a_hat_kbps", self.rate_control.estimate().as_kbps_f64()),
                ("as_hat_kbps", self.loss_based.estimate().as_kbps_f64()),
            ]))
    }
}
