//! SCReAMv2: self-clocked rate adaptation for multimedia, the second version.
//!
//! ```text
//! report -> bytes in flight -> newest packet -> queuing delay -> average delay -> virtual marks -+
//!    |            |                                   |                                          |
//!    |            |                                   +-> clock drift, delay target, jitter      |
//!    +-> lost packets -> (loss rate) -> losses -------------------------------+                  v
//!    +-> marked packets --------------> classic marks, or L4S alpha ----------+-> reference window
//!                                                                                          |
//!           sender transmission: send window, pacing, minimum rate <-----------------------+
//!                                                                                          v
//!    source -> media queue -> frame sizes, waiting time --------> media rate -> target bitrate
//! ```
//!
//! Implements draft-ietf-ccwg-rfc8298bis-screamv2-01. The reference window is the target bitrate
//! times the round-trip time; bytes in flight may exceed it. Comments in the source refer to the
//! deviations as SCREAMV2-D1 to SCREAMV2-D13.

mod acked_bitrate;
mod average_delay;
mod clock_drift;
mod delay_jitter;
mod l4s_alpha;
mod loss_rate;
mod loss_round_trips;
mod media_queue;
mod media_rate;
mod parameters;
mod path;
mod policer;
mod reference_window;
mod round_trip_flight;
mod segment;
mod sender_transmission;
#[cfg(test)]
mod tests;
mod way_back;

use crate::controller::{
    Burst, Controller, EcnMode, Metrics, RateLimits, Reason, Settings, Signals, Target,
};
use crate::controllers::longer_path::LongerPath;
use crate::controllers::rare_reports::{RareSteps, beyond};
use crate::controllers::reported_packets::{Covered, ReportedPackets};
use crate::controllers::scream_common::{
    Acknowledgement, BytesInFlight, DelayTarget, INITIAL_RTT, LossEventRate, LostPackets,
    QueuingDelay, RTT_MAX, Silence, SmoothedRtt,
};
use crate::feedback::{ArrivalTimes, FeedbackReport, SentPacket};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use acked_bitrate::AckedBitrate;
use average_delay::{AverageDelay, MARKING_START};
use clock_drift::{ClockDrift, PAUSE_SHARE};
use delay_jitter::DelayJitter;
use l4s_alpha::L4sAlpha;
use loss_rate::{LossBounds, LossRate};
use loss_round_trips::LossRoundTrips;
use media_queue::MediaQueue;
use media_rate::MediaRate;
pub use parameters::{LossRule, Parameters};
use policer::PolicerGuard;
use reference_window::{
    ACKED_BITRATE_MARGIN, BETA_LOSS, Conditions, Congestion, LONG_RTT, ReferenceWindow,
};
use round_trip_flight::RoundTripFlight;
use segment::Segment;
use sender_transmission::{pacing_rate, send_window};
use way_back::WayBack;

/// `QDELAY_TARGET_LO`: the lowest delay target [SCREAMV2 §4.2.2].
const QDELAY_TARGET_LO: TimeDelta = TimeDelta::from_millis(60);
/// Interval of the check for silence (SCREAMV2-D2).
const SILENCE_TICK: TimeDelta = TimeDelta::from_millis(200);

/// SCREAMV2-D9: up to this interval of reports the window is clocked by acknowledgements. What is
/// above it counts as part of the round trip.
const RARE_REPORTS: TimeDelta = TimeDelta::from_millis(150);
/// SCREAMV2-D9: the queue that a step of growth may fill: where virtual marks begin.
const RARE_STEP_QUEUE: TimeDelta = TimeDelta::from_millis(30);
/// SCREAMV2-D9: the largest step, as a share of the target.
const RARE_STEP_MAX: f64 = 0.5;
/// SCREAMV2-D9: the largest share of what arrives that is left out to drain a queue.
const DRAIN_MAX: f64 = 0.5;

