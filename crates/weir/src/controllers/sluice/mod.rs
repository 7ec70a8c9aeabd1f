//! `sluice`: Weir's own controller.
//!
//! ```text
//! report -+-> queue ------> standing queue, delay noise -> reference delay -+
//!         +-> rate meter -> delivered rate, sent rate ----------------------+-> law -> rate
//!         +-> losses -----> congestive or inherent --------------------------+    |
//!         +-> marks ------> share ------------------------------------------+    v
//!                                                    base test --------> target, pacing rate
//! ```
//!
//! While a queue stands, the delivered rate is the capacity. So the controller keeps a short queue
//! standing, and follows the delivered rate. Without a queue it grows, faster the longer none
//! shows.

mod losses;
mod marks;
mod parameters;
mod queue;
mod rate_meter;

pub use parameters::Parameters;

use self::losses::Losses;
use self::marks::Marks;
use self::queue::Queue;
use self::rate_meter::RateMeter;
use crate::controller::{
    Burst, Controller, EcnMode, Metrics, RateLimits, Reason, Settings, Signals, Target,
};
use crate::controllers::silence::Silence;
use crate::feedback::{Ecn, FeedbackReport, SentPacket};
use crate::units::{Bitrate, TimeDelta, Timestamp};

/// Longest time between two reports that counts for growth.
const STEP_MAX: TimeDelta = TimeDelta::from_millis(200);
/// Time between two reports until it is known, and the longest that counts: receiver reports come
/// about once a second.
const REPORT_INTERVAL: TimeDelta = TimeDelta::from_millis(500);
const REPORT_INTERVAL_MAX: TimeDelta = TimeDelta::from_secs(2);
/// Feedback is missing after this many times the usual interval.
const MISSED_REPORTS: f64 = 2.5;
/// Share of a new round-trip time in the smoothed one.
const RTT_GAIN: f64 = 1.0 / 8.0;
/// Share of a new packet in the mean size.
const SIZE_GAIN: f64 = 1.0 / 64.0;
/// Growth of the scale of the reference delay after congestive losses, per second.
const SCALE_GROWTH: f64 = 0.02;
/// Time from the beginning of competition to the first test of the rival.
const TEST_INTERVAL: TimeDelta = TimeDelta::from_secs(3);
/// Longest time between two tests of the rival.
const TEST_INTERVAL_MAX: TimeDelta = TimeDelta::from_secs(48);
/// A rival that is back within this time is the same one.
const SAME_RIVAL: TimeDelta = TimeDelta::from_secs(15);
/// Range of round-trip times by which competition grows.
const COMPETE_RTT: (TimeDelta, TimeDelta) =
    (TimeDelta::from_millis(20), TimeDelta::from_millis(500));
/// Size of a packet by which competition grows, in bits.
const COMPETE_PACKET: f64 = 12_000.0;
/// Share of the level before a drain up to which the level recovers fast.
const RECOVERED: f64 = 0.9;
/// A path change is believed within this time after a step of the delay.
const STEPPED: TimeDelta = TimeDelta::from_secs(10);
/// Seconds for which a delay must not change, and the change that is none, for another base delay.
const FLAT_TIME: f64 = 0.8;
const FLAT: TimeDelta = TimeDelta::from_millis(15);
/// A queue that falls by this much in a second is being drained.
const DRAINING: TimeDelta = TimeDelta::from_millis(20);
/// Deviation of a queue that does not fall, beside its noise.
const NEAR: TimeDelta = TimeDelta::from_millis(6);
/// Smallest scale of the reference delay.
const SCALE_MIN: f64 = 0.1;

/// What the controller does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The capacity is unknown: fast growth.
    Start,
    /// The queue is at or below the reference delay.
    Track,
    /// The queue is too long.
    Drain,
    /// A rival keeps the queue full.
    Compete,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Track => "track",
            Self::Drain => "drain",
            Self::Compete => "compete",
        }
    }
}

