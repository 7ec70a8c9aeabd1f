//! Arrival-time filter: a Kalman filter that separates a growing queue from larger frames.
//!
//! The difference of two frames' delays is `d(i) = L'(i)/C(i) + m(i) + n(i)`: the time to transmit
//! the difference `L'` of their sizes, the change of the queuing delay, and noise
//! [BARI §arrival-time filter]. The state is the slope `1/C` and the offset `m`. Constants are
//! those of [LW2013 §overuse_detector], except BARI-D2.

use super::frames::FrameDelta;
use crate::delay_signal::BandwidthUsage::{self, Overuse, Underuse};
use weir::units::TimeDelta;

// Parameters [LW2013 §overuse_detector]: slope in ms per byte, offset in ms.
/// Initial slope: 512 kbit/s.
const INITIAL_SLOPE: f64 = 8.0 / 512.0;
/// Initial variances of the state's error. The covariance of slope and offset is zero.
const INITIAL_SLOPE_VARIANCE: f64 = 100.0;
const INITIAL_OFFSET_VARIANCE: f64 = 0.1;
/// Variance that the state gains per nominal frame period.
const SLOPE_NOISE: f64 = 1e-10;
const OFFSET_NOISE: f64 = 1e-2;
/// Additional offset noise while the offset returns from over-use or under-use, to let it move
/// faster.
const RETURNING_OFFSET_NOISE: f64 = 10.0 * OFFSET_NOISE;
/// Variance of the noise `n(i)` in ms^2: initial value, and minimum (BARI-D2).
const INITIAL_NOISE_VARIANCE: f64 = 50.0;
const MIN_NOISE_VARIANCE: f64 = 1.0;
/// Weight of a residual in the noise's mean and variance: during the first frames, and after them.
const EARLY_NOISE_WEIGHT: f64 = 0.01;
const EARLY_FRAMES: u32 = 300;
const NOISE_WEIGHT: f64 = 0.002;
/// Residuals beyond this many standard deviations are outliers.
const OUTLIER_DEVIATIONS: f64 = 3.0;
/// The frame period in ms for which noises and weights are meant.
const NOMINAL_PERIOD_MS: f64 = 1_000.0 / 30.0;
/// Number of frames over which the shortest period is taken.
const PERIODS: usize = 60;
/// The offset is multiplied by the number of differences seen, up to this number.
const MAX_SCALE: u32 = 60;
/// Upper limit of the counter of differences.
const MAX_COUNT: u32 = 1_000;

/// Estimates `1/C(i)` and `m(i)`.
#[derive(Clone, Debug)]
pub(super) struct ArrivalTimeFilter {
    slope: f64,
    /// `m(i)` in ms.
    offset: f64,
    last_offset: f64,
    /// Covariance of the state's error: of slope, of slope and offset, of offset.
    covariance: [f64; 3],
    noise_mean: f64,
    noise_variance: f64,
    /// The last frame periods in ms, a ring buffer.
    periods: [f64; PERIODS],
    count: u32,
}

impl ArrivalTimeFilter {
    pub(super) const fn new() -> Self {
        Self {
            slope: INITIAL_SLOPE,
            offset: 0.0,
            last_offset: 0.0,
            covariance: [INITIAL_SLOPE_VARIANCE, 0.0, INITIAL_OFFSET_VARIANCE],
            noise_mean: 0.0,
            noise_variance: INITIAL_NOISE_VARIANCE,
            periods: [f64::INFINITY; PERIODS],
            count: 0,
        }
    }

    /// Takes the next frame. `usage` is the detector's last signal. `steady` is true if the offset
    /// was within its threshold, so that the residual is noise.
    pub(super) fn update(&mut self, delta: &FrameDelta, usage: BandwidthUsage, steady: bool) {
        self.count = (self.count + 1).min(MAX_COUNT);
        let period_ms = self.shortest_period_ms(delta.departure);
        self.predict(period_ms / NOMINAL_PERIOD_MS, usage);
        let measured = (delta.arrival - delta.departure).as_millis_f64(); // d(i)
        let size = delta.size_bytes;
        let residual = measured - self.slope * size - self.offset;
        if steady {
            self.update_noise(residual, period_ms);
        }
        // With h = (size, 1): gain = E h / (var + h' E h), and E loses gain (E h)'.
        let [slope, both, offset] = self.covariance;
        let spread = [slope * size + both, both * size + offset];
        let total = self.noise_variance + size * spread[0] + spread[1];
        let gain = spread.map(|spread| spread / total);
        self.covariance =
            [slope - gain[0] * spread[0], both - gain[0] * spread[1], offset - gain[1] * spread[1]];
        self.slope += gain[0] * residual;
        self.last_offset = self.offset;
        self.offset += gain[1] * residual;
    }

