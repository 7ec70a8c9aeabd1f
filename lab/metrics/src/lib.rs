//! Metrics of a flow. They are computed from its rows alone, so simulated runs and real calls are
//! measured in the same way.
//!
//! Each row covers 50 ms and counts once. The queuing delay of a row is the mean over the packets
//! that arrived in it; a percentile is taken over the rows that have a value. Percentiles
//! interpolate linearly between ranks, as numpy does by default.
//!
//! Rows are measured one after the other as they come, so that a run of any length takes little
//! memory.
#![forbid(unsafe_code)]

mod all;
mod call;
mod changes;
mod column;
pub mod declared;
mod forwarding;
mod link;
mod meter;
mod node;
mod quality;
mod rate;
mod rows;
mod spans;
mod speech;
mod tally;
mod terminal;
mod transfer;
mod video;

pub use all::{CALL, FLOW, NODE, PARTICIPANT, SHARED, TERMINAL};
pub use call::{
    CALLS_PREFIX, CallMetrics, CallSuccess, OneWayDelay, PARTICIPANT_PREFIX, ParticipantMetrics,
};
pub use changes::CapacityChange;
pub use column::Spool;
pub use declared::{Better, Declared, Need};
pub use forwarding::ForwardingMetrics;
pub use link::{Fairness, LinkSummary, Ratio};
pub use meter::{FlowMeasurements, FlowMeter};
pub use node::NodeMetrics;
pub use quality::{QualityMeter, QualityMetrics, Score};
pub use rows::Received;
pub use speech::{SpeechMetrics, speech_rating};
pub use terminal::TerminalMetrics;
pub use transfer::TransferMetrics;
pub use video::VideoMetrics;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir::units::Timestamp;
use weir_sim::trace::Row;

use declared::{Shape, declare, shape};

/// Rows in a second, the window of rates and loss ratios.
pub const ROWS_PER_SECOND: usize = 20;
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

shape!(MeanStd: mean, std);
shape!(MeanMax: mean, max);
shape!(Distribution: mean, p25, p50, p90, p95, max);

