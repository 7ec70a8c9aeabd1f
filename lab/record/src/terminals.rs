//! Metrics of the terminals of a cellular cell, computed from the rows of their bearers.

use std::collections::BTreeMap;
use std::ops::Range;

use weir::units::{DataSize, Timestamp};
use weir_metrics::TerminalMetrics;
use weir_net::cellular::{BearerRow, Carrier, Directions, Duplex, SlotKind};
use weir_net::path::{Direction, NOTE_INTERVAL};
use weir_scenario::Access;

/// The bearer whose rows count for the values of the terminal's radio link, which all of its
/// bearers' rows have.
pub(crate) const RADIO: &str = "default";

/// Resource blocks times TTIs that a carrier has in a second of one direction.
pub fn prbs_per_second(carrier: &Carrier, direction: Direction) -> f64 {
    let share = match &carrier.duplex {
        Duplex::Frequency => 1.0,
        Duplex::Time(pattern) => {
            let carrying = pattern.iter().filter(|slot| match (slot, direction) {
                (SlotKind::Down, Direction::Down) | (SlotKind::Up, Direction::Up) => true,
                (SlotKind::Special { down, .. }, Direction::Down) => *down > 0,
                (SlotKind::Special { up, .. }, Direction::Up) => *up > 0,
                _ => false,
            });
            carrying.count() as f64 / pattern.len().max(1) as f64
        }
    };
    f64::from(*carrier.prbs.of(direction)) * share / carrier.tti().as_secs_f64()
}

/// Collects the rows of a cell's bearers and computes the metrics of each group of terminals over a
/// part of a run.
#[derive(Clone, Debug)]
pub(crate) struct TerminalsMeter {
    part: Range<Timestamp>,
    prbs_per_second: Directions<f64>,
    groups: Vec<(String, Range<usize>, Directions<Meter>)>,
}

impl TerminalsMeter {
    /// Without a cellular cell there are no groups.
    pub(crate) fn new(access: Option<&Access>, part: Range<Timestamp>) -> Self {
        let config = access.and_then(Access::cellular);
        let of_cell = access.filter(|_| config.is_some());
        let groups = of_cell.into_iter().flat_map(|access| &access.groups);
        Self {
            part,
            prbs_per_second: Directions::from_fn(|direction| {
                config.map_or(1.0, |config| prbs_per_second(&config.carrier, direction))
            }),
            groups: groups
                .map(|group| (group.name.clone(), group.nodes.clone(), Directions::default()))
                .collect(),
        }
    }

    pub(crate) fn push(&mut self, row: &BearerRow) {
        if self.part.start < row.time && row.time <= self.part.end {
            let own = self.groups.iter_mut().filter(|(_, nodes, _)| nodes.contains(&row.node));
            for (_, _, meters) in own {
                meters.of_mut(row.direction).push(row);
            }
        }
    }

    pub(crate) fn finish(self) -> BTreeMap<String, TerminalMetrics> {
        let prbs = self.prbs_per_second;
        let groups = self.groups.into_iter();
        groups.map(|(name, nodes, meters)| (name, metrics(&meters, nodes.len(), prbs))).collect()
    }
}

/// Sums over the rows of one direction.
#[derive(Clone, Debug, Default)]
struct Meter {
    /// Rows of the radio link: one per terminal and interval.
    rows: u64,
    offered: DataSize,
    delivered: DataSize,
    dropped_packets: u64,
    lost_packets: u64,
    prbs: f64,
    blocks: u64,
    failures: u64,
    /// Sum of the MCS of all blocks.
    mcs: f64,
    /// Sum of the SINR of all rows in decibels.
    sinr_db: f64,
    queue: f64,
}

impl Meter {
    fn push(&mut self, row: &BearerRow) {
        self.offered += row.offered;
        self.delivered += row.delivered;
        self.dropped_packets += row.dropped_packets;
        self.lost_packets += row.lost_packets;
        self.prbs += row.prbs;
        self.queue += row.queue.as_bytes() as f64;
        if row.bearer == RADIO {
            self.rows += 1;
            self.blocks += row.blocks;
            self.failures += row.failures;
            self.mcs += row.mcs.unwrap_or(0.0) * row.blocks as f64;
            self.sinr_db += row.sinr_db;
        }
    }

    fn mbps(&self, terminals: usize, size: DataSize) -> f64 {
        let seconds = self.seconds(terminals);
        if seconds > 0.0 { size.as_bits() as f64 / 1e6 / seconds } else { 0.0 }
    }

    fn seconds(&self, terminals: usize) -> f64 {
        NOTE_INTERVAL.as_secs_f64() * self.rows as f64 / terminals as f64
    }

    fn share(&self, terminals: usize, prbs_per_second: f64) -> f64 {
        ratio(self.prbs, self.seconds(terminals) * prbs_per_second).unwrap_or(0.0)
    }

