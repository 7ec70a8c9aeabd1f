//! Bytes transferred by a TCP load in each row, from the reports of the two ends of iperf3.
//!
//! iperf3 counts from its own start time, which it reports only to the second. Here that time is
//! set to the start of the emulator's interval in which the load's data began. Before that, its
//! control connection has sent only a few hundred bytes; then a whole initial window is sent at
//! once. The receiver's count began a one-way delay earlier.

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_emu::{FlowRecord, LoadInterval, LoadReport, SAMPLE_INTERVAL};
use weir_sim::trace::{Row, Transfer};

/// Threshold that detects the start of the data: more than the control connection sends before it,
/// less than an initial window [RFC6928 §2].
const CONTROL: DataSize = DataSize::from_bytes(6_000);

/// Fills in the transferred bytes in each row of a load's flow. `seen` is the emulator's log of the
/// flow.
pub(crate) fn fill(rows: &mut [Row], report: &LoadReport, seen: &FlowRecord) {
    let Some(zero) = data_began(seen) else { return };
    for row in rows {
        let [from, to] = [row.time - SAMPLE_INTERVAL, row.time].map(|time| time - zero);
        let (received, sent) = (&report.received, &report.sent);
        let goodput = until(received, to, payload) - until(received, from, payload);
        let again = until(sent, to, retransmitted) - until(sent, from, retransmitted);
        row.transfer = Some(Transfer::new(DataSize::from_bytes(goodput), again));
    }
}

fn payload(interval: &LoadInterval) -> u64 {
    interval.payload.as_bytes()
}

fn retransmitted(interval: &LoadInterval) -> u64 {
    interval.retransmitted_packets.unwrap_or(0)
}

/// Start of the interval in which more was sent than the control connection needs.
fn data_began(seen: &FlowRecord) -> Option<Timestamp> {
    let mut total = DataSize::ZERO;
    let began = seen.samples.iter().find(|sample| {
        total += sample.traffic.offered;
        total > CONTROL
    })?;
    Some(began.time - SAMPLE_INTERVAL)
}

/// Sum of a value over the intervals until `time`. The last interval counts in proportion to its
/// elapsed part, so that successive rows add up to the total.
fn until(all: &[LoadInterval], time: TimeDelta, value: fn(&LoadInterval) -> u64) -> u64 {
    let now = Timestamp::ZERO + time;
    let mut sum = 0.0;
    for interval in all {
        if interval.start < now && interval.start < interval.end {
            let share = (now - interval.start) / (interval.end - interval.start);
            sum += value(interval) as f64 * share.clamp(0.0, 1.0);
        }
    }
    sum.round() as u64
}

#[cfg(test)]
mod tests {
    use weir_emu::{FlowSample, TrafficTotals};

    use super::*;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn interval(from: i64, to: i64, bytes: u64, again: Option<u64>) -> LoadInterval {
        let payload = DataSize::from_bytes(bytes);
        LoadInterval {
            start: ms(from),
            end: ms(to),
            payload,
            retransmitted_packets: again,
            ..LoadInterval::default()
        }
    }

    fn seen(offered: &[u64]) -> FlowRecord {
        let sample = |(index, bytes): (i64, &u64)| FlowSample {
            time: ms(50 * (index + 1)),
            queued: DataSize::ZERO,
            carried: None,
            traffic: TrafficTotals {
                offered: DataSize::from_bytes(*bytes),
                ..TrafficTotals::default()
            },
        };
        let samples = (0..).zip(offered).map(sample).collect();
        FlowRecord { from: 0, to: 1, samples, total: TrafficTotals::default() }
    }

    #[test]
    fn reports_of_iperf3_are_spread_over_the_rows_from_the_first_data() {
        let report = LoadReport {
            sent: vec![interval(0, 100, 30_000, Some(0)), interval(100, 200, 30_000, Some(4))],
            received: vec![interval(0, 100, 20_000, None), interval(100, 200, 30_001, None)],
        };
        let row = |index: i64| Row::new(ms(50 * (index + 1)), 0);
        let mut rows: Vec<Row> = (0..7).map(row).collect();
        // First the control connection, then nothing, then an initial window in the third interval.
        fill(&mut rows, &report, &seen(&[400, 0, 14_480, 15_000, 15_000, 15_000, 0]));
        let goodput: Vec<u64> =
            rows.iter().map(|row| row.transfer.unwrap().goodput.as_bytes()).collect();
        assert_eq!(goodput, [0, 0, 10_000, 10_000, 15_001, 15_000, 0]);
        let again = rows.iter().map(|row| row.transfer.unwrap().retransmitted_packets);
        assert_eq!(again.collect::<Vec<_>>(), [0, 0, 0, 0, 2, 2, 0]);
    }

    #[test]
    fn a_load_whose_data_never_began_leaves_the_rows_unmeasured() {
        let mut rows = [Row::default()];
        fill(&mut rows, &LoadReport::default(), &seen(&[400, 300]));
        assert_eq!(rows[0].transfer, None);
    }
}
