//! Google congestion control as draft-ietf-rmcat-gcc-02 describes it, whole at the sender.
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
use super::delay_signal::BandwidthUsage;
use crate::controller::{
    Controller, EcnMode, Metrics, RateLimits, Reason, Settings, Signals, Target,
};
use crate::feedback::{ArrivalTimes, Ecn, FeedbackReport, SentPacket};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Pacing rate as a multiple of the target bitrate, GCC-D16.
const PACING_FACTOR: f64 = 1.5;
/// A packet was sent this long ago, beside a round-trip time, and no feedback has come since: the
/// estimate is cut, GCC-D13.
const FEEDBACK_TIMEOUT: TimeDelta = TimeDelta::from_secs(1);
/// No round-trip time is taken to be longer.
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
    /// When the feedback on packets in flight is overdue; `None` if none is awaited.
    feedback_deadline: Option<Timestamp>,
    rtt: Option<TimeDelta>,
    limits: RateLimits,
    ecn: EcnMode,
    /// What the arrival times of the last report were worth.
    arrival_times: ArrivalTimes,
    receiver_limit: Option<Bitrate>,
    target: Bitrate,
    reason: Reason,
    /// The arrivals of one report; kept for its memory.
    arrivals: Vec<Arrival>,
}

/// A packet that arrived; the order of the fields makes the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    arrival_time: Timestamp,
    send_time: Timestamp,
    size: DataSize,
}

impl GccDraft {
    /// A controller at the start bitrate.
    pub fn new(settings: impl Into<Settings>) -> Self {
        let Settings { limits, ecn, .. } = settings.into();
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
            limits,
            ecn,
            arrival_times: ArrivalTimes::Measured,
            receiver_limit: None,
            target: limits.start(),
            reason: Reason::Start,
            arrivals: Vec::new(),
        }
    }

    /// Takes the arrivals of a report through the delay-based control [GCC §5]. Returns why `A_hat`
    /// moved, had it moved.
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
        // An over-use between two executions of the rate control must not be missed.
        let usage = if overuse { BandwidthUsage::Overuse } else { self.usage };
        let (acknowledged, rtt) = (self.acknowledged.bitrate(), self.rtt.unwrap_or_default());
        self.rate_control.update(now, &Update { usage, acknowledged, rtt })
    }

    /// Forgets gradient and usage: what was learned before is no longer valid.
    fn restart_detection(&mut self) {
        self.filter = ArrivalTimeFilter::new();
        self.detector.restart();
        self.usage = BandwidthUsage::Normal;
    }

    /// The arrival times are by another clock than before.
    fn on_new_clock(&mut self) {
        self.restart_detection();
        self.pre_filter = PreFilter::default();
        self.acknowledged = AcknowledgedBitrate::new();
    }

    /// GCC-D18: without arrival times there is no gradient, and loss alone decides [GCC §3]. `As_hat`
    /// takes over from the bitrate in use, and `A_hat` follows it, so that it can take over again.
    fn run_without_delay(&mut self) -> Reason {
        if self.arrival_times == ArrivalTimes::Measured {
            self.loss_based.start_from(self.rate_control.estimate());
        }
        for arrival in &self.arrivals {
            self.acknowledged.on_packet(arrival.arrival_time, arrival.size);
        }
        let acknowledged = self.acknowledged.bitrate();
        self.rate_control.follow(self.loss_based.estimate(), acknowledged)
    }

    /// Packets that count as lost because they were marked, GCC-D17.
    fn marked(&self, report: &FeedbackReport) -> u64 {
        let marked = report.received().filter(|p| p.ecn == Ecn::Ce && !p.recovered);
        if self.ecn == EcnMode::Off { 0 } else { marked.count() as u64 }
    }

    /// Collects what arrived, in the order of arrival. Reports come by sequence number, which is
    /// that order unless the path reordered.
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

    /// Time from the sending of the newest packet received to now. A packet that was called lost
    /// before is no measure of it.
    fn measure_rtt(&mut self, now: Timestamp, report: &FeedbackReport) {
        let mut newest_first = report.packets.iter().rev();
        let newest = newest_first.find(|packet| packet.arrival_time.is_some() && !packet.recovered);
        if let Some(packet) = newest {
            self.rtt = Some((now - packet.send_time).clamp(TimeDelta::ZERO, MAX_RTT));
        }
    }

    /// The target is the lower one of the two estimates [GCC §6].
    fn retarget(&mut self, delay_based: Reason) {
        let (a_hat, as_hat) = (self.rate_control.estimate(), self.loss_based.estimate());
        let estimate = a_hat.min(as_hat);
        let target = self.limits.cap(estimate, self.receiver_limit);
        if target == self.target {
            return;
        }
        self.reason = match (target > self.target, as_hat < a_hat) {
            _ if target < estimate => Reason::ReceiverLimit,
            (false, true) => self.loss_based.cause(),
            (true, true) => Reason::Increase,
            // The bound by loss rose above an estimate that is being cut.
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
            ArrivalTimes::Measured => self.run_delay_based(now),
            ArrivalTimes::RoundTrip => self.run_without_delay(),
        };
        self.arrival_times = report.arrival_times;
        self.retarget(delay_based);
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        self.retarget(Reason::ReceiverLimit);
    }

    fn on_shared_rate(&mut self, _now: Timestamp, share: Bitrate) {
        self.rate_control.set_estimate(share);
        self.loss_based.rise_to(share);
        self.retarget(Reason::Coupled);
    }

    /// GCC-D13: the draft says nothing of feedback that stays away.
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
        Metrics {
            reason: self.reason,
            state: self.rate_control.state().as_str(),
            rtt: self.rtt,
            // The draft works on the gradient of the delay alone.
            queuing_delay: None,
            loss_ratio: self.loss_based.loss_ratio(),
            acknowledged_bitrate: self.acknowledged.bitrate(),
            signals: Signals::new([
                ("gradient_ms", self.detector.scaled_gradient_ms()),
                ("threshold_ms", self.detector.threshold_ms()),
                ("a_hat_kbps", self.rate_control.estimate().as_kbps_f64()),
                ("as_hat_kbps", self.loss_based.estimate().as_kbps_f64()),
            ]),
        }
    }
}
