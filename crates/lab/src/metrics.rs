//! Metrics of a flow, from its rows alone; simulated runs and real calls are measured alike.
//!
//! Time is weighed by rows of 50 ms: a percentile of the queuing delay is one over the rows that have
//! one, each the mean over the packets that arrived in it. Percentiles interpolate linearly between
//! ranks, as numpy does by default.

mod declared;
mod transfer;
mod video;

pub use declared::{Better, DECLARED, Declared, Need};
pub use transfer::TransferMetrics;
pub use video::VideoMetrics;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_sim::trace::{ROW_INTERVAL, Row};

/// Rows in a second, over which rates and loss ratios are taken.
const ROWS_PER_SECOND: usize = 20;
/// A controller has responded once its output differs by this much (lund, section 5.2).
const RESPONSE: Bitrate = Bitrate::from_kbps(250);
/// Rows over which a rate is held against the watermarks of an oscillation: 500 ms [RFC8868 §3].
const OSCILLATION_WINDOW: usize = 10;
/// The low and the high watermark, over the mean.
const OSCILLATION_LOW: f64 = 0.75;
const OSCILLATION_HIGH: f64 = 1.25;
/// Rows in which oscillations are sought at least: 5 s.
const OSCILLATION_SPAN: usize = 100;
/// A flow has converged once its rate is this near to where it ends up.
const CONVERGED: f64 = 0.1;

/// Mean and standard deviation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanStd {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub std: f64,
}

/// Mean and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanMax {
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub max: f64,
}

/// A distribution in six numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Mean.
    pub mean: f64,
    /// First quartile.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Maximum.
    pub max: f64,
}

/// Metrics of a flow over a part of a run. `None` where a value does not apply or nobody measured it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Received bits over what the bottleneck could carry in the same time.
    pub utilization: Option<f64>,
    /// Mean over the rows of target bitrate over capacity: the "link utilization" of lund, 5.2.
    pub target_utilization: Option<f64>,
    /// Received rate, IP bytes: mean over the time, standard deviation of whole seconds.
    pub rate_mbps: Option<MeanStd>,
    /// Time that packets waited in the bottleneck's queue.
    pub queuing_delay_ms: Option<Distribution>,
    /// Feedback response time (round-trip time plus the wait for feedback), shortest of each row.
    pub rtt_ms: Option<Distribution>,
    /// The same above its least value of the flow's whole time: the delay of delft, 5.3.4.
    #[serde(default)]
    pub rtt_above_min_ms: Option<Distribution>,
    /// Packets lost over packets sent: mean over the time, maximum over any second.
    pub loss_ratio: Option<MeanMax>,
    /// RTCP that the receiver sent over what the sender sent, IP bytes [RFC8836 §2, requirement 8].
    #[serde(default)]
    pub feedback_ratio: Option<f64>,
    /// Time from a capacity change until the target differs by 250 kbit/s, mean over the changes.
    pub responsiveness_s: Option<f64>,
    /// The same over the changes upward.
    pub responsiveness_up_s: Option<f64>,
    /// The same over the changes downward.
    pub responsiveness_down_s: Option<f64>,
    /// Time from the start, a capacity change or another flow's coming or going until the received rate
    /// of a second first comes within 10 % of its mean over the second half of the time to the next;
    /// mean over these.
    pub convergence_s: Option<f64>,
    /// How often a minute the received rate of half a second swings from below three quarters of its
    /// mean to above five quarters, over the second halves of the times between changes.
    pub oscillations_per_min: Option<f64>,
    /// Mean target bitrate.
    #[serde(default)]
    pub target_rate_mbps: Option<f64>,
    /// Mean target bitrate over the last half of the time.
    pub late_rate_mbps: Option<f64>,
    /// What the viewer saw.
    #[serde(flatten)]
    pub video: VideoMetrics,
    /// What TCP's application got.
    #[serde(flatten)]
    pub transfer: TransferMetrics,
}

