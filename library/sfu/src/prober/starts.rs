//! When a probe starts, what it looks for, and how it is paid for.

use weir::controller::{Controller, Probe};
use weir::feedback::{FeedbackReport, ProbeId};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::{
    AFTER_SUCCESS, ANSWER_MEMORY, MAX_PATIENCE, MAX_SILENCE, MIN_ALLOWANCE, ProbeResult, Probing,
    Running, WHILE_OPEN,
};

/// How long a probe lasts. Its queue drains within some hundred milliseconds even if only half of
/// its rate fits.
const LENGTH: TimeDelta = TimeDelta::from_millis(80);
/// A probe is at most this factor above the target.
const MAX_FACTOR: f64 = 2.0;
/// Where answers take long and the path has not been full, the factor is higher, as if a climb
/// doubled once in this time, up to another bound. Such a probe is shorter: it has the size of one
/// at [`MAX_FACTOR`], and leaves a queue of 107 ms in place of 80 if nothing more fits.
const DOUBLING_TIME: TimeDelta = TimeDelta::from_millis(300);
const MAX_SLOW_FACTOR: f64 = 3.0;
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
/// Without feedback on its last packets, a probe is given up after this many times the longest time
/// to an answer: the report on them was lost. Later reports do not repeat it.
const PATIENCE: f64 = 1.5;
const MIN_PATIENCE: TimeDelta = TimeDelta::from_millis(300);

impl<C: Controller> Probing<C> {
    /// Ends a probe of which nothing is heard.
    fn give_up(&mut self, now: Timestamp) {
        let Some(running) = self.running else { return };
        let patience = (self.answer * PATIENCE).clamp(MIN_PATIENCE, MAX_PATIENCE);
        let since = running.last.map_or(running.started, |(_, at)| at);
        if now - since <= patience {
            return;
        }
        self.running = None;
        // The feedback on its end was lost. What was heard of the rest is as good.
        if let Some(train) = self.trains.take_probe(running.probe.id) {
            self.judge_probe(now, running, train);
            return;
        }
        // A path that carries nothing is not made worse. While media leaves, no probe starts before
        // feedback comes again.
        self.not_before = if self.is_idle(now) { now } else { now + AFTER_SUCCESS };
        self.note(now, ProbeResult::Unanswered);
    }

    /// Ends a probe of which too little was reported, when later packets are.
    pub(super) fn end_unheard(&mut self, now: Timestamp, report: &FeedbackReport) {
        let Some(newest) = report.packets.last() else { return };
        if self.running.is_some_and(|running| running.is_over(newest.sequence_number)) {
            self.running = None;
            self.not_before = now + WHILE_OPEN;
            self.note(now, ProbeResult::Unanswered);
        }
    }

    /// How long feedback takes from a packet on.
    pub(super) fn measure_answer(&mut self, now: Timestamp, report: &FeedbackReport) {
        let Some(first) = report.packets.first() else { return };
        let age = (now - first.send_time).clamp(TimeDelta::ZERO, MAX_PATIENCE);
        let Some(last) = self.last_feedback else {
            self.answer = age;
            return;
        };
        let share = ((now - last) / ANSWER_MEMORY).clamp(0.0, 1.0);
        self.answer = age.max(self.answer + (age - self.answer) * share);
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
        let is_idle = self.is_idle(now);
        let stale = stale.filter(|proof| !is_idle && goal > self.inner_rate && proof.rate > relied);
        let is_known = goal <= known && stale.is_none();
        if is_known || self.running.is_some() || now < self.not_before || !self.may_send(now) {
            return;
        }
        // The bound is for what leaves. A host that wakes up late lets less leave than it is asked.
        let late = if self.shortfall > LATE { self.shortfall } else { 1.0 };
        let rate =
            (goal * ABOVE_GOAL * self.shortfall).min(known * (self.max_factor(known) * late));
        let rate = stale.map_or(rate, |proof| rate.min(proof.rate * self.shortfall));
        let size = rate.min(known * (MAX_FACTOR * late)) * LENGTH;
        let size = if is_idle { size.max(MIN_IDLE_SIZE) } else { size };
        let is_most = self.limits.max() <= known && stale.is_none();
        if !self.may_pay(size) || is_most {
            return;
        }
        let probe = Probe::new(ProbeId(self.next_id), rate, size, 6);
        self.next_id += 1;
        let (sent, last) = (DataSize::ZERO, None);
        let inner_rate = self.inner_rate;
        self.running = Some(Running { probe, started: now, inner_rate, sent, last });
        self.note(now, ProbeResult::Started(probe));
    }

    /// How far above what is known a probe may be.
    fn max_factor(&self, known: Bitrate) -> f64 {
        let was_full = self.ceiling.rate().is_some() && !self.is_open && !self.has_fitted(known);
        if was_full || self.last_feedback.is_none() {
            return MAX_FACTOR;
        }
        libm::exp2(self.answer / DOUBLING_TIME).clamp(MAX_FACTOR, MAX_SLOW_FACTOR)
    }

    /// Whether far more than what is known has arrived since the path was last full, as before an
    /// outage.
    pub(super) fn has_fitted(&self, known: Bitrate) -> bool {
        self.ceiling.rate().is_some_and(|full| known * MAX_SLOW_FACTOR < full)
    }

    /// What the next probe looks for: what is asked for next, or more, up to all that is wanted.
    fn probe_goal(&self, next: Bitrate, known: Bitrate) -> Bitrate {
        let wanted = self.wanted.map_or(next, |wanted| next.max(wanted));
        if self.is_open || self.has_fitted(known) {
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
