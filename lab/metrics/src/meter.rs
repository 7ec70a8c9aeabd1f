//! Measures a flow row by row: over its whole time, and over parts of it.
//!
//! ```text
//! row -> sums and tallies of each part -+-> Metrics
//!     -> columns: received, target -----+
//! ```

use std::ops::Range;
use std::sync::Arc;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_sim::trace::{ROW_INTERVAL, Row};

use super::changes::{CapacityChange, Changes};
use super::column::{Column, Spool};
use super::forwarding::ForwardingMeter;
use super::quality::QualityMeter;
use super::rate::rate_over;
use super::rows::Received;
use super::spans::{convergence_s, oscillations_per_min};
use super::speech::SpeechMeter;
use super::tally::Tally;
use super::transfer::TransferMeter;
use super::video::VideoMeter;
use super::{MeanMax, Metrics, RunningMean, Window};

/// Stands for a missing target in a column.
const NO_TARGET: u64 = u64::MAX;

/// Measures the rows of one flow, in order of time.
#[derive(Debug)]
pub struct FlowMeter {
    /// When other flows started or stopped.
    arrivals: Vec<Timestamp>,
    whole: Part,
    parts: Vec<(Range<Timestamp>, Part)>,
    changes: Changes,
    received: Received,
    targets: Column,
    /// Goodput in bytes, of the rows that have a transfer.
    goodput: Column,
    /// Rows with a capacity of zero.
    outages: Vec<Range<usize>>,
    /// Capacity of the previous row, and how much it can carry in one row.
    carried: Option<(Bitrate, Available)>,
}

/// Measurements of a flow.
#[derive(Debug)]
pub struct FlowMeasurements {
    /// Over its whole time.
    pub whole: Metrics,
    /// Over the parts.
    pub parts: Vec<Metrics>,
    /// Changes of its capacity.
    pub changes: Vec<CapacityChange>,
    /// What it received.
    pub received: Received,
}

impl FlowMeter {
    /// Measures a flow over its whole time and over `parts` of it. A row belongs to the part in
    /// which it ends. Flows of one run share a `spool`.
    pub fn new(parts: &[Range<Timestamp>], arrivals: Vec<Timestamp>, spool: &Arc<Spool>) -> Self {
        Self {
            arrivals,
            whole: Part::default(),
            parts: parts.iter().map(|time| (time.clone(), Part::default())).collect(),
            changes: Changes::default(),
            received: Received::new(spool),
            targets: Column::new(spool),
            goodput: Column::new(spool),
            outages: Vec::new(),
            carried: None,
        }
    }

    /// Measures the next row.
    pub fn push(&mut self, row: &Row) {
        let (index, transfers) = (self.targets.len(), self.goodput.len());
        // The capacity rarely changes, and computing this takes a slow division.
        let capacity = row.capacity_over_it();
        let known = self.carried.filter(|(known, _)| Some(*known) == capacity);
        self.carried = known.or_else(|| Some((capacity?, Available::in_row(capacity?))));
        let carried = self.carried.map(|(_, carried)| carried);
        self.whole.push(index, transfers, row, carried);
        for (time, part) in &mut self.parts {
            if time.start < row.time && row.time <= time.end {
                part.push(index, transfers, row, carried);
            }
        }
        if row.capacity == Some(Bitrate::ZERO) {
            match self.outages.last_mut().filter(|outage| outage.end == index) {
                Some(outage) => outage.end += 1,
                None => self.outages.push(index..index + 1),
            }
        }
        self.changes.push(row);
        self.received.push(row);
        self.targets.push(row.target.map_or(NO_TARGET, Bitrate::as_bps));
        if let Some(transfer) = row.transfer {
            self.goodput.push(transfer.goodput.as_bytes());
        }
    }

