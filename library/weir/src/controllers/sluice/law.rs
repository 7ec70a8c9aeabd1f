//! The law of the rate: one step after each report, in one of four states.

use super::Sluice;
use super::competition::Test;
use super::parameters::Switch;
use super::policer::Verdict;
use crate::controller::{EcnMode, Reason};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Size of the packets by which additive growth counts: those of TCP (S-8, S-16).
const SEGMENT: DataSize = DataSize::from_bytes(1_500);
/// Doublings of the growth that are counted at most (S-11).
const DOUBLINGS_MAX: f64 = 16.0;

/// What the controller does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
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
    pub(super) const fn as_str(self) -> &'static str {
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
pub(super) struct Seen {
    pub(super) now: Timestamp,
    /// Seconds since the last report.
    pub(super) step_s: f64,
    /// The standing queue.
    pub(super) queue: TimeDelta,
    /// The reference delay.
    pub(super) reference: TimeDelta,
    /// Delivered rate over the long window.
    pub(super) delivered: Bitrate,
    /// Delivered rate over the short window.
    pub(super) delivered_soon: Bitrate,
    /// Rate of the packets reported on, received or not.
    pub(super) sent: Bitrate,
    /// A queue drops or marks packets: the response has been made.
    pub(super) congestion: Option<Reason>,
}

impl Seen {
    /// How far the queue is above the reference.
    fn excess(&self) -> TimeDelta {
        self.queue - self.reference
    }
}

/// A base test that has not been judged (S-38).
#[derive(Clone, Copy, Debug)]
pub(super) struct BaseTest {
    /// When its effect must have been seen.
    seen_by: Timestamp,
    /// What it drains of a queue of the flow's own.
    drains: TimeDelta,
    /// The delay at its beginning.
    delay: TimeDelta,
    /// The flow had the link for itself. The packets of the test, which wait for nothing, do not
    /// tell.
    is_own: bool,
}

impl Sluice {
    /// One step of the rate. Returns its reason.
    pub(super) fn step(&mut self, seen: &Seen) -> Reason {
        self.scale = (self.scale * (1.0 + self.p.g_scale * seen.step_s)).min(1.0);
        self.watch(seen);
        let kept = 1.0 - self.surplus() * self.p.g_track * seen.step_s; // S-27
        (self.level, self.rate) = (self.level * kept, self.rate * kept);
        // What was crowded may be calm by now, and long before crowding is taken back.
        let crowded = self.crowding.time() > self.p.t_rival * self.loops() + self.rtt()
            && self.calm_s.is_none()
            && seen.queue < self.p.t_effect
            && !self.sharing.is_alone(&self.p);
        let tries_less = self.tries_less(seen);
        let reason = match self.state {
            State::Compete => self.compete(seen),
            _ if crowded => self.enter_competition(seen),
            _ if seen.excess() > self.p.margin => self.drain(seen),
            _ if tries_less => Reason::BaseTest,
            State::Start if seen.congestion.is_none() => self.start(seen),
            State::Start | State::Track | State::Drain => self.track(seen),
        };
        let (least, most) = (self.settings.limits.min(), self.settings.limits.max());
        // Constants of an experiment must not make an empty range.
        self.level = self.level.min(most * self.p.level_max()).max(least);
        self.rate = self.rate.clamp(least, most);
        seen.congestion.unwrap_or(reason)
    }

    /// The response to losses and marks, at most once per round trip (S-7, S-8).
    pub(super) fn respond(&mut self, now: Timestamp) -> Option<Reason> {
        if self.responded.is_some_and(|last| now - last < self.rtt()) {
            return None;
        }
        let p = self.p;
        if self.policer.is_trying() {
            return None; // What was lost before is about to be judged.
        }
        let heavy = self.state == State::Compete && self.losses.is_heavy(&p);
        let lost = heavy || self.losses.is_congestion(&p);
        let marked = self.marks.take(p.alpha_gain);
        let (reason, factor) = match (lost, marked, self.settings.ecn) {
            (true, ..) => (Reason::Loss, p.b_loss),
            (false, Some(alpha), EcnMode::L4s) => {
                self.marked = Some(now);
                (Reason::Ecn, 1.0 - alpha / 2.0)
            }
            (false, Some(_), _) => (Reason::Ecn, p.b_loss),
            (false, None, _) => return None,
        };
        self.responded = Some(now);
        self.losses.on_response();
        self.level = self.level * factor;
        self.rate = self.rate.min(self.level);
        if self.settings.ecn != EcnMode::L4s {
            self.scale = (self.scale * p.b_loss).max(self.p.scale_min);
        }
        self.calm_s = None;
        Some(reason)
    }

