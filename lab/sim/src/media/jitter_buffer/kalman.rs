//! Delay of a frame relative to the one before it, as a line over the difference of their sizes
//! [LIBWEBRTC §FrameDelayVariationKalmanFilter].
//!
//! The slope is the time that a byte takes on the bottleneck, the offset is what the queue grows
//! by from frame to frame.

/// State at the start: ms a byte, and ms. libwebrtc means 512 kbit/s, and starts at a thousandth
/// of the ms that a byte takes there.
const START: [f64; 2] = [1.0 / 64_000.0, 0.0];
/// Variances of slope and offset at the start.
const START_VARIANCE: [f64; 2] = [1e-4, 1e2];
/// What is added to them with each frame.
const PROCESS_VARIANCE: [f64; 2] = [2.5e-10, 1e-10];
/// Noise of an observation: this many standard deviations for frames of equal size, one for frames
/// whose sizes differ by much more than the largest frame.
const SAME_SIZE_NOISE: f64 = 300.0;
const LEAST_NOISE: f64 = 1.0;
/// Least slope in ms a byte.
const LEAST_SLOPE: f64 = 1e-6;
/// An innovation with a smaller variance is not used.
const LEAST_INNOVATION: f64 = 1e-9;

/// The filter.
#[derive(Clone, Debug)]
pub(super) struct Kalman {
    state: [f64; 2],
    covariance: [[f64; 2]; 2],
}

impl Default for Kalman {
    fn default() -> Self {
        let [slope, offset] = START_VARIANCE;
        Self { state: START, covariance: [[slope, 0.0], [0.0, offset]] }
    }
}

impl Kalman {
    /// Delay in ms that a frame has because it is this many bytes larger.
    pub(super) fn of_size(&self, bytes: f64) -> f64 {
        self.state[0] * bytes
    }

    /// The same with the growth of the queue.
    pub(super) fn total(&self, bytes: f64) -> f64 {
        self.of_size(bytes) + self.state[1]
    }

    /// A frame that is `bytes` larger than the one before took `delay` ms longer. `largest` is the
    /// size of large frames, `variance` that of the delays around the line in ms².
    pub(super) fn on_frame(&mut self, delay: f64, bytes: f64, largest: f64, variance: f64) {
        if largest < 1.0 || variance <= 0.0 {
            return;
        }
        self.covariance[0][0] += PROCESS_VARIANCE[0];
        self.covariance[1][1] += PROCESS_VARIANCE[1];
        let [[p00, p01], [p10, p11]] = self.covariance;
        let by_size = [p00 * bytes + p01, p10 * bytes + p11];
        let alike = libm::exp(-libm::fabs(bytes) / largest);
        let noise = ((SAME_SIZE_NOISE * alike + 1.0) * libm::sqrt(variance)).max(LEAST_NOISE);
        let innovation_variance = bytes * by_size[0] + by_size[1] + noise;
        if libm::fabs(innovation_variance) < LEAST_INNOVATION {
            return;
        }
        let gain = by_size.map(|part| part / innovation_variance);
        let innovation = delay - self.total(bytes);
        self.state[0] = (self.state[0] + gain[0] * innovation).max(LEAST_SLOPE);
        self.state[1] += gain[1] * innovation;
        self.covariance = [
            [
                p00 * (1.0 - gain[0] * bytes) - gain[0] * p10,
                p01 * (1.0 - gain[0] * bytes) - gain[0] * p11,
            ],
            [
                p10 * (1.0 - gain[1]) - gain[1] * bytes * p00,
                p11 * (1.0 - gain[1]) - gain[1] * bytes * p01,
            ],
        ];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_link_of_one_mbps_the_slope_becomes_that_of_the_link() {
        let mut kalman = Kalman::default();
        // 8 ms for 1,000 bytes more.
        for frame in 0..3_000 {
            let bytes = if frame % 2 == 0 { 4_000.0 } else { -4_000.0 };
            kalman.on_frame(bytes * 0.008, bytes, 6_000.0, 4.0);
        }
        let ms = kalman.of_size(1_000.0);
        assert!((ms - 8.0).abs() < 0.5, "{ms}");
    }

    #[test]
    fn the_slope_is_never_below_zero() {
        let mut kalman = Kalman::default();
        for frame in 0..1_000 {
            let bytes = if frame % 2 == 0 { 4_000.0 } else { -4_000.0 };
            kalman.on_frame(-bytes, bytes, 6_000.0, 4.0);
        }
        assert!(kalman.of_size(1.0) > 0.0);
    }
}