    /// Computes the metrics of all rows.
    pub fn finish(mut self) -> FlowMeasurements {
        let least_rtt = self.whole.rtt.least().unwrap_or_default();
        let changes = std::mem::take(&mut self.changes).into_changes();
        let mut whole = std::mem::take(&mut self.whole);
        let whole = self.metrics(&mut whole, &changes, least_rtt);
        let mut parts = std::mem::take(&mut self.parts);
        let parts =
            parts.iter_mut().map(|(_, part)| self.metrics(part, &changes, least_rtt)).collect();
        FlowMeasurements { whole, parts, changes, received: self.received }
    }

    fn metrics(&self, part: &mut Part, all: &[CapacityChange], least_rtt: TimeDelta) -> Metrics {
        let rows = part.rows.clone();
        let changes: Vec<&CapacityChange> =
            all.iter().filter(|it| rows.start < it.first && it.first < rows.end).collect();
        let spans = self.spans(&rows, &changes);
        let [mut response, mut up, mut down] = [RunningMean::default(); 3];
        for change in &changes {
            let seconds = change.response_s(rows.end);
            response.extend(seconds);
            if change.up { up.extend(seconds) } else { down.extend(seconds) }
        }
        let late = rows.start + rows.len() / 2..rows.end;
        let late = self.targets.iter(late).filter(|target| *target != NO_TARGET);
        let late = late.map(|target| Bitrate::from_bps(target).as_mbps_f64());
        Metrics {
            utilization: part.utilization(),
            target_utilization: part.target_share.value(),
            rate_mbps: rate_over(self.received.bytes(), rows.clone()),
            queuing_delay_ms: part.queuing_delay.above(TimeDelta::ZERO),
            rtt_ms: part.rtt.above(TimeDelta::ZERO),
            rtt_above_min_ms: part.rtt.above(least_rtt),
            loss_ratio: part.loss.ratio(),
            feedback_ratio: part.feedback_ratio(),
            responsiveness_s: response.value(),
            responsiveness_up_s: up.value(),
            responsiveness_down_s: down.value(),
            convergence_s: convergence_s(&self.received, &spans, &self.outages),
            oscillations_per_min: oscillations_per_min(&self.received, &spans),
            target_rate_mbps: part.target_mbps.value(),
            late_rate_mbps: late.collect::<RunningMean>().value(),
            video: part.video.finish(part.carried.map(|carried| carried.bytes)),
            quality: part.quality.finish(),
            speech: part.speech.finish(),
            transfer: part.transfer.finish(&self.goodput),
            forwarding: part.forwarding.finish(part.sent),
        }
    }

    /// The rows between changes of the capacity and starts or stops of other flows.
    fn spans(&self, rows: &Range<usize>, changes: &[&CapacityChange]) -> Vec<Range<usize>> {
        let mut bounds: Vec<usize> = changes.iter().map(|change| change.first).collect();
        for time in &self.arrivals {
            bounds.push(self.received.until(*time).clamp(rows.start, rows.end));
        }
        bounds.extend([rows.start, rows.end]);
        bounds.sort_unstable();
        bounds.dedup();
        bounds.windows(2).map(|pair| pair[0]..pair[1]).collect()
    }
}

/// Sums over the rows of a part so far.
#[derive(Clone, Debug)]
struct Part {
    rows: Range<usize>,
    /// Bits of the flow in what the bottleneck could carry.
    used: u64,
    /// `None` if the bottleneck is unlimited.
    carried: Option<Available>,
    target_share: RunningMean,
    target_mbps: RunningMean,
    queuing_delay: Tally,
    rtt: Tally,
    loss: Loss,
    sent: DataSize,
    /// `None` if a row has no value.
    feedback: Option<DataSize>,
    video: VideoMeter,
    quality: QualityMeter,
    speech: SpeechMeter,
    transfer: TransferMeter,
    forwarding: ForwardingMeter,
}

/// What the bottleneck could carry: exactly in bits, and in bytes with each row rounded.
#[derive(Clone, Copy, Debug, Default)]
struct Available {
    bits: f64,
    bytes: f64,
}

