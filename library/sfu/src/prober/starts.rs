//! When a probe starts, what it looks for, and how it is paid for.

use weir::controller::{Controller, Probe};
use weir::feedback::ProbeId;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::{
    AFTER_SUCCESS, MAX_PATIENCE, MAX_SILENCE, MIN_ALLOWANCE, ProbeResult, Probing, Running,
};

/// How long a probe lasts. Its queue drains within some hundred milliseconds even if only half of
/// its rate fits.
const LENGTH: TimeDelta = TimeDelta::from_millis(80);
/// A probe is at most this factor above the target.
const MAX_FACTOR: f64 = 2.0;
/// A probe is a little above its goal: pacers wake up late, so less is sent and measured.
const ABOVE_GOAL: f64 = 1.1;
/// A shortfall above this is a late host's. Packets of different sizes make a smaller one, too.
const LATE: f64 = 1.2;
/// What padding may take at once, at the start and after a time without: what is sent in this time,
/// or [`MIN_ALLOWANCE`] if that is more. It is one probe at twice the rate that is known.
const ALLOWANCE_TIME: TimeDelta = TimeDelta::from_millis(160);
/// After a probe that arrived the next one looks at least this part further, and twice as much
/// after each more: many steps to many layers would take long.
const FIRST_STEP: f64 = 1.0 / 8.0;
/// After so many probes that arrived, each takes about twice as much as the one before.
const RISING: u32 = 3;
/// Where more is wanted, it is a share of this part of what is known to fit, if media is below
/// that.
const LEAST_PAID: f64 = 0.25;
/// The same where [`FAR`] times as much is wanted as is known to fit: most pictures are paused
/// then, or small. Probes that fail come so rarely that they take a fiftieth of it.
const FAR_PAID: f64 = 4.0;
const FAR: f64 = 4.0;
/// The same while nothing is sent: it is not taken from media, and no picture is worse than ten
/// seconds of probes. Probes that fail come so rarely that they take less.
const IDLE_PAID: f64 = 10.0;
/// What a climb owes at most, at what is known to fit: after a probe of twice that, which may begin
/// with twice its size owed. If less is known to fit from now on, less is owed.
const MAX_DEBT_TIME: TimeDelta = TimeDelta::from_millis(480);
/// At least so many bytes per second may go into probes while nothing else is sent, so that a
/// paused picture does not wait for feedback that cannot come.
const IDLE_ALLOWANCE: f64 = 1_000.0;
/// Padding packets are small. Without media between them, this much is enough packets to judge.
const MIN_IDLE_SIZE: DataSize = DataSize::from_bytes(2_400);
/// After this time it is probed again, if more than the inner target is needed.
const RENEW_AFTER: TimeDelta = TimeDelta::from_secs(12);
/// Without feedback on its packets, a probe is given up after this many times the usual time to an
/// answer. Feedback may come every 2 s, and half of it may be lost.
const PATIENCE: i64 = 3;
const MIN_PATIENCE: TimeDelta = TimeDelta::from_secs(1);

impl<C: Controller> Probing<C> {
    /// Ends a probe of which nothing is heard.
    fn give_up(&mut self, now: Timestamp) {
        let patience = (self.answer * PATIENCE).clamp(MIN_PATIENCE, MAX_PATIENCE);
        let Some(running) = self.running.filter(|it| now - it.started > patience) else { return };
        self.running = None;
        // The feedback on its end was lost. What was heard of the rest is as good.
        if let Some(train) = self.trains.take_probe(running.probe.id) {
            self.judge_probe(now, running, train);
            return;
        }
        let is_heard = self.last_feedback.is_some_and(|at| at > running.started);
        // A path that carries nothing is not made worse. If other feedback came, only that on the
        // probe was lost.
        self.not_before = match (self.is_idle(now), is_heard) {
            (true, _) => now,
            (false, true) => now + AFTER_SUCCESS,
            (false, false) => now + self.after_failure,
        };
        self.note(now, ProbeResult::Unanswered);
    }

