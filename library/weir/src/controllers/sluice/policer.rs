//! Whether a policer drops what exceeds its rate (S-36).
//!
//! A policer delays nothing, so only its losses show it, and a path that loses at random looks the
//! same. But a policer loses nothing of a flow that sends less than its rate. So while there are
//! losses without a queue, a trial sends less for a short while, and then as much as before. Losses
//! that end and begin again with the rate are those of a policer, if the delay has not fallen
//! meanwhile: a short queue drops, too.
//!
//! Losses come in bursts, and the end of one says nothing. So what is counted is the beginnings of
//! bursts, and a trial lasts until several of them are missing.

use super::Parameters;
use super::in_order::InOrder;
use crate::units::{Bitrate, TimeDelta, Timestamp};

/// Number of packets over which the bursts of losses are counted.
const WINDOW: f64 = 200.0;
/// What is left of an older packet after another one.
const KEEP: f64 = WINDOW / (WINDOW + 1.0);
/// Packets that must have been seen before the bursts count.
const ENOUGH: f64 = 40.0;
/// Share of a packet in the mean delay before a trial.
const DELAY_GAIN: f64 = 1.0 / 64.0;
/// Bursts that are chance: as many in a trial do not say that the losses go on.
const CHANCE: f64 = 1.0;
/// The losses must come back within so many times the longest trial: the bucket of a policer is
/// full by then.
const BACK: f64 = 1.5;
/// Longest wait between two trials, in times of the first one.
const WAITS: f64 = 128.0;

/// What a trial sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Less than what arrived.
    Less,
    /// As much as before.
    Back,
}

/// A test of what causes the losses.
#[derive(Clone, Copy, Debug)]
struct Trial {
    phase: Phase,
    /// Packets that were sent from here on count.
    since: Timestamp,
    /// Without a verdict by then there is none.
    until: Timestamp,
    /// Packets without losses after which they have ended, and what was seen of them.
    needed: f64,
    packets: f64,
    bursts: f64,
    /// Delay above the base of those that arrived, in seconds, and their number.
    delay_s: f64,
    arrived: f64,
    /// The rate before, and what arrived of it: the rate of the policer, if there is one.
    before: Bitrate,
    passed: Bitrate,
}

/// What is known of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is no trial.
    None,
    /// The trial is not over.
    Running,
    /// The losses have ended. From now on as much is sent as before: this rate.
    Return(Bitrate),
    /// A policer lets this rate through.
    Policed(Bitrate),
    /// The losses belong to the path.
    OfPath,
}

/// Losses without a queue, and trials of what causes them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    packets: f64,
    bursts: f64,
    /// Mean delay above the base outside of trials.
    delay_s: f64,
    /// The newest packet got lost.
    in_burst: bool,
    /// When the newest packet that got lost was sent.
    lost_at: Option<Timestamp>,
    /// When a queue stood last.
    queue_at: Timestamp,
    trial: Option<Trial>,
    /// The rate that a policer lets through.
    rate: Option<Bitrate>,
    /// No trial before this time, and the wait after the next one that fails.
    next: Timestamp,
    wait: Option<TimeDelta>,
}

impl Policer {
    /// The next packet in the order of sending arrived, with this delay above the base.
    pub(super) fn on_arrived(&mut self, sent: Timestamp, delay: TimeDelta) {
        let delay_s = delay.as_secs_f64();
        match &mut self.trial {
            Some(trial) if sent >= trial.since => {
                trial.delay_s += delay_s;
                trial.arrived += 1.0;
            }
            Some(_) => {}
            None => self.delay_s += DELAY_GAIN * (delay_s - self.delay_s),
        }
    }

    /// The next packet in the order of sending arrived or got lost.
    pub(super) fn on_packet(&mut self, sent: Timestamp, is_lost: bool) {
        let begins = f64::from(is_lost && !self.in_burst);
        self.in_burst = is_lost;
        if is_lost {
            self.lost_at = Some(sent);
        }
        match &mut self.trial {
            Some(trial) if sent >= trial.since => {
                trial.packets += 1.0;
                trial.bursts += begins;
            }
            Some(_) => {}
            None => {
                self.packets = self.packets * KEEP + 1.0;
                self.bursts = self.bursts * KEEP + begins;
            }
        }
    }

