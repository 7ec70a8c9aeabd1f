//! Google congestion control of 2013: the receiver watches delay, the sender watches loss.
//!
//! ```text
//! receiver: packet -> Frames -> ArrivalTimeFilter -> OveruseDetector -> RemoteRate --Ar--> REMB
//!              |                 [BARI §arrival-    [BARI §over-use     [BARI §remote     |
//!              |                  time filter]       detector]           rate controller] |
//!              +--> receive rate R -----------------------------------------^             |
//! sender:   receiver report --loss--> LossBased [BARI §sender-side control] --As--> min(As, Ar)
//!                                                                           Target <------+
//! ```
//!
//! The receiver's half is [`Receiver`]. Comments in the source name the deviations of both halves,
//! BARI-D1 to BARI-D8.

mod arrival_time_filter;
mod delay_based;
mod frames;
mod loss_based;
mod overuse_detector;
mod receiver;
mod remote_rate;
#[cfg(test)]
mod tests;
mod tfrc;

use alloc::vec::Vec;

use self::delay_based::{DelayBased, UPDATE_INTERVAL};
use self::frames::Arrival;
pub use self::loss_based::IncreaseRule;
use self::loss_based::LossBased;
use self::overuse_detector::THRESHOLD_MS;
pub use self::receiver::Receiver;
use weir::controller::{Controller, Metrics, RateLimits, Reason, Settings, Signals, Target};
use weir::feedback::{ArrivalTimes, FeedbackReport, SentPacket};
use weir::units::{Bitrate, TimeDelta, Timestamp};

/// Pacing rate as a multiple of the target bitrate [LW2013 §paced_sender].
const PACING_FACTOR: f64 = 2.5;
/// The rate is halved if a packet was sent longer ago than this plus a round-trip time, and no
/// feedback has come since: BARI-D6. Receiver reports come once a second.
const FEEDBACK_TIMEOUT: TimeDelta = TimeDelta::from_secs(2);
/// Upper limit of the round-trip time.
const MAX_RTT: TimeDelta = TimeDelta::from_secs(10);
/// Assumed frame interval, if feedback does not identify frames: BARI-D7.
const FRAME_INTERVAL: TimeDelta = TimeDelta::from_micros(33_333);

/// The sender's half.
#[derive(Clone, Debug)]
pub struct Gcc2013 {
    settings: Settings,
    rule: IncreaseRule,
    loss_based: LossBased,
    /// The receiver's half, if per-packet feedback lets it run at the sender: BARI-D7.
    delay_based: Option<DelayBased>,
    next_delay_update: Option<Timestamp>,
    receiver_limit: Option<Bitrate>,
    /// Time at which feedback on packets in flight is overdue; `None` if none is awaited.
    feedback_deadline: Option<Timestamp>,
    rtt: Option<TimeDelta>,
    target: Bitrate,
    reason: Reason,
    /// Arrivals of the current report. Its allocation is reused.
    arrivals: Vec<Arrival>,
}

impl Gcc2013 {
    /// A controller at the start bitrate, with the increase rule as printed in the paper.
    pub fn new(settings: impl Into<Settings>) -> Self {
        Self::with_increase(settings, IncreaseRule::default())
    }

    /// A controller at the start bitrate, with one of the two increase rules.
    pub fn with_increase(settings: impl Into<Settings>, rule: IncreaseRule) -> Self {
        let settings = settings.into();
        let limits = settings.limits;
        Self {
            settings,
            rule,
            loss_based: LossBased::new(limits, rule),
            delay_based: None,
            next_delay_update: None,
            receiver_limit: None,
            feedback_deadline: None,
            rtt: None,
            target: limits.start(),
            reason: Reason::Start,
            arrivals: Vec::new(),
        }
    }