/// What a report said.
#[derive(Clone, Copy, Debug)]
struct Seen {
    now: Timestamp,
    /// Seconds since the last report.
    step: f64,
    /// The standing queue.
    queue: TimeDelta,
    /// The reference delay.
    reference: TimeDelta,
    /// Delivered rates over the long and the short window, in bit/s.
    delivered: f64,
    delivered_soon: f64,
    /// Rate of the packets reported on, received or not, in bit/s.
    sent: f64,
    /// A queue drops or marks packets.
    congestion: Option<Reason>,
}

/// How long a queue stands that does not fall, whatever is drained.
#[derive(Clone, Copy, Debug, Default)]
struct Crowding {
    /// In seconds; a queue that is short counts back.
    time: f64,
    /// The same since the queue last fell.
    flat: f64,
    /// The longest and the shortest queue of late.
    most: TimeDelta,
    least: TimeDelta,
}

impl Crowding {
    fn update(
        &mut self,
        queue: TimeDelta,
        limit: TimeDelta,
        near: TimeDelta,
        step: f64,
        relief: f64,
    ) {
        if queue <= limit {
            self.time = (self.time - relief * step).max(0.0);
            (self.most, self.least) = (TimeDelta::ZERO, TimeDelta::MAX);
            self.flat = 0.0;
            return;
        }
        let slow = self.most - DRAINING * step;
        if queue < slow - near {
            // It is being drained: nobody refills it.
            self.most = slow.min(queue + near * 2);
            (self.least, self.flat) = (queue, 0.0);
        } else {
            self.time += step;
            self.flat += step;
            self.most = slow.max(queue);
            self.least = self.least.min(queue);
        }
    }

    /// Whether the delay has stayed the same for some time, although less is sent.
    fn is_flat(&self, noise: TimeDelta) -> bool {
        self.flat > FLAT_TIME && self.most - self.least < FLAT + noise
    }
}

/// What is known of the rival.
#[derive(Clone, Copy, Debug)]
struct Competition {
    /// When the next test begins whether the rival is still there.
    test_at: Timestamp,
    /// The running test: its end, and the queue at its beginning.
    test: Option<(Timestamp, TimeDelta)>,
    /// Time between two tests. It doubles each time that the rival comes back.
    interval: TimeDelta,
    left_at: Timestamp,
}

impl Competition {
    /// A test begins with a loss: all flows see it at once, so that their tests fall together.
    fn is_due(&self, seen: &Seen) -> bool {
        let late = seen.now > self.test_at + TEST_INTERVAL * 2;
        seen.now > self.test_at && (seen.congestion.is_some() || late)
    }
}