impl Metrics {
    /// Metrics over rows of one flow, by rising time. `arrivals` are the times at which other flows came
    /// or went.
    pub fn of(rows: &[Row], arrivals: &[Timestamp]) -> Self {
        Self::of_part(rows, 0..rows.len(), arrivals)
    }

    /// Metrics over a part of a flow's rows; what is held against the whole time has all of them.
    pub fn of_part(all: &[Row], part: Range<usize>, arrivals: &[Timestamp]) -> Self {
        let rows = &all[part];
        let least_rtt = all.iter().filter_map(|row| row.rtt).min().unwrap_or_default();
        let changes = capacity_changes(rows);
        let spans = spans(rows, &changes, arrivals);
        let response = |up: Option<bool>| {
            let wanted = changes.iter().filter(|change| up.is_none_or(|up| change.up == up));
            mean(wanted.filter_map(|change| response_time(rows, change)).collect())
        };
        Self {
            utilization: utilization(rows),
            target_utilization: mean(
                rows.iter().filter_map(|row| Some(row.target? / row.capacity?)).collect(),
            ),
            rate_mbps: rate_mbps(rows),
            queuing_delay_ms: distribution_ms(rows.iter().filter_map(|row| row.queuing_delay)),
            rtt_ms: distribution_ms(rows.iter().filter_map(|row| row.rtt)),
            rtt_above_min_ms: distribution_ms(
                rows.iter().filter_map(|row| Some(row.rtt? - least_rtt)),
            ),
            loss_ratio: loss_ratio(rows),
            feedback_ratio: feedback_ratio(rows),
            responsiveness_s: response(None),
            responsiveness_up_s: response(Some(true)),
            responsiveness_down_s: response(Some(false)),
            convergence_s: convergence_s(&spans),
            oscillations_per_min: oscillations_per_min(&spans),
            target_rate_mbps: target_rate_mbps(rows),
            late_rate_mbps: target_rate_mbps(&rows[rows.len() / 2..]),
            video: VideoMetrics::of(rows),
            transfer: TransferMetrics::of(rows),
        }
    }

    /// The value at a dotted path such as `rtt_ms.max`; `None` where it does not apply or the path
    /// names nothing.
    pub fn at(&self, path: &str) -> Option<f64> {
        let whole = serde_json::to_value(self).expect("numbers and options serialize");
        path.split('.').try_fold(&whole, |value, key| value.get(key))?.as_f64()
    }

    /// Whether a dotted path names a value.
    pub fn has_path(path: &str) -> bool {
        Self::full().at(path).is_some()
    }

    /// Values for all, to look up paths in.
    fn full() -> Self {
        let distribution =
            Some(Distribution { mean: 0.0, p25: 0.0, p50: 0.0, p90: 0.0, p95: 0.0, max: 0.0 });
        Self {
            utilization: Some(0.0),
            target_utilization: Some(0.0),
            rate_mbps: Some(MeanStd { mean: 0.0, std: 0.0 }),
            queuing_delay_ms: distribution,
            rtt_ms: distribution,
            rtt_above_min_ms: distribution,
            loss_ratio: Some(MeanMax { mean: 0.0, max: 0.0 }),
            feedback_ratio: Some(0.0),
            responsiveness_s: Some(0.0),
            responsiveness_up_s: Some(0.0),
            responsiveness_down_s: Some(0.0),
            convergence_s: Some(0.0),
            oscillations_per_min: Some(0.0),
            target_rate_mbps: Some(0.0),
            late_rate_mbps: Some(0.0),
            video: VideoMetrics::full(distribution),
            transfer: TransferMetrics::full(),
        }
    }
}