/// Gain of the averaged time that a report covers, and its maximum.
const HOLD_TIME_GAIN: f64 = 1.0 / 8.0;
const MAX_HOLD_TIME: TimeDelta = TimeDelta::from_secs(1);

/// Options that the draft leaves to the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// `REDUCE_JITTER`: change the window more slowly while the queuing delay varies
    /// [SCREAMV2 §4.2.1.4].
    ///
    /// [SCREAMV2 §4.2.1.4]: https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-rfc8298bis-screamv2-01#section-4.2.1.4
    pub reduce_jitter: bool,
}

impl Options {
    with! {
        with_reduce_jitter: reduce_jitter: bool,
    }
}

/// The SCReAMv2 controller.
#[derive(Clone, Debug)]
pub struct ScreamV2 {
    flight: BytesInFlight,
    round_trip_flight: RoundTripFlight,
    rtt: SmoothedRtt,
    queuing_delay: QueuingDelay,
    average_delay: AverageDelay,
    delay_target: DelayTarget,
    /// Used if [`Options::reduce_jitter`] is set.
    jitter: Option<DelayJitter>,
    drift: ClockDrift,
    longer_path: LongerPath,
    way_back: WayBack,
    segment: Segment,
    lost: LostPackets,
    loss_events: LossEventRate,
    /// Used if [`Settings::tolerate_random_loss`] is set, or with [`LossRule::Rate`].
    loss_rate: Option<LossRate>,
    loss_round_trips: LossRoundTrips,
    policer: PolicerGuard,
    /// Averaged time that a report covers; zero unless it counts.
    hold_time: TimeDelta,
    /// How much longer than [`RARE_REPORTS`] the usual interval of reports is (SCREAMV2-D9).
    wait: TimeDelta,
    steps: RareSteps,
    l4s_alpha: L4sAlpha,
    /// Losses and marks without a reaction yet.
    unanswered: Unanswered,
    window: ReferenceWindow,
    silence: Silence,
    coverage: ReportedPackets,
    acked: AckedBitrate,
    queue: MediaQueue,
    rate: MediaRate,
    settings: Settings,
    options: Options,
    p: Parameters,
    receiver_limit: Option<Bitrate>,
    target: Bitrate,
    reason: Reason,
    /// Time of the next check for silence; `None` before the first packet.
    tick_at: Option<Timestamp>,
}

/// `loss_detected` and `data_units_marked`: since the last reaction.
#[derive(Clone, Copy, Debug, Default)]
struct Unanswered {
    loss: bool,
    mark: bool,
}

impl ScreamV2 {
    /// A controller that starts at the start bitrate, with the draft's defaults.
    pub fn new(settings: impl Into<Settings>) -> Self {
        Self::with_options(settings, Options::default())
    }

    /// A controller with these options.
    pub fn with_options(settings: impl Into<Settings>, options: Options) -> Self {
        Self::build(settings.into(), options, Parameters::DRAFT)
    }

    /// A controller with other values, for comparisons.
    pub fn with_parameters(settings: impl Into<Settings>, parameters: Parameters) -> Self {
        Self::build(settings.into(), Options::default(), parameters)
    }

