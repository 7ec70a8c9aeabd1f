//! Link capacity: average and deviation of the acknowledged bitrate at over-use.
//!
//! Implements [LIBWEBRTC §LinkCapacityEstimator], the successor of the convergence rule of
//! [GCC §5.5].

use crate::units::Bitrate;

// Parameters [LIBWEBRTC §LinkCapacityEstimator].
/// Weight of a new sample.
const WEIGHT: f64 = 0.05;
/// Range of the variance divided by the average, in kbit/s.
const MIN_VARIANCE: f64 = 0.4;
const MAX_VARIANCE: f64 = 2.5;
/// The range of the capacity, in standard deviations to either side of the average.
const DEVIATIONS: f64 = 3.0;

/// Estimate of the rate at which the path is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkCapacity {
    known: Option<Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    mean_kbps: f64,
    /// Variance divided by the average.
    variance_kbps: f64,
}

impl Known {
    fn deviation_kbps(self) -> f64 {
        libm::sqrt(self.variance_kbps * self.mean_kbps)
    }
}

impl LinkCapacity {
    /// Takes the acknowledged bitrate at over-use. A sample below the range restarts the estimate.
    pub(super) fn on_overuse(&mut self, acknowledged: Bitrate) {
        let sample = acknowledged.as_kbps_f64();
        let known = self
            .known
            .filter(|known| sample >= known.mean_kbps - DEVIATIONS * known.deviation_kbps());
        self.known = Some(match known {
            None => Known { mean_kbps: sample, variance_kbps: MIN_VARIANCE },
            Some(Known { mean_kbps, variance_kbps }) => {
                let mean_kbps = (1.0 - WEIGHT) * mean_kbps + WEIGHT * sample;
                let error = mean_kbps - sample;
                let normalized = error * error / mean_kbps.max(1.0);
                let variance = (1.0 - WEIGHT) * variance_kbps + WEIGHT * normalized;
                Known { mean_kbps, variance_kbps: variance.clamp(MIN_VARIANCE, MAX_VARIANCE) }
            }
        });
    }

    /// Takes the acknowledged bitrate while the rate grows. After a sample above the range, the
    /// capacity is no longer known.
    pub(super) fn on_increase(&mut self, acknowledged: Bitrate) {
        let sample = acknowledged.as_kbps_f64();
        self.known = self
            .known
            .filter(|known| sample <= known.mean_kbps + DEVIATIONS * known.deviation_kbps());
    }

    /// The average, if the capacity is known.
    pub(super) fn estimate(&self) -> Option<Bitrate> {
        self.known.map(|known| Bitrate::from_bps_f64(known.mean_kbps * 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    // [LIBWEBRTC §LinkCapacityEstimator]: 3 * sqrt(0.4 * 1000) = 60 kbit/s.
    #[test]
    fn a_first_sample_has_a_range_of_6_percent_at_1_mbps() {
        for (increase, known) in [(1_059, true), (1_061, false)] {
            let mut capacity = LinkCapacity::default();
            capacity.on_overuse(kbps(1_000));
            capacity.on_increase(kbps(increase));
            assert_eq!(capacity.estimate().is_some(), known, "{increase}");
        }
    }

    // [LIBWEBRTC §LinkCapacityEstimator]
    #[test]
    fn a_sample_weighs_5_percent_and_one_below_the_range_starts_afresh() {
        let mut capacity = LinkCapacity::default();
        capacity.on_overuse(kbps(1_000));
        capacity.on_overuse(kbps(960));
        assert_eq!(capacity.estimate(), Some(kbps(998)));
        capacity.on_overuse(kbps(900));
        assert_eq!(capacity.estimate(), Some(kbps(900)));
    }

    // [LIBWEBRTC §LinkCapacityEstimator]: 3 * sqrt(2.5 * 1000) = 150 kbit/s.
    #[test]
    fn the_range_grows_with_the_scatter_to_15_percent_at_most() {
        let mut capacity = LinkCapacity::default();
        capacity.on_overuse(kbps(1_000));
        for _ in 0..200 {
            capacity.on_overuse(kbps(1_060));
            capacity.on_overuse(kbps(2_000));
        }
        assert_eq!(capacity.known.map(|known| known.variance_kbps), Some(MAX_VARIANCE));
    }
}
