//! How a flow's rate settles in the spans between changes.

use std::ops::Range;

use weir::units::DataSize;
use weir_sim::trace::ROW_INTERVAL;

use super::rows::Received;
use super::{ROWS_PER_SECOND, RunningMean, Window};

/// Rows of the window whose rate is compared with the watermarks of an oscillation: 500 ms
/// [RFC8868 §3].
pub(super) const OSCILLATION_WINDOW: usize = 10;
/// Low and high watermark, relative to the mean rate.
const OSCILLATION_LOW: f64 = 0.75;
const OSCILLATION_HIGH: f64 = 1.25;
/// Shortest span in which oscillations are counted, in rows: 5 s.
const OSCILLATION_SPAN: usize = 100;
/// A flow has converged once its rate differs from its final rate by at most this share.
const CONVERGED: f64 = 0.1;

pub(super) fn convergence_s(
    received: &Received,
    spans: &[Range<usize>],
    outages: &[Range<usize>],
) -> Option<f64> {
    let mut times = RunningMean::default();
    for span in spans {
        if span.len() < 2 * ROWS_PER_SECOND {
            continue;
        }
        let end = received.rate(late(span)).as_bps_f64();
        // An outage has no rate to converge to. A capacity of zero is not enough to detect one: a
        // flow next to a load that takes all capacity may still receive.
        if end == 0.0 && outages.iter().any(|outage| outage.contains(&span.start)) {
            continue;
        }
        let mut window = Window::default();
        // The first second near the final rate ends with this row.
        let row = received.bytes().iter(span.clone()).position(|bytes| {
            let bytes = DataSize::from_bytes(window.push(bytes));
            let rate = bytes / (ROW_INTERVAL * ROWS_PER_SECOND as i64);
            window.is_full() && (rate.as_bps_f64() - end).abs() <= CONVERGED * end
        });
        if let Some(row) = row {
            times.push((ROW_INTERVAL * (row + 1) as i64).as_secs_f64());
        }
    }
    times.value()
}

/// Counts passages from below the low to above the high watermark, as in the example of
/// [RFC8868 §3].
pub(super) fn oscillations_per_min(received: &Received, spans: &[Range<usize>]) -> Option<f64> {
    let (mut swings, mut seconds) = (0, 0.0);
    for span in spans {
        let late = late(span);
        let steady = received.rate(late.clone()).as_bps_f64();
        // Too short to tell an oscillation from a single change.
        if late.len() < OSCILLATION_SPAN || steady == 0.0 {
            continue;
        }
        let mut is_low = false;
        let mut rows = received.bytes().iter(late.clone());
        for _ in 0..late.len() / OSCILLATION_WINDOW {
            let bytes = DataSize::from_bytes(rows.by_ref().take(OSCILLATION_WINDOW).sum());
            let rate = bytes / (ROW_INTERVAL * OSCILLATION_WINDOW as i64);
            let rate = rate.as_bps_f64() / steady;
            if is_low && rate > OSCILLATION_HIGH {
                swings += 1;
            }
            is_low = rate < OSCILLATION_LOW || (is_low && rate <= OSCILLATION_HIGH);
        }
        seconds += ROW_INTERVAL.as_secs_f64() * late.len() as f64;
    }
    if seconds > 0.0 { Some(f64::from(swings) * 60.0 / seconds) } else { None }
}

/// Second half of a span.
fn late(span: &Range<usize>) -> Range<usize> {
    span.start + span.len() / 2..span.end
}