    fn build(settings: Settings, options: Options, p: Parameters) -> Self {
        let limits = settings.limits;
        let rate = MediaRate::new(p);
        let window = rate.window_for(limits.start(), INITIAL_RTT);
        Self {
            flight: BytesInFlight::default(),
            round_trip_flight: RoundTripFlight::default(),
            rtt: SmoothedRtt::default(),
            queuing_delay: QueuingDelay::default(),
            average_delay: AverageDelay::default(),
            delay_target: DelayTarget::new(QDELAY_TARGET_LO),
            jitter: options.reduce_jitter.then(|| DelayJitter::new(QDELAY_TARGET_LO)),
            drift: ClockDrift::default(),
            longer_path: LongerPath::default(),
            way_back: WayBack::default(),
            segment: Segment::default(),
            lost: LostPackets::default(),
            loss_events: LossEventRate::default(),
            loss_rate: loss_bounds(&settings, &p).map(LossRate::new),
            loss_round_trips: LossRoundTrips::default(),
            policer: PolicerGuard::default(),
            hold_time: TimeDelta::ZERO,
            wait: TimeDelta::ZERO,
            steps: RareSteps::default(),
            l4s_alpha: L4sAlpha::default(),
            unanswered: Unanswered::default(),
            window: ReferenceWindow::new(window, p),
            silence: Silence::default(),
            coverage: ReportedPackets::default(),
            acked: AckedBitrate::default(),
            queue: MediaQueue::default(),
            rate,
            settings,
            options,
            p,
            receiver_limit: None,
            target: limits.start(),
            reason: Reason::Start,
            tick_at: None,
        }
    }

    /// The maximum target bitrate, from the limits and the receiver's limit.
    fn max_bitrate(&self) -> Bitrate {
        self.settings.limits.cap(self.settings.limits.max(), self.receiver_limit)
    }

    fn jitter_scale(&self) -> f64 {
        self.jitter.as_ref().map_or(1.0, DelayJitter::scale)
    }

    fn count_losses(&mut self, now: Timestamp, report: &FeedbackReport, ack: &Acknowledgement) {
        self.lost.on_report(now, report, self.rtt.value());
        let lost = self.lost.take_lost(now);
        self.loss_events.on_report(now, self.rtt.value(), lost > 0);
        let (delay, target) = (self.average_delay.value(), self.delay_target.value());
        if let Some(rate) = &mut self.loss_rate {
            rate.on_packets(ack.received_packets, lost, self.window.size());
            if lost > 0 && self.p.guards_against_policers {
                self.policer.on_loss(rate.value(), delay, target, self.window.size());
            }
        }
        if self.p.losses == LossRule::RoundTrips {
            self.loss_round_trips.on_report(now, self.rtt.value(), lost > 0);
        }
        let congested =
            lost > 0 && self.is_new_loss(report) && self.counts_as_congestion(delay, target);
        let marked = ack.marked_packets > 0;
        if congested || marked {
            self.unanswered.loss |= congested;
            self.unanswered.mark |= marked;
            self.window.on_congestion_detected(now);
        }
    }

    /// SCREAMV2-D9, SCREAMV2-D10: a packet that left before the last reaction shows nothing about
    /// it. Where reports are rare or late, it is often reported only after it.
    fn is_new_loss(&self, report: &FeedbackReport) -> bool {
        let Some(reacted) = self.window.reacted().filter(|_| self.is_late()) else {
            return true;
        };
        report.packets.iter().any(|it| it.arrival_time.is_none() && it.send_time > reacted)
    }

    /// Whether a loss means congestion.
    fn counts_as_congestion(&self, delay: TimeDelta, target: TimeDelta) -> bool {
        match (&self.loss_rate, self.p.losses) {
            (Some(rate), _) => rate.is_congestion(delay, target),
            (None, LossRule::RoundTrips) => {
                let queues = self.average_delay.virtual_alpha(target) > 0.0;
                self.loss_round_trips.is_congestion() || queues
            }
            (None, LossRule::Each | LossRule::Rate) => true,
        }
    }

    /// The bytes on which no report came, because it was lost. They have arrived, too.
    fn uncovered(&mut self, report: &FeedbackReport) -> DataSize {
        let mut bytes = DataSize::ZERO;
        self.coverage.begin_report();
        for packet in &report.packets {
            if let Covered::New { missing } = self.coverage.on_packet(packet) {
                bytes += missing;
            }
        }
        bytes
    }