    /// Keeps the times since when the queue is empty or crowded.
    pub(super) fn watch(&mut self, seen: &Seen) {
        let is_calm = seen.queue <= seen.reference / 2;
        self.calm_s = is_calm.then(|| self.calm_s.map_or(0.0, |time| time + seen.step_s));
        if self.calm_s.is_some_and(|time| time > self.p.t_effect.as_secs_f64()) {
            self.sharing.forget();
        }
        let packet = DataSize::from_bytes(self.p.d_rival as u64) / self.rate;
        let limit = seen.reference + self.p.q_rival.max(packet) * self.scale;
        let noise = self.queue.noise();
        self.crowding.update(seen.queue, limit, noise, seen.step_s, &self.p);
        if self.crowding.time() == TimeDelta::ZERO {
            self.uncrowded = self.level;
        }
        if seen.queue > self.p.q_stands {
            self.policer.on_queue(seen.now);
        }
        if seen.excess() > self.p.margin {
            self.policer.forget();
        }
        if seen.queue <= (seen.reference / 4).max(self.p.q_empty) {
            self.empty_at = seen.now;
        }
    }

    /// The largest rate to which the source's own rate allows to grow (S-21).
    fn ceiling(&self, seen: &Seen) -> Bitrate {
        (seen.sent * self.radio.blend(self.p.limited, self.p.limited * 2.0))
            .max(self.settings.limits.start())
    }

    /// S-9
    fn start(&mut self, seen: &Seen) -> Reason {
        let grown = self.rate * libm::exp(self.p.g_start * seen.step_s);
        self.rate = grown.min(self.ceiling(seen)).max(self.rate);
        self.level = self.rate;
        Reason::RampUp
    }

    /// S-13
    fn drain(&mut self, seen: &Seen) -> Reason {
        if self.state != State::Drain {
            self.state = State::Drain;
            self.drains_since = seen.now;
            self.anchor = self.level;
        }
        let held = self.held(seen);
        if self.queue.stepped_within(seen.now, self.p.t_base())
            && self.crowding.is_flat(self.queue.noise(), &self.p)
            && held == Bitrate::ZERO
            && seen.congestion.is_none()
            && !self.longer_path.is_suspected()
        {
            // S-19: less is sent, and the delay is the same. The path has become longer.
            self.queue.forget_step();
            self.on_longer_path(self.anchor);
        }
        let cut_max = self.radio.blend(self.p.cut_max, self.p.cut_max * 2.0);
        let cut = self.correction(seen).min(cut_max);
        if seen.delivered_soon < self.level * self.p.fell {
            self.sharing.forget();
        }
        let lower = self.level.min(seen.delivered_soon);
        self.level = self.follow(lower, seen);
        let passes = self.radio.between(seen.delivered_soon, self.level);
        self.approach((passes * (1.0 - cut)).max(held), seen);
        Reason::QueuingDelay
    }

    /// What is left of the rate beside a rival that has not been recognised yet (S-15).
    fn held(&self, seen: &Seen) -> Bitrate {
        let is_suspect = self.crowding.time() > self.p.t_effect * 2
            && seen.queue < self.p.t_effect
            && !self.sharing.is_alone(&self.p);
        if is_suspect { self.uncrowded * self.p.share_kept } else { Bitrate::ZERO }
    }

    /// The level while a queue stands: this one on a wired link, the rate of the last moments on a
    /// radio link (S-29).
    fn follow(&self, wired: Bitrate, seen: &Seen) -> Bitrate {
        let Some(capacity) = self.radio.capacity() else { return wired };
        let share = (seen.step_s / (self.p.t_loop / 2).as_secs_f64()).min(1.0);
        self.radio.between(wired, self.level * (1.0 - share) + capacity * share)
    }

