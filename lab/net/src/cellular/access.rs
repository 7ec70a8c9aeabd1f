//! The cell as an access network: how packets cross it, what it logs, and what a user may change.

use std::fmt::Debug;
use std::net::Ipv4Addr;
use std::ops::Range;

use weir::units::{DataSize, Timestamp};

use super::cell::Cell;
use super::config::{CellularConfig, SignalChange, Terminal};
use super::log::CellularLog;
use crate::access::{AccessChange, AccessLog, AccessNetwork};
use crate::packet::{Header, Outcome};
use crate::path::{Attachment, Crossing, Direction, Network};
use crate::seed::Seed;

/// The class of an attachment whose packets the filters sort into bearers. Any other class is the
/// number of a bearer.
pub const FILTERED: usize = usize::MAX;

/// A cell with its log.
#[derive(Debug)]
struct LoggedCell<T> {
    cell: Cell<T>,
    log: CellularLog,
}

/// The terminal's number in the configuration, the direction, and the bearer that the attachment
/// names.
fn place(Crossing { attachment, direction }: Crossing) -> ((usize, Direction), Option<usize>) {
    let bearer = (attachment.class != FILTERED).then_some(attachment.class);
    ((attachment.terminal - 1, direction), bearer)
}

impl<T: Debug + Send + 'static> Network<T> for LoggedCell<T> {
    type Crossing = Crossing;

    fn enqueue(&mut self, now: Timestamp, crossing: Crossing, header: Header, payload: T) {
        let (place, bearer) = place(crossing);
        self.cell.enqueue(now, place, bearer, header, payload);
    }

    fn next_event(&self) -> Option<Timestamp> {
        self.cell.next_event()
    }

    fn poll(&mut self, now: Timestamp) -> Option<Outcome<T>> {
        self.cell.poll(now)
    }

    fn poll_ahead(
        &mut self,
        now: Timestamp,
        horizon: Timestamp,
    ) -> Option<(Timestamp, Outcome<T>)> {
        self.cell.poll_ahead(now, horizon)
    }

    fn queued(&mut self, _now: Timestamp, crossing: Crossing) -> DataSize {
        let ((terminal, direction), bearer) = place(crossing);
        self.cell.queued(terminal, bearer.unwrap_or(0), direction)
    }
}

impl<T: Debug + Send + 'static> AccessNetwork<T> for LoggedCell<T> {
    fn note(&mut self, now: Timestamp) {
        self.log.write(now, &mut self.cell);
    }

    fn move_notes(&mut self, log: &mut AccessLog) {
        log.cellular.append(&mut self.log.notes);
    }

    fn set_addresses(&mut self, pairs: Vec<(Ipv4Addr, Ipv4Addr)>) {
        self.cell.addresses = pairs;
    }

    fn change(&mut self, now: Timestamp, change: &AccessChange) -> bool {
        let AccessChange::Bearer { change, outcome } = change;
        if let (Some(kind), Some(outcome)) = (self.cell.change(now, change), outcome) {
            // Who asked may have gone.
            let _ = outcome.send(kind);
        }
        true
    }
}

/// Builds the cell in its idle state.
pub(crate) fn build<T: Clone + Debug + Send + 'static>(
    config: &CellularConfig,
    noted: &Range<Timestamp>,
    seed: Seed,
) -> Box<dyn AccessNetwork<T>> {
    let mut cell = Cell::new(config, seed);
    let log = CellularLog::new(&mut cell, noted.clone());
    Box::new(LoggedCell { cell, log })
}

impl CellularConfig {
    /// Names of the base station and of the terminals.
    pub(crate) fn names(&self) -> Vec<String> {
        let terminals = self.terminals.iter().map(|terminal| terminal.name.clone());
        std::iter::once("base-station".into()).chain(terminals).collect()
    }

    /// The first terminal, in its usual class.
    pub(crate) fn default_attachment() -> Attachment {
        Attachment { terminal: 1, class: FILTERED }
    }

    /// Keeps each signal at its first value, without handovers and changes of bearers, and only
    /// the loads that start at time zero.
    pub(crate) fn before_run(&self) -> Self {
        let mut config = self.clone();
        config.changes.clear();
        for Terminal { signal, handovers, loads, .. } in &mut config.terminals {
            handovers.clear();
            loads.retain(|load| load.start == Timestamp::ZERO);
            for load in loads {
                load.stop = Timestamp::MAX;
            }
            for mean in [&mut signal.up.mean, &mut signal.down.mean] {
                match mean {
                    SignalChange::Constant(_) => {}
                    SignalChange::Trace { values, .. } => {
                        let first = values.first().map_or(f64::NEG_INFINITY, |(_, db)| *db);
                        *mean = SignalChange::Constant(first);
                    }
                    SignalChange::Moving(moving) => moving.speed_mps = 0.0,
                }
            }
        }
        config
    }
}