/// Mean of the values; `None` of no values.
pub fn mean(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The value below which a share `q` of the sorted values lies, interpolated between ranks.
pub fn percentile(sorted: &[f64], q: f64) -> Option<f64> {
    let position = q * sorted.len().checked_sub(1)? as f64;
    let below = position.floor();
    let (low, high) = (sorted[below as usize], sorted[position.ceil() as usize]);
    Some(low + (high - low) * (position - below))
}

/// Received bits over what the bottleneck could carry while the rows last.
pub fn utilization(rows: &[Row]) -> Option<f64> {
    let (mut received, mut carried) = (0, 0.0);
    for row in rows {
        received += row.received.as_bits();
        carried += row.capacity?.as_bps_f64() * ROW_INTERVAL.as_secs_f64();
    }
    (carried > 0.0).then(|| received as f64 / carried)
}

fn rate_mbps(rows: &[Row]) -> Option<MeanStd> {
    let received: Vec<DataSize> = rows.iter().map(|row| row.received).collect();
    rate_over(&received)
}

/// Of what came in each row: the mean over the time, the standard deviation of whole seconds.
fn rate_over(sizes: &[DataSize]) -> Option<MeanStd> {
    let rate = |sizes: &[DataSize]| {
        let total: DataSize = sizes.iter().copied().sum();
        (total / (ROW_INTERVAL * sizes.len() as i64)).as_mbps_f64()
    };
    let seconds: Vec<f64> = sizes.chunks_exact(ROWS_PER_SECOND).map(rate).collect();
    let of_seconds = mean(seconds.clone())?;
    let squares = seconds.iter().map(|rate| (rate - of_seconds) * (rate - of_seconds)).collect();
    Some(MeanStd { mean: rate(sizes), std: mean(squares)?.sqrt() })
}

fn target_rate_mbps(rows: &[Row]) -> Option<f64> {
    mean(rows.iter().filter_map(|row| row.target.map(Bitrate::as_mbps_f64)).collect())
}

fn received_rate(rows: &[Row]) -> Bitrate {
    rows.iter().map(|row| row.received).sum::<DataSize>() / (ROW_INTERVAL * rows.len() as i64)
}

fn distribution_ms(values: impl Iterator<Item = TimeDelta>) -> Option<Distribution> {
    let mut sorted: Vec<TimeDelta> = values.collect();
    sorted.sort_unstable();
    let sorted: Vec<f64> = sorted.into_iter().map(TimeDelta::as_millis_f64).collect();
    Some(Distribution {
        mean: mean(sorted.clone())?,
        p25: percentile(&sorted, 0.25)?,
        p50: percentile(&sorted, 0.5)?,
        p90: percentile(&sorted, 0.9)?,
        p95: percentile(&sorted, 0.95)?,
        max: *sorted.last()?,
    })
}

fn loss_ratio(rows: &[Row]) -> Option<MeanMax> {
    let ratio = |sent: u64, lost: u64| (sent > 0).then(|| (lost as f64 / sent as f64).min(1.0));
    let (mut sent, mut lost) = (0, 0);
    let (mut max, mut second): (f64, (u64, u64)) = (0.0, (0, 0));
    for (index, row) in rows.iter().enumerate() {
        (sent, lost) = (sent + row.sent_packets, lost + row.lost_packets);
        second = (second.0 + row.sent_packets, second.1 + row.lost_packets);
        if let Some(out) = index.checked_sub(ROWS_PER_SECOND).map(|out| &rows[out]) {
            second = (second.0 - out.sent_packets, second.1 - out.lost_packets);
        }
        if index + 1 >= ROWS_PER_SECOND {
            max = ratio(second.0, second.1).map_or(max, |ratio| max.max(ratio));
        }
    }
    Some(MeanMax { mean: ratio(sent, lost)?, max })
}

/// `None` if nothing was sent, or nobody knows what came back.
fn feedback_ratio(rows: &[Row]) -> Option<f64> {
    let feedback: DataSize = rows.iter().map(|row| row.feedback).sum::<Option<_>>()?;
    let sent: DataSize = rows.iter().map(|row| row.sent).sum();
    (sent > DataSize::ZERO).then(|| feedback.as_bytes() as f64 / sent.as_bytes() as f64)
}

/// A step of the capacity, at the boundary before row `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityChange {
    /// Index of the first row with the new capacity.
    pub first: usize,
    /// When it came.
    pub time: Timestamp,
    /// Whether the capacity rose.
    pub up: bool,
    /// The new capacity.
    pub capacity: Bitrate,
}

