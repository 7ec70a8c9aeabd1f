//! Convergence statistics: average and deviation of the incoming bitrate at the start of over-use.
//!
//! Implements the "near convergence" rule of [GCC §5.5]. Departs from it in GCC-D8.

use weir::units::Bitrate;

// Parameters [GCC §5.5].
/// Smoothing factor of the exponential moving averages.
const SMOOTHING: f64 = 0.95;
/// "Close" is within this many standard deviations of the average.
const CLOSE_DEVIATIONS: f64 = 3.0;
/// Minimum standard deviation as a share of the average, GCC-D8.
const MIN_DEVIATION: f64 = 0.02;

/// Estimate of the rate at which the path is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Convergence {
    statistics: Option<Statistics>,
}

#[derive(Clone, Copy, Debug)]
struct Statistics {
    mean_bps: f64,
    /// Variance in (bit/s)^2.
    variance: f64,
}

/// Kind of growth of the estimated bitrate [GCC §5.5].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    Multiplicative,
    Additive,
}

impl Convergence {
    /// Takes `R_hat` at the entry to state Decrease.
    pub(super) fn on_decrease(&mut self, acknowledged: Bitrate) {
        let sample = acknowledged.as_bps_f64();
        self.statistics = Some(match self.statistics {
            None => Statistics { mean_bps: sample, variance: 0.0 },
            Some(Statistics { mean_bps, variance }) => {
                let error = sample - mean_bps;
                Statistics {
                    mean_bps: mean_bps + (1.0 - SMOOTHING) * error,
                    variance: SMOOTHING * variance + (1.0 - SMOOTHING) * error * error,
                }
            }
        });
    }

    /// The kind of growth at this `R_hat`. If it is above the range, the path has changed, and the
    /// statistics are reset [GCC §5.5].
    pub(super) fn growth(&mut self, acknowledged: Option<Bitrate>) -> Growth {
        let (Some(statistics), Some(acknowledged)) = (self.statistics, acknowledged) else {
            return Growth::Multiplicative;
        };
        let above = acknowledged.as_bps_f64() - statistics.mean_bps;
        // GCC-D8: a first sample, or several equal ones, would otherwise make the range empty.
        let deviation = libm::sqrt(statistics.variance).max(MIN_DEVIATION * statistics.mean_bps);
        if above > CLOSE_DEVIATIONS * deviation {
            self.statistics = None;
        }
        if above.abs() <= CLOSE_DEVIATIONS * deviation {
            Growth::Additive
        } else {
            Growth::Multiplicative
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Growth::{Additive, Multiplicative};
    use super::*;

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    // [GCC §5.5]
    #[test]
    fn without_statistics_or_a_measurement_growth_is_multiplicative() {
        let mut convergence = Convergence::default();
        assert_eq!(convergence.growth(Some(kbps(1_000))), Multiplicative);
        convergence.on_decrease(kbps(1_000));
        assert_eq!(convergence.growth(None), Multiplicative);
    }

    // [GCC §5.5]: mean 0.95 * 1000 + 0.05 * 1200 = 1010, variance 0.05 * 200^2 = 2000 = 44.7^2.
    #[test]
    fn mean_and_deviation_are_moving_averages_with_factor_0_95() {
        let mut convergence = Convergence::default();
        convergence.on_decrease(kbps(1_000));
        convergence.on_decrease(kbps(1_200));
        let statistics = convergence.statistics.unwrap();
        assert!((statistics.mean_bps - 1_010e3).abs() < 1e-6);
        assert!((statistics.variance - 2_000e6).abs() < 1e-3);
        // 3 sigma = 134.2 kbit/s around 1010.
        assert_eq!(convergence.growth(Some(kbps(1_144))), Additive);
        assert_eq!(convergence.growth(Some(kbps(876))), Additive);
        assert_eq!(convergence.growth(Some(kbps(875))), Multiplicative);
        assert_eq!(convergence.growth(Some(kbps(1_145))), Multiplicative);
    }

    // [GCC §5.5]
    #[test]
    fn a_bitrate_above_three_deviations_resets_the_average_one_below_does_not() {
        let mut convergence = Convergence::default();
        convergence.on_decrease(kbps(1_000));
        assert_eq!(convergence.growth(Some(kbps(500))), Multiplicative);
        assert_eq!(convergence.growth(Some(kbps(1_000))), Additive);
        assert_eq!(convergence.growth(Some(kbps(1_100))), Multiplicative);
        assert_eq!(convergence.growth(Some(kbps(1_000))), Multiplicative, "forgotten");
    }

    // GCC-D8
    #[test]
    fn after_one_sample_close_is_within_6_percent() {
        let mut convergence = Convergence::default();
        convergence.on_decrease(kbps(1_000));
        assert_eq!(convergence.growth(Some(kbps(940))), Additive);
        assert_eq!(convergence.growth(Some(kbps(939))), Multiplicative);
        assert_eq!(convergence.growth(Some(kbps(1_060))), Additive);
    }
}
