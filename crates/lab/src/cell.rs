//! What the nodes of a Wi-Fi cell did, from its rows alone.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use weir::units::Timestamp;
use weir_sim::trace::{NODE_INTERVAL, NodeRow};

use crate::metrics::mean;
use crate::scenario::CellNetwork;

/// The word for the access point.
const ACCESS_POINT: &str = "ap";

/// Nodes as senders, those of one table together. `None` where nothing was sent, or measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeMetrics {
    /// IP bytes that came to be sent.
    pub offered_mbps: f64,
    /// IP bytes that arrived.
    pub delivered_mbps: f64,
    /// Packets given up after their last attempt, over all whose fate was known.
    pub loss_ratio: Option<f64>,
    /// Packets that a queue dropped, over all whose fate was known.
    pub drop_ratio: Option<f64>,
    /// Transmissions of a packet.
    pub attempts_per_packet: Option<f64>,
    /// Transmissions that failed, over all.
    pub failure_ratio: Option<f64>,
    /// Time on the air, answers included, over the time.
    pub airtime_share: f64,
    /// Mean length of the queues.
    pub queue_bytes: Option<f64>,
    /// Mean excess delivery rate, `EDR` of interdigital.
    pub excess_mbps: Option<f64>,
    /// Mean of the capacity that it measures, `MC` of interdigital.
    pub capacity_mbps: Option<f64>,
    /// Mean congestion level, `CL` of interdigital: one over the other.
    pub congestion_level: Option<f64>,
}

impl NodeMetrics {
    /// The metrics of every group, and of the access point, over a part of a run.
    pub(crate) fn of_groups(
        cell: &CellNetwork,
        rows: &[NodeRow],
        part: &Range<Timestamp>,
    ) -> BTreeMap<String, Self> {
        let from = rows.partition_point(|row| row.time <= part.start);
        let to = rows.partition_point(|row| row.time <= part.end);
        let rows = &rows[from..to];
        let metrics = |(name, nodes): (String, Range<usize>)| {
            let own: Vec<&NodeRow> = rows.iter().filter(|row| nodes.contains(&row.node)).collect();
            (name, Self::of(&own, nodes.len()))
        };
        Self::names(cell).map(metrics).collect()
    }

    fn names(cell: &CellNetwork) -> impl Iterator<Item = (String, Range<usize>)> {
        let groups = cell.groups.iter().map(|group| (group.name.clone(), group.nodes.clone()));
        std::iter::once((ACCESS_POINT.to_string(), 0..1)).chain(groups)
    }

    fn of(rows: &[&NodeRow], nodes: usize) -> Self {
        let seconds = NODE_INTERVAL.as_secs_f64() * rows.len() as f64 / nodes as f64;
        let sum = |value: fn(&NodeRow) -> u64| -> f64 {
            rows.iter().map(|row| value(row)).sum::<u64>() as f64
        };
        let mbps = |bits: f64| if seconds > 0.0 { bits / 1e6 / seconds } else { 0.0 };
        let lost = sum(|row| row.lost_packets);
        let sent = sum(|row| row.delivered_packets) + lost;
        let dropped = sum(|row| row.dropped_packets);
        let attempts = sum(|row| row.attempts);
        let airtime: f64 = rows.iter().map(|row| row.airtime.as_secs_f64()).sum();
        let level = |row: &&NodeRow| {
            let (excess, capacity) = (row.excess?.as_bps_f64(), row.capacity?.as_bps_f64());
            (capacity > 0.0).then(|| excess / capacity)
        };
        Self {
            offered_mbps: mbps(sum(|row| row.offered.as_bits())),
            delivered_mbps: mbps(sum(|row| row.delivered.as_bits())),
            loss_ratio: ratio(lost, sent + dropped),
            drop_ratio: ratio(dropped, sent + dropped),
            attempts_per_packet: ratio(attempts, sent),
            failure_ratio: ratio(sum(|row| row.failures), attempts),
            airtime_share: ratio(airtime, seconds).unwrap_or(0.0),
            queue_bytes: mean(rows.iter().map(|row| row.queue.as_bytes() as f64).collect()),
            excess_mbps: mean(
                rows.iter().filter_map(|row| Some(row.excess?.as_mbps_f64())).collect(),
            ),
            capacity_mbps: mean(
                rows.iter().filter_map(|row| Some(row.capacity?.as_mbps_f64())).collect(),
            ),
            congestion_level: mean(rows.iter().filter_map(level).collect()),
        }
    }

    /// Values for every group, to tell which paths there are.
    pub(crate) fn full(cell: &CellNetwork) -> BTreeMap<String, Self> {
        let full = Self {
            offered_mbps: 0.0,
            delivered_mbps: 0.0,
            loss_ratio: Some(0.0),
            drop_ratio: Some(0.0),
            attempts_per_packet: Some(0.0),
            failure_ratio: Some(0.0),
            airtime_share: 0.0,
            queue_bytes: Some(0.0),
            excess_mbps: Some(0.0),
            capacity_mbps: Some(0.0),
            congestion_level: Some(0.0),
        };
        Self::names(cell).map(|(name, _)| (name, full.clone())).collect()
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use weir::units::{Bitrate, DataSize, TimeDelta};

    use super::*;

    #[test]
    fn nodes_of_one_table_are_measured_together() {
        let row = |node, ms, delivered, lost| NodeRow {
            time: Timestamp::from_millis(ms),
            node,
            delivered: DataSize::from_bytes(delivered),
            delivered_packets: 3,
            lost_packets: lost,
            attempts: 6,
            failures: 3,
            airtime: TimeDelta::from_millis(50),
            excess: Some(Bitrate::from_kbps(100)),
            capacity: (lost > 0).then(|| Bitrate::from_kbps(1_000)),
            ..NodeRow::default()
        };
        let rows = [row(1, 500, 62_500, 0), row(2, 500, 125_000, 2)];
        let metrics = NodeMetrics::of(&rows.iter().collect::<Vec<_>>(), 2);
        assert_eq!(metrics.delivered_mbps, 3.0); // 187,500 B in half a second
        assert_eq!(metrics.loss_ratio, Some(0.25));
        assert_eq!(metrics.attempts_per_packet, Some(1.5));
        assert_eq!(metrics.failure_ratio, Some(0.5));
        assert_eq!(metrics.airtime_share, 0.2);
        assert_eq!(metrics.congestion_level, Some(0.1));
        assert_eq!(metrics.drop_ratio, Some(0.0));
        assert_eq!(NodeMetrics::of(&[], 1).loss_ratio, None);
    }
}
