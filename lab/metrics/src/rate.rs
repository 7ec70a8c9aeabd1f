//! Rates from the bytes of each row.

use std::ops::Range;

use weir::units::DataSize;
use weir_sim::trace::ROW_INTERVAL;

use super::column::Column;
use super::{MeanStd, ROWS_PER_SECOND, RunningMean};

/// Mean rate over the rows, and the standard deviation of the rates of whole seconds.
pub(super) fn rate_over(sizes: &Column, rows: Range<usize>) -> Option<MeanStd> {
    let mean = mbps(sizes.sum(rows.clone()), rows.len());
    let of_seconds = rates_of_seconds(sizes, rows.clone()).collect::<RunningMean>().value()?;
    let squares =
        rates_of_seconds(sizes, rows).map(|rate| (rate - of_seconds) * (rate - of_seconds));
    let variance = squares.collect::<RunningMean>().value()?;
    Some(MeanStd { mean, std: variance.sqrt() })
}

fn mbps(bytes: u64, rows: usize) -> f64 {
    (DataSize::from_bytes(bytes) / (ROW_INTERVAL * rows as i64)).as_mbps_f64()
}

fn rates_of_seconds(sizes: &Column, rows: Range<usize>) -> impl Iterator<Item = f64> {
    let count = rows.len() / ROWS_PER_SECOND;
    let mut sizes = sizes.iter(rows);
    (0..count).map(move |_| mbps(sizes.by_ref().take(ROWS_PER_SECOND).sum(), ROWS_PER_SECOND))
}
