//! What access networks log during a run, and what a user may change.

use std::fmt::{self, Display};
use std::sync::mpsc::Sender;

use weir::units::Timestamp;

use crate::cellular::{BearerChange, BearerEventKind, CellularNotes};
use crate::wifi::CellNotes;

/// The log of an access network during a run. Only the part of its own kind is ever filled.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AccessLog {
    /// A Wi-Fi cell of 802.11n.
    pub wifi: CellNotes,
    /// A cellular cell of LTE or NR.
    pub cellular: CellularNotes,
}

impl AccessLog {
    /// Moves the content of `later`, which must follow in time, to the end of this log.
    pub fn append(&mut self, later: &mut Self) {
        self.wifi.append(&mut later.wifi);
        self.cellular.append(&mut later.cellular);
    }

    /// Removes the rows after `end`.
    pub fn cut(&mut self, end: Timestamp) {
        self.wifi.cut(end);
        self.cellular.cut(end);
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.wifi.clear();
        self.cellular.clear();
    }
}

/// A change made by the user during a run. Its text appears in the record of the run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AccessChange {
    /// A bearer of a cellular cell.
    Bearer {
        /// The change.
        change: BearerChange,
        /// Gets what became of it, because the cell may refuse it. Nobody needs to listen.
        outcome: Option<Sender<BearerEventKind>>,
    },
}

impl From<BearerChange> for AccessChange {
    fn from(change: BearerChange) -> Self {
        Self::Bearer { change, outcome: None }
    }
}

impl Display for AccessChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer { change, .. } => Display::fmt(change, f),
        }
    }
}