    /// The congestion to react to now. Loss takes precedence over marks, and marks over virtual
    /// marks [SCREAMV2 §4.2.2.1].
    fn congestion(&self) -> Option<Congestion> {
        let virtual_alpha = self.average_delay.virtual_alpha(self.delay_target.value());
        if self.unanswered.loss {
            Some(Congestion::Loss)
        } else if self.unanswered.mark {
            Some(match self.settings.ecn {
                EcnMode::L4s => Congestion::L4sMark(self.l4s_alpha.value()),
                EcnMode::Classic | EcnMode::Off => Congestion::ClassicMark,
            })
        } else {
            (virtual_alpha > 0.0).then_some(Congestion::VirtualMark(virtual_alpha))
        }
    }

    /// Reduces the window, grows it, or both [SCREAMV2 §4.2.2]. Returns the cause of a reduction.
    fn update_window(&mut self, now: Timestamp, ack: &Acknowledgement) -> Option<Congestion> {
        let conditions = self.conditions();
        let is_late = self.is_late();
        let full = self.congestion();
        let may_react = self.window.may_react(now, self.rtt.value(), self.path_time());
        let congestion = full.filter(|_| may_react);
        if let Some(congestion) = congestion {
            self.window.reduce(now, congestion, &conditions);
            self.unanswered = Unanswered::default();
        }
        // Each part of a late report says how far to drain, and none of them to grow.
        if is_late && full.is_some() {
            self.drain(now, &conditions);
        } else if self.target < self.max_bitrate() {
            self.steps.on_calm(now, self.target, TimeDelta::ZERO);
            let unmarked = ack.newly_acked.saturating_sub(ack.marked);
            self.window.grow(now, unmarked, &conditions);
        }
        if self.p.guards_against_policers {
            let most = self.policer.cap(now, self.rtt.value(), self.window.size());
            self.window.limit(most);
        }
        congestion
    }

    /// Whether the effect of a reaction is known later than usual (SCREAMV2-D9, SCREAMV2-D10).
    fn is_late(&self) -> bool {
        self.wait > TimeDelta::ZERO || self.path_time() > LONG_RTT
    }

    /// The round trip without the queue.
    fn path_time(&self) -> TimeDelta {
        // Where reports are rare, the time until one comes is in it.
        let is_known = self.wait == TimeDelta::ZERO;
        let path = self.rtt.value() - self.queuing_delay.value();
        if is_known { path } else { TimeDelta::ZERO }
    }

    /// SCREAMV2-D9: lowers the window so far that a queue has drained to where virtual marks begin
    /// when the effect is reported. What arrived while there was a queue is what the path carries.
    fn drain(&mut self, now: Timestamp, conditions: &Conditions) {
        let Some(acked) = self.acked.value() else { return };
        if conditions.drains > 0.0 {
            let time = conditions.rtt + conditions.wait;
            let rate = acked * (1.0 - conditions.drains);
            self.window.limit(self.rate.window_for(rate, time));
            self.steps.on_full(now, acked);
        }
    }

    /// The usual interval of reports changed: the window is that of the same rate (SCREAMV2-D9).
    fn update_wait(&mut self) {
        if self.p.counts_hold_time {
            return;
        }
        let interval = self.silence.report_interval().unwrap_or(TimeDelta::ZERO);
        let wait = beyond(interval, RARE_REPORTS);
        if wait != self.wait {
            let rtt = self.rtt.value();
            self.window.scale((rtt + wait) / (rtt + self.wait));
            self.wait = wait;
        }
    }

    fn conditions(&self) -> Conditions {
        let acked = self.acked.value().unwrap_or(Bitrate::ZERO);
        let time = self.rtt.value() + self.wait;
        let seen_after = time + RARE_REPORTS;
        let most = self.steps.most(self.target, RARE_STEP_QUEUE, seen_after, RARE_STEP_MAX);
        let start = self.delay_target.value() * MARKING_START;
        let too_long = self.average_delay.value() - start;
        Conditions {
            rtt: self.rtt.value(),
            path: self.path_time(),
            wait: self.wait,
            most: self.rate.window_for(most, time),
            carried: self.rate.window_for(acked * self.p.head_room, time),
            drains: (too_long / seen_after).clamp(0.0, DRAIN_MAX),
            delay_fraction: self.queuing_delay.value() / self.delay_target.value(),
            jitter_scale: self.jitter_scale(),
            max_in_flight: self.round_trip_flight.max(),
            previous_in_flight: self.round_trip_flight.previous(),
            target_is_low: self.target < acked * ACKED_BITRATE_MARGIN,
        }
    }