/// The steps of the capacity that lie between rows.
pub fn capacity_changes(rows: &[Row]) -> Vec<CapacityChange> {
    let pairs = rows.windows(2).enumerate();
    let change = |(index, pair): (usize, &[Row])| {
        let (old, new) = (pair[0].capacity?, pair[1].capacity?);
        (old != new).then_some(CapacityChange {
            first: index + 1,
            time: pair[0].time,
            up: new > old,
            capacity: new,
        })
    };
    pairs.filter_map(change).collect()
}

/// As lund, 5.2: the target at the change is compared with each later one, 50 ms apart, until they
/// differ by 250 kbit/s. The search goes on past the next change, as the paper's counter does; a
/// change that is never answered does not count.
fn response_time(rows: &[Row], change: &CapacityChange) -> Option<f64> {
    let before = rows[change.first - 1].target?;
    let answered = rows[change.first..].iter().find(|row| {
        row.target.is_some_and(|target| {
            target.saturating_sub(before) >= RESPONSE || before.saturating_sub(target) >= RESPONSE
        })
    })?;
    Some((answered.time - change.time).as_secs_f64())
}

/// The rows between changes: of the capacity, or of who else is there.
fn spans<'a>(
    rows: &'a [Row],
    changes: &[CapacityChange],
    arrivals: &[Timestamp],
) -> Vec<&'a [Row]> {
    let after = |time: &Timestamp| rows.partition_point(|row| row.time <= *time);
    let mut bounds: Vec<usize> = changes.iter().map(|change| change.first).collect();
    bounds.extend(arrivals.iter().map(after));
    bounds.extend([0, rows.len()]);
    bounds.sort_unstable();
    bounds.dedup();
    bounds.windows(2).map(|pair| &rows[pair[0]..pair[1]]).collect()
}

fn convergence_s(spans: &[&[Row]]) -> Option<f64> {
    let converged = |span: &[Row]| {
        if span.len() < 2 * ROWS_PER_SECOND {
            return None;
        }
        let end = received_rate(&span[span.len() / 2..]).as_bps_f64();
        let near =
            |second: &[Row]| (received_rate(second).as_bps_f64() - end).abs() <= CONVERGED * end;
        let index = span.windows(ROWS_PER_SECOND).position(near)?;
        // The second that is near ends here.
        Some((ROW_INTERVAL * (index + ROWS_PER_SECOND) as i64).as_secs_f64())
    };
    mean(spans.iter().copied().filter_map(converged).collect())
}

/// After the example of [RFC8868 §3]: passages from below a low watermark to above a high one.
fn oscillations_per_min(spans: &[&[Row]]) -> Option<f64> {
    let (mut swings, mut seconds) = (0, 0.0);
    for span in spans {
        let late = &span[span.len() / 2..];
        let steady = received_rate(late).as_bps_f64();
        // Too short to tell a swing from a passage.
        if late.len() < OSCILLATION_SPAN || steady == 0.0 {
            continue;
        }
        let mut is_low = false;
        for half_second in late.chunks_exact(OSCILLATION_WINDOW) {
            let rate = received_rate(half_second).as_bps_f64() / steady;
            if is_low && rate > OSCILLATION_HIGH {
                swings += 1;
            }
            is_low = rate < OSCILLATION_LOW || (is_low && rate <= OSCILLATION_HIGH);
        }
        seconds += ROW_INTERVAL.as_secs_f64() * late.len() as f64;
    }
    (seconds > 0.0).then(|| f64::from(swings) * 60.0 / seconds)
}

