//! How fast a receiver's clock gains (S-37, NADA-D15).
//!
//! What a clock adds to the one-way delay, it takes from the *return time*: the time from the
//! arrival of the newest packet of a report until the report is there. A queue changes the delay
//! alone. So a return time that falls in each of two periods is a clock that gains. One that grows
//! may be a queue on the way back, and does no harm: what the delay loses becomes the base.

use crate::units::{TimeDelta, Timestamp};

/// Reports of a period at least, and the lengths of the first period and of the later ones.
const PERIOD_REPORTS: u32 = 30;
const PERIOD: [TimeDelta; 2] = [TimeDelta::from_secs(2), TimeDelta::from_secs(16)];

/// The shortest return time of a period, and when it was seen.
#[derive(Clone, Copy, Debug)]
struct Shortest {
    at: Timestamp,
    time: TimeDelta,
}

impl Shortest {
    /// How fast the return time has fallen since an earlier period, in seconds a second. It has not
    /// if it differs by `equal` or less.
    fn falls_since(&self, earlier: &Self, equal: TimeDelta) -> f64 {
        let fell = earlier.time - self.time;
        if fell.abs() <= equal { 0.0 } else { fell / (self.at - earlier.at) }
    }
}

/// The drift of a receiver's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockDrift {
    /// What the clock gains in a time, as a share.
    share: f64,
    /// Of this period and the two before.
    shortest: [Option<Shortest>; 3],
    period: TimeDelta,
    period_begin: Timestamp,
    period_reports: u32,
}

impl ClockDrift {
    pub(crate) const fn new() -> Self {
        Self {
            share: 0.0,
            shortest: [None; 3],
            period: PERIOD[0],
            period_begin: Timestamp::ZERO,
            period_reports: 0,
        }
    }

    /// What the clock gains in a time, as a share.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// The shortest return time of this period and the two before.
    pub(crate) fn shortest(&self) -> Option<TimeDelta> {
        self.shortest.iter().flatten().map(|shortest| shortest.time).min()
    }

    /// Takes the return time of a report, by the clock as it is known. A clock gains at most `most`
    /// of the time. Times that differ by `equal` are the same. Returns how much more it gains than
    /// was known.
    pub(crate) fn learn(
        &mut self,
        now: Timestamp,
        time: TimeDelta,
        most: f64,
        equal: TimeDelta,
    ) -> f64 {
        if self.shortest[0].is_none_or(|shortest| time < shortest.time) {
            self.shortest[0] = Some(Shortest { at: now, time });
        }
        self.period_reports += 1;
        if now - self.period_begin < self.period || self.period_reports < PERIOD_REPORTS {
            return 0.0;
        }
        (self.period_begin, self.period_reports) = (now, 0);
        self.period = (self.period * 2).min(PERIOD[1]);
        let [this, before, earlier] = self.shortest;
        self.shortest = [None, this, before];
        let (Some(this), Some(before), Some(earlier)) = (this, before, earlier) else {
            return 0.0;
        };
        // What falls once is the way back.
        let (old, new) = (before.falls_since(&earlier, equal), this.falls_since(&before, equal));
        let slower = if old.abs() < new.abs() { old } else { new };
        let share = (self.share + slower).clamp(0.0, most);
        let change = share - self.share;
        if old * new > 0.0 && change != 0.0 {
            // Times before a change of the drift say nothing about the next one.
            self.shortest = [Some(Shortest { at: now, ..this }), None, None];
            self.share = share;
            return change;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The drift in ppm after a minute of a report each 50 ms, whose return time this is, in ms
    /// after so many seconds.
    fn drift(return_ms: impl Fn(f64) -> f64) -> f64 {
        let mut drift = ClockDrift::new();
        for number in 0..1_200 {
            let time = TimeDelta::from_millis_f64(return_ms(f64::from(number) / 20.0));
            let now = Timestamp::from_millis(i64::from(number) * 50);
            drift.learn(now, time, 0.002, TimeDelta::from_micros(500));
        }
        drift.share() * 1e6
    }

    // S-37, NADA-D15
    #[test]
    fn what_the_return_time_loses_the_clock_gains() {
        for ppm in [200.0, 500.0, 1_000.0] {
            let found = drift(|s| 90.0 - s * ppm * 1e-3);
            assert!((found - ppm).abs() < 0.05 * ppm, "{found} of {ppm} ppm");
        }
    }

    // S-37, NADA-D15
    #[test]
    fn a_queue_on_the_way_back_is_no_clock() {
        for found in [drift(|_| 25.0), drift(|s| 25.0 + s), drift(|s| 25.0 + s % 7.0)] {
            assert_eq!(found, 0.0);
        }
        let once = drift(|s| if s < 20.0 { 200.0 } else { 25.0 });
        assert_eq!(once, 0.0, "a route that becomes shorter");
    }
}