    /// Prediction step: adds the variance that the state gains between two frames.
    fn predict(&mut self, periods: f64, usage: BandwidthUsage) {
        let falling = self.offset < self.last_offset;
        let rising = self.offset > self.last_offset;
        let returning = usage == Overuse && falling || usage == Underuse && rising;
        let extra = if returning { RETURNING_OFFSET_NOISE } else { 0.0 };
        self.covariance[0] += SLOPE_NOISE * periods;
        self.covariance[2] += (OFFSET_NOISE + extra) * periods;
    }

    fn shortest_period_ms(&mut self, period: TimeDelta) -> f64 {
        self.periods[self.count as usize % PERIODS] = period.as_millis_f64();
        self.periods.iter().fold(f64::INFINITY, |shortest, &period| shortest.min(period))
    }

    /// Updates the exponential averages of the noise. An outlier counts as three deviations.
    fn update_noise(&mut self, residual: f64, period_ms: f64) {
        let limit = OUTLIER_DEVIATIONS * libm::sqrt(self.noise_variance);
        let residual = if residual.abs() < limit { residual } else { limit };
        let weight = if self.count > EARLY_FRAMES { NOISE_WEIGHT } else { EARLY_NOISE_WEIGHT };
        let kept = libm::pow(1.0 - weight, period_ms / NOMINAL_PERIOD_MS);
        self.noise_mean = kept * self.noise_mean + (1.0 - kept) * residual;
        let deviation = self.noise_mean - residual;
        let variance = kept * self.noise_variance + (1.0 - kept) * deviation * deviation;
        self.noise_variance = variance.max(MIN_NOISE_VARIANCE); // BARI-D2
    }

    /// The value compared with the threshold: the offset times the number of differences, in ms.
    pub(super) fn scaled_offset_ms(&self) -> f64 {
        f64::from(self.count.min(MAX_SCALE)) * self.offset
    }

    /// True if the offset did not fall with the last frame.
    pub(super) fn is_rising(&self) -> bool {
        self.offset >= self.last_offset
    }

    /// True after two differences; one alone is not enough.
    pub(super) fn has_samples(&self) -> bool {
        self.count >= 2
    }

    /// Variance of `n(i)` in ms^2.
    pub(super) fn noise_variance(&self) -> f64 {
        self.noise_variance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame sent 33 ms after the previous one, with this much more delay and size.
    fn delta(late_ms: f64, size_bytes: f64) -> FrameDelta {
        let departure = TimeDelta::from_millis(33);
        FrameDelta {
            departure,
            arrival: departure + TimeDelta::from_millis_f64(late_ms),
            size_bytes,
        }
    }

    fn after(deltas: impl Iterator<Item = FrameDelta>) -> ArrivalTimeFilter {
        let mut filter = ArrivalTimeFilter::new();
        for delta in deltas {
            filter.update(&delta, BandwidthUsage::Normal, true);
        }
        filter
    }

    // [BARI §arrival-time filter]: 1 Mbit/s takes 8 ms for 1000 B.
    #[test]
    fn sizes_that_change_give_the_capacity_and_no_offset() {
        let sizes = [3_000.0, -3_000.0, 1_000.0, -1_000.0];
        let filter = after(sizes.into_iter().cycle().take(400).map(|s| delta(0.008 * s, s)));
        assert!((filter.slope - 0.008).abs() < 1e-4, "{}", filter.slope);
        assert!(filter.offset.abs() < 0.01, "{}", filter.offset);
    }

    // [BARI §arrival-time filter]
    #[test]
    fn a_queue_that_grows_by_2_ms_a_frame_is_an_offset_of_2_ms() {
        let filter = after((0..2_000).map(|_| delta(2.0, 0.0)));
        assert!((filter.offset - 2.0).abs() < 0.1, "{}", filter.offset);
        assert_eq!(filter.scaled_offset_ms(), 60.0 * filter.offset);
        assert!((filter.slope - INITIAL_SLOPE).abs() < 1e-12, "sizes said nothing");
    }

    // [BARI §arrival-time filter]: the offset's variance is 0.1 + 0.99 * 0.01 after 33 ms.
    #[test]
    fn the_first_difference_moves_the_offset_by_the_kalman_gain() {
        let mut filter = ArrivalTimeFilter::new();
        filter.update(&delta(1.0, 0.0), BandwidthUsage::Normal, false);
        let gain = 0.1099 / (50.0 + 0.1099);
        assert!((filter.offset - gain).abs() < 1e-12);
        assert!((filter.covariance[2] - (1.0 - gain) * 0.1099).abs() < 1e-12);
    }

    // [LW2013 §overuse_detector]
    #[test]
    fn an_offset_back_from_over_or_under_use_may_move_eleven_times_as_fast() {
        let variance = |offset: f64, last_offset: f64, usage| {
            let mut filter = ArrivalTimeFilter { offset, last_offset, ..ArrivalTimeFilter::new() };
            filter.predict(2.0, usage);
            assert!((filter.covariance[0] - (100.0 + 2e-10)).abs() < 1e-12);
            libm::round(filter.covariance[2] * 1e9) / 1e9
        };
        let [falling, rising, still] = [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0)];
        let of = |usage| [falling, rising, still].map(|(now, last)| variance(now, last, usage));
        assert_eq!(of(Overuse), [0.32, 0.12, 0.12]);
        assert_eq!(of(Underuse), [0.12, 0.32, 0.12]);
        assert_eq!(of(BandwidthUsage::Normal), [0.12; 3]);
    }