    /// S-36: sends less for a while, if losses without a queue may be those of a policer. Returns
    /// whether a trial runs.
    fn tries_less(&mut self, seen: &Seen) -> bool {
        self.policer.forget_above(self.level, &self.p);
        match self.policer.judge(seen.now, &self.p) {
            Verdict::Running => return true,
            Verdict::Return(rate) => {
                self.rate = rate;
                return true;
            }
            Verdict::Policed(rate) => {
                self.losses.on_policed();
                self.level = rate * self.p.policed;
                return false;
            }
            Verdict::OfPath => return false,
            Verdict::None => {}
        }
        // What arrived is the policer's rate only while it drops.
        let lately = seen.now - self.rtt() - self.p.w_level;
        let may_be = self.policer.empty_since(seen.now - self.p.t_effect)
            && !self.is_round_trip
            && self.p.has(Switch::Policer)
            && matches!(self.state, State::Start | State::Track)
            && self.losses.exceeds_base(&self.p)
            && self.policer.lost_since(lately);
        let needed = self.policer.needed(seen.now, self.losses.real(), &self.p);
        let Some(needed) = needed.filter(|_| may_be) else { return false };
        let rate = self.rate.min(seen.delivered * self.p.b_loss);
        let packet_time = DataSize::from_bytes(self.packet_bytes as u64) / rate;
        if packet_time * needed > self.p.t_rival {
            return false;
        }
        // Not all that was too much: little above what passes is enough to lose some.
        let more = seen.delivered * (2.0 - self.p.b_loss);
        self.policer.begin(seen.now, needed, (more, seen.delivered), &self.p);
        self.state = State::Track;
        self.rate = rate;
        true
    }

    /// S-10, S-11, S-13
    fn track(&mut self, seen: &Seen) -> Reason {
        if self.state == State::Start {
            self.level = self.level.min(seen.delivered_soon);
        }
        self.state = State::Track;
        let mut reason = Reason::Increase;
        if let Some(calm_s) = self.calm_s {
            let growth = self.growth(seen, calm_s);
            if growth >= self.steepest() {
                reason = Reason::RampUp;
            }
            let mut grown = self.level * libm::exp(growth * seen.step_s);
            if let Some(rate) = self.policer.rate() {
                let slowly = self.level * libm::exp(self.p.g_scale * seen.step_s);
                grown = grown.min((rate * self.p.policed).max(slowly)); // S-36
            }
            self.level = grown.min(self.ceiling(seen)).max(self.level);
        } else if seen.congestion.is_none() && !self.uses_little(seen) {
            let mut share = (seen.step_s / self.p.t_loop.as_secs_f64()).min(1.0);
            if seen.delivered > self.level {
                share *= self.gentle(0.0); // S-27: what others leave is not taken.
            }
            let level = self.level * (1.0 - share) + seen.delivered * share;
            self.level = self.follow(level, seen);
        }
        let excess = self.correction(seen);
        self.approach(self.level * (1.0 - excess), seen);
        match excess > 0.0 {
            // Without S-27 the queue would not be too long.
            true if seen.queue <= self.reference_alone() => Reason::GivingWay,
            true => Reason::QueuingDelay,
            false => reason,
        }
    }

    /// The share of the rate that corrects the queue (S-13).
    fn correction(&self, seen: &Seen) -> f64 {
        let on = self.p.has(Switch::Correction);
        if on { seen.excess() / self.correction_time() } else { 0.0 }
    }

    /// Whether all that is sent arrives, and is much less than the level: that says nothing about
    /// the capacity (S-10).
    fn uses_little(&self, seen: &Seen) -> bool {
        seen.sent < self.level * self.p.used && seen.delivered >= seen.sent * self.p.used
    }

    /// Growth per second after this many seconds without a queue (S-8, S-11).
    fn growth(&self, seen: &Seen, calm_s: f64) -> f64 {
        let p = &self.p;
        if let Some(additive) = self.marked_growth(seen.now) {
            return additive;
        }
        let doublings = (calm_s / p.t_double.as_secs_f64()).min(DOUBLINGS_MAX);
        let is_known = self.level < self.anchor * self.p.recovered;
        let (least, most) = match is_known {
            true => (p.g_recover, p.g_climb),
            false => (0.0, self.steepest()),
        };
        let most = most * self.gentle(p.share_kept);
        let mut wired = (p.g_track * libm::exp2(doublings)).max(least).min(most);
        let delay = self.loop_delay();
        if delay > TimeDelta::ZERO {
            // What is too much is seen a report later.
            wired = wired.min(p.q_report / delay / seen.step_s.max(p.step_max().as_secs_f64()));
        }
        let path_s = self.path_time().as_secs_f64();
        if path_s > p.t_loop.as_secs_f64() {
            // So is the queue that it makes in a long round trip.
            wired = wired.min(p.q_report.as_secs_f64() * 2.0 / (path_s * path_s));
        }
        let is_late = calm_s > p.t_soon.as_secs_f64();
        if is_late { self.radio.blend(wired, p.g_start) } else { wired }
    }

