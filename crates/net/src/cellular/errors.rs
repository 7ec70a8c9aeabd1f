//! Block errors: which share of the blocks of a scheme cannot be decoded at a signal quality.
//!
//! The signal of each resource block gives a mutual information (the share of a coded bit's
//! information that arrives). The mean over the resource blocks of a transport block decides about
//! its code blocks: their error rate falls from one to zero like a normal distribution about a mean
//! that depends on code rate, modulation and size. This is the method of IEEE 802.16m's evaluation
//! methodology; the means and deviations are in `lte_error_curves.csv`.

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
    /// A sum of exponentials fitted to the curves of the link-level simulations, to 0.0008. These
    /// curves have a grid, of which the next point above counts, and end where the mutual
    /// information is close to its maximum; beyond, it is 1. 256-QAM, which they lack, is computed
    /// for Gray mapping.
    pub fn mutual_information(self, sinr: f64) -> f64 {
        let Curve { start, step, end, terms } = self.curve();
        if sinr > end {
            return 1.0;
        }
        let sinr = start + step * libm::floor((sinr - start) / step + 1.0).max(0.0);
        let missing: f64 = terms.iter().map(|(share, rate)| share * libm::exp(-rate * sinr)).sum();
        1.0 - missing
    }

    const fn curve(self) -> Curve {
        match self {
            Self::Qpsk => Curve {
                start: 0.013,
                step: 0.004,
                end: 3.197,
                terms: &[(0.128_631, 1.624_157), (0.871_369, 0.578_830)],
            },
            Self::Qam16 => Curve {
                start: 0.063,
                step: 0.01,
                end: 9.993,
                terms: &[(0.681_184, 0.106_957_8), (0.061_180, 1.525_643), (0.257_636, 0.553_047)],
            },
            Self::Qam64 => Curve {
                start: 0.25,
                step: 0.21,
                end: 157.96,
                terms: &[
                    (0.260_574, 0.270_291_1),
                    (0.306_393, 0.019_407_4),
                    (0.337_209, 0.045_044_9),
                    (0.095_824, 0.623_298_9),
                ],
            },
            Self::Qam256 => Curve {
                start: 0.0,
                step: 0.01,
                end: f64::INFINITY,
                terms: &[
                    (0.369_529, 0.006_514_8),
                    (0.079_357, 0.980_323_6),
                    (0.254_842, 0.047_749_1),
                    (0.116_614, 0.015_425_2),
                    (0.179_658, 0.237_943_2),
                ],
            },
        }
    }
}

/// Mutual information over SINR: the grid of the curve, and one minus a sum of exponentials.
struct Curve {
    start: f64,
    step: f64,
    end: f64,
    /// Share and rate of each exponential. The shares add up to 1.
    terms: &'static [(f64, f64)],
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

/// Mean and deviation of an error curve.
type ErrorCurve = (f64, f64);

/// The curves of a modulation, by ascending code rate.
type Curves = Vec<(f64, [ErrorCurve; CURVE_SIZES.len()])>;

/// The curves of QPSK, 16-QAM and 64-QAM.
static CURVES: LazyLock<[Curves; 3]> = LazyLock::new(|| {
    let mut curves = [const { Vec::new() }; 3];
    let rows = include_str!("lte_error_curves.csv").lines().filter(|line| !line.starts_with('#'));
    for row in rows {
        let numbers: Vec<f64> =
            row.split(',').map(|text| text.parse().expect("the table has numbers")).collect();
        let mut by_size = [(0.0, 0.0); CURVE_SIZES.len()];
        for (curve, pair) in by_size.iter_mut().zip(numbers[2..].chunks(2)) {
            *curve = (pair[0], pair[1]);
        }
        curves[numbers[0] as usize / 2 - 1].push((numbers[1], by_size));
    }
    curves
});

/// The error curve for a code rate and a code block size. Between two tabulated rates the lower
/// one's curve is moved by the difference. 256-QAM has those of 64-QAM.
fn error_curve(scheme: Scheme, code_block: u32) -> ErrorCurve {
    let curves = match scheme.modulation {
        Modulation::Qpsk => &CURVES[0],
        Modulation::Qam16 => &CURVES[1],
        Modulation::Qam64 | Modulation::Qam256 => &CURVES[2],
    };
    let above = curves.partition_point(|(rate, _)| *rate <= scheme.rate + 1e-9);
    let (rate, by_size) = &curves[above.saturating_sub(1)];
    let size = CURVE_SIZES.partition_point(|size| *size <= code_block).max(1) - 1;
    let (mean, deviation) = by_size[size];
    (mean + (scheme.rate - rate).max(0.0), deviation)
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

/// Probability that a block of this scheme and size cannot be decoded, given the mean mutual
/// information of its coded bits.
pub fn block_error(scheme: Scheme, bytes: u32, information: f64) -> f64 {
    let decoded: f64 = code_blocks(bytes * 8)
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, size)| {
            let (mean, deviation) = error_curve(scheme, size);
            let error =
                0.5 * libm::erfc((information - mean) / (core::f64::consts::SQRT_2 * deviation));
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
const CONTROL_SAFE_DB: f64 = -1.0;
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