    fn block_error(&self) -> Option<f64> {
        ratio(self.failures as f64, self.blocks as f64)
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        ratio(sum, self.rows as f64)
    }
}

fn metrics(
    Directions { up, down }: &Directions<Meter>,
    terminals: usize,
    prbs: Directions<f64>,
) -> TerminalMetrics {
    TerminalMetrics {
        offered_up_mbps: up.mbps(terminals, up.offered),
        offered_down_mbps: down.mbps(terminals, down.offered),
        delivered_up_mbps: up.mbps(terminals, up.delivered),
        delivered_down_mbps: down.mbps(terminals, down.delivered),
        dropped_packets: up.dropped_packets + down.dropped_packets,
        lost_packets: up.lost_packets + down.lost_packets,
        prb_share_up: up.share(terminals, prbs.up),
        prb_share_down: down.share(terminals, prbs.down),
        block_error_up: up.block_error(),
        block_error_down: down.block_error(),
        mcs_up: ratio(up.mcs, up.blocks as f64),
        mcs_down: ratio(down.mcs, down.blocks as f64),
        sinr_up_db: up.mean(up.sinr_db),
        sinr_down_db: down.mean(down.sinr_db),
        queue_up_bytes: up.mean(up.queue),
        queue_down_bytes: down.mean(down.queue),
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    if whole > 0.0 { Some(part / whole) } else { None }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use weir_controllers::{LabAlgorithm, LabController};

    use super::*;
    use crate::simulate;
    use weir_scenario::catalogue;

    fn row(bearer: &str, direction: Direction, prbs: f64) -> BearerRow {
        let mut row = BearerRow::default();
        (row.time, row.node, row.direction) = (Timestamp::from_millis(50), 1, direction);
        row.bearer = bearer.into();
        row.prbs = prbs;
        row.delivered = DataSize::from_bytes(6_250);
        row.queue = DataSize::from_bytes(1_000);
        (row.blocks, row.failures, row.mcs, row.sinr_db) = (10, 1, Some(20.0), 15.0);
        row
    }

    #[test]
    fn bearers_add_up_and_the_radio_link_counts_once() {
        let mut meters = Directions::<Meter>::default();
        meters.down.push(&row("default", Direction::Down, 500.0));
        meters.down.push(&row("video", Direction::Down, 750.0));
        let prbs = Directions::from_fn(|direction| prbs_per_second(&Carrier::lte(50), direction));
        let metrics = metrics(&meters, 1, prbs);
        assert_eq!(metrics.delivered_down_mbps, 2.0); // 12,500 B in 50 ms
        assert_eq!(metrics.prb_share_down, 0.5); // 1,250 of 50 x 50
        assert_eq!(metrics.block_error_down, Some(0.1));
        assert_eq!((metrics.mcs_down, metrics.sinr_down_db), (Some(20.0), Some(15.0)));
        assert_eq!(metrics.queue_down_bytes, Some(2_000.0));
        assert_eq!((metrics.mcs_up, metrics.prb_share_up), (None, 0.0));
    }

    #[test]
    fn a_dedicated_bearer_keeps_a_call_apart_from_its_own_terminals_tcp() {
        let scenario = catalogue::find("demo/lte-bearer").unwrap().remove(0);
        let stop = AtomicBool::new(false);
        let summary = simulate(&scenario, &LabController::from(LabAlgorithm::Gcc), 1, None, &stop)
            .unwrap()
            .unwrap();
        let value = |flow, path: &str| summary.metric(Some(flow), path).unwrap();
        // The first call is that of `plain`, the second one that of `guaranteed`.
        for (plain, guaranteed) in [("media-1-up", "media-2-up"), ("media-1-down", "media-2-down")]
        {
            let [behind, apart] = [plain, guaranteed].map(|flow| value(flow, "rtt_ms.p95"));
            assert!(apart < 100.0 && behind > 500.0, "{plain}: {apart} ms, {behind} ms");
        }
        let share = |name| summary.shared.at(&format!("terminal.{name}.prb_share_down")).unwrap();
        // The scheduler shares among terminals: nearly everything is used, about half by each.
        assert!(share("plain") > 0.25 && share("guaranteed") > 0.25);
        assert!(share("plain") + share("guaranteed") <= 1.0);
    }

    #[test]
    fn a_pattern_gives_each_direction_its_slots() {
        let mut carrier = Carrier::nr(1, 51);
        let special = SlotKind::Special { down: 10, up: 0 };
        let down = SlotKind::Down;
        carrier.duplex = Duplex::Time(vec![down, down, down, special, SlotKind::Up]);
        assert_eq!(prbs_per_second(&carrier, Direction::Down), 51.0 * 2_000.0 * 0.8);
        assert_eq!(prbs_per_second(&carrier, Direction::Up), 51.0 * 2_000.0 * 0.2);
    }
}
