//! Block errors: which share of the blocks of a scheme cannot be decoded at a signal quality.
//!
//! The signal of each resource block gives a mutual information (the share of a coded bit's
//! information that arrives). The mean over the resource blocks of a transport block decides about
//! its code blocks: their error rate falls from one to zero like a normal distribution about a mean
//! that depends on code rate, modulation and size. This is the method of IEEE 802.16m's evaluation
//! methodology.

use std::sync::LazyLock;

/// Modulations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// Two bits per symbol.
    Qpsk,
    /// Four bits per symbol.
    Qam16,
    /// Six bits per symbol.
    Qam64,
    /// Eight bits per symbol.
    Qam256,
}

impl Modulation {
    /// Number of modulations.
    pub(super) const COUNT: usize = 4;

    /// Coded bits of a symbol.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Qpsk => 2,
            Self::Qam16 => 4,
            Self::Qam64 => 6,
            Self::Qam256 => 8,
        }
    }

    /// Mutual information of a coded bit, 0 to 1, at a signal-to-noise ratio (as a factor).
    ///
    /// From IEEE 802.16m's evaluation methodology, section 4.3.2.1, read on the grid that ns-3
    /// uses: the next point above counts, and beyond its end the information is 1. 256-QAM, which
    /// the source lacks, is a sum of exponentials fitted to the capacity with Gray mapping.
    pub fn mutual_information(self, sinr: f64) -> f64 {
        self.information().at(sinr)
    }

    /// The curve of [`Modulation::mutual_information`], to be read several times.
    pub(super) fn information(self) -> Information {
        let Grid { start, step, .. } = self.grid();
        Information {
            scale: 1.0 / step,
            first: 1.0 - start / step,
            points: &INFORMATION[self as usize],
        }
    }

    /// The mutual information at a point of the grid.
    fn computed(self, sinr: f64) -> f64 {
        let root = libm::sqrt(sinr);
        match self {
            Self::Qpsk => bit_information(2.0 * root),
            Self::Qam16 => {
                let [a, b, c] = [0.8, 2.17, 0.965].map(|scale| bit_information(scale * root));
                (2.0 * a + b + c) / 4.0
            }
            Self::Qam64 => {
                let each = [1.47, 0.529, 0.366].map(|scale| bit_information(scale * root));
                each.iter().sum::<f64>() / 3.0
            }
            Self::Qam256 => {
                let terms = QAM256.iter();
                1.0 - terms.map(|(share, rate)| share * libm::exp(-rate * sinr)).sum::<f64>()
            }
        }
    }

    const fn grid(self) -> Grid {
        match self {
            Self::Qpsk => Grid { start: 0.013, step: 0.004, points: 797 },
            Self::Qam16 => Grid { start: 0.063, step: 0.01, points: 994 },
            Self::Qam64 => Grid { start: 0.25, step: 0.21, points: 752 },
            Self::Qam256 => Grid { start: 0.25, step: 0.25, points: 6_000 },
        }
    }
}

/// The mutual information at each point of each modulation's grid.
static INFORMATION: LazyLock<[Vec<f64>; Modulation::COUNT]> = LazyLock::new(|| {
    [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64, Modulation::Qam256].map(|modulation| {
        let Grid { start, step, points } = modulation.grid();
        (0..points).map(|point| modulation.computed(start + step * f64::from(point))).collect()
    })
});

/// The curve of a modulation's mutual information.
#[derive(Clone, Copy)]
pub(super) struct Information {
    /// Points for each unit of the signal-to-noise ratio, and the number of the point for zero.
    scale: f64,
    first: f64,
    points: &'static [f64],
}

impl Information {
    /// The mutual information at a signal-to-noise ratio (as a factor).
    pub(super) fn at(self, sinr: f64) -> f64 {
        self.point(sinr * self.scale)
    }

    /// The sum of the mutual information over several signals, all scaled by a factor.
    pub(super) fn sum(self, sinrs: &[f64], factor: f64) -> f64 {
        let scale = factor * self.scale;
        // Two sums do not wait for each other.
        let pairs = sinrs.chunks_exact(2);
        let rest = pairs.remainder().first().map_or(0.0, |sinr| self.point(sinr * scale));
        let (even, odd) = pairs.fold((0.0, rest), |(even, odd), pair| {
            (even + self.point(pair[0] * scale), odd + self.point(pair[1] * scale))
        });
        even + odd
    }