impl Default for Competition {
    fn default() -> Self {
        Self {
            test_at: Timestamp::ZERO,
            test: None,
            interval: TEST_INTERVAL,
            left_at: Timestamp::ZERO,
        }
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Sluice {
    p: Parameters,
    limits: RateLimits,
    ecn: EcnMode,
    priority: f64,
    receiver_limit: Option<Bitrate>,
    queue: Queue,
    delivered: RateMeter,
    sent: RateMeter,
    losses: Losses,
    marks: Marks,
    silence: Silence,
    rtt: Option<TimeDelta>,
    packet_size: f64,
    state: State,
    /// The capacity as far as it is known, in bit/s.
    level: f64,
    /// The level before the last drain, in bit/s.
    anchor: f64,
    /// Scale of the reference delay: below 1 after losses at a standing queue.
    scale: f64,
    last_report: Option<Timestamp>,
    /// Smoothed time between two reports.
    report_interval: TimeDelta,
    /// Since when no queue stands.
    calm_since: Option<Timestamp>,
    crowding: Crowding,
    competition: Competition,
    /// Last mark under L4S.
    marked_at: Option<Timestamp>,
    /// Last response to losses or marks.
    responded: Timestamp,
    /// Last sight of the empty path.
    empty_at: Timestamp,
    test_until: Option<Timestamp>,
    /// The rate, in bit/s, before the limits.
    rate: f64,
    target: Target,
    reason: Reason,
}

impl Sluice {
    /// A controller with the documented constants.
    pub fn new(settings: impl Into<Settings>) -> Self {
        Self::with_parameters(settings, Parameters::DEFAULT)
    }

    /// A controller with other constants, for experiments.
    pub fn with_parameters(settings: impl Into<Settings>, parameters: Parameters) -> Self {
        let Settings { limits, ecn, priority, .. } = settings.into();
        let start = limits.start();
        Self {
            p: parameters,
            limits,
            ecn,
            priority,
            receiver_limit: None,
            queue: Queue::new(),
            delivered: RateMeter::default(),
            sent: RateMeter::default(),
            losses: Losses::default(),
            marks: Marks::default(),
            silence: Silence::default(),
            rtt: None,
            packet_size: 1_200.0,
            state: State::Start,
            level: start.as_bps_f64(),
            anchor: 0.0,
            scale: 1.0,
            last_report: None,
            report_interval: REPORT_INTERVAL,
            calm_since: None,
            crowding: Crowding::default(),
            competition: Competition::default(),
            marked_at: None,
            responded: Timestamp::ZERO,
            empty_at: Timestamp::ZERO,
            test_until: None,
            rate: start.as_bps_f64(),
            target: Target::new(start, start * parameters.pacing),
            reason: Reason::Start,
        }
    }

    fn rtt(&self) -> TimeDelta {
        self.rtt.unwrap_or(TimeDelta::from_millis(100))
    }

    /// Time of one packet at the current rate.
    fn packet_time(&self) -> TimeDelta {
        TimeDelta::from_secs_f64(self.packet_size * 8.0 / self.rate.max(1.0))
    }

    fn reference(&self) -> TimeDelta {
        let p = &self.p;
        let path = (p.q_min + self.queue.noise() * p.k_noise).min(p.q_max);
        let packet = self.packet_time();
        path * self.scale + (packet * p.k_packet * self.priority).min(p.q_packet.max(packet))
    }

    /// Takes the packets of a report into the measurements. Returns whether any arrived.
    fn measure(&mut self, now: Timestamp, report: &FeedbackReport) -> bool {
        if report.new_clock {
            self.queue.on_new_clock();
            self.delivered = RateMeter::default();
        }
        self.queue.begin_report();
        let (mut received, mut lost, mut marked) = (0, 0, 0);
        for packet in &report.packets {
            self.sent.add(packet.send_time, packet.size);
            let Some(arrival) = packet.arrival_time else {
                lost += 1;
                continue;
            };
            received += 1;
            marked += u64::from(packet.ecn == Ecn::Ce && self.ecn != EcnMode::Off);
            self.queue.on_packet(arrival - packet.send_time);
            self.delivered.add(arrival, packet.size);
            self.packet_size += SIZE_GAIN * (packet.size.as_bytes() as f64 - self.packet_size);
        }
        self.queue.on_report(now);
        let standing = self.queue.standing().unwrap_or(TimeDelta::ZERO);
        let stands = standing > self.reference() / 2;
        self.losses.on_report(lost, received, stands, self.queue.is_at_top());
        self.marks.on_report(marked, received);
        if let Some(rtt) = report.rtt(now) {
            let rtt = rtt.clamp(TimeDelta::ZERO, TimeDelta::from_secs(2));
            self.rtt = Some(self.rtt.map_or(rtt, |old| old + (rtt - old) * RTT_GAIN));
        }
        received > 0
    }

    /// The response to losses and marks is due at most once per round trip.
    fn congestion(&mut self, now: Timestamp) -> Option<Reason> {
        if now - self.responded < self.rtt() {
            return None;
        }
        let lost = self.losses.is_congestion(self.p.loss_excess, self.p.loss_max);
        let share = self.marks.take();
        let reason = match (lost, share) {
            (true, _) => Reason::Loss,
            (false, Some(_)) => Reason::Ecn,
            (false, None) => return None,
        };
        self.responded = now;
        self.losses.forget_congestion();
        let factor = match (share, self.ecn) {
            (Some(alpha), EcnMode::L4s) if !lost => {
                self.marked_at = Some(now);
                1.0 - alpha / 2.0
            }
            (Some(_), _) if !lost => self.p.b_mark,
            _ => self.p.b_loss,
        };
        self.level *= factor;
        self.rate = self.rate.min(self.level);
        if self.ecn != EcnMode::L4s {
            self.scale = (self.scale * self.p.b_loss).max(SCALE_MIN);
        }
        self.calm_since = None;
        Some(reason)
    }

    fn seen(&mut self, now: Timestamp) -> Seen {
        let p = self.p;
        let last = self.last_report.replace(now).unwrap_or(now);
        let interval = (now - last).min(REPORT_INTERVAL_MAX);
        self.report_interval = self.report_interval + (interval - self.report_interval) * RTT_GAIN;
        let rate = |rate: Option<Bitrate>| rate.map(Bitrate::as_bps_f64);
        let sent = rate(self.sent.rate(p.w_level)).unwrap_or(self.rate);
        let delivered = rate(self.delivered.rate(p.w_level)).unwrap_or(self.rate);
        Seen {
            now,
            step: (now - last).min(STEP_MAX).as_secs_f64(),
            queue: self.queue.standing().unwrap_or(TimeDelta::ZERO).max(TimeDelta::ZERO),
            reference: self.reference(),
            delivered,
            delivered_soon: rate(self.delivered.rate(p.w_drain)).unwrap_or(delivered),
            sent,
            congestion: self.congestion(now),
        }
    }

    /// The law: one step of the rate.
    fn update(&mut self, now: Timestamp) {
        let seen = self.seen(now);
        self.scale = (self.scale * (1.0 + SCALE_GROWTH * seen.step)).min(1.0);
        self.watch(&seen);
        let reason = match self.state {
            State::Compete => self.compete(&seen),
            _ if self.is_crowded() => self.enter_competition(&seen),
            _ if seen.queue > seen.reference + self.p.margin => self.drain(&seen),
            State::Start if seen.congestion.is_none() => self.start(&seen),
            State::Start => self.leave_start(&seen),
            State::Track | State::Drain => self.track(&seen),
        };
        let floor = self.limits.min().as_bps_f64();
        let most = self.limits.max().as_bps_f64();
        self.level = self.level.clamp(floor, most * 1.1);
        self.rate = self.rate.clamp(floor, most);
        self.retarget(seen.congestion.unwrap_or(reason));
        self.test_base(&seen);
    }

    /// Keeps the times since when the queue is empty or crowded.
    fn watch(&mut self, seen: &Seen) {
        if seen.queue > seen.reference / 2 {
            self.calm_since = None;
        } else {
            self.calm_since.get_or_insert(seen.now);
        }
        self.crowding.update(
            seen.queue,
            seen.reference + self.p.q_rival,
            NEAR + self.queue.noise(),
            seen.step,
            self.p.relief,
        );
        if seen.queue <= (seen.reference / 4).max(TimeDelta::from_millis(3)) {
            self.empty_at = seen.now;
        }
    }

    /// The largest rate to which the source's own rate allows to grow.
    fn ceiling(&self, seen: &Seen) -> f64 {
        (seen.sent * self.p.limited).max(self.limits.start().as_bps_f64())
    }

    fn start(&mut self, seen: &Seen) -> Reason {
        let grown = self.rate * libm::exp(self.p.g_start * seen.step);
        self.rate = grown.min(self.ceiling(seen)).max(self.rate);
        self.level = self.rate;
        Reason::RampUp
    }

    fn leave_start(&mut self, seen: &Seen) -> Reason {
        self.state = State::Track;
        self.level = self.level.min(seen.delivered_soon);
        self.rate = self.rate.min(self.level);
        Reason::Loss
    }

    fn drain(&mut self, seen: &Seen) -> Reason {
        if self.state != State::Drain {
            self.anchor = self.level;
        }
        self.state = State::Drain;
        let over = (seen.queue - seen.reference) / self.p.t_queue;
        let goal = seen.delivered_soon * (1.0 - over.min(self.p.cut_max));
        let stepped = self.queue.stepped_within(seen.now, STEPPED);
        if stepped && self.crowding.is_flat(self.queue.noise()) && seen.congestion.is_none() {
            // The path has become longer.
            self.queue.rebase();
            self.crowding = Crowding::default();
            self.state = State::Track;
        }
        self.level = self.level.min(seen.delivered_soon);
        self.approach(goal, seen);
        Reason::QueuingDelay
    }

    fn track(&mut self, seen: &Seen) -> Reason {
        self.state = State::Track;
        let p = &self.p;
        let mut reason = Reason::Increase;
        if let Some(calm) = self.calm_since {
            let doublings = ((seen.now - calm) / p.t_double).min(16.0);
            let known = if self.level < RECOVERED * self.anchor { p.g_recover } else { 0.0 };
            let growth = (p.g_track * libm::exp2(doublings)).max(known).min(p.g_climb);
            if growth >= p.g_climb {
                reason = Reason::RampUp;
            }
            let growth = if self.is_marked(seen.now) { self.additive(seen) } else { growth };
            let grown = self.level * libm::exp(growth * seen.step);
            self.level = grown.min(self.ceiling(seen)).max(self.level);
        } else if seen.congestion.is_none() {
            let share = (seen.step / p.t_level.as_secs_f64()).min(1.0);
            self.level += (seen.delivered - self.level) * share;
        }
        let short = (seen.reference - seen.queue) / p.t_queue;
        self.approach(self.level * (1.0 + short), seen);
        if short < 0.0 { Reason::QueuingDelay } else { reason }
    }

    /// Whether an L4S queue marked a packet lately: it marks long before a queue shows.
    fn is_marked(&self, now: Timestamp) -> bool {
        self.marked_at.is_some_and(|at| now - at < self.p.t_marked)
    }

    /// Growth per second that adds equal amounts to flows of any rate.
    fn additive(&self, seen: &Seen) -> f64 {
        let rtt = self.rtt().max(TimeDelta::from_millis(25)).as_secs_f64();
        let _ = seen;
        (self.p.a_marked * COMPETE_PACKET / (rtt * rtt) / self.level).min(self.p.g_climb)
    }

    /// Falls to the goal at once, and rises to it by steps that a source can follow.
    fn approach(&mut self, goal: f64, seen: &Seen) {
        let most = self.rate * libm::exp(self.p.g_climb * seen.step);
        self.rate = goal.min(most);
    }

    /// Whether a queue stands that does not end, whatever is drained.
    fn is_crowded(&self) -> bool {
        self.crowding.time > (self.p.t_rival + self.rtt()).as_secs_f64()
    }

    fn enter_competition(&mut self, seen: &Seen) -> Reason {
        self.state = State::Compete;
        self.calm_since = None;
        self.rate = self.rate.max(seen.delivered);
        let known = seen.now - self.competition.left_at < SAME_RIVAL;
        let c = &mut self.competition;
        c.interval = if known { (c.interval * 2).min(TEST_INTERVAL_MAX) } else { TEST_INTERVAL };
        c.test_at = seen.now + c.interval;
        c.test = None;
        Reason::Competing
    }

    fn leave_competition(&mut self, seen: &Seen) -> Reason {
        self.state = State::Drain;
        self.competition.left_at = seen.now;
        (self.crowding, self.calm_since) = (Crowding::default(), None);
        self.level = seen.delivered;
        if seen.queue > seen.reference + self.p.margin {
            self.drain(seen)
        } else {
            self.track(seen)
        }
    }

    fn compete(&mut self, seen: &Seen) -> Reason {
        let p = self.p;
        if seen.queue > seen.reference {
            self.calm_since = None;
        } else {
            let calm = *self.calm_since.get_or_insert(seen.now);
            if seen.now - calm > p.t_yield {
                return self.leave_competition(seen);
            }
        }
        if let Some((until, queue)) = self.competition.test {
            if seen.queue < queue / 2 {
                return self.leave_competition(seen);
            }
            if seen.now < until {
                return Reason::BaseTest;
            }
            self.competition.test = None;
            self.competition.test_at = seen.now + self.competition.interval;
            self.rate = self.level;
        } else if self.competition.is_due(seen) {
            let until = seen.now + self.rtt() + p.t_test;
            self.competition.test = Some((until, seen.queue));
            self.level = self.rate;
            self.rate *= 1.0 - p.cut_max;
            return Reason::BaseTest;
        }
        if seen.congestion.is_some() {
            self.rate *= p.b_compete / p.b_loss;
        } else {
            let rtt = self.rtt().clamp(COMPETE_RTT.0, COMPETE_RTT.1).as_secs_f64();
            self.rate += p.a_compete * COMPETE_PACKET / (rtt * rtt) * seen.step;
            self.rate = self.rate.min(self.ceiling(seen)).max(self.limits.min().as_bps_f64());
        }
        self.level = self.rate;
        Reason::Competing
    }

    /// Starts and ends base tests: the pacer sends less for a round trip, so that the queue drains.
    fn test_base(&mut self, seen: &Seen) {
        let now = seen.now;
        if self.test_until.is_some_and(|until| until <= now) {
            self.test_until = None;
            self.retarget(self.reason);
        }
        let due = now - self.empty_at > self.p.t_base;
        if due && self.test_until.is_none() && self.state == State::Track {
            self.test_until = Some(now + self.rtt() + self.p.test_extra);
            self.empty_at = now;
            self.rate = self.rate.min(seen.delivered * self.p.test_rate);
            self.retarget(Reason::BaseTest);
        }
    }

    fn retarget(&mut self, reason: Reason) {
        let p = &self.p;
        let own = self.limits.clamp(Bitrate::from_bps_f64(self.rate));
        let bitrate = self.limits.cap(own, self.receiver_limit);
        if bitrate != self.target.bitrate {
            self.reason = if bitrate < own { Reason::ReceiverLimit } else { reason };
        }
        let drains = self.state == State::Drain || self.test_until.is_some();
        let factor = match self.ecn {
            _ if drains => p.pacing_drain,
            EcnMode::L4s => p.pacing_l4s,
            EcnMode::Off | EcnMode::Classic => p.pacing,
        };
        self.target =
            Target::new(bitrate, bitrate * factor).with_burst(Burst::Ahead(TimeDelta::ZERO));
    }
}

impl Controller for Sluice {
    fn on_packet_sent(&mut self, now: Timestamp, _packet: &SentPacket) {
        let patience = self.p.patience.max(self.report_interval * MISSED_REPORTS);
        self.silence.on_packet_sent(now, self.rtt, patience);
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        if report.packets.is_empty() {
            return;
        }
        self.silence.on_feedback();
        if self.measure(now, report) {
            self.update(now);
        }
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        self.retarget(Reason::ReceiverLimit);
    }

    fn on_shared_rate(&mut self, _now: Timestamp, share: Bitrate) {
        self.rate = share.as_bps_f64();
        self.level = self.rate;
        self.retarget(Reason::Coupled);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.silence.has_ended(now) {
            self.rate = (self.rate / 2.0).max(self.limits.min().as_bps_f64());
            self.level = self.rate;
            self.retarget(Reason::FeedbackLost);
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.silence.deadline()
    }

    fn target(&self) -> Target {
        self.target
    }

    fn metrics(&self) -> Metrics {
        let standing = self.queue.standing();
        Metrics::new(self.reason, self.state.as_str())
            .with_rtt(self.rtt)
            .with_queuing_delay(standing)
            .with_loss_ratio(self.losses.ratio())
            .with_acknowledged_bitrate(self.delivered.rate(self.p.w_level))
            .with_signals(Signals::new([
                ("reference_ms", self.reference().as_millis_f64()),
                ("queue_ms", standing.unwrap_or(TimeDelta::ZERO).as_millis_f64()),
                ("noise_ms", self.queue.noise().as_millis_f64()),
                ("level_kbps", self.level / 1e3),
                ("scale_ratio", self.scale),
            ]))
    }
}
