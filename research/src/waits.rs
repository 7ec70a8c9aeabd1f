//! How long media waits in the sender, from what a run's rows say about the sender's queue.
//!
//! The queue divided by the pacing rate is what the sender expects. It is too little where a window
//! holds packets back, or where the link is away. Here the wait is what it turned out to be: the
//! time until the bytes that waited have left.

use weir::units::TimeDelta;
use weir_metrics::percentile;
use weir_sim::trace::ROW_INTERVAL;

/// Outages longer than this are left out: nobody can send in them.
const LONG_OUTAGE: TimeDelta = TimeDelta::from_secs(1);

/// A flow's sender at the end of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sender {
    /// Bytes that wait.
    pub queued: f64,
    /// Bytes that left in the row.
    pub sent: f64,
}

/// The time in ms until what waited at the end of each row had left. What has not left by the end
/// of the rows counts with the time until then.
pub(super) fn waits_ms(rows: &[Sender]) -> Vec<f64> {
    let row_ms = ROW_INTERVAL.as_millis_f64();
    let mut left = Vec::with_capacity(rows.len());
    let mut sum = 0.0;
    for row in rows {
        sum += row.sent;
        left.push(sum);
    }
    let mut waits = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let goal = left[index] + row.queued;
        // The row in which the last byte leaves; the one after the last if it never does.
        let last = left.partition_point(|&sum| sum < goal);
        let part = rows.get(last).map_or(0.0, |row| (goal - (left[last] - row.sent)) / row.sent);
        let until = if row.queued > 0.0 { last as f64 + part - (index + 1) as f64 } else { 0.0 };
        waits.push(until * row_ms);
    }
    waits
}

/// The 95th percentile of the waits outside of these outages, in rows, that are longer than a
/// second.
pub(super) fn p95_outside(waits_ms: &[f64], outages: &[(usize, usize)]) -> Option<f64> {
    let mut outside = waits_ms.to_vec();
    for &(from, to) in outages {
        if ROW_INTERVAL * (to - from) as i64 > LONG_OUTAGE {
            let to = to.min(outside.len());
            outside[from.min(to)..to].fill(f64::NAN);
        }
    }
    outside.retain(|wait| !wait.is_nan());
    outside.sort_by(f64::total_cmp);
    percentile(&outside, 0.95)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(queued: &[f64], sent: &[f64]) -> Vec<Sender> {
        let pairs = queued.iter().zip(sent);
        pairs.map(|(&queued, &sent)| Sender { queued, sent }).collect()
    }

    #[test]
    fn the_wait_lasts_until_the_bytes_have_left() {
        // 1000 bytes wait at the end of the first row. 400 leave in each of the next two, nothing
        // in the fourth, and 400 in the fifth, of which the first 200 waited.
        let rows = rows(&[1000.0, 600.0, 200.0, 200.0, 0.0], &[500.0, 400.0, 400.0, 0.0, 400.0]);
        assert_eq!(waits_ms(&rows), [175.0, 125.0, 75.0, 25.0, 0.0]);
    }

    #[test]
    fn what_never_leaves_waits_until_the_end() {
        let rows = rows(&[0.0, 300.0, 300.0], &[100.0, 0.0, 0.0]);
        assert_eq!(waits_ms(&rows), [0.0, 50.0, 0.0]);
    }

    #[test]
    fn only_outages_above_a_second_are_left_out() {
        let mut waits = vec![10.0; 100];
        waits[30..70].fill(5_000.0);
        assert_eq!(p95_outside(&waits, &[(30, 70)]), Some(10.0));
        // Two parts of a second each are no long outage.
        assert_eq!(p95_outside(&waits, &[(30, 50), (50, 70)]), Some(5_000.0));
        assert_eq!(p95_outside(&[], &[]), None);
    }
}