declare! {
    /// Metrics of a flow over a part of a run. `None` where a value does not apply or was not
    /// measured.
    pub struct Metrics in "" {
        /// Bits that the bottleneck carried over those that it could carry in the same time. The
        /// "link utilization" of lund is another metric: target_utilization.
        utilization: Option<f64> = "ratio", Higher, [Capacity], title: "Utilization";
        /// Mean over the rows of target bitrate divided by capacity: the "link utilization" of
        /// lund, section 5.2. It is larger than the received share if the target exceeds the
        /// capacity. Rows of an outage, with a capacity of 0, are left out.
        target_utilization: Option<f64> = "ratio", Neither, [Media, Capacity];
        /// Rate of the IP bytes that the network delivered to the receiver: mean over the time,
        /// standard deviation over whole seconds. Simulated: of the flow, headers included.
        rate_mbps: Option<MeanStd> = "Mbit/s", Higher, [], title: "Received rate, throughput",
            call: "of all packets in its direction, including RTCP, STUN and DTLS.";
        /// Time that packets waited in the bottleneck's queue, as the mean over the packets that
        /// arrived in each 50 ms. Percentiles are over these values.
        queuing_delay_ms: Option<Distribution> = "ms", Lower, [], title: "Queuing delay",
            call: "in the bottleneck of the emulator.";
        /// Simulated: feedback response time, from sending a packet until the feedback on it
        /// arrives. It includes the wait for that feedback. The value is the shortest of each 50
        /// ms. Percentiles are over these values.
        rtt_ms: Option<Distribution> = "ms", Lower, [Media], title: "Round-trip time (RTT)",
            call: "the value of getStats, from RTCP or STUN, which does not include such a wait.";
        /// Round-trip time minus its minimum over the whole run: the delay of delft, section 5.3.4.
        rtt_above_min_ms: Option<Distribution> = "ms", Lower, [Media];
        /// Packets that the network lost or dropped, over packets sent: mean over the whole time,
        /// maximum over any second.
        loss_ratio: Option<MeanMax> = "ratio", Lower, [], title: "Loss";
        /// Bytes of RTCP from the receiver over all bytes from the sender, as IP packets (RFC 8836,
        /// section 2, requirement 8).
        feedback_ratio: Option<f64> = "ratio", Lower, [Media];
        /// Time from a change of the capacity until the target differs by 250 kbit/s from what it
        /// was at the change, in steps of 50 ms. The value is the mean over the changes with a
        /// response (lund, section 5.2).
        responsiveness_s: Option<f64> = "s", Lower, [Media, Capacity, Change],
            title: "Responsiveness";
        /// Responsiveness to increases of the capacity.
        responsiveness_up_s: Option<f64> = "s", Lower, [Media, Capacity, Change];
        /// Responsiveness to decreases of the capacity.
        responsiveness_down_s: Option<f64> = "s", Lower, [Media, Capacity, Change];
        /// Time until the received rate over a second first comes within 10 % of its final rate. It
        /// is measured from the start, from each change of the capacity, and from each start or
        /// stop of another flow. The final rate is the mean over the second half of the time until
        /// the next of these. The value is the mean over them, without outages.
        convergence_s: Option<f64> = "s", Lower, [];
        /// Number of times per minute that the received rate over half a second swings from below
        /// 0.75 to above 1.25 of its mean. It counts in the second halves of the times between
        /// changes.
        oscillations_per_min: Option<f64> = "1/min", Lower, [];
        /// Mean target bitrate.
        target_rate_mbps: Option<f64> = "Mbit/s", Neither, [Media];
        /// Mean target bitrate over the second half of the time.
        late_rate_mbps: Option<f64> = "Mbit/s", Neither, [Media];
    } with {
        /// Metrics of the video.
        video: VideoMetrics;
        /// Metrics of what is seen of the video.
        quality: QualityMetrics;
        /// Metrics of what is heard of an audio flow.
        speech: SpeechMetrics;
        /// Metrics of the TCP transfer.
        transfer: TransferMetrics;
        /// Metrics of what a forwarding server did for a subscriber.
        forwarding: ForwardingMetrics;
    }
}

impl Metrics {
    /// Metrics over rows of one flow, by rising time. `arrivals` are the times at which other flows
    /// came or went.
    pub fn of(rows: &[Row], arrivals: &[Timestamp]) -> Self {
        let mut meter = FlowMeter::new(&[], arrivals.to_vec(), &Arc::default());
        for row in rows {
            meter.push(row);
        }
        meter.finish().whole
    }

    /// The value at a dotted path such as `rtt_ms.max`; `None` where it does not apply or the path
    /// names nothing.
    pub fn at(&self, path: &str) -> Option<f64> {
        Shape::at(self, path)
    }

    /// Whether a dotted path names a value.
    pub fn has_path(path: &str) -> bool {
        Self::full().at(path).is_some()
    }
}

/// Changes of the capacity between consecutive rows of one flow.
pub fn capacity_changes(rows: &[Row]) -> Vec<CapacityChange> {
    let mut meter = FlowMeter::new(&[], Vec::new(), &Arc::default());
    for row in rows {
        meter.push(row);
    }
    meter.finish().changes
}

/// Mean of the values; `None` if there are none.
pub fn mean(values: Vec<f64>) -> Option<f64> {
    if !values.is_empty() { Some(values.iter().sum::<f64>() / values.len() as f64) } else { None }
}

/// The `q` quantile (0 to 1) of sorted values, interpolated linearly between ranks; `None` if there
/// are none.
pub fn percentile(sorted: &[f64], q: f64) -> Option<f64> {
    let position = q * sorted.len().checked_sub(1)? as f64;
    let below = position.floor();
    let (low, high) = (sorted[below as usize], sorted[position.ceil() as usize]);
    Some(low + (high - low) * (position - below))
}

