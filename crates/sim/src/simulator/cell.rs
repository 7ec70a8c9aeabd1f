//! The cell of a simulation: how packets get into it, and what it tells of itself.

use weir::units::{DataSize, Timestamp};
use weir_net::wifi::{Association, Cell, CellLog, NodeId};
use weir_net::{Fate, Seed};

use super::Traveller;
use crate::config::{Config, Direction, FlowConfig};
use crate::flow::End;
use crate::trace::Trace;

/// A cell with its log.
pub(super) struct TracedCell {
    cell: Cell<Traveller>,
    log: CellLog,
}

impl TracedCell {
    /// The cell of a configuration, with its nodes' names in the trace.
    pub(super) fn new(config: &Config, seed: Seed, trace: &mut Trace) -> Option<Self> {
        let own = config.cell.as_ref()?;
        trace.nodes = own.names().map(String::from).collect();
        let mut cell = Cell::new(own, seed);
        let log = CellLog::new(&mut cell, config.airtime.clone());
        Some(Self { cell, log })
    }

    pub(super) fn enqueue(&mut self, now: Timestamp, flow: &FlowConfig, traveller: Traveller) {
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
    pub(super) fn queued(&self, flow: &FlowConfig) -> DataSize {
        let station = flow.station.map_or(NodeId::ACCESS_POINT, |own| own.station);
        self.cell.queued(match flow.direction {
            Direction::Up => station,
            Direction::Down => NodeId::ACCESS_POINT,
        })
    }

    /// Writes down what the nodes did since the last call.
    pub(super) fn write_rows(&mut self, now: Timestamp) {
        self.log.write(now, &mut self.cell);
    }

    /// Moves what was written down so far.
    pub(super) fn move_log(&mut self, trace: &mut Trace) {
        trace.node_rows.append(&mut self.log.rows);
        trace.frames.append(&mut self.log.frames);
    }
}
