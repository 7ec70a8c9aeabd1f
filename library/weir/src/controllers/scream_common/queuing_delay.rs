//! Queuing delay: one-way delay minus the base delay, and the smoothed round-trip time.
//!
//! Implements `qdelay`, which [SCREAM §4.1.2] and [SCREAMV2 §4.2.1.4] take from [RFC6817 §3.4.2]: a
//! history of one-minute minima, without smoothing. Departs from it in SCREAM-D3 and SCREAMV2-D4.

use crate::controllers::silence::INTERVAL_LEAST;
use crate::feedback::{ArrivalTimes, FeedbackReport};
use crate::units::{TimeDelta, Timestamp};

/// `BASE_HISTORY`: length of the base delay's minimum filter, in minutes [RFC6817 §3.4.2].
const BASE_HISTORY: usize = 10;
const MINUTE: TimeDelta = TimeDelta::from_secs(60);
/// Gain of the smoothed round-trip time [RFC6298 §2].
const RTT_GAIN: f64 = 1.0 / 8.0;
/// Assumed round-trip time before the first sample [RFC9002 §6.2.2] (SCREAM-D1, SCREAMV2-D1).
pub(in super::super) const INITIAL_RTT: TimeDelta = TimeDelta::from_millis(333);
/// Range of the round-trip time. At zero, the rate of a window is undefined. Above 10 s, the sender
/// has forgotten what it sent.
const RTT_MIN: TimeDelta = TimeDelta::from_millis(1);
pub(in super::super) const RTT_MAX: TimeDelta = TimeDelta::from_secs(10);

/// `s_rtt`: the time from sending a packet to its acknowledgement, smoothed.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct SmoothedRtt {
    smoothed: Option<TimeDelta>,
    /// The same before the newest report, and when that came.
    before: Option<TimeDelta>,
    updated: Timestamp,
}

impl SmoothedRtt {
    /// Takes a sample and returns it, clamped to the valid range.
    pub fn update(&mut self, sample: TimeDelta) -> TimeDelta {
        self.update_after(Timestamp::ZERO, sample, TimeDelta::ZERO)
    }

    /// The same after a time in which there was no acknowledgement. Its round trips would have had
    /// a sample each. Of a report in parts, the newest counts.
    pub fn update_after(
        &mut self,
        now: Timestamp,
        sample: TimeDelta,
        wait: TimeDelta,
    ) -> TimeDelta {
        let sample = sample.clamp(RTT_MIN, RTT_MAX);
        let is_part = wait > TimeDelta::ZERO && now - self.updated < INTERVAL_LEAST;
        if !is_part {
            self.before = self.smoothed;
        }
        self.updated = now;
        self.smoothed = Some(match self.before {
            None => sample,
            Some(smoothed) if wait > TimeDelta::ZERO => {
                let kept = libm::pow(1.0 - RTT_GAIN, 1.0 + wait / smoothed);
                smoothed + (sample - smoothed) * (1.0 - kept)
            }
            Some(smoothed) => smoothed + (sample - smoothed) * RTT_GAIN,
        });
        sample
    }

    /// `s_rtt`; `None` before the first acknowledgement.
    pub fn measured(&self) -> Option<TimeDelta> {
        self.smoothed
    }

    /// `s_rtt`; the assumed value before the first acknowledgement.
    pub fn value(&self) -> TimeDelta {
        self.smoothed.unwrap_or(INITIAL_RTT)
    }
}

/// Estimates the queuing delay from one-way delays with an unknown clock offset.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct QueuingDelay {
    /// Minimum one-way delay of each of the last minutes; `MAX` for a minute without a sample.
    minima: Option<[TimeDelta; BASE_HISTORY]>,
    /// Number of the minute that `minima[0]` belongs to.
    minute: i64,
    current: Option<TimeDelta>,
    /// The next sample comes from a different clock than the samples before it.
    new_clock: bool,
    /// Where the arrival times of the last report came from.
    arrival_times: ArrivalTimes,
}

impl QueuingDelay {
    /// A report begins, whose arrival times may come from a different clock.
    pub fn begin_report(&mut self, report: &FeedbackReport) {
        let before = core::mem::replace(&mut self.arrival_times, report.arrival_times);
        if before != report.arrival_times {
            // The delay before was of another kind, such as a round trip, so its queue says nothing
            // of this one (SCREAM-D13, SCREAMV2-D7).
            self.forget_base();
        } else if report.new_clock {
            self.on_new_clock();
        }
    }

