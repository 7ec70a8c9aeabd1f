//! Arrival-time filter: a scalar Kalman filter for the mean of the inter-group delay variation.
//!
//! Implements [GCC §5.3]. Departs from it in GCC-D4 and GCC-D5.

use super::pre_filter::{BURST_TIME, GroupDelta};
use weir::units::TimeDelta;

// Parameters [GCC §5.6]. Names in backticks are the draft's; all variances are in ms^2.
/// `q`: variance of the state noise.
const STATE_NOISE: f64 = 1e-3;
/// `e(0)`: initial variance of the error of the estimate.
const INITIAL_ERROR_VARIANCE: f64 = 0.1;
/// `chi`: weight of a sample in the noise variance at 30 groups/s; the draft allows 0.1 to 0.001.
const NOISE_WEIGHT: f64 = 0.01;
/// Minimum of `var_v_hat` [GCC §5.3]. The draft gives no initial value, so the filter starts at it.
const MIN_NOISE_VARIANCE: f64 = 1.0;
/// Groups per second for which `NOISE_WEIGHT` is meant: the 30 in the exponent of `alpha`
/// [GCC §5.3].
const NOMINAL_GROUP_RATE: f64 = 30.0;
/// Residuals beyond this many standard deviations are outliers [GCC §5.3].
const OUTLIER_DEVIATIONS: f64 = 3.0;
/// `K`: number of groups over which the highest group rate is taken. The draft gives no value.
/// Eight groups of 5 ms cover a frame interval at 30 frames per second, including its pause.
const RATE_WINDOW: usize = 8;

/// Estimates `m(i)`, the one-way delay gradient per group.
#[derive(Clone, Debug)]
pub(super) struct ArrivalTimeFilter {
    /// `m_hat(i)` in ms.
    gradient_ms: f64,
    /// `e(i)`.
    error_variance: f64,
    /// `var_v_hat(i)`.
    noise_variance: f64,
    /// The last inter-departure times, a ring buffer.
    departures: [TimeDelta; RATE_WINDOW],
    next_departure: usize,
}

impl ArrivalTimeFilter {
    pub(super) fn new() -> Self {
        Self {
            gradient_ms: 0.0,
            error_variance: INITIAL_ERROR_VARIANCE,
            noise_variance: MIN_NOISE_VARIANCE,
            departures: [TimeDelta::MAX; RATE_WINDOW],
            next_departure: 0,
        }
    }

    /// Takes the next group and returns `m_hat(i)` in ms.
    pub(super) fn update(&mut self, delta: &GroupDelta) -> f64 {
        let residual = delta.variation().as_millis_f64() - self.gradient_ms; // z(i)
        self.update_noise_variance(delta.departure, residual);
        let predicted = self.error_variance + STATE_NOISE; // e(i-1) + q
        let gain = predicted / (self.noise_variance + predicted); // k(i)
        self.gradient_ms += gain * residual;
        self.error_variance = (1.0 - gain) * predicted;
        self.gradient_ms
    }

