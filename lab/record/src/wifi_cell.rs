//! Metrics of the nodes of a Wi-Fi cell, computed from its rows.

use std::collections::BTreeMap;
use std::ops::Range;

use weir::units::{Bitrate, DataSize, Timestamp};
use weir_metrics::{NodeMetrics, RunningMean};
use weir_net::wifi::{NODE_INTERVAL, NodeRow};
use weir_scenario::Access;

/// Collects the rows of a cell's nodes and computes the metrics of each group over a part of a run.
/// The access point is a group of its own.
#[derive(Clone, Debug)]
pub(crate) struct CellMeter {
    part: Range<Timestamp>,
    groups: Vec<(String, Range<usize>, NodeMeter)>,
}

impl CellMeter {
    pub(crate) fn new(access: Option<&Access>, part: Range<Timestamp>) -> Self {
        let groups = access.into_iter().flat_map(Access::wifi_groups);
        let groups = groups.map(|(name, nodes)| (name, nodes, NodeMeter::default())).collect();
        Self { part, groups }
    }

    pub(crate) fn push(&mut self, row: &NodeRow) {
        if self.part.start < row.time && row.time <= self.part.end {
            let own = self.groups.iter_mut().filter(|(_, nodes, _)| nodes.contains(&row.node));
            for (_, _, meter) in own {
                meter.push(row);
            }
        }
    }

    pub(crate) fn finish(self) -> BTreeMap<String, NodeMetrics> {
        let groups = self.groups.into_iter();
        groups.map(|(name, nodes, meter)| (name, meter.metrics(nodes.len()))).collect()
    }
}

/// Sums over the rows of a group of nodes.
#[derive(Clone, Debug, Default)]
struct NodeMeter {
    rows: u64,
    sum: NodeRow,
    airtime_s: f64,
    queue_bytes: RunningMean,
    excess_mbps: RunningMean,
    capacity_mbps: RunningMean,
    level: RunningMean,
}

impl NodeMeter {
    fn push(&mut self, row: &NodeRow) {
        let sum = &mut self.sum;
        self.rows += 1;
        sum.offered += row.offered;
        sum.delivered += row.delivered;
        sum.delivered_packets += row.delivered_packets;
        sum.dropped_packets += row.dropped_packets;
        sum.lost_packets += row.lost_packets;
        sum.attempts += row.attempts;
        sum.failures += row.failures;
        self.airtime_s += row.airtime.as_secs_f64();
        self.queue_bytes.push(row.queue.as_bytes() as f64);
        self.excess_mbps.extend(row.excess.map(Bitrate::as_mbps_f64));
        self.capacity_mbps.extend(row.capacity.map(Bitrate::as_mbps_f64));
        if let (Some(excess), Some(capacity)) = (row.excess, row.capacity) {
            self.level.extend(ratio(excess.as_bps_f64(), capacity.as_bps_f64()));
        }
    }

    fn metrics(&self, nodes: usize) -> NodeMetrics {
        let sum = &self.sum;
        let seconds = NODE_INTERVAL.as_secs_f64() * self.rows as f64 / nodes as f64;
        let mbps = |size: DataSize| {
            if seconds > 0.0 { size.as_bits() as f64 / 1e6 / seconds } else { 0.0 }
        };
        let lost = sum.lost_packets as f64;
        let sent = sum.delivered_packets as f64 + lost;
        let dropped = sum.dropped_packets as f64;
        let attempts = sum.attempts as f64;
        NodeMetrics {
            offered_mbps: mbps(sum.offered),
            delivered_mbps: mbps(sum.delivered),
            loss_ratio: ratio(lost, sent + dropped),
            drop_ratio: ratio(dropped, sent + dropped),
            attempts_per_packet: ratio(attempts, sent),
            failure_ratio: ratio(sum.failures as f64, attempts),
            airtime_share: ratio(self.airtime_s, seconds).unwrap_or(0.0),
            queue_bytes: self.queue_bytes.value(),
            excess_mbps: self.excess_mbps.value(),
            capacity_mbps: self.capacity_mbps.value(),
            congestion_level: self.level.value(),
        }
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    if whole > 0.0 { Some(part / whole) } else { None }
}

#[cfg(test)]
mod tests {
    use weir::units::TimeDelta;

    use super::*;

    #[test]
    fn nodes_of_one_table_are_measured_together() {
        let row = |node, ms, delivered, lost| {
            let mut row = NodeRow::default();
            (row.time, row.node) = (Timestamp::from_millis(ms), node);
            (row.delivered, row.delivered_packets) = (DataSize::from_bytes(delivered), 3);
            (row.lost_packets, row.attempts, row.failures) = (lost, 6, 3);
            row.airtime = TimeDelta::from_millis(50);
            row.excess = Some(Bitrate::from_kbps(100));
            row.capacity = (lost > 0).then(|| Bitrate::from_kbps(1_000));
            row
        };
        let rows = [row(1, 500, 62_500, 0), row(2, 500, 125_000, 2)];
        let mut meter = NodeMeter::default();
        for row in &rows {
            meter.push(row);
        }
        let metrics = meter.metrics(2);
        assert_eq!(metrics.delivered_mbps, 3.0); // 187,500 B in half a second
        assert_eq!(metrics.loss_ratio, Some(0.25));
        assert_eq!(metrics.attempts_per_packet, Some(1.5));
        assert_eq!(metrics.failure_ratio, Some(0.5));
        assert_eq!(metrics.airtime_share, 0.2);
        assert_eq!(metrics.congestion_level, Some(0.1));
        assert_eq!(metrics.drop_ratio, Some(0.0));
        assert_eq!(NodeMeter::default().metrics(1).loss_ratio, None);
    }
}
