//! The delay of the empty path, and how it changes by itself (S-2, S-38).
//!
//! Paths become longer or shorter. A delay that grows slowly looks like a queue that grows slowly:
//! only sending less tells them apart. A queue falls then, a path does not. So each base test may
//! prove the delay of the empty path, and two of these give its trend.

use super::Parameters;
use crate::units::{TimeDelta, Timestamp};

/// A delay at which the path was empty.
#[derive(Clone, Copy, Debug)]
struct Sight {
    at: Timestamp,
    delay: TimeDelta,
    /// A test has proven it. Otherwise a queue may be in it.
    is_proven: bool,
}

/// The base delay, with the offset of the clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    /// Minima of this period and of the one before, moved by the trend since.
    minima: [TimeDelta; 2],
    period_end: Timestamp,
    moved_at: Timestamp,
    /// Change of the delay of the empty path, per time.
    trend: f64,
    sight: Option<Sight>,
    /// Smallest delay since the base test began.
    lowest: TimeDelta,
}

impl Base {
    pub(super) const fn new() -> Self {
        Self {
            minima: [TimeDelta::MAX; 2],
            period_end: Timestamp::ZERO,
            moved_at: Timestamp::ZERO,
            trend: 0.0,
            sight: None,
            lowest: TimeDelta::MAX,
        }
    }

    /// The delay of the empty path. `MAX` while it is unknown.
    #[inline]
    pub(super) fn delay(&self) -> TimeDelta {
        self.minima[0].min(self.minima[1])
    }

    /// A bucket with this smallest delay is complete.
    pub(super) fn on_bucket(&mut self, now: Timestamp, min: TimeDelta, p: &Parameters) {
        let passed = (now - self.moved_at).min(p.t_period).max(TimeDelta::ZERO);
        self.moved_at = now;
        for old in self.minima.iter_mut().filter(|old| **old < TimeDelta::MAX) {
            *old += passed * self.trend;
        }
        if now >= self.period_end {
            self.period_end = now + p.t_period;
            self.minima = [TimeDelta::MAX, self.minima[0]];
        }
        let is_less = min < self.delay();
        self.minima[0] = self.minima[0].min(min);
        self.lowest = self.lowest.min(min);
        if is_less && !self.sight.is_some_and(|sight| sight.is_proven) {
            self.sight = Some(Sight { at: now, delay: min, is_proven: false });
        }
    }

    /// A base test begins.
    pub(super) fn begin_test(&mut self) {
        self.lowest = TimeDelta::MAX;
    }

    /// The smallest delay since the base test began.
    pub(super) fn lowest(&self) -> TimeDelta {
        self.lowest
    }

    pub(super) fn trend(&self) -> f64 {
        self.trend
    }

    /// The path was empty in the base test.
    pub(super) fn prove(&mut self, now: Timestamp, noise: TimeDelta, p: &Parameters) {
        let lowest = self.lowest;
        if let Some(sight) = self.sight {
            let passed = now - sight.at;
            let off = lowest - (sight.delay + passed * self.trend);
            let uncertain = noise + p.q_sight;
            let change = (off - off.clamp(-uncertain, uncertain)) / passed;
            // A path that is at once longer has no trend. What stood before the first test may
            // have been a queue.
            if change.abs() <= p.drift_max * 2.0 && (sight.is_proven || change > 0.0) {
                self.trend = (self.trend + change).clamp(-p.drift_max, p.drift_max);
            }
        }
        self.sight = Some(Sight { at: now, delay: lowest, is_proven: true });
        if lowest - noise > self.delay() {
            self.minima = [lowest - noise, TimeDelta::MAX];
        }
    }

    /// The path has this delay from now on.
    pub(super) fn restart(&mut self, delay: TimeDelta) {
        self.minima = [delay, TimeDelta::MAX];
        self.sight = Some(Sight { at: self.moved_at, delay, is_proven: false });
    }

    /// Later delays are on another clock.
    pub(super) fn forget(&mut self) {
        *self = Self { trend: self.trend, ..Self::new() };
    }
}
