//! The clock of a receiver, which need not agree with the sender's.

use weir::units::{TimeDelta, Timestamp};

/// Parts of a skew in one: it is kept in billionths.
const WHOLE: i128 = 1_000_000_000;

/// From when on the clock is ahead by this much, whatever its skew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Epoch {
    from: Timestamp,
    ahead: TimeDelta,
    /// The receiver begins anew: its program restarts, or its clock jumps back, by which its timers
    /// run.
    is_fresh: bool,
}

/// The clock by which a receiver stamps arrivals and times its feedback. The default clock agrees
/// with the sender's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverClock {
    skew_ppb: i32,
    /// How far it is ahead in the beginning.
    ahead: TimeDelta,
    /// By increasing time.
    epochs: Vec<Epoch>,
}

impl ReceiverClock {
    /// A clock that gains this many millionths of the elapsed time, or loses them if negative, and
    /// that jumps ahead by these times, or back if negative. The times increase. A receiver whose
    /// clock jumps back begins anew.
    pub fn new(skew_ppm: f64, jumps: Vec<(Timestamp, TimeDelta)>) -> Self {
        let mut ahead = TimeDelta::ZERO;
        let mut epochs = Vec::with_capacity(jumps.len());
        for (from, by) in jumps {
            ahead += by;
            epochs.push(Epoch { from, ahead, is_fresh: by < TimeDelta::ZERO });
        }
        Self { skew_ppb: (skew_ppm * 1_000.0).round() as i32, ahead: TimeDelta::ZERO, epochs }
    }

    /// The same clock, ahead of the sender's by this much more.
    #[must_use]
    pub fn ahead_by(mut self, ahead: TimeDelta) -> Self {
        self.ahead += ahead;
        for epoch in &mut self.epochs {
            epoch.ahead += ahead;
        }
        self
    }

    /// The same clock, but at these times the receiver's program restarts, and its clock at zero.
    /// Later jumps count from there.
    #[must_use]
    pub fn with_restarts(mut self, times: &[Timestamp]) -> Self {
        for &from in times {
            let back = self.at(from) - Timestamp::ZERO;
            let place = self.epochs.partition_point(|epoch| epoch.from < from);
            for epoch in self.epochs[place..].iter_mut() {
                epoch.ahead -= back;
            }
            let ahead = Timestamp::ZERO - self.skewed(from);
            self.epochs.insert(place, Epoch { from, ahead, is_fresh: true });
        }
        self
    }

    /// Whether it ever shows a time before zero, which no format of feedback can carry.
    pub fn shows_negative_times(&self) -> bool {
        self.epochs.iter().any(|epoch| self.at(epoch.from) < Timestamp::ZERO)
    }

    /// The part of the run in which one program of the receiver runs: the number of times that it
    /// has begun anew.
    pub(crate) fn beginnings(&self, time: Timestamp) -> usize {
        self.epochs.iter().filter(|epoch| epoch.is_fresh && epoch.from <= time).count()
    }

    /// What it shows at a time of the simulation.
    pub(crate) fn at(&self, time: Timestamp) -> Timestamp {
        let last = self.epochs.iter().rev().find(|epoch| epoch.from <= time);
        self.skewed(time) + last.map_or(self.ahead, |epoch| epoch.ahead)
    }

    /// The first time of the simulation at which it shows `local` or more to the program that runs
    /// after this many beginnings, or at which that program ends.
    pub(crate) fn when(&self, local: Timestamp, beginnings: usize) -> Timestamp {
        let (mut from, mut ahead, mut passed) = (None, self.ahead, 0);
        for epoch in &self.epochs {
            passed += usize::from(epoch.is_fresh);
            if passed > beginnings {
                let time = self.before_skew(local - ahead).min(epoch.from);
                return from.map_or(time, |from| time.max(from));
            }
            let time = self.before_skew(local - ahead);
            if time < epoch.from && passed == beginnings && !epoch.is_fresh {
                return from.map_or(time, |from| time.max(from));
            }
            (from, ahead) = (Some(epoch.from), epoch.ahead);
        }
        let time = self.before_skew(local - ahead);
        from.map_or(time, |from| time.max(from))
    }