    fn point(self, scaled: f64) -> f64 {
        // A cast of NaN gives zero. A number below zero counts as zero, one beyond the end as 1.
        let point = (scaled + self.first) as i32;
        self.points.get(point.max(0) as usize).copied().unwrap_or(1.0)
    }
}

/// Where a curve of mutual information is read.
struct Grid {
    start: f64,
    step: f64,
    points: u32,
}

/// Share and rate of the exponentials of 256-QAM. The shares add up to 1.
const QAM256: [(f64, f64); 5] = [
    (0.369_529, 0.006_514_8),
    (0.079_357, 0.980_323_6),
    (0.254_842, 0.047_749_1),
    (0.116_614, 0.015_425_2),
    (0.179_658, 0.237_943_2),
];

/// `J`: mutual information of a bit whose log-likelihood ratio has this deviation.
fn bit_information(deviation: f64) -> f64 {
    let x = deviation;
    if x <= 1.6363 {
        return ((-0.042_106_1 * x + 0.209_252) * x - 0.006_400_81) * x;
    }
    1.0 - libm::exp(((0.001_814_91 * x - 0.142_675) * x - 0.082_205_4) * x + 0.054_960_8)
}

/// A modulation and coding scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheme {
    /// Its modulation.
    pub modulation: Modulation,
    /// Information bits per coded bit.
    pub rate: f64,
}

impl Scheme {
    /// Information bits per symbol.
    pub fn efficiency(self) -> f64 {
        self.rate * f64::from(self.modulation.bits())
    }
}

/// Bits of the largest code block (3GPP TS 36.212 §5.1.2).
const CODE_BLOCK_MAX: u32 = 6_144;
/// Bits of the checksum of a code block, if there are several.
const CHECKSUM: u32 = 24;
/// Sizes of code blocks for which there are curves, in bits.
const CURVE_SIZES: [u32; 9] = [40, 104, 160, 256, 512, 1_024, 2_560, 4_032, 6_144];

/// An error curve of turbo codes, for one code rate of a modulation: the error rate falls from one
/// to zero like a normal distribution over the mutual information.
struct Curve {
    rate: f64,
    /// Mean for long code blocks.
    mean: f64,
    /// What the mean gains with one over the size in bits.
    slope: f64,
    /// The deviation times the square root of the size.
    spread: f64,
    /// Smaller code blocks have the curve of this size.
    size: u32,
}

const fn curve(rate: f64, mean: f64, slope: f64, spread: f64, size: u32) -> Curve {
    Curve { rate, mean, slope, spread, size }
}