    /// Takes the one-way delay and the `rtt` of the packet that a report newly acknowledges.
    pub fn update(&mut self, now: Timestamp, one_way_delay: TimeDelta, rtt: TimeDelta) {
        let minute = now.as_nanos().div_euclid(MINUTE.as_nanos());
        if core::mem::take(&mut self.new_clock) {
            // SCREAM-D13, SCREAMV2-D7: the queuing delay does not depend on the clock, so it is
            // kept.
            let base = one_way_delay - self.value();
            self.minima =
                Some(core::array::from_fn(|age| if age == 0 { base } else { TimeDelta::MAX }));
            self.minute = minute;
        }
        let minima = self.minima.get_or_insert([TimeDelta::MAX; BASE_HISTORY]);
        let passed = usize::try_from(minute - self.minute).unwrap_or(BASE_HISTORY);
        minima.rotate_right(passed.min(BASE_HISTORY));
        minima[..passed.min(BASE_HISTORY)].fill(TimeDelta::MAX);
        self.minute = minute;
        minima[0] = minima[0].min(one_way_delay);
        let base = minima.iter().copied().min().unwrap_or(one_way_delay);
        let mut delay = one_way_delay - base;
        if delay > rtt {
            // SCREAM-D3: a packet cannot queue for longer than its round trip took. The receiver's
            // clock was set, so the history is invalid.
            *minima = [TimeDelta::MAX; BASE_HISTORY];
            minima[0] = one_way_delay;
            delay = TimeDelta::ZERO;
        }
        self.current = Some(delay);
    }

    /// Later one-way delays come from a different clock. The base delay is shifted accordingly.
    fn on_new_clock(&mut self) {
        self.new_clock = true;
    }

    /// Discards the base delay. The next sample starts a new one.
    pub fn forget_base(&mut self) {
        self.minima = None;
    }

    /// `qdelay`; `None` before the first acknowledgement.
    pub fn measured(&self) -> Option<TimeDelta> {
        self.current
    }

    /// `qdelay`; zero before the first acknowledgement.
    pub fn value(&self) -> TimeDelta {
        self.current.unwrap_or(TimeDelta::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(300);

    fn ms(millis: i64) -> TimeDelta {
        TimeDelta::from_millis(millis)
    }

    /// Queuing delay in ms after each sample (time in s, one-way delay in ms).
    fn delays<const N: usize>(samples: [(i64, i64); N]) -> [i64; N] {
        let mut delay = QueuingDelay::default();
        samples.map(|(at, sample)| {
            delay.update(Timestamp::from_secs(at), ms(sample), RTT);
            delay.value().as_millis()
        })
    }

    // [RFC6817 §3.4.2]
    #[test]
    fn the_delay_is_counted_from_the_lowest_seen() {
        assert_eq!(delays([(0, -5_000), (1, -4_950), (2, -5_010), (3, -4_950)]), [0, 50, 0, 60]);
    }

    // [RFC6817 §3.4.2]
    #[test]
    fn a_base_is_forgotten_ten_minutes_after_its_minute() {
        assert_eq!(delays([(59, 20), (599, 50), (600, 50)]), [0, 30, 0]);
    }

    // SCREAM-D3
    #[test]
    fn a_delay_above_the_round_trip_time_restarts_the_history() {
        assert_eq!(delays([(0, 20), (1, 320), (2, 321), (3, 330)]), [0, 300, 0, 9]);
        let hour = 3_600_000;
        assert_eq!(delays([(0, 20), (1, 20 + hour), (2, 25 + hour)]), [0, 0, 5]);
    }

    #[test]
    fn a_long_pause_forgets_the_base_and_time_far_away_does_no_harm() {
        assert_eq!(delays([(0, 20), (1_000_000, 90), (9_000_000_000, 95)]), [0, 0, 0]);
    }

    // SCREAM-D13
    #[test]
    fn a_new_clock_keeps_the_queuing_delay_and_a_forgotten_base_does_not() {
        let mut delay = QueuingDelay::default();
        let mut at = |secs, sample| {
            delay.update(Timestamp::from_secs(secs), ms(sample), RTT);
            delay.value().as_millis()
        };
        assert_eq!([at(0, 20), at(1, 60)], [0, 40]);
        delay.on_new_clock();
        let mut at = |secs, sample| {
            delay.update(Timestamp::from_secs(secs), ms(sample), RTT);
            delay.value().as_millis()
        };
        assert_eq!([at(2, 5_000), at(3, 5_010), at(4, 4_950)], [40, 50, 0]);
        delay.forget_base();
        delay.update(Timestamp::from_secs(5), ms(4_990), RTT);
        assert_eq!(delay.value(), TimeDelta::ZERO);
    }

    // [RFC6298 §2]
    #[test]
    fn the_round_trip_time_moves_an_eighth_of_the_way() {
        let mut rtt = SmoothedRtt::default();
        assert_eq!((rtt.measured(), rtt.value()), (None, ms(333)));
        rtt.update(ms(100));
        assert_eq!(rtt.value(), ms(100));
        rtt.update(ms(180));
        assert_eq!(rtt.value(), ms(110));
    }

    #[test]
    fn an_impossible_round_trip_time_is_moved_into_the_possible() {
        let mut rtt = SmoothedRtt::default();
        assert_eq!(rtt.update(ms(-1)), ms(1));
        assert_eq!(rtt.update(TimeDelta::MAX), TimeDelta::from_secs(10));
    }
}