/// Mean of values that arrive one at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunningMean {
    sum: f64,
    count: u64,
}

impl RunningMean {
    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    /// The mean; `None` if there are no values.
    pub fn value(self) -> Option<f64> {
        if self.count > 0 { Some(self.sum / self.count as f64) } else { None }
    }
}

impl Extend<f64> for RunningMean {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

impl FromIterator<f64> for RunningMean {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut mean = Self::default();
        mean.extend(values);
        mean
    }
}

/// Sum over the rows of the last second.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    last: [u64; ROWS_PER_SECOND],
    rows: usize,
    sum: u64,
}

impl Window {
    /// Adds a row and returns the new sum.
    fn push(&mut self, value: u64) -> u64 {
        let oldest = &mut self.last[self.rows % ROWS_PER_SECOND];
        self.sum = self.sum + value - std::mem::replace(oldest, value);
        self.rows += 1;
        self.sum
    }

    fn is_full(&self) -> bool {
        self.rows >= ROWS_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use weir::units::{Bitrate, DataSize, TimeDelta};
    use weir_sim::trace::ROW_INTERVAL;

    use super::spans::OSCILLATION_WINDOW;
    use super::*;

    fn measured(rows: &[Row], parts: &[Range<Timestamp>]) -> FlowMeasurements {
        let mut meter = FlowMeter::new(parts, Vec::new(), &Arc::default());
        for row in rows {
            meter.push(row);
        }
        meter.finish()
    }

    fn kbps(kbps: u64) -> Option<Bitrate> {
        Some(Bitrate::from_kbps(kbps))
    }

    /// 4 s at 2000 kbit/s, then 4 s at 1000; the target steps down 100 ms after the change, and the
    /// receiver gets the target.
    fn rows() -> Vec<Row> {
        let row = |index: i64| {
            let high = index < 80;
            let target = if index < 82 { 1_800 } else { 900 };
            Row::new(Timestamp::ZERO + ROW_INTERVAL * (index + 1), 0)
                .with_capacity(kbps(if high { 2_000 } else { 1_000 }))
                .with_target(kbps(target))
                .with_received(Bitrate::from_kbps(target) * ROW_INTERVAL)
                .with_sent_packets(10)
                .with_lost_packets(u64::from((80..90).contains(&index)))
                .with_rtt(Some(TimeDelta::from_millis(if high { 50 } else { 100 })))
                .with_queuing_delay((index % 2 == 0).then(|| TimeDelta::from_millis(index)))
        };
        (0..160).map(row).collect()
    }

    /// Rounds to nine decimals. Differences from the order of summation are smaller.
    fn rounded(value: Option<f64>) -> Option<f64> {
        value.map(|value| (value * 1e9).round() / 1e9)
    }

    // [RFC8836 §2, requirement 8]
    #[test]
    fn the_feedback_ratio_is_over_what_was_sent_and_unknown_without_a_row() {
        let size = DataSize::from_bytes;
        let row = |feedback| Row::default().with_sent(size(1_000)).with_feedback(feedback);
        let rows = [row(Some(size(0))), row(Some(size(90)))];
        let ratio = |rows: &[Row]| Metrics::of(rows, &[]).feedback_ratio;
        assert_eq!(ratio(&rows), Some(0.045));
        assert_eq!(ratio(&[rows[0], row(None)]), None);
        assert_eq!(ratio(&[]), None);
    }

    #[test]
    fn a_hand_made_flow_has_the_metrics_worked_out_by_hand() {
        let metrics = Metrics::of(&rows(), &[]);
        // 82 rows of 1800 and 78 of 900 kbit/s, 11,250 and 5,625 B each, against 80 of 2000 and
        // 1000.
        assert_eq!(metrics.utilization, Some(1_361_250.0 / 1_500_000.0));
        let mbps = metrics.rate_mbps.unwrap();
        assert_eq!(mbps.mean, 1.36125);
        // (80 * 0.9 + 2 * 1.8 + 78 * 0.9) / 160
        assert_eq!(rounded(metrics.target_utilization), Some(0.91125));
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
        // Converged at once after the start. In the first second after the change two rows still
        // have the old rate, which gives 990 kbit/s: exactly 10 % above 900 kbit/s.
        assert_eq!(metrics.convergence_s, Some(1.0));
        assert_eq!(rounded(metrics.late_rate_mbps), Some(0.9225)); // (2 * 1.8 + 78 * 0.9) / 80
    }

    /// Half a second at each rate, in kbit/s.
    fn half_seconds(rates: &[u64]) -> Vec<Row> {
        let row = |index: i64, rate: u64| {
            let row = Row::new(Timestamp::ZERO + ROW_INTERVAL * (index + 1), 0);
            row.with_received(Bitrate::from_kbps(rate) * ROW_INTERVAL)
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
        // Converged at once after the start. After the arrival the rate is 1500 kbit/s for two
        // seconds. A second within 10 % of 1000 kbit/s contains at most four of those rows.
        let arrivals = [Timestamp::from_secs(10)];
        assert_eq!(Metrics::of(&rows, &arrivals).convergence_s, Some((1.0 + 2.8) / 2.0));
    }

    // Section 5.3.4 of the Delft thesis.
    #[test]
    fn a_part_s_rtt_is_held_against_the_least_of_the_whole_time() {
        let late = Timestamp::from_secs(4)..Timestamp::from_secs(8);
        let late = measured(&rows(), &[late]).parts.remove(0);
        let above = late.rtt_above_min_ms.unwrap();
        assert_eq!((above.mean, above.p25, above.max), (50.0, 50.0, 50.0));
        assert_eq!(late.rtt_ms.unwrap().mean, 100.0);
        assert_eq!(rounded(late.target_rate_mbps), Some(0.9225)); // (2 * 1.8 + 78 * 0.9) / 80
    }

    #[test]
    fn without_rows_no_metric_is_known() {
        let metrics = Metrics::of(&[], &[]);
        assert_eq!(metrics.utilization, None);
        assert_eq!(metrics.loss_ratio, None);
        assert_eq!(metrics.late_rate_mbps, None);
    }

    #[test]
    fn an_unlimited_link_has_no_utilization() {
        let rows: Vec<Row> = rows().into_iter().map(|row| row.with_capacity(None)).collect();
        assert_eq!(Metrics::of(&rows, &[]).utilization, None);
        assert_eq!(Metrics::of(&rows, &[]).responsiveness_s, None);
    }

    #[test]
    fn an_outage_is_left_out_of_what_is_measured_by_the_capacity() {
        // 4 s at 2000 kbit/s, then 4 s without capacity, in which the target halves.
        let rows = rows().into_iter().map(|row| match row.capacity == kbps(1_000) {
            true => row.with_capacity(kbps(0)).with_received(DataSize::ZERO),
            false => row,
        });
        let rows: Vec<Row> = rows.collect();
        let metrics = Metrics::of(&rows, &[]);
        assert_eq!(metrics.utilization, Some(0.9));
        assert_eq!(rounded(metrics.target_utilization), Some(0.9));
        assert_eq!(metrics.convergence_s, Some(1.0));
        assert_eq!(Metrics::of(&rows[100..], &[]).utilization, None);
        assert_eq!(Metrics::of(&rows[100..], &[]).target_utilization, None);
        assert_eq!(Metrics::of(&rows[100..], &[]).convergence_s, None);
        assert_eq!(capacity_changes(&rows)[0].reached_s, None);
    }

    #[test]
    fn ninety_percent_of_a_new_capacity_is_reached_or_not() {
        let reached = |rows: &[Row]| measured(rows, &[]).changes[0].reached_s;
        assert_eq!(reached(&rows()), Some(1.0));
        let slow = |row: Row| row.with_received(DataSize::from_bytes(100));
        let slow: Vec<Row> = rows().into_iter().map(slow).collect();
        assert_eq!(reached(&slow), None);
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
