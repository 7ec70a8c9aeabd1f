//! The cell as an access network: how packets cross it, what it logs, and what a user may change.

use std::any::Any;
use std::fmt::{self, Debug, Display};
use std::ops::Range;

use weir::units::{DataSize, Timestamp};

use super::cell::Cell;
use super::config::{
    BearerConfig, BearerRef, CellularConfig, Guarantee, Load, SignalChange, Terminal,
};
use super::log::CellularLog;
use crate::packet::{Fate, Header};
use crate::path::{AccessChange, AccessKind, AccessNetwork, Attachment, Crossing, Network, Way};
use crate::seed::Seed;

/// The class of an attachment whose packets the filters sort into bearers. Any other class is the
/// number of a bearer.
pub const FILTERED: usize = usize::MAX;

/// A change of a terminal's bearers during a run.
#[derive(Clone, Debug, PartialEq)]
pub enum BearerChange {
    /// Adds a bearer, if its guarantee fits.
    Add {
        /// Number of the terminal in the configuration.
        terminal: usize,
        /// The bearer.
        bearer: BearerConfig,
    },
    /// Gives a bearer another guarantee, or none, if it fits.
    Guarantee {
        /// The bearer.
        bearer: BearerRef,
        /// The new guarantee.
        guarantee: Option<Guarantee>,
    },
    /// Removes a bearer. Its packets are dropped, and later ones use another bearer.
    Remove(BearerRef),
}

impl BearerChange {
    /// Number of the terminal in the configuration.
    pub fn terminal(&self) -> usize {
        match self {
            Self::Add { terminal, .. } => *terminal,
            Self::Guarantee { bearer, .. } | Self::Remove(bearer) => bearer.terminal,
        }
    }

    /// Name of the bearer.
    pub fn bearer(&self) -> &str {
        match self {
            Self::Add { bearer, .. } => &bearer.name,
            Self::Guarantee { bearer, .. } | Self::Remove(bearer) => &bearer.bearer,
        }
    }
}

impl Display for BearerChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, node) = (self.bearer(), self.terminal() + 1);
        match self {
            Self::Add { .. } => write!(f, "bearer {name} of terminal {node} added"),
            Self::Guarantee { guarantee: Some(guarantee), .. } => write!(
                f,
                "bearer {name} of terminal {node} guaranteed {} kbit/s up, {} kbit/s down",
                guarantee.rate.up.as_kbps_f64(),
                guarantee.rate.down.as_kbps_f64()
            ),
            Self::Guarantee { guarantee: None, .. } => {
                write!(f, "bearer {name} of terminal {node} without a guarantee")
            }
            Self::Remove(_) => write!(f, "bearer {name} of terminal {node} removed"),
        }
    }
}

impl AccessChange for BearerChange {}

/// A cell with its log.
#[derive(Debug)]
struct LoggedCell<T> {
    cell: Cell<T>,
    log: CellularLog,
}

/// The terminal's number in the configuration, the direction, and the bearer that the attachment
/// names.
fn place(Crossing { attachment, way }: Crossing) -> ((usize, Way), Option<usize>) {
    let bearer = (attachment.class != FILTERED).then_some(attachment.class);
    ((attachment.terminal - 1, way), bearer)
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

    fn poll(&mut self, now: Timestamp) -> Option<Fate<T>> {
        self.cell.poll(now)
    }

    fn queued(&mut self, _now: Timestamp, crossing: Crossing) -> DataSize {
        let ((terminal, way), bearer) = place(crossing);
        self.cell.queued(terminal, bearer.unwrap_or(0), way)
    }
}

impl<T: Debug + Send + 'static> AccessNetwork<T> for LoggedCell<T> {
    fn note(&mut self, now: Timestamp) {
        self.log.write(now, &mut self.cell);
    }

    fn notes(&mut self) -> Option<&mut dyn Any> {
        Some(&mut self.log.notes)
    }

    fn change(&mut self, now: Timestamp, change: &dyn AccessChange) -> bool {
        let change: &dyn Any = change;
        let Some(change) = change.downcast_ref::<BearerChange>() else { return false };
        self.cell.change(now, change);
        true
    }
}

impl AccessKind for CellularConfig {
    const TITLE: &'static str = "cellular cell";
    const TERMINAL: &'static str = "terminal";

    fn build<T: Clone + Debug + Send + 'static>(
        &self,
        noted: &Range<Timestamp>,
        seed: Seed,
    ) -> Box<dyn AccessNetwork<T>> {
        let mut cell = Cell::new(self, seed);
        let log = CellularLog::new(&mut cell, noted.clone());
        Box::new(LoggedCell { cell, log })
    }

    fn names(&self) -> Vec<String> {
        let terminals = self.terminals.iter().map(|terminal| terminal.name.clone());
        std::iter::once("base-station".into()).chain(terminals).collect()
    }

    fn terminals(&self) -> Range<usize> {
        1..1 + self.terminals.len()
    }

    fn default_attachment(&self) -> Attachment {
        Attachment { terminal: 1, class: FILTERED }
    }

    /// Keeps each signal at its first value, without handovers and changes of bearers, and only
    /// the loads that start at time zero.
    fn before_run(&self) -> Self {
        let mut config = self.clone();
        config.changes.clear();
        for Terminal { signal, handovers, loads, .. } in &mut config.terminals {
            handovers.clear();
            loads.retain(|load| load.start == Timestamp::ZERO);
            loads.iter_mut().for_each(|load: &mut Load| load.stop = Timestamp::MAX);
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
