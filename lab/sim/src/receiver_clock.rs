//! The clock of a receiver, which need not agree with the sender's.

use weir::units::{TimeDelta, Timestamp};

/// Parts of a skew in one: it is kept in billionths.
const WHOLE: i128 = 1_000_000_000;

/// The clock by which a receiver stamps arrivals and times its feedback. The default clock agrees
/// with the sender's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverClock {
    skew_ppb: i32,
    /// When it jumps, and by how much; by increasing time.
    jumps: Vec<(Timestamp, TimeDelta)>,
}

impl ReceiverClock {
    /// A clock that gains this many millionths of the elapsed time, or loses them if negative, and
    /// that jumps ahead at these times, which increase.
    pub fn new(skew_ppm: f64, jumps: Vec<(Timestamp, TimeDelta)>) -> Self {
        Self { skew_ppb: (skew_ppm * 1_000.0).round() as i32, jumps }
    }

    /// What it shows at a time of the simulation.
    pub(crate) fn at(&self, time: Timestamp) -> Timestamp {
        let jumped = self.jumps.iter().take_while(|jump| jump.0 <= time);
        jumped.fold(self.skewed(time), |sum, jump| sum + jump.1)
    }

    /// The first time of the simulation at which it shows `local` or more.
    pub(crate) fn when(&self, local: Timestamp) -> Timestamp {
        let (mut from, mut ahead) = (None, TimeDelta::ZERO);
        for &(jump, by) in &self.jumps {
            let time = self.before_skew(local - ahead);
            if time < jump {
                return from.map_or(time, |from| time.max(from));
            }
            (from, ahead) = (Some(jump), ahead + by);
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
                let time = clock.when(at(local));
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
        assert_eq!(clock.when(at(40_500)), at(40_000));
        assert_eq!(clock.when(at(42_000)), at(41_000));
    }
}
