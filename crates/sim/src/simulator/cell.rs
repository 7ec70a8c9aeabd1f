//! The cell of a simulation: how packets get into it, and what it tells of itself.

use std::ops::Range;

use weir::units::{DataSize, Timestamp};
use weir_net::wifi::{AccessCategory, Cell, CellConfig, NodeCounters, NodeId};
use weir_net::{Fate, Seed};

use super::{Traveller, whole_micros};
use crate::config::{Association, Config, Direction, Flow};
use crate::flow::End;
use crate::trace::{NODE_INTERVAL, NodeRow, Trace};

/// A cell with what its trace needs.
pub(super) struct TracedCell {
    cell: Cell<Traveller>,
    /// The nodes' totals at the last rows.
    before: Vec<NodeCounters>,
    /// When frames are written down.
    airtime: Range<Timestamp>,
}

impl TracedCell {
    /// The cell of a configuration, with its nodes' names in the trace.
    pub(super) fn new(config: &Config, seed: Seed, trace: &mut Trace) -> Option<Self> {
        let cell = config.cell.as_ref()?;
        trace.nodes = names(cell);
        let airtime = config.airtime.clone();
        let mut traced = Self {
            cell: Cell::new(cell, seed),
            before: vec![NodeCounters::default(); trace.nodes.len()],
            airtime,
        };
        if !traced.airtime.is_empty() {
            traced.cell.record_airtime();
        }
        Some(traced)
    }

    pub(super) fn enqueue(&mut self, now: Timestamp, flow: &Flow, traveller: Traveller) {
        let Association { station, category } =
            flow.station.expect("only a route of a station leads through the cell");
        let is_up = (flow.direction == Direction::Up) == (traveller.from == End::Sender);
        let (from, to) =
            if is_up { (station, NodeId::ACCESS_POINT) } else { (NodeId::ACCESS_POINT, station) };
        self.cell.enqueue(now, (from, to), category, traveller.header(), traveller);
    }

    pub(super) fn next_event(&self) -> Option<Timestamp> {
        self.cell.next_event()
    }

    pub(super) fn poll(&mut self, now: Timestamp) -> Option<Fate<Traveller>> {
        self.cell.poll(now)
    }

    /// Bytes that wait where a flow's data enters the cell.
    pub(super) fn queued(&self, flow: &Flow) -> DataSize {
        let station = flow.station.map_or(NodeId::ACCESS_POINT, |own| own.station);
        self.cell.queued(match flow.direction {
            Direction::Up => station,
            Direction::Down => NodeId::ACCESS_POINT,
        })
    }

    /// Writes down what the nodes did since the last call, and the frames of the time that is noted.
    pub(super) fn write_rows(&mut self, now: Timestamp, trace: &mut Trace) {
        let is_due = (now - Timestamp::ZERO).as_nanos() % NODE_INTERVAL.as_nanos() == 0;
        let frames = self.cell.take_airtime().into_iter();
        trace.frames.extend(frames.filter(|frame| self.airtime.contains(&frame.start)));
        if !is_due {
            return;
        }
        for (node, before) in self.before.iter_mut().enumerate() {
            let id = NodeId(node);
            let after = self.cell.counters(id);
            let measured = self.cell.congestion(now, id, AccessCategory::BestEffort);
            trace.node_rows.push(NodeRow {
                time: now,
                node,
                offered: after.offered.saturating_sub(before.offered),
                delivered: after.delivered.saturating_sub(before.delivered),
                delivered_packets: after.delivered_packets - before.delivered_packets,
                dropped_packets: after.queue_full + after.managed
                    - before.queue_full
                    - before.managed,
                lost_packets: after.retry_limit - before.retry_limit,
                attempts: after.attempts - before.attempts,
                failures: after.failures - before.failures,
                airtime: whole_micros(after.airtime - before.airtime),
                queue: self.cell.queued(id),
                excess: measured.capacity.map(|_| measured.excess),
                capacity: measured.capacity,
            });
            *before = after;
        }
    }
}

/// Names by number: the access point, the stations, the neighbours.
fn names(cell: &CellConfig) -> Vec<String> {
    let stations = cell.stations.iter().map(|station| &station.node);
    let neighbours = cell.neighbours.iter().map(|neighbour| &neighbour.node);
    let nodes = std::iter::once(&cell.access_point).chain(stations).chain(neighbours);
    nodes.map(|node| node.name.clone()).collect()
}