impl Available {
    /// In a row with this mean capacity.
    fn in_row(capacity: Bitrate) -> Self {
        Self {
            bits: capacity.as_bps_f64() * ROW_INTERVAL.as_secs_f64(),
            bytes: (capacity * ROW_INTERVAL).as_bytes() as f64,
        }
    }
}

impl Default for Part {
    fn default() -> Self {
        Self {
            rows: 0..0,
            used: 0,
            carried: Some(Available::default()),
            target_share: RunningMean::default(),
            target_mbps: RunningMean::default(),
            queuing_delay: Tally::default(),
            rtt: Tally::default(),
            loss: Loss::default(),
            sent: DataSize::ZERO,
            feedback: Some(DataSize::ZERO),
            video: VideoMeter::default(),
            quality: QualityMeter::default(),
            speech: SpeechMeter::default(),
            transfer: TransferMeter::default(),
            forwarding: ForwardingMeter::default(),
        }
    }
}

impl Part {
    /// `index` counts the flow's rows, `transfers` those with a transfer; `carried` is of this row.
    fn push(&mut self, index: usize, transfers: usize, row: &Row, carried: Option<Available>) {
        if self.rows.is_empty() {
            self.rows.start = index;
        }
        self.rows.end = index + 1;
        self.used += row.bits_carried();
        self.carried = self.carried.zip(carried).map(|(sum, row)| Available {
            bits: sum.bits + row.bits,
            bytes: sum.bytes + row.bytes,
        });
        let usable = row.capacity.filter(|rate| *rate > Bitrate::ZERO);
        self.target_share.extend(row.target.zip(usable).map(|(target, rate)| target / rate));
        self.target_mbps.extend(row.target.map(Bitrate::as_mbps_f64));
        if let Some(delay) = row.queuing_delay {
            self.queuing_delay.push(delay);
        }
        if let Some(rtt) = row.rtt {
            self.rtt.push(rtt);
        }
        self.loss.push(row.sent_packets, row.lost_packets);
        self.sent += row.sent;
        self.feedback = self.feedback.zip(row.feedback).map(|(sum, size)| sum + size);
        if let Some(video) = &row.video {
            self.video.push(video);
            if row.forwarded.is_none() {
                self.quality.push(row.time, video, row.seen.as_ref());
            }
        }
        if let Some(heard) = &row.heard {
            self.speech.push(heard);
        }
        if let Some(transfer) = &row.transfer {
            self.transfer.push(transfers, transfer);
        }
        if let Some(forwarded) = &row.forwarded {
            self.forwarding.push(forwarded);
            self.quality.push_forwarded(forwarded);
        }
    }

    fn utilization(&self) -> Option<f64> {
        let carried = self.carried?.bits;
        if carried > 0.0 { Some(self.used as f64 / carried) } else { None }
    }

    /// `None` if nothing was sent, or if the feedback was not measured.
    fn feedback_ratio(&self) -> Option<f64> {
        let (feedback, sent) = (self.feedback?, self.sent);
        (sent > DataSize::ZERO).then(|| feedback.as_bytes() as f64 / sent.as_bytes() as f64)
    }
}

/// Packets sent and lost, over all rows and over the last second.
#[derive(Clone, Copy, Debug, Default)]
struct Loss {
    sent: u64,
    lost: u64,
    second: [Window; 2],
    /// Largest loss ratio of any second.
    max: f64,
}

impl Loss {
    fn push(&mut self, sent: u64, lost: u64) {
        self.sent += sent;
        self.lost += lost;
        let [in_second, out] = &mut self.second;
        let ratio = loss_ratio(in_second.push(sent), out.push(lost));
        if in_second.is_full() {
            self.max = ratio.map_or(self.max, |ratio| self.max.max(ratio));
        }
    }

    fn ratio(&self) -> Option<MeanMax> {
        Some(MeanMax { mean: loss_ratio(self.sent, self.lost)?, max: self.max })
    }
}

fn loss_ratio(sent: u64, lost: u64) -> Option<f64> {
    if sent > 0 { Some((lost as f64 / sent as f64).min(1.0)) } else { None }
}
