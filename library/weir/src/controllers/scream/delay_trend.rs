//! Queuing-delay trend: how persistently the delay, as a fraction of its target, grows between
//! samples.
//!
//! Implements `qdelay_trend` of [SCREAM §4.1.2]: the lag-one autocorrelation of the delay fractions
//! of the last second, multiplied by their average. Departs from it in SCREAM-D4.

use crate::units::{TimeDelta, Timestamp};

/// Time between two samples of the delay fraction [SCREAM §4.1.2].
const INTERVAL: TimeDelta = TimeDelta::from_millis(50);
/// Length of `qdelay_fraction_hist` [SCREAM §4.1.1.2].
const HISTORY: usize = 20;
/// `QDELAY_WEIGHT`: gain of `qdelay_fraction_avg` [SCREAM §4.1.1.1].
const QDELAY_WEIGHT: f64 = 0.1;
/// Share of `qdelay_trend_mem` kept at each sample [SCREAM §4.1.2].
const MEMORY: f64 = 0.99;

/// Detects incipient congestion in the queuing delay.
#[derive(Clone, Debug, Default)]
pub(super) struct DelayTrend {
    /// `qdelay_fraction_hist`, oldest first, in millionths. With integers the mean is exact. A
    /// constant delay then leaves no rounding error that would correlate with itself.
    history: [i64; HISTORY],
    /// Averaged delay fraction, `qdelay_fraction_avg`.
    average: f64,
    trend: f64,
    memory: f64,
    next_sample: Timestamp,
}

impl DelayTrend {
    /// Takes the delay fraction `qdelay / qdelay_target` if a sample is due.
    ///
    /// SCREAM-D4: only new acknowledgements are sampled. With sparse feedback, a timer would repeat
    /// the last delay, and repeated values correlate although the path shows no trend.
    pub fn update(&mut self, now: Timestamp, fraction: f64) {
        if now < self.next_sample {
            return;
        }
        // A sample less than an interval late does not shift the sampling grid. Otherwise feedback
        // with jitter around 50 ms would lose samples.
        let late = now - self.next_sample;
        self.next_sample = now + INTERVAL - if late < INTERVAL { late } else { TimeDelta::ZERO };
        self.average += QDELAY_WEIGHT * (fraction - self.average);
        self.history.rotate_left(1);
        self.history[HISTORY - 1] = libm::round(fraction * 1e6) as i64;
        self.trend = (autocorrelation(&self.history) * self.average).clamp(0.0, 1.0);
        self.memory = (MEMORY * self.memory).max(self.trend);
    }

    /// `qdelay_trend`, 0.0..=1.0.
    pub fn value(&self) -> f64 {
        self.trend
    }

    /// `qdelay_trend_mem`: the recent maximum of the trend, decaying slowly.
    pub fn memory(&self) -> f64 {
        self.memory
    }
}

/// `R(x,1) / R(x,0)` of the history minus its mean; zero if the history is constant.
fn autocorrelation(history: &[i64; HISTORY]) -> f64 {
    let sum: i64 = history.iter().sum();
    // These values are `HISTORY` times the RFC's x; the quotient is the same.
    let x = history.map(|fraction| (fraction * HISTORY as i64 - sum) as f64);
    let lag_one: f64 = x.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let lag_zero: f64 = x.iter().map(|x| x * x).sum();
    if lag_zero > 0.0 { lag_one / lag_zero } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trend_of(fractions: impl Iterator<Item = f64>) -> DelayTrend {
        let mut trend = DelayTrend::default();
        for (number, fraction) in fractions.enumerate() {
            trend.update(Timestamp::from_millis(50 * number as i64), fraction);
        }
        trend
    }

    // [SCREAM §4.1.2]
    #[test]
    fn a_ramp_of_twenty_samples_has_the_autocorrelation_of_a_ramp() {
        // x = -9.5, -8.5, .. 9.5: R(1) = 565.25, R(0) = 665.
        let ramp = core::array::from_fn(|n| n as i64);
        assert_eq!(autocorrelation(&ramp), 565.25 / 665.0);
    }

    // [SCREAM §4.1.2]
    #[test]
    fn a_delay_that_alternates_or_stands_still_has_no_trend() {
        let alternating = trend_of((0..40).map(|n| f64::from(n % 2)));
        assert_eq!(alternating.value(), 0.0);
        assert_eq!(trend_of((0..40).map(|_| 0.346)).value(), 0.0);
        assert_eq!(DelayTrend::default().value(), 0.0);
    }

    // [SCREAM §4.1.2]
    #[test]
    fn a_sample_has_a_tenth_of_the_average_of_the_autocorrelation() {
        let mut trend = trend_of([1.0, 1.0].into_iter());
        assert!((trend.average - 0.19).abs() < 1e-12);
        trend.update(Timestamp::from_millis(100), 1.0);
        let expect = autocorrelation(&trend.history) * trend.average;
        assert!(expect > 0.0);
        assert_eq!(trend.value(), expect);
    }

    // [SCREAM §4.1.2]
    #[test]
    fn the_memory_keeps_99_percent_a_sample() {
        let peak = trend_of((0..20).map(|n| f64::from(n) * 0.02));
        assert_eq!(peak.memory(), peak.value());
        let mut later = peak.clone();
        later.update(Timestamp::from_secs(2), 0.0);
        assert_eq!(later.memory(), 0.99 * peak.memory());
        assert!(later.value() < later.memory());
    }

    // SCREAM-D4
    #[test]
    fn samples_lie_on_a_grid_of_50_ms_that_starts_anew_after_a_gap() {
        let mut trend = DelayTrend::default();
        let arrivals = [0, 10, 52, 99, 100, 151, 900, 901, 951];
        let taken = arrivals.map(|at| {
            let before = trend.average;
            trend.update(Timestamp::from_millis(at), 1.0);
            trend.average != before
        });
        assert_eq!(taken, [true, false, true, false, true, true, true, false, true]);
    }
}