    /// The additive growth per second, if packets were marked a short time ago (S-8).
    fn marked_growth(&self, now: Timestamp) -> Option<f64> {
        let is_on = self.p.has(Switch::Marked);
        self.marked.filter(|&at| is_on && now - at < self.p.t_effect * 2)?;
        Some(self.additive(self.p.a_marked))
    }

    /// The fastest growth per second. Under L4S a mark comes a round trip after what was too much,
    /// so the growth in a round trip is bounded where the capacity is not known (S-8).
    fn steepest(&self) -> f64 {
        match self.settings.ecn {
            EcnMode::L4s => self.p.g_climb.min(self.p.g_l4s / self.rtt_counted().as_secs_f64()),
            EcnMode::Off | EcnMode::Classic => self.p.g_climb,
        }
    }

    /// The round-trip time by which additive growth counts.
    fn rtt_counted(&self) -> TimeDelta {
        self.rtt().min(self.p.t_loop).max(self.p.rtt_min())
    }

    /// Growth per second, relative to the rate, that adds `packets` per round trip to the data in
    /// flight: flows of different rates then come to the same rate.
    fn additive(&self, packets: f64) -> f64 {
        let rtt = self.rtt_counted();
        SEGMENT / rtt / self.level * packets / rtt.as_secs_f64()
    }

    /// Falls to the goal at once, and rises to it by steps that a source can follow (S-21).
    fn approach(&mut self, goal: Bitrate, seen: &Seen) {
        let fastest = self.marked_growth(seen.now).unwrap_or(0.0).max(self.p.g_climb);
        let growth = self.radio.blend(fastest, self.p.g_return);
        let is_held = seen.now < self.held_until;
        let step_s = if is_held { 0.0 } else { seen.step_s };
        let most = self.rate * libm::exp(growth * step_s);
        self.rate = if self.p.has(Switch::Steps) { goal.min(most) } else { goal };
    }

    /// S-15
    fn enter_competition(&mut self, seen: &Seen) -> Reason {
        self.state = State::Compete;
        self.calm_s = None;
        self.rate = self.rate.max(seen.delivered).max(self.held(seen));
        self.level = self.rate;
        self.rival_tests.on_enter(seen.now, &self.p);
        Reason::Competing
    }

    /// Whether a test of the rival is due (S-17).
    fn tests_rival(&self, seen: &Seen) -> bool {
        self.p.has(Switch::RivalTests)
            && self.rival_tests.is_due(seen.now, seen.congestion.is_some(), &self.p)
    }

    fn leave_competition(&mut self, seen: &Seen) -> Reason {
        self.rival_tests.on_leave(seen.now);
        (self.crowding, self.calm_s) = (Default::default(), None);
        self.level = seen.delivered;
        self.state = State::Track;
        if seen.excess() > self.p.margin { self.drain(seen) } else { self.track(seen) }
    }

    /// S-16, S-17
    fn compete(&mut self, seen: &Seen) -> Reason {
        let p = self.p;
        let is_calm = self.calm_s.is_some_and(|time| time > p.t_effect.as_secs_f64());
        if is_calm || seen.queue > p.t_effect || self.sharing.is_alone(&p) {
            return self.leave_competition(seen);
        }
        match self.rival_tests.check(seen.now, seen.queue) {
            Test::RivalIsGone => return self.leave_competition(seen),
            Test::Running => return Reason::BaseTest,
            Test::RivalStays => self.rate = self.level,
            Test::None if self.tests_rival(seen) => {
                self.rival_tests.begin(seen.now + self.rtt() + p.t_effect, seen.queue);
                self.level = self.rate;
                self.rate = self.rate * (1.0 - p.cut_max);
                return Reason::BaseTest;
            }
            Test::None => {}
        }
        if seen.congestion.is_some() {
            self.rate = self.rate * (p.b_compete / p.b_loss);
        } else {
            // A round trip must not grow by more than a loss takes back.
            let rtt_s = self.rtt().max(self.p.rtt_min()).as_secs_f64();
            let most = p.g_compete.min((1.0 - p.b_compete) / rtt_s);
            let growth = self.additive(p.a_compete).min(most);
            let grown = self.rate * (1.0 + growth * seen.step_s);
            self.rate = grown.min(self.ceiling(seen));
        }
        self.level = self.rate;
        Reason::Competing
    }