    /// The packets of a stretch arrived, while there is no trial. A delay above `base`, by the
    /// receiver's clock, is above the base.
    pub(super) fn on_stretch(&mut self, stretch: &InOrder, base: TimeDelta) {
        self.in_burst = false;
        // Without losses, the counts come to a point from where on nothing changes them.
        if self.bursts > 0.0 || self.packets * KEEP + 1.0 != self.packets {
            for _ in stretch.packets {
                self.packets = self.packets * KEEP + 1.0;
                self.bursts *= KEEP;
            }
        }
        let mut mean_s = self.delay_s;
        for delay in stretch.delays() {
            mean_s += DELAY_GAIN * ((*delay - base).as_secs_f64() - mean_s);
        }
        self.delay_s = mean_s;
    }

    /// The rate of the policer, if there is one.
    pub(super) fn rate(&self) -> Option<Bitrate> {
        self.rate
    }

    /// Whether a trial runs.
    pub(super) fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Whether a trial sends less.
    pub(super) fn sends_less(&self) -> bool {
        self.trial.is_some_and(|trial| trial.phase == Phase::Less)
    }

    /// A queue shows the capacity, or the path is another one.
    pub(super) fn forget(&mut self) {
        (self.trial, self.rate) = (None, None);
    }

    /// The rate has grown so far without losses that the policer is gone.
    pub(super) fn forget_above(&mut self, level: Bitrate, p: &Parameters) {
        if self.rate.is_some_and(|rate| level * p.fell > rate) {
            self.rate = None;
        }
    }

    /// A queue stands now.
    pub(super) fn on_queue(&mut self, now: Timestamp) {
        self.queue_at = now;
    }

    /// Whether no queue has stood since this time.
    pub(super) fn empty_since(&self, time: Timestamp) -> bool {
        self.queue_at <= time
    }

    /// Whether a packet was lost that was sent after this time.
    pub(super) fn lost_since(&self, time: Timestamp) -> bool {
        self.lost_at.is_some_and(|at| at >= time)
    }

    /// Packets of a trial after which the losses have ended: `TRIAL_LOSSES` bursts are missing.
    /// `None` if no trial is due. `real` is the part of the losses that did not arrive after all.
    pub(super) fn needed(&self, now: Timestamp, real: f64, p: &Parameters) -> Option<f64> {
        let bursts = self.bursts * real;
        let is_due = now >= self.next && self.packets >= ENOUGH && bursts > 0.0;
        is_due.then(|| p.losses * self.packets / bursts)
    }

    /// Begins a trial of so many packets. The rate was `before`, and `passed` of it arrived.
    pub(super) fn begin(
        &mut self,
        now: Timestamp,
        needed: f64,
        (before, passed): (Bitrate, Bitrate),
        p: &Parameters,
    ) {
        self.trial = Some(Trial {
            phase: Phase::Less,
            since: now,
            until: now + p.t_rival * 2.0,
            needed,
            packets: 0.0,
            bursts: 0.0,
            delay_s: 0.0,
            arrived: 0.0,
            before,
            passed,
        });
    }

    /// Moves the trial on once it can be judged.
    pub(super) fn judge(&mut self, now: Timestamp, p: &Parameters) -> Verdict {
        let Some(trial) = self.trial else { return Verdict::None };
        let is_lossy = trial.bursts > CHANCE;
        match trial.phase {
            Phase::Less if is_lossy => self.fail(now, p),
            Phase::Less if trial.packets >= trial.needed && self.has_drained(&trial, p) => {
                self.fail(now, p)
            }
            Phase::Less if trial.packets >= trial.needed && self.rate.is_some() => {
                self.is_policed(trial.passed)
            }
            Phase::Less if trial.packets >= trial.needed => {
                self.trial = Some(Trial {
                    phase: Phase::Back,
                    since: now,
                    until: now + p.t_rival * BACK,
                    packets: 0.0,
                    bursts: 0.0,
                    ..trial
                });
                Verdict::Return(trial.before)
            }
            Phase::Back if is_lossy => self.is_policed(trial.passed),
            _ if now > trial.until => self.fail(now, p),
            Phase::Less | Phase::Back => Verdict::Running,
        }
    }

    /// Whether a queue has fallen in the trial.
    fn has_drained(&self, trial: &Trial, p: &Parameters) -> bool {
        self.delay_s - trial.delay_s / trial.arrived.max(1.0) > p.q_stands.as_secs_f64()
    }

    fn fail(&mut self, now: Timestamp, p: &Parameters) -> Verdict {
        let wait = self.wait.unwrap_or(p.t_effect);
        self.forget();
        self.next = now + wait;
        self.wait = Some((wait * 2.0).min(p.t_effect * WAITS));
        Verdict::OfPath
    }

    fn is_policed(&mut self, rate: Bitrate) -> Verdict {
        *self = Self { rate: Some(rate), delay_s: self.delay_s, ..Self::default() };
        Verdict::Policed(rate)
    }
}