/// Curves of QPSK by ascending rate. These and the next ones are fitted to the thresholds of ns-3;
/// the thresholds of channel reports agree to 0.04 dB.
static QPSK: [Curve; 13] = [
    curve(0.01, 0.0159, 0.36, 0.030, 40),
    curve(0.026, 0.0414, 0.90, 0.075, 40),
    curve(0.04, 0.0627, 1.34, 0.110, 40),
    curve(0.08, 0.1205, 2.32, 0.200, 40),
    curve(0.1, 0.1469, 2.96, 0.241, 104),
    curve(0.11, 0.1609, 2.99, 0.252, 104),
    curve(0.15, 0.2103, 4.09, 0.325, 104),
    curve(0.19, 0.2595, 4.53, 0.401, 160),
    curve(0.24, 0.3140, 5.12, 0.461, 160),
    curve(0.3, 0.3715, 5.40, 0.503, 256),
    curve(0.37, 0.4423, 9.32, 0.562, 256),
    curve(0.44, 0.5168, 10.24, 0.629, 256),
    curve(0.51, 0.5858, 11.31, 0.643, 512),
];
/// Curves of 16-QAM.
static QAM16: [Curve; 10] = [
    curve(0.075, 0.145, 0.0, 0.25, 512),
    curve(0.1, 0.178, 0.0, 0.29, 512),
    curve(0.15, 0.236, 0.0, 0.35, 512),
    curve(0.3, 0.3769, 0.30, 0.467, 512),
    curve(0.33, 0.3908, 7.26, 0.458, 512),
    curve(0.37, 0.4323, 7.67, 0.494, 512),
    curve(0.42, 0.4831, 7.20, 0.538, 512),
    curve(0.48, 0.5379, 9.00, 0.545, 512),
    curve(0.54, 0.5926, 11.06, 0.581, 1_024),
    curve(0.6, 0.6505, 11.69, 0.604, 1_024),
];
/// Curves of 64-QAM; 256-QAM has them too.
static QAM64: [Curve; 15] = [
    curve(0.1075, 0.137, 2.4, 0.23, 1_024),
    curve(0.143, 0.183, 9.0, 0.33, 1_024),
    curve(0.215, 0.275, 13.0, 0.42, 1_024),
    curve(0.43, 0.4981, 8.68, 0.496, 1_024),
    curve(0.45, 0.5161, 6.50, 0.498, 1_024),
    curve(0.5, 0.5593, 3.74, 0.493, 1_024),
    curve(0.55, 0.6015, 7.78, 0.525, 1_024),
    curve(0.6, 0.6483, 9.70, 0.564, 1_024),
    curve(0.65, 0.6940, 11.24, 0.588, 1_024),
    curve(0.7, 0.7398, 11.39, 0.619, 1_024),
    curve(0.75, 0.7829, 12.67, 0.618, 2_560),
    curve(0.8, 0.8265, 13.22, 0.597, 2_560),
    curve(0.85, 0.8658, 19.31, 0.545, 2_560),
    curve(0.89, 0.9042, 12.71, 0.501, 2_560),
    curve(0.92, 0.9292, 19.49, 0.445, 2_560),
];

/// Mean and deviation of the error curve for a code rate and a code block size. Between two
/// tabulated rates the lower one's curve is moved by the difference.
fn error_curve(scheme: Scheme, code_block: u32) -> (f64, f64) {
    let curves: &[Curve] = match scheme.modulation {
        Modulation::Qpsk => &QPSK,
        Modulation::Qam16 => &QAM16,
        Modulation::Qam64 | Modulation::Qam256 => &QAM64,
    };
    let above = curves.partition_point(|curve| curve.rate <= scheme.rate + 1e-9);
    let curve = &curves[above.saturating_sub(1)];
    let class = CURVE_SIZES.partition_point(|size| *size <= code_block).max(1) - 1;
    let size = f64::from(CURVE_SIZES[class].max(curve.size));
    let mean = curve.mean + curve.slope / size + (scheme.rate - curve.rate).max(0.0);
    (mean, curve.spread / libm::sqrt(size))
}

/// The code blocks of a transport block: numbers and sizes in bits (3GPP TS 36.212 §5.1.2). The
/// second size is the next smaller one.
fn code_blocks(bits: u32) -> [(u32, u32); 2] {
    if bits <= CODE_BLOCK_MAX {
        return [(1, code_block_size(bits)), (0, 0)];
    }
    let count = bits.div_ceil(CODE_BLOCK_MAX - CHECKSUM);
    let total = bits + count * CHECKSUM;
    let large = code_block_size(total.div_ceil(count));
    let small = large - code_block_step(large);
    let smalls = (count * large).saturating_sub(total) / (large - small);
    [(count - smalls, large), (smalls, small)]
}

/// The smallest size of a code block that holds this many bits (3GPP TS 36.212 Table 5.1.3-3).
fn code_block_size(bits: u32) -> u32 {
    let step = code_block_step(bits);
    bits.max(40).div_ceil(step) * step
}

/// Difference between a code block size and the next smaller one.
const fn code_block_step(size: u32) -> u32 {
    match size {
        0..=512 => 8,
        513..=1_024 => 16,
        1_025..=2_048 => 32,
        _ => 64,
    }
}

/// Deviations beyond the mean from which a code block never fails: the error rate is below 1e-15.
const SAFE_DEVIATIONS: f64 = 8.0;

/// Probability that a block of this scheme and size cannot be decoded, given the mean mutual
/// information of its coded bits.
pub fn block_error(scheme: Scheme, bytes: u32, information: f64) -> f64 {
    let decoded: f64 = code_blocks(bytes * 8)
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, size)| {
            let (mean, deviation) = error_curve(scheme, size);
            let distance = (information - mean) / deviation;
            if distance > SAFE_DEVIATIONS {
                return 1.0;
            }
            let error = 0.5 * libm::erfc(distance / core::f64::consts::SQRT_2);
            libm::pow(1.0 - error, f64::from(count))
        })
        .product();
    1.0 - decoded
}