    /// Starts a probe if one is needed, cannot hurt, and is paid for.
    pub(super) fn consider(&mut self, now: Timestamp) {
        self.give_up(now);
        let Some(next) = self.goal.filter(|_| self.fixed.is_none()) else { return };
        let known = self.room();
        let goal = self.probe_goal(next, known);
        // First what is relied on already, then more.
        let stale = self.proved.filter(|proof| now - proof.at > RENEW_AFTER);
        let relied = self.unproved();
        let stale = stale.filter(|proof| goal > self.inner_rate && proof.rate > relied);
        let is_known = goal <= known && stale.is_none();
        if is_known || self.running.is_some() || now < self.not_before || !self.may_send(now) {
            return;
        }
        // The bound is for what leaves. A host that wakes up late lets less leave than it is asked.
        let late = if self.shortfall > LATE { self.shortfall } else { 1.0 };
        let rate = (goal * ABOVE_GOAL * self.shortfall).min(known * (MAX_FACTOR * late));
        let rate = stale.map_or(rate, |proof| rate.min(proof.rate * self.shortfall));
        let size = rate * LENGTH;
        let size = if self.is_idle(now) { size.max(MIN_IDLE_SIZE) } else { size };
        let is_most = self.limits.max() <= known && stale.is_none();
        if !self.may_pay(size) || is_most {
            return;
        }
        let probe = Probe::new(ProbeId(self.next_id), rate, size, 6);
        self.next_id += 1;
        self.running = Some(Running { probe, started: now, inner_rate: self.inner_rate });
        self.note(now, ProbeResult::Started(probe));
    }

    /// What the next probe looks for: what is asked for next, or more, up to all that is wanted.
    fn probe_goal(&self, next: Bitrate, known: Bitrate) -> Bitrate {
        let wanted = self.wanted.map_or(next, |wanted| next.max(wanted));
        if self.is_open {
            return wanted;
        }
        if self.arrived == 0 {
            return next;
        }
        let doublings = self.arrived.min(RISING + 1) - 1;
        let step = FIRST_STEP * f64::from(1_u32 << doublings);
        next.max(known * (1.0 + step)).min(wanted)
    }

    /// Whether padding may take this much. While probes arrive each takes twice as much as the one
    /// before, so its media pays later.
    fn may_pay(&self, size: DataSize) -> bool {
        let size = size.as_bytes() as f64;
        let is_rising = self.is_open || self.arrived >= RISING;
        self.allowance >= if is_rising { -2.0 * size } else { size }
    }

    /// Ends what padding owes for a climb: the media that was to pay is not sent. What it owes at
    /// most is what it may take at once at what is left: the target `inner`, or what is proved.
    pub(super) fn end_climb(&mut self, inner: Bitrate) {
        let left = inner.max(self.proved.map_or(Bitrate::ZERO, |proof| proof.rate));
        let most = (left * ALLOWANCE_TIME).as_bytes() as f64;
        self.allowance = self.allowance.max(-most);
    }

    pub(super) fn max_allowance(&self) -> f64 {
        MIN_ALLOWANCE.max((self.budget() * ALLOWANCE_TIME).as_bytes() as f64)
    }

    /// Whether nothing has been sent for a while.
    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        self.last_sent.is_some_and(|last| now - last > MAX_SILENCE)
    }

    /// Whether the path is known to be alive, or nothing was sent that could show it.
    fn may_send(&self, now: Timestamp) -> bool {
        let is_heard = self.last_feedback.is_some_and(|at| now - at <= MAX_SILENCE);
        is_heard || self.is_idle(now)
    }

    /// Lets the allowance grow while more is wanted and little is sent.
    pub(super) fn refill(&mut self, now: Timestamp) {
        self.last_sent.get_or_insert(now);
        let debt = (self.bitrate() * MAX_DEBT_TIME).as_bytes() as f64;
        self.allowance = self.allowance.max(-debt.max(MIN_ALLOWANCE));
        let last = self.refilled.replace(now).unwrap_or(now);
        if self.goal.is_none() || now <= last {
            return;
        }
        let share = self.padding_share * (self.budget() * (now - last)).as_bytes() as f64;
        let is_far = self.wanted.is_some_and(|wanted| wanted > self.budget() * FAR);
        let mut more = share * if is_far { FAR_PAID } else { LEAST_PAID };
        if self.is_idle(now) {
            more = (share * IDLE_PAID).max(IDLE_ALLOWANCE * (now - last).as_secs_f64());
        }
        // What media has paid counts first, for up to a second.
        let most = self.padding_share * (self.budget() * MAX_SILENCE).as_bytes() as f64;
        let paid = (self.paid - more).min(most);
        self.paid = paid.max(0.0);
        self.allowance = (self.allowance + (-paid).max(0.0)).min(self.max_allowance());
    }
}