    /// Computes `target_bitrate` from the current window [SCREAMV2 §4.4].
    fn retarget(&mut self, now: Timestamp, congestion: Option<Congestion>) {
        let ratio = self.window.segment_ratio();
        let rtt = self.rtt.value() + self.hold_time + self.wait;
        let mut bitrate = self.rate.bitrate(self.window.size(), ratio, rtt);
        if self.drift.is_pausing(now) {
            bitrate = bitrate * PAUSE_SHARE;
        }
        let target = self.settings.limits.clamp(bitrate).min(self.max_bitrate());
        if target == self.target {
            return;
        }
        self.reason = match (target > self.target, congestion) {
            _ if target < bitrate && target < self.settings.limits.max() => Reason::ReceiverLimit,
            (true, _) if self.window.has_reacted() => Reason::Increase,
            (true, _) => Reason::RampUp,
            (false, Some(congestion)) => congestion.reason(),
            (false, None) if self.rate.rate_adjust() > 0.0 => Reason::SendQueue,
            // The round-trip time grew, or the target is reduced while the base delay is measured
            // again.
            (false, None) => Reason::QueuingDelay,
        };
        self.target = target;
    }
}

/// The bounds of the loss rate, if a rule uses it.
fn loss_bounds(settings: &Settings, p: &Parameters) -> Option<LossBounds> {
    if settings.tolerate_random_loss {
        return Some(LossBounds::TOLERANT);
    }
    (p.losses == LossRule::Rate || p.guards_against_policers).then_some(LossBounds::DRAFT)
}

/// The time between the first and the last arrival of a report.
fn span(report: &FeedbackReport) -> TimeDelta {
    let first = report.received().filter_map(|packet| packet.arrival_time).min();
    let last = report.received().filter_map(|packet| packet.arrival_time).max();
    match (first, last) {
        (Some(first), Some(last)) => (last - first).min(MAX_HOLD_TIME),
        _ => TimeDelta::ZERO,
    }
}