/// The least mean mutual information at which a block fails with at most this probability.
pub(super) fn information_for(scheme: Scheme, bytes: u32, target: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // 2^-40 is far below the accuracy of the curves.
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if block_error(scheme, bytes, middle) <= target {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// SINR in dB from which the control channel never fails.
pub(super) const CONTROL_SAFE_DB: f64 = -1.0;
/// SINR in dB of the first value below.
const CONTROL_START_DB: f64 = -10.0;

/// Probability in parts per thousand that the control channel of a TTI cannot be decoded, each
/// decibel from -10 to -1 dB, from the link-level curves that ns-3 uses. Between them it changes
/// geometrically.
const CONTROL_ERRORS: [f64; 10] =
    [922.6, 694.1, 520.9, 343.1, 206.0, 109.1, 45.5, 17.5, 6.738, 2.073];

/// The curve is read this much higher, as ns-3 does, which takes the next step of its grid.
const CONTROL_GRID_DB: f64 = 0.2;

/// Probability that a terminal with this SINR misses the control channel of a TTI, and with it its
/// grants.
pub fn control_error(sinr_db: f64) -> f64 {
    if sinr_db > CONTROL_SAFE_DB {
        return 0.0;
    }
    let at = (sinr_db + CONTROL_GRID_DB - CONTROL_START_DB).max(0.0);
    let last = CONTROL_ERRORS.len() - 1;
    let below = (libm::floor(at) as usize).min(last);
    let above = (below + 1).min(last);
    let (first, second) = (CONTROL_ERRORS[below], CONTROL_ERRORS[above]);
    first * libm::pow(second / first, at - below as f64) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const QPSK: Scheme = Scheme { modulation: Modulation::Qpsk, rate: 0.3 };

    #[test]
    fn mutual_information_rises_to_one() {
        for modulation in
            [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64, Modulation::Qam256]
        {
            let mut before = 0.0;
            for step in 0..4_000 {
                let now = modulation.mutual_information(f64::from(step) * 0.25);
                assert!(now >= before, "{modulation:?} at {step}");
                before = now;
            }
            assert!(before > 0.99, "{modulation:?}");
        }
    }

    #[test]
    fn code_blocks_hold_the_block_and_differ_by_one_step() {
        assert_eq!(code_blocks(6_144), [(1, 6_144), (0, 0)]);
        assert_eq!(code_blocks(40), [(1, 40), (0, 0)]);
        for bits in (6_145..300_000).step_by(997) {
            let [(larges, large), (smalls, small)] = code_blocks(bits);
            let held = larges * large + smalls * small;
            let needed = bits + (larges + smalls) * CHECKSUM;
            assert!(held >= needed && held < needed + large, "{bits}: {held} for {needed}");
            assert!(large <= CODE_BLOCK_MAX);
        }
    }

    #[test]
    fn errors_fall_with_the_signal_and_rise_with_the_rate() {
        let faster = Scheme { rate: 0.51, ..QPSK };
        for step in 0..50 {
            let information = f64::from(step) / 50.0;
            let error = block_error(QPSK, 300, information);
            assert!((0.0..=1.0).contains(&error));
            assert!(block_error(QPSK, 300, information + 0.02) <= error);
            assert!(block_error(faster, 300, information) >= error - 1e-9);
        }
    }

    #[test]
    fn the_information_for_a_target_meets_it() {
        let information = information_for(QPSK, 1_500, 0.1);
        assert!((block_error(QPSK, 1_500, information) - 0.1).abs() < 1e-6);
    }

    #[test]
    fn the_control_channel_fails_only_when_the_signal_is_weak() {
        assert_eq!(control_error(-0.9), 0.0);
        // The published values at -3.8, -4.4 and -10 dB are 0.0376, 0.0646 and 0.9226.
        assert!((control_error(-4.0) - 0.0376).abs() < 0.001);
        assert!((control_error(-4.6) - 0.0646).abs() < 0.003);
        assert!((control_error(-30.0) - 0.9226).abs() < 1e-9);
    }
}