    fn skewed(&self, time: Timestamp) -> Timestamp {
        let nanos = i128::from(time.as_nanos());
        let gained = nanos * i128::from(self.skew_ppb) / WHOLE;
        Timestamp::from_nanos((nanos + gained) as i64)
    }

    /// The first time that [`Self::skewed`] takes to `local` or later.
    fn before_skew(&self, local: Timestamp) -> Timestamp {
        if self.skew_ppb == 0 {
            return local;
        }
        let nanos = i128::from(local.as_nanos()) * WHOLE / (WHOLE + i128::from(self.skew_ppb));
        // The divisions round, by one nanosecond each.
        let mut time = Timestamp::from_nanos(nanos as i64 - 2);
        while self.skewed(time) < local {
            time += TimeDelta::from_nanos(1);
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_clock_of_200_ppm_gains_12_ms_in_a_minute() {
        let fast = ReceiverClock::new(200.0, Vec::new());
        assert_eq!(fast.at(at(60_000)), at(60_012));
        assert_eq!(ReceiverClock::new(-200.0, Vec::new()).at(at(60_000)), at(59_988));
        assert_eq!(ReceiverClock::default().at(at(60_000)), at(60_000));
    }

    #[test]
    fn a_deadline_of_the_clock_is_the_first_time_that_reaches_it() {
        let jumps = vec![(at(40_000), TimeDelta::from_secs(1))];
        for skew in [-200.0, 0.0, 37.5, 200.0] {
            let clock = ReceiverClock::new(skew, jumps.clone());
            for local in (0..100_000).step_by(333) {
                let time = clock.when(at(local), 0);
                assert!(clock.at(time) >= at(local), "{skew}, {local}");
                let before = time - TimeDelta::from_nanos(1);
                assert!(local == 0 || clock.at(before) < at(local), "{skew}, {local}");
            }
        }
    }

    #[test]
    fn what_a_jump_skips_is_due_at_the_jump() {
        let clock = ReceiverClock::new(0.0, vec![(at(40_000), TimeDelta::from_secs(1))]);
        assert_eq!(clock.at(at(39_999)), at(39_999));
        assert_eq!(clock.at(at(40_000)), at(41_000));
        assert_eq!(clock.when(at(40_500), 0), at(40_000));
        assert_eq!(clock.when(at(42_000), 0), at(41_000));
    }

    #[test]
    fn a_restart_sets_the_clock_to_zero_and_ends_the_deadlines_before() {
        let ahead = TimeDelta::from_secs(3_600);
        let clock = ReceiverClock::new(100.0, Vec::new()).ahead_by(ahead);
        let clock = clock.with_restarts(&[at(30_000), at(50_000)]);
        assert_eq!(clock.at(at(10_000)), at(3_610_001));
        for (from, shown) in [(30_000, 0), (40_000, 10_001), (50_000, 0), (60_000, 10_001)] {
            assert_eq!(clock.at(at(from)).as_millis(), shown, "at {from}");
        }
        assert_eq!([29_999, 30_000, 50_000].map(|time| clock.beginnings(at(time))), [0, 1, 2]);
        assert_eq!(clock.when(at(9_000_000), 0), at(30_000));
        assert_eq!(clock.when(at(5_000), 1).as_millis(), 34_999);
        assert_eq!(clock.when(at(90_000), 1), at(50_000));
        assert_eq!(clock.when(at(5_000), 2).as_millis(), 54_999);
    }

    #[test]
    fn a_jump_back_shows_earlier_times_to_a_receiver_that_begins_anew() {
        let jumps =
            vec![(at(10_000), -TimeDelta::from_secs(3)), (at(20_000), TimeDelta::from_secs(5))];
        let clock = ReceiverClock::new(0.0, jumps);
        assert_eq!(
            [9_999, 10_000, 20_000].map(|time| clock.at(at(time)).as_millis()),
            [9_999, 7_000, 22_000]
        );
        assert_eq!([clock.beginnings(at(9_999)), clock.beginnings(at(30_000))], [0, 1]);
        assert_eq!(clock.when(at(9_000), 1), at(12_000));
        assert_eq!(clock.when(at(21_000), 1), at(20_000));
    }
}