    /// BARI-D7: per-packet feedback has the inputs of the receiver's half, so it runs here.
    fn run_delay_based(&mut self, now: Timestamp, report: &FeedbackReport) {
        if report.arrival_times == ArrivalTimes::RoundTrip {
            // From here on nothing would keep the old rate up to date.
            (self.delay_based, self.next_delay_update) = (None, None);
            return;
        }
        self.arrivals.clear();
        self.arrivals.extend(report.packets.iter().filter_map(|packet| {
            let departure = packet.send_time;
            let frame = departure.as_nanos().div_euclid(FRAME_INTERVAL.as_nanos());
            let arrival = packet.arrival_time?;
            Some(Arrival { arrival, departure, frame, size: packet.size })
        }));
        if !self.arrivals.is_sorted() {
            self.arrivals.sort_unstable();
        }
        let delay_based = self.delay_based.get_or_insert_with(DelayBased::new);
        for arrival in &self.arrivals {
            delay_based.on_packet(now, arrival);
        }
        let due = *self.next_delay_update.get_or_insert(now + UPDATE_INTERVAL);
        if due <= now {
            self.next_delay_update = Some(now + UPDATE_INTERVAL);
            delay_based.update(now);
        }
    }

    /// `Ar`: the receiver's rate, the rate computed here, or the lower of both.
    fn ceiling(&self) -> Option<Bitrate> {
        let found = self.delay_based.as_ref().and_then(DelayBased::rate);
        self.receiver_limit.into_iter().chain(found).min()
    }

    /// Sets the target to `min(As, Ar)` [BARI §sender-side control]. `reason` applies if it
    /// changed.
    fn retarget(&mut self, reason: Reason) {
        let target = self.loss_based.rate();
        if target != self.target {
            self.reason = reason;
            self.target = target;
        }
    }
}

impl Controller for Gcc2013 {
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
        if let Some(rtt) = report.rtt(now) {
            self.rtt = Some(rtt.clamp(TimeDelta::ZERO, MAX_RTT));
        }
        self.run_delay_based(now, report);
        self.loss_based.set_ceiling(now, self.ceiling());
        let capped = self.loss_based.rate();
        self.retarget(Reason::OverUse);
        let each_packet = report.arrival_times.is_per_packet();
        self.loss_based.on_counts(now, report.loss_counts(), each_packet, self.rtt);
        // The TCP-friendly floor may raise the rate despite losses.
        let grown = self.loss_based.rate() > capped;
        self.retarget(if grown { Reason::Increase } else { Reason::Loss });
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        self.loss_based.set_ceiling(now, self.ceiling());
        self.retarget(Reason::ReceiverLimit);
    }

    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.settings.limits = limits;
        self.loss_based.set_limits(now, limits);
        self.retarget(Reason::Limits);
    }

    fn on_route_change(&mut self, now: Timestamp) {
        let fresh = Self::with_increase(self.settings, self.rule);
        *self = Self { receiver_limit: self.receiver_limit, reason: Reason::NewRoute, ..fresh };
        self.loss_based.set_ceiling(now, self.ceiling());
        self.retarget(Reason::NewRoute);
    }

    /// The receiver's rate stays in force: it is not the sender's to change.
    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.loss_based.set_rate(now, share);
        self.retarget(Reason::Coupled);
    }

    /// BARI-D6: the sources have no rule for missing feedback.
    fn on_timeout(&mut self, now: Timestamp) {
        if self.feedback_deadline.is_some_and(|deadline| deadline <= now) {
            self.feedback_deadline = None;
            self.loss_based.halve(now);
            self.retarget(Reason::FeedbackLost);
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.feedback_deadline
    }

    fn target(&self) -> Target {
        Target::new(self.target, self.target * PACING_FACTOR)
    }

    fn metrics(&self) -> Metrics {
        let delay_based = self.delay_based.as_ref();
        let state = delay_based.map_or(self.loss_based.state(), DelayBased::state);
        // The algorithm uses only the change of the delay, so there is no queuing delay.
        Metrics::new(self.reason, state)
            .with_rtt(self.rtt)
            .with_loss_ratio(self.loss_based.loss_ratio())
            .with_signals(Signals::new([
                ("offset_ms", delay_based.map_or(0.0, DelayBased::scaled_offset_ms)),
                ("threshold_ms", THRESHOLD_MS),
                ("ar_kbps", self.ceiling().map_or(0.0, Bitrate::as_kbps_f64)),
                ("tcp_friendly_kbps", self.loss_based.floor().as_kbps_f64()),
            ]))
    }
}
