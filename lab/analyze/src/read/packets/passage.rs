//! A packet on its way, and what packets tell of the capacity.

use weir::units::{TimeDelta, Timestamp};

/// How long a packet must have waited. Event logs have times of whole milliseconds.
pub(super) const WAITED: TimeDelta = TimeDelta::from_millis(3);

/// A packet on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Passage {
    /// When it left, on the sender's clock.
    pub sent: Timestamp,
    /// When it arrived, on the receiver's clock; `None` if it did not.
    pub arrival: Option<Timestamp>,
    /// Bytes of the IP packet.
    pub size: u32,
}

/// The capacity in a time in which trains measured it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CapacityMeasurement {
    /// By the time of sending, in the log's time.
    pub from: Timestamp,
    pub to: Timestamp,
    /// In bit/s.
    pub bps: f64,
    /// Smallest and largest value of a window.
    pub range_bps: (f64, f64),
    /// What others took of the path's capacity, in bit/s; `None` if nothing shows others.
    pub rivals_bps: Option<f64>,
}