    /// Begins or ends a base test (S-20). Returns whether one begins.
    pub(super) fn test_base(&mut self, seen: &Seen) -> bool {
        if self.test_until.is_some_and(|until| until <= seen.now) {
            self.test_until = None;
        }
        self.judge_base(seen);
        let is_due = seen.now - self.empty_at > self.base_holds(seen);
        if !is_due
            || !self.p.has(Switch::BaseTest)
            || self.test_until.is_some()
            || self.policer.is_trying()
            || !self.may_test(seen.now)
        {
            return false;
        }
        // Its effect must be in two buckets and in two reports.
        let held = self.needs_to_drain(seen.queue + self.packet_time());
        let length = self.rtt() + self.p.t_soon.max(self.report_interval() * 2).max(held);
        let until = seen.now + length;
        self.base_test = self.queue.usual_delay().map(|delay| BaseTest {
            seen_by: until + length,
            drains: length * self.p.test_cut() * self.sharing.own(),
            delay,
            is_own: self.is_queue_own(),
        });
        self.queue.begin_test();
        self.test_until = Some(until);
        self.held_until = seen.now + held;
        self.empty_at = seen.now;
        self.rate = self.rate.min(seen.delivered * (1.0 - self.p.test_cut()));
        true
    }

    /// Whether the state allows a base test: a drain that has lasted so long drains nothing.
    fn may_test(&self, now: Timestamp) -> bool {
        match self.state {
            State::Track => true,
            State::Drain => now - self.drains_since > self.p.t_base(),
            State::Start | State::Compete => false,
        }
    }

    /// For how long a base test must hold the rate until this queue is empty. Some of it drains
    /// while the rate returns by the steps of S-21.
    fn needs_to_drain(&self, queue: TimeDelta) -> TimeDelta {
        if self.is_round_trip {
            return TimeDelta::ZERO; // A round-trip time is long without a queue, too.
        }
        let cut = self.p.test_cut();
        let returns = TimeDelta::from_secs_f64(cut / self.p.g_climb / 2.0);
        (queue * (1.0 / cut) - returns).max(TimeDelta::ZERO)
    }

    /// For how long a sight of the empty path counts (S-20). A trend may turn: before the base is
    /// wrong by the reference, it is tested.
    fn base_holds(&self, seen: &Seen) -> TimeDelta {
        let wrong_by = 2.0 * self.queue.trend().abs();
        let t_base = self.p.t_base();
        if t_base * wrong_by <= seen.reference {
            return t_base;
        }
        (seen.reference * (1.0 / wrong_by)).max(self.p.t_effect)
    }

    /// Whether a queue is of the flow alone, or most of it and without the noise of others. A base
    /// that is too low makes the own part fall, because packets seem to wait behind others.
    fn is_queue_own(&self) -> bool {
        let own = self.sharing.own();
        let is_quiet = self.queue.noise() < self.p.q_sight;
        own > self.p.share_alone || own > self.p.share_fair && is_quiet
    }

    /// What a base test has shown, once its effect must have been seen.
    fn judge_base(&mut self, seen: &Seen) {
        let Some(test) = self.base_test.filter(|test| test.seen_by <= seen.now) else { return };
        self.base_test = None;
        if matches!(self.state, State::Track | State::Drain) {
            self.judge_floor(seen, &test);
        }
    }

    /// S-19: the path is longer, and this was the level before. What stands is the base.
    pub(super) fn on_longer_path(&mut self, level: Bitrate) {
        self.queue.rebase();
        self.crowding = Default::default();
        self.level = self.level.max(level);
        if self.state == State::Drain {
            self.state = State::Track;
        }
    }

    /// S-38: the delay fell by less than the test drains. So the path was empty at the end, and the
    /// smallest delay in it is the base. Others would have refilled a queue that is shared.
    fn judge_floor(&mut self, seen: &Seen, test: &BaseTest) {
        // What is sent falls by whole packets.
        let drains = test.drains * (1.0 - self.p.moved_fall) - self.packet_time();
        let is_clear = seen.congestion.is_none()
            && test.is_own
            && self.p.has(Switch::Trend)
            && self.crowding.time() == TimeDelta::ZERO
            && self.radio.belief() == 0.0
            && !self.is_round_trip;
        if is_clear && test.delay - self.queue.lowest() < drains {
            self.queue.prove_base(seen.now, &self.p);
        }
    }
}