/// Time from a capacity change until the received rate of a second first reaches 90 % of the new
/// capacity; `None` if the next change or the end comes first.
pub fn time_to_90_percent(rows: &[Row], change: &CapacityChange) -> Option<f64> {
    let span = &rows[change.first..];
    let end = span.iter().position(|row| row.capacity != Some(change.capacity));
    let span = &span[..end.unwrap_or(span.len())];
    let reached = |second: &[Row]| received_rate(second) / change.capacity >= 0.9;
    let index = span.windows(ROWS_PER_SECOND).position(reached)?;
    Some((ROW_INTERVAL * (index + ROWS_PER_SECOND) as i64).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(kbps: u64) -> Option<Bitrate> {
        Some(Bitrate::from_kbps(kbps))
    }

    /// 4 s at 2000 kbit/s, then 4 s at 1000; the target steps down 100 ms after the change, and the
    /// receiver gets the target.
    fn rows() -> Vec<Row> {
        let row = |index: i64| {
            let high = index < 80;
            let target = if index < 82 { 1_800 } else { 900 };
            Row {
                time: Timestamp::ZERO + ROW_INTERVAL * (index + 1),
                capacity: kbps(if high { 2_000 } else { 1_000 }),
                target: kbps(target),
                received: Bitrate::from_kbps(target) * ROW_INTERVAL,
                sent_packets: 10,
                lost_packets: u64::from((80..90).contains(&index)),
                rtt: Some(TimeDelta::from_millis(if high { 50 } else { 100 })),
                queuing_delay: (index % 2 == 0).then(|| TimeDelta::from_millis(index)),
                ..Row::default()
            }
        };
        (0..160).map(row).collect()
    }

    /// Nine decimals: what summing in another order may change is below that.
    fn rounded(value: Option<f64>) -> Option<f64> {
        value.map(|value| (value * 1e9).round() / 1e9)
    }

    // [RFC8836 §2, requirement 8]
    #[test]
    fn the_feedback_ratio_is_over_what_was_sent_and_unknown_where_a_row_does_not_know() {
        let size = DataSize::from_bytes;
        let row = |feedback| Row { sent: size(1_000), feedback, ..Row::default() };
        let rows = [row(Some(size(0))), row(Some(size(90)))];
        assert_eq!(feedback_ratio(&rows), Some(0.045));
        assert_eq!(feedback_ratio(&[rows[0], row(None)]), None);
        assert_eq!(feedback_ratio(&[]), None);
    }

    #[test]
    fn a_hand_made_flow_has_the_metrics_worked_out_by_hand() {
        let metrics = Metrics::of(&rows(), &[]);
        // 82 rows of 1800 and 78 of 900 kbit/s, 11,250 and 5,625 B each, against 80 of 2000 and 1000.
        assert_eq!(metrics.utilization, Some(1_361_250.0 / 1_500_000.0));
        let mbps = metrics.rate_mbps.unwrap();
        assert_eq!(mbps.mean, 1.36125);
        assert_eq!(rounded(metrics.target_utilization), Some(0.91125)); // (80 * 0.9 + 2 * 1.8 + 78 * 0.9) / 160
        assert_eq!(metrics.loss_ratio, Some(MeanMax { mean: 10.0 / 1_600.0, max: 0.05 }));
        let rtt = metrics.rtt_ms.unwrap();
        assert_eq!(
            (rtt.mean, rtt.p25, rtt.p50, rtt.p90, rtt.max),
            (75.0, 50.0, 75.0, 100.0, 100.0)
        );
        // 0, 2, .. 158 ms.
        let delay = metrics.queuing_delay_ms.unwrap();
        assert_eq!((delay.mean, delay.p50, delay.max), (79.0, 79.0, 158.0));
        assert_eq!(metrics.responsiveness_s, Some(0.15));
        assert_eq!(metrics.responsiveness_down_s, Some(0.15));
        assert_eq!(metrics.responsiveness_up_s, None);
        // At once after the start; two rows of the first second after the change are at the old rate,
        // and within 10 % of 900 kbit/s allows exactly that.
        assert_eq!(metrics.convergence_s, Some(1.0));
        assert_eq!(rounded(metrics.late_rate_mbps), Some(0.9225)); // (2 * 1.8 + 78 * 0.9) / 80
    }

    /// So many half seconds at each rate, in kbit/s.
    fn half_seconds(rates: &[u64]) -> Vec<Row> {
        let row = |index: i64, rate: u64| Row {
            time: Timestamp::ZERO + ROW_INTERVAL * (index + 1),
            received: Bitrate::from_kbps(rate) * ROW_INTERVAL,
            ..Row::default()
        };
        let each = rates.iter().flat_map(|&rate| [rate; OSCILLATION_WINDOW]);
        (0..).zip(each).map(|(index, rate)| row(index, rate)).collect()
    }

    // [RFC8868 §3]
    #[test]
    fn an_oscillation_passes_both_watermarks_upward() {
        let rows = |late: [u64; 10]| half_seconds(&[[1_000; 10], late].concat());
        let swings = |late| Metrics::of(&rows(late), &[]).oscillations_per_min;
        // Five seconds are a twelfth of a minute; the mean is 1000.
        assert_eq!(
            swings([600, 1_400, 600, 1_400, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000]),
            Some(24.0)
        );
        assert_eq!(
            swings([600, 1_000, 1_400, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000]),
            Some(12.0)
        );
        assert_eq!(
            swings([800, 1_200, 800, 1_200, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000]),
            Some(0.0)
        );
        assert_eq!(
            swings([1_400, 600, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000]),
            Some(0.0)
        );
    }

    #[test]
    fn a_flow_converges_anew_when_another_comes() {
        let mut rates = [2_000; 40];
        rates[20..24].fill(1_500);
        rates[24..].fill(1_000);
        let rows = half_seconds(&rates);
        // At once from the start; after the arrival two seconds at 1500, of which a second that is
        // near 1000 may hold four rows.
        let arrivals = [Timestamp::from_secs(10)];
        assert_eq!(Metrics::of(&rows, &arrivals).convergence_s, Some((1.0 + 2.8) / 2.0));
    }

    // Section 5.3.4 of the Delft thesis.
    #[test]
    fn a_part_s_rtt_is_held_against_the_least_of_the_whole_time() {
        let late = Metrics::of_part(&rows(), 80..160, &[]);
        let above = late.rtt_above_min_ms.unwrap();
        assert_eq!((above.mean, above.p25, above.max), (50.0, 50.0, 50.0));
        assert_eq!(late.rtt_ms.unwrap().mean, 100.0);
        assert_eq!(rounded(late.target_rate_mbps), Some(0.9225)); // (2 * 1.8 + 78 * 0.9) / 80
    }

    #[test]
    fn of_nothing_nothing_is_known() {
        let metrics = Metrics::of(&[], &[]);
        assert_eq!(metrics.utilization, None);
        assert_eq!(metrics.loss_ratio, None);
        assert_eq!(metrics.late_rate_mbps, None);
    }

    #[test]
    fn an_unlimited_link_has_no_utilization() {
        let rows: Vec<Row> = rows().into_iter().map(|row| Row { capacity: None, ..row }).collect();
        assert_eq!(Metrics::of(&rows, &[]).utilization, None);
        assert_eq!(Metrics::of(&rows, &[]).responsiveness_s, None);
    }

    #[test]
    fn ninety_percent_of_a_new_capacity_is_reached_or_not() {
        let rows = rows();
        let change = capacity_changes(&rows)[0];
        assert_eq!(time_to_90_percent(&rows, &change), Some(1.0));
        let slow: Vec<Row> =
            rows.iter().map(|row| Row { received: DataSize::from_bytes(100), ..*row }).collect();
        assert_eq!(time_to_90_percent(&slow, &change), None);
    }

    #[test]
    fn percentiles_interpolate_between_ranks() {
        let sorted = [1.0, 2.0, 3.0, 10.0];
        assert_eq!(percentile(&sorted, 0.5), Some(2.5));
        assert_eq!(rounded(percentile(&sorted, 0.9)), Some(7.9));
        assert_eq!(percentile(&sorted, 1.0), Some(10.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn a_path_names_a_value_or_does_not() {
        assert!(Metrics::has_path("rtt_ms.max"));
        assert!(Metrics::has_path("utilization"));
        assert!(Metrics::has_path("freeze_count"));
        assert!(Metrics::has_path("frame_delay_ms.p95"));
        for path in ["rtt_ms", "rtt_ms.min", "", "utilization.mean", "loss"] {
            assert!(!Metrics::has_path(path), "{path}");
        }
    }
}
