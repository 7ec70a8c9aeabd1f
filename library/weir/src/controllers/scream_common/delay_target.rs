//! Competing flows compensation: raises the delay target if another flow keeps the queue full.
//!
//! Implements [SCREAM §4.1.2.3] and [SCREAMV2 §4.5.4], which differ only in `QDELAY_TARGET_LO`.

use crate::units::TimeDelta;

// Parameters [SCREAM §4.1.1.1].
/// `QDELAY_TARGET_HI`: the highest delay target.
const QDELAY_TARGET_HI: TimeDelta = TimeDelta::from_millis(400);
// Parameters of [SCREAM §4.1.2.3] that the RFC does not name.
/// Number of samples in the variance.
const VARIANCE_SAMPLES: usize = 200;
/// Number of samples in the average. The RFC also says 100, in the list of state variables
/// (SCREAM-D7).
const AVERAGE_SAMPLES: usize = 50;
/// `loss_event_rate` above which a loss-based flow is assumed to fill the queue.
const LOSS_EVENT_RATE: f64 = 0.002;
/// Factor applied to the target above that rate.
const LOSS_FACTOR: f64 = 1.5;
/// Normalized variance below which the delay is steady enough to set the target.
const STEADY_VARIANCE: f64 = 0.2;
/// Strongest factor of a fast decrease.
const FAST_DECREASE: f64 = 0.5;
/// Factor of a slow decrease.
const SLOW_DECREASE: f64 = 0.9;

/// Adapts `qdelay_target` to the delay caused by other flows.
#[derive(Clone, Debug)]
pub(in super::super) struct DelayTarget {
    /// `qdelay_norm_hist`, a ring buffer. In integer microseconds, so the running sums stay exact.
    history: [u32; VARIANCE_SAMPLES],
    next: usize,
    sum: u64,
    sum_of_squares: u64,
    recent_sum: u64,
    /// `QDELAY_TARGET_LO`: the target without competition. The statistics are in units of it.
    lowest: TimeDelta,
    target: TimeDelta,
}

impl DelayTarget {
    /// A target that starts at its minimum, `QDELAY_TARGET_LO`.
    pub fn new(lowest: TimeDelta) -> Self {
        Self {
            history: [0; VARIANCE_SAMPLES],
            next: 0,
            sum: 0,
            sum_of_squares: 0,
            recent_sum: 0,
            lowest,
            target: lowest,
        }
    }

    /// Takes the queuing delay of an acknowledgement and adapts the target.
    pub fn update(&mut self, queuing_delay: TimeDelta, loss_event_rate: f64) {
        self.push(queuing_delay);
        let variance = self.variance();
        let new_target = self.lowest * (self.average() + libm::sqrt(variance));
        let target = if loss_event_rate > LOSS_EVENT_RATE {
            new_target * LOSS_FACTOR
        } else if variance < STEADY_VARIANCE {
            new_target
        } else if new_target < self.lowest {
            new_target.max(self.target * FAST_DECREASE)
        } else {
            self.target * SLOW_DECREASE
        };
        self.target = target.clamp(self.lowest, QDELAY_TARGET_HI);
    }

    fn push(&mut self, queuing_delay: TimeDelta) {
        // A queuing delay is at most a round-trip time, and that is at most 10 s (SCREAM-D3).
        let sample = u32::try_from(queuing_delay.as_micros()).unwrap_or(0);
        let oldest = u64::from(self.history[self.next]);
        let leaves_average = (self.next + VARIANCE_SAMPLES - AVERAGE_SAMPLES) % VARIANCE_SAMPLES;
        self.recent_sum -= u64::from(self.history[leaves_average]);
        self.recent_sum += u64::from(sample);
        self.sum = self.sum - oldest + u64::from(sample);
        self.sum_of_squares =
            self.sum_of_squares - oldest * oldest + u64::from(sample) * u64::from(sample);
        self.history[self.next] = sample;
        self.next = (self.next + 1) % VARIANCE_SAMPLES;
    }

    /// Average of the newest samples, `qdelay_norm_avg_t`.
    fn average(&self) -> f64 {
        self.recent_sum as f64 / AVERAGE_SAMPLES as f64 / self.lowest.as_micros() as f64
    }

    /// Variance of all samples, `qdelay_norm_var_t`.
    fn variance(&self) -> f64 {
        let samples = VARIANCE_SAMPLES as u128;
        let spread = samples * u128::from(self.sum_of_squares) - u128::from(self.sum).pow(2);
        let unit = self.lowest.as_micros() as f64 * VARIANCE_SAMPLES as f64;
        spread as f64 / (unit * unit)
    }

    /// The delay target, `qdelay_target`.
    pub fn value(&self) -> TimeDelta {
        self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: i64) -> TimeDelta {
        TimeDelta::from_millis(millis)
    }

    fn after(samples: impl Iterator<Item = i64>, loss_event_rate: f64) -> DelayTarget {
        let mut target = DelayTarget::new(ms(100));
        samples.for_each(|millis| target.update(ms(millis), loss_event_rate));
        target
    }

    // [SCREAM §4.1.2.3]
    #[test]
    fn average_and_variance_are_those_of_the_last_50_and_200_samples() {
        let target = after((0..1_000).map(|n| if n % 2 == 0 { 50 } else { 150 }), 0.0);
        assert_eq!((target.average(), target.variance()), (1.0, 0.25));
        let target = after((0..300).map(|n| if n < 250 { 999 } else { 70 }), 0.0);
        assert_eq!(target.average(), 0.7);
    }

    // [SCREAM §4.1.2.3]
    #[test]
    fn a_steady_delay_becomes_the_target_up_to_400_ms() {
        assert_eq!(after((0..200).map(|_| 250), 0.0).value(), ms(250));
        assert_eq!(after((0..200).map(|_| 900), 0.0).value(), ms(400));
        assert_eq!(after((0..200).map(|_| 20), 0.0).value(), ms(100));
    }

    // [SCREAM §4.1.2.3]
    #[test]
    fn loss_events_raise_the_target_by_half() {
        assert_eq!(after((0..200).map(|_| 200), 0.0021).value(), ms(300));
        assert_eq!(after((0..200).map(|_| 200), 0.002).value(), ms(200));
    }

    // [SCREAM §4.1.2.3]
    #[test]
    fn an_unsteady_delay_above_the_lowest_target_lowers_the_target_by_a_tenth() {
        // With 200 samples of 400 ms, three of them replaced by zero give a variance of 0.236, two
        // give 0.158.
        let zeros = |zeros| after((0..400 + zeros).map(|n| if n < 400 { 400 } else { 0 }), 0.0);
        assert_eq!(zeros(2).value(), ms(400));
        assert_eq!(zeros(3).value(), ms(360));
        assert_eq!(zeros(4).value(), ms(324));
    }

    // [SCREAM §4.1.2.3]
    #[test]
    fn an_unsteady_delay_below_the_lowest_target_halves_the_target() {
        // 149 samples at 200 ms and 51 at zero: average 0, variance 0.76, new target 87 ms.
        let mut target = after((0..200).map(|n| if n < 150 { 200 } else { 0 }), 0.0);
        target.target = ms(400);
        target.update(TimeDelta::ZERO, 0.0);
        assert_eq!(target.value(), ms(200));
    }

    #[test]
    fn running_sums_stay_exact_for_ever() {
        let target = after((0..100_000).map(|n| n * 7_919 % 10_000), 0.0);
        let sum: u64 = target.history.iter().map(|&us| u64::from(us)).sum();
        assert_eq!(target.sum, sum);
    }
}
