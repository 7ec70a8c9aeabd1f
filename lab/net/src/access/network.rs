//! What every access network does besides carrying packets.

use std::net::Ipv4Addr;

use weir::units::Timestamp;

use super::log::{AccessChange, AccessLog};
use crate::path::{Crossing, Network};

/// A network with terminals, placed before any node of the row.
pub trait AccessNetwork<T>: Network<T, Crossing = Crossing> {
    /// Logs the network's activity since the last call. The router's driver calls it at the end of
    /// each [`NOTE_INTERVAL`](crate::path::NOTE_INTERVAL), after it has polled all due events.
    fn note(&mut self, _now: Timestamp) {}

    /// Moves the log so far to the end of the part of this kind in `log`.
    fn move_notes(&mut self, _log: &mut AccessLog) {}

    /// The source and destination of real packets, in the order of the numbers that stand for them
    /// in a [`FlowKey`](crate::FlowKey). Without this call no packet has addresses.
    fn set_addresses(&mut self, _pairs: Vec<(Ipv4Addr, Ipv4Addr)>) {}

    /// Changes the network during a run, from now on. Returns whether the network supports this
    /// change.
    fn change(&mut self, _now: Timestamp, _change: &AccessChange) -> bool {
        false
    }
}
