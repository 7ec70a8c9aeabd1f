//! Rates from the bytes of each row.

use std::ops::Range;

use weir::units::DataSize;
use weir_sim::trace::ROW_INTERVAL;

use super::column::Column;
use super::{MeanStd, ROWS_PER_SECOND, RunningMean};

/// Mean rate over the rows, and the standard deviation of the rates of whole seconds.
pub(super) fn rate_over(sizes: &Column, rows: Range<usize>) -> Option<MeanStd> {
    let rate = |bytes: u64, rows: usize| {
        (DataSize::from_bytes(bytes) / (ROW_INTERVAL * rows as i64)).as_mbps_f64()
    };
    let seconds = || {
        let mut sizes = sizes.iter(rows.clone());
        let second = move |_| sizes.by_ref().take(ROWS_PER_SECOND).sum();
        (0..rows.len() / ROWS_PER_SECOND).map(second).map(|bytes| rate(bytes, ROWS_PER_SECOND))
    };
    let of_seconds = seconds().collect::<RunningMean>().value()?;
    let squares = seconds().map(|rate| (rate - of_seconds) * (rate - of_seconds));
    let variance = squares.collect::<RunningMean>().value()?;
    Some(MeanStd { mean: rate(sizes.sum(rows.clone()), rows.len()), std: variance.sqrt() })
}