    // [LW2013 §overuse_detector]
    #[test]
    fn the_shortest_of_the_last_60_frame_periods_counts() {
        let mut filter = after(
            [5, 33]
                .map(|ms| FrameDelta { departure: TimeDelta::from_millis(ms), ..delta(0.0, 0.0) })
                .into_iter(),
        );
        let mut shortest = || {
            filter.count += 1;
            filter.shortest_period_ms(TimeDelta::from_millis(33))
        };
        assert!((0..58).all(|_| shortest() == 5.0));
        assert_eq!(shortest(), 33.0);
    }

    // [LW2013 §overuse_detector]
    #[test]
    fn after_300_frames_a_residual_weighs_a_fifth() {
        let variance = |count| {
            let mut filter = ArrivalTimeFilter { count, ..ArrivalTimeFilter::new() };
            filter.update_noise(0.0, NOMINAL_PERIOD_MS);
            filter.noise_variance
        };
        assert!((variance(300) - 50.0 * 0.99).abs() < 1e-9);
        assert!((variance(301) - 50.0 * 0.998).abs() < 1e-9);
        assert!((variance(302) - 50.0 * 0.998).abs() < 1e-9);
    }

    #[test]
    fn the_covariance_stays_positive() {
        let mut filter = ArrivalTimeFilter::new();
        for index in 0..20_000_i32 {
            let size = f64::from(index * 7_919 % 4_001 - 2_000);
            filter.update(&delta(f64::from(index * 37 % 19 - 9), size), Overuse, index % 3 > 0);
            let [slope, both, offset] = filter.covariance;
            assert!(slope > 0.0 && offset > 0.0 && slope * offset >= both * both, "{index}");
        }
    }

    // [LW2013 §overuse_detector]
    #[test]
    fn an_outlier_counts_as_three_deviations_and_an_unsteady_frame_not_at_all() {
        let mut filter = ArrivalTimeFilter::new();
        filter.update(&delta(1_000.0, 0.0), BandwidthUsage::Normal, false);
        assert_eq!(filter.noise_variance, INITIAL_NOISE_VARIANCE);
        filter.update(&delta(1_000.0, 0.0), BandwidthUsage::Normal, true);
        // (1 - 0.01 w) 50 + 0.01 w (0.99 * 21.2)^2, w = 0.99 for a period of 33 ms.
        assert!((filter.noise_variance - 53.8).abs() < 0.1, "{}", filter.noise_variance);
    }

    // BARI-D2
    #[test]
    fn without_noise_the_variance_falls_to_its_floor() {
        let filter = after((0..4_000).map(|_| delta(0.0, 0.0)));
        assert_eq!(filter.noise_variance(), MIN_NOISE_VARIANCE);
    }
}