impl Controller for ScreamV2 {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        self.tick_at.get_or_insert(now + SILENCE_TICK);
        if let Some(frame) = self.queue.on_media(now, added, queued) {
            self.rate.on_frame(&frame, self.target);
        }
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.tick_at.get_or_insert(now + SILENCE_TICK);
        self.queue.set_queued(packet.queued);
        self.segment.on_packet_sent(now, packet.size);
        self.flight.on_packet_sent(packet);
        self.round_trip_flight.record(self.flight.bytes());
        self.silence.on_packet_sent(now, packet.size, self.rtt.value());
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.queuing_delay.begin_report(report);
        let mut ack = self.flight.on_report(report);
        if self.settings.ecn == EcnMode::Off {
            // Marks count only if the sender uses ECN.
            (ack.marked_packets, ack.marked) = (0, DataSize::ZERO);
        }
        if let Some(newest) = &ack.newest {
            self.silence.on_acknowledged(now, self.flight.bytes());
            self.update_wait();
            if report.arrival_times != ArrivalTimes::RoundTrip {
                self.look_for_new_path(now, newest);
            }
            self.measure_delay(now, newest);
            self.update_segment();
            if self.p.counts_hold_time {
                self.hold_time += (span(report) - self.hold_time) * HOLD_TIME_GAIN;
            }
        }
        let rtt = self.rtt.value();
        let uncovered = self.uncovered(report);
        self.acked.on_report(now, rtt, ack.received + uncovered);
        self.l4s_alpha.update(now, rtt, &ack);
        self.round_trip_flight.on_feedback(now, rtt);
        self.count_losses(now, report, &ack);
        if ack.newest.is_some() {
            let congestion = self.update_window(now, &ack);
            self.retarget(now, congestion);
        }
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        if self.rtt.measured().is_some() || self.target > self.max_bitrate() {
            self.retarget(now, None);
        }
    }

    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.settings.limits = limits;
        // What is known of the path stays known, up to what any round-trip time can need.
        self.window.limit(self.rate.window_for(limits.max(), RTT_MAX));
        let before = self.target;
        if self.rtt.measured().is_some() || limits.clamp(before) != before {
            self.retarget(now, None);
        }
        if self.target != before {
            self.reason = Reason::Limits;
        }
    }

    fn on_route_change(&mut self, _now: Timestamp) {
        let fresh = Self::build(self.settings, self.options, self.p);
        *self = Self { receiver_limit: self.receiver_limit, reason: Reason::NewRoute, ..fresh };
        self.target = self.target.min(self.max_bitrate());
    }

    fn on_shared_rate(&mut self, _now: Timestamp, share: Bitrate) {
        let target = self.settings.limits.clamp(share).min(self.max_bitrate());
        if target != self.target {
            self.window.scale(target / self.target);
            (self.target, self.reason) = (target, Reason::Coupled);
        }
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.silence.on_late(now);
        let Some(due) = self.tick_at.filter(|&due| due <= now) else { return };
        // The next tick stays on the grid unless a whole interval was missed.
        let next = due + SILENCE_TICK;
        self.tick_at = Some(if next > now { next } else { now + SILENCE_TICK });
        if self.silence.on_tick(now, SILENCE_TICK, self.rtt.value()) {
            if self.silence.report_interval().is_some() {
                self.window.reduce(now, Congestion::Silence, &self.conditions());
            } else {
                // SCREAMV2-D9: how often reports come is not known yet, so this size is no limit.
                self.window.scale(BETA_LOSS);
            }
            self.retarget(now, Some(Congestion::Silence));
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        [self.tick_at, self.silence.late_at()].into_iter().flatten().min()
    }

    fn target(&self) -> Target {
        let (wnd, in_flight) = (self.window.size(), self.flight.bytes());
        let allowance = self.silence.allowance(self.target, self.rtt.value(), in_flight);
        let window = send_window(wnd, in_flight, self.jitter_scale(), allowance);
        let pacing_rate =
            pacing_rate(self.target, self.settings.limits.max(), self.p.pacing_headroom);
        Target {
            window: Some(window),
            // Packets leave one by one [SCREAMV2 §4.3.2]: bursts alone would fill an L4S queue to
            // its marking threshold.
            burst: Burst::Ahead(TimeDelta::ZERO),
            ..Target::new(self.target, pacing_rate)
        }
    }

    fn metrics(&self) -> Metrics {
        let state = match (self.silence.is_silent(), self.window.has_reacted()) {
            (true, _) => "feedback lost",
            (false, false) => "start",
            (false, true) => "normal",
        };
        let loss_ratio = self.loss_rate.as_ref().map(LossRate::value);
        Metrics {
            reason: self.reason,
            state,
            rtt: self.rtt.measured(),
            queuing_delay: self.queuing_delay.measured(),
            loss_ratio: loss_ratio.unwrap_or(self.loss_events.value()),
            acknowledged_bitrate: self.acked.value(),
            signals: Signals::new([
                ("ref_wnd_bytes", self.window.size()),
                ("bytes_in_flight_bytes", self.flight.bytes().as_bytes() as f64),
                ("qdelay_avg_ms", self.average_delay.value().as_millis_f64()),
                ("l4s_alpha_ratio", self.l4s_alpha.value()),
            ]),
        }
    }
}
