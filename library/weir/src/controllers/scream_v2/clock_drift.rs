//! Clock drift: a queuing delay that never falls comes from the clocks, not from a queue.
//!
//! Implements [SCREAMV2 §4.5.1]: if the minimum queuing delay stays high, the base delay is
//! measured again, after a short pause in which a real queue would drain.

use super::reference_window::LONG_RTT;
use crate::units::{TimeDelta, Timestamp};

// Parameters [SCREAMV2 §4.5.1].
/// `QDELAY_MIN_AVG_ALPHA`: gain of the averaged minimum, per round trip.
const QDELAY_MIN_AVG_ALPHA: f64 = 1.0 / 256.0;
/// SCREAMV2-D10: but not more than this where round trips, or reports, take long.
const GAIN_MAX: f64 = 1.0 / 8.0;
/// Share of the delay target above which the averaged minimum triggers a reset.
const STANDING_DELAY: f64 = 0.25;
/// Factor applied to the target bitrate during the pause.
pub(super) const PAUSE_SHARE: f64 = 0.5;
/// Length of the pause in round trips, and its minimum.
const PAUSE_ROUND_TRIPS: f64 = 5.0;
const PAUSE_MIN: TimeDelta = TimeDelta::from_millis(200);

/// Tracks the minimum of the queuing delay.
#[derive(Clone, Debug, Default)]
pub(super) struct ClockDrift {
    /// `qdelay_min`: minimum of this round trip; `None` before its first sample.
    min: Option<TimeDelta>,
    round_trip_start: Option<Timestamp>,
    /// Averaged minimum of the queuing delay, `qdelay_min_avg`.
    average: TimeDelta,
    paused_until: Timestamp,
}

impl ClockDrift {
    /// Takes the queuing delay of an acknowledgement. Returns true if the base delay must be
    /// measured again; the pause then starts.
    pub fn update(
        &mut self,
        now: Timestamp,
        rtt: TimeDelta,
        delay: TimeDelta,
        target: TimeDelta,
    ) -> bool {
        let min = self.min.map_or(delay, |min| min.min(delay));
        self.min = Some(min);
        let took = now - *self.round_trip_start.get_or_insert(now - rtt);
        if took < rtt {
            return false;
        }
        // SCREAMV2-D10: clocks drift by time, not by round trips.
        let times = (took / LONG_RTT).max(1.0);
        self.round_trip_start = Some(now);
        self.min = None;
        self.average += (min - self.average) * (QDELAY_MIN_AVG_ALPHA * times).min(GAIN_MAX);
        if self.average <= target * STANDING_DELAY {
            return false;
        }
        self.average = TimeDelta::ZERO;
        self.paused_until = now + (rtt * PAUSE_ROUND_TRIPS).max(PAUSE_MIN);
        true
    }

    /// Whether the target bitrate is reduced by `PAUSE_SHARE` now.
    pub fn is_pausing(&self, now: Timestamp) -> bool {
        now < self.paused_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: TimeDelta = TimeDelta::from_millis(60);

    /// Round trips of 100 ms until the base delay is discarded; each has two samples with these
    /// delays.
    fn round_trips_until_reset(first: i64, second: i64) -> Option<i64> {
        let mut drift = ClockDrift::default();
        let rtt = TimeDelta::from_millis(100);
        (1..1_000).find(|n| {
            let mut reset = false;
            for (millis, delay) in [(50, first), (100, second)] {
                let now = Timestamp::from_secs(1_000) + TimeDelta::from_millis(n * 100 + millis);
                reset |= drift.update(now, rtt, TimeDelta::from_millis(delay), TARGET);
                assert_eq!(drift.is_pausing(now), reset);
            }
            reset
        })
    }

    // [SCREAMV2 §4.5.1]
    #[test]
    fn a_minimum_long_above_a_quarter_of_the_target_gives_the_base_up() {
        assert_eq!(round_trips_until_reset(15, 40), None);
        assert_eq!(round_trips_until_reset(40, 0), None, "the queue empties in every round trip");
        // 256 * ln(30 / 15) round trips.
        assert_eq!(round_trips_until_reset(30, 40), Some(178));
    }

    // SCREAMV2-D10
    #[test]
    fn a_drift_is_known_as_soon_with_long_round_trips_as_with_300_ms() {
        // 256 * ln(30 / 15) round trips of 300 ms are 53 s.
        for rtt_ms in [300, 600, 1_500] {
            let mut drift = ClockDrift::default();
            let (rtt, delay) = (TimeDelta::from_millis(rtt_ms), TimeDelta::from_millis(30));
            let mut now = Timestamp::ZERO;
            while !drift.update(now, rtt, delay, TARGET) {
                now += rtt;
            }
            assert!((52..56).contains(&now.as_nanos().div_euclid(1_000_000_000)), "{now:?}");
        }
    }

    // [SCREAMV2 §4.5.1]
    #[test]
    fn the_pause_lasts_five_round_trips_and_at_least_200_ms() {
        for (rtt, pause) in [(100, 500), (20, 200)] {
            let mut drift = ClockDrift { average: TARGET, ..ClockDrift::default() };
            let now = Timestamp::from_secs(1);
            assert!(drift.update(now, TimeDelta::from_millis(rtt), TARGET, TARGET));
            assert!(drift.is_pausing(now + TimeDelta::from_millis(pause - 1)));
            assert!(!drift.is_pausing(now + TimeDelta::from_millis(pause)));
        }
    }
}
