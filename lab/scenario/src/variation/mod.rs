//! How much a capacity varies, whether it was recorded, is a schedule of a scenario, or is what a
//! cell gives to a terminal.
//!
//! ```text
//! trace file --------+
//! link of a scenario +-> bits of each 50 ms -> mean, coefficients of variation, outages
//! flow in a cell ----+
//! ```
//!
//! All three are seen through the same bins, so that they can be compared: of a cell nothing finer
//! is recorded.

mod cell;
mod source;

use serde::Serialize;
use weir::units::{TimeDelta, Timestamp};
use weir_metrics::percentile;
use weir_sim::trace::ROW_INTERVAL;

pub(crate) use cell::constant_rates;
pub use source::{Measured, bits, in_cell, of_capacity, on_links};

/// Length of a bin: that of a row of a record.
pub const BIN: TimeDelta = ROW_INTERVAL;
/// Bins over which the coefficient of variation is taken: 50 ms, 200 ms and 1 s.
const SPANS: [usize; 3] = [1, 4, 20];
/// An outage is this many bins or more, one after the other, in which nothing can leave: 150 ms.
const OUTAGE_BINS: usize = 3;

/// How a capacity varies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variation {
    /// Length of what was looked at, s.
    pub length_s: f64,
    /// Mean, Mbit/s.
    pub mean_mbps: f64,
    /// Standard deviation over the mean of the rates over 50 ms, 200 ms and 1 s. What is left of
    /// the length after the last whole span does not count. `None` if the capacity is 0 throughout,
    /// or if there is no whole span.
    pub cv_50ms: Option<f64>,
    /// The same over 200 ms.
    pub cv_200ms: Option<f64>,
    /// The same over 1 s.
    pub cv_1s: Option<f64>,
    /// Share of the time in outages: three or more successive bins of 50 ms in which nothing can
    /// leave.
    pub outage_share: f64,
    /// Number of outages in a minute.
    pub outages_per_min: f64,
    /// Median length of an outage, s; `None` without one.
    pub outage_median_s: Option<f64>,
    /// Longest outage, s; `None` without one.
    pub outage_longest_s: Option<f64>,
}

impl Variation {
    /// The statistics of the bits that can leave in each bin. `None` without bins.
    pub fn of(bits: &[f64]) -> Option<Self> {
        if bits.is_empty() {
            return None;
        }
        let bin_s = BIN.as_secs_f64();
        let length_s = bits.len() as f64 * bin_s;
        let mut lengths: Vec<f64> = Vec::new();
        for (from, to) in outages(bits) {
            lengths.push((to - from) as f64 * bin_s);
        }
        lengths.sort_by(f64::total_cmp);
        let away_s = lengths.iter().fold(0.0, |sum, length| sum + length);
        Some(Self {
            length_s,
            mean_mbps: bits.iter().sum::<f64>() / length_s / 1e6,
            cv_50ms: coefficient(bits, SPANS[0]),
            cv_200ms: coefficient(bits, SPANS[1]),
            cv_1s: coefficient(bits, SPANS[2]),
            outage_share: away_s / length_s,
            outages_per_min: lengths.len() as f64 / (length_s / 60.0),
            outage_median_s: percentile(&lengths, 0.5),
            outage_longest_s: lengths.last().copied(),
        })
    }
}

/// Number of whole bins before a time.
fn bin_of(time: Timestamp) -> usize {
    ((time - Timestamp::ZERO).as_nanos().max(0) / BIN.as_nanos()) as usize
}

/// The outages in these bins: the first bin of each, and the one after its last.
pub fn outages(bits: &[f64]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    for to in 0..=bits.len() {
        if to < bits.len() && bits[to] == 0.0 {
            continue;
        }
        if to - from >= OUTAGE_BINS {
            found.push((from, to));
        }
        from = to + 1;
    }
    found
}

/// Standard deviation over mean of the sums of `span` bins.
fn coefficient(bits: &[f64], span: usize) -> Option<f64> {
    let sums: Vec<f64> = bits.chunks_exact(span).map(|bins| bins.iter().sum()).collect();
    let mean = sums.iter().sum::<f64>() / sums.len() as f64;
    if sums.is_empty() || mean == 0.0 {
        return None;
    }
    let squares: f64 = sums.iter().map(|sum| (sum - mean) * (sum - mean)).sum();
    Some((squares / sums.len() as f64).sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: Option<f64>, expected: f64) {
        assert!((value.unwrap() - expected).abs() < 1e-9, "{value:?}, {expected}");
    }

    #[test]
    fn the_statistics_are_those_computed_by_hand() {
        // Two seconds: in the first 1 and 3 kbit by turns, in the second 2 kbit throughout.
        let mut bits = [1e3, 3e3].repeat(10);
        bits.extend([2e3; 20]);
        let of = Variation::of(&bits).unwrap();
        assert_eq!((of.length_s, of.mean_mbps), (2.0, 0.04));
        // Half of the bins are 1 kbit from the mean of 2 kbit: the square root of 1/2, over 2.
        near(of.cv_50ms, 0.5_f64.sqrt() / 2.0);
        // Four bins carry 8 kbit, and 20 carry 40 kbit, always.
        near(of.cv_200ms, 0.0);
        near(of.cv_1s, 0.0);
        assert_eq!((of.outage_share, of.outage_median_s), (0.0, None));
    }

    #[test]
    fn an_outage_has_three_empty_bins_or_more() {
        // Empty: two bins, then three, then five at the end, of 20.
        let mut bits = vec![1.0; 20];
        for empty in [1, 2, 5, 6, 7, 15, 16, 17, 18, 19] {
            bits[empty] = 0.0;
        }
        assert_eq!(outages(&bits), [(5, 8), (15, 20)]);
        let of = Variation::of(&bits).unwrap();
        assert!((of.outage_share - 0.4).abs() < 1e-12, "{of:?}");
        // Two in one second; 150 and 250 ms.
        assert_eq!(of.outages_per_min, 120.0);
        near(of.outage_median_s, 0.2);
        near(of.outage_longest_s, 0.25);
        // Half of the bins are empty, the others equal.
        near(of.cv_50ms, 1.0);
    }

    #[test]
    fn an_outage_that_lasts_for_ever_has_no_coefficient() {
        let of = Variation::of(&[0.0; 40]).unwrap();
        assert_eq!((of.cv_50ms, of.outage_share, of.outage_longest_s), (None, 1.0, Some(2.0)));
        assert_eq!(Variation::of(&[]), None);
        // Less than a second has no coefficient over a second.
        assert_eq!(Variation::of(&[1.0; 19]).unwrap().cv_1s, None);
    }
}