    /// Updates the exponential average of the squared residual. Outliers are clamped [GCC §5.3].
    fn update_noise_variance(&mut self, departure: TimeDelta, residual: f64) {
        self.departures[self.next_departure] = departure;
        self.next_departure = (self.next_departure + 1) % RATE_WINDOW;
        let shortest = self.departures.into_iter().min().unwrap_or(TimeDelta::MAX);
        // GCC-D5: the group rate is limited to one group per `burst_time`.
        let period = shortest.max(BURST_TIME).as_secs_f64(); // 1 / f_max
        let alpha = libm::pow(1.0 - NOISE_WEIGHT, NOMINAL_GROUP_RATE * period);
        // GCC-D4: outliers of both signs are clamped.
        let limit = OUTLIER_DEVIATIONS * libm::sqrt(self.noise_variance);
        let residual = residual.clamp(-limit, limit);
        let variance = alpha * self.noise_variance + (1.0 - alpha) * residual * residual;
        self.noise_variance = variance.max(MIN_NOISE_VARIANCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(departure_ms: i64, variation_ms: i64) -> GroupDelta {
        GroupDelta {
            departure: TimeDelta::from_millis(departure_ms),
            arrival: TimeDelta::from_millis(departure_ms + variation_ms),
        }
    }

    // [GCC §5.6]
    #[test]
    fn the_parameters_are_those_of_table_1() {
        assert_eq!(STATE_NOISE, 1e-3);
        assert_eq!(INITIAL_ERROR_VARIANCE, 0.1);
        assert!((0.001..=0.1).contains(&NOISE_WEIGHT));
    }

    // [GCC §5.3]: k = 0.101 / 1.101, m = k * 1, e = (1 - k) * 0.101; the variance is at its floor.
    #[test]
    fn the_first_group_moves_the_estimate_by_the_kalman_gain() {
        let mut filter = ArrivalTimeFilter::new();
        let gain = 0.101 / 1.101;
        assert_eq!(filter.update(&delta(10, 1)), gain);
        assert_eq!(filter.error_variance, (1.0 - gain) * 0.101);
        assert_eq!(filter.noise_variance, 1.0);
    }

    // [GCC §5.3]: in the limit e^2 + q e = q var_v, so the gain is 0.0311 at the variance floor.
    #[test]
    fn the_gain_settles_where_new_noise_balances_new_knowledge() {
        let mut filter = ArrivalTimeFilter::new();
        for _ in 0..2_000 {
            filter.update(&delta(10, 0));
        }
        let predicted = (1e-3 + libm::sqrt(1e-6 + 4e-3)) / 2.0;
        let gain = predicted / (1.0 + predicted);
        assert!((filter.update(&delta(10, 1)) - gain).abs() < 1e-12);
    }

    // [GCC §5.3]: alpha = (1 - chi)^(30 / (1000 f_max)), f_max in groups a millisecond.
    #[test]
    fn the_weight_of_a_sample_follows_the_highest_group_rate() {
        let variance_after = |departures: &[i64]| {
            let mut filter = ArrivalTimeFilter::new();
            filter.noise_variance = 4.0;
            let (last, before) = departures.split_last().unwrap();
            for (slot, &ms) in before.iter().enumerate() {
                filter.departures[slot] = TimeDelta::from_millis(ms);
                filter.next_departure = slot + 1;
            }
            filter.update(&delta(*last, 5));
            filter.noise_variance
        };
        let expect = |period_s: f64| {
            let alpha = libm::pow(0.99, 30.0 * period_s);
            alpha * 4.0 + (1.0 - alpha) * 25.0
        };
        assert_eq!(variance_after(&[20]), expect(0.020));
        assert_eq!(
            variance_after(&[8, 20]),
            expect(0.008),
            "the fastest of the last groups counts"
        );
        // GCC-D5
        assert_eq!(variance_after(&[1, 20]), expect(0.005));
    }

    #[test]
    fn a_group_rate_is_forgotten_after_eight_groups() {
        let mut filter = ArrivalTimeFilter::new();
        filter.update(&delta(6, 0));
        for _ in 0..8 {
            filter.update(&delta(20, 0));
        }
        assert_eq!(filter.departures, [TimeDelta::from_millis(20); 8]);
    }

    // [GCC §5.3] and GCC-D4: as written, a fall of 1 s would set the variance to 3000 ms^2, and the
    // filter would not react for half a minute.
    #[test]
    fn an_outlier_of_either_sign_counts_as_three_deviations() {
        for variation in [1_000, -1_000] {
            let mut filter = ArrivalTimeFilter::new();
            filter.update(&delta(10, variation));
            let alpha = libm::pow(0.99, 30.0 * 0.010);
            assert_eq!(filter.noise_variance, alpha * 1.0 + (1.0 - alpha) * 9.0);
        }
    }
}
