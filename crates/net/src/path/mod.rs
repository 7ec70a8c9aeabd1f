//! Paths: what lies between two ends, and the one router that carries packets along it.
//!
//! ```text
//!   access network          the row of hops
//!                    node 0 ---- hop 0 ---- node 1 ---- hop 1 ---- node 2
//!   terminals ------ ends                   ends                   ends      up is from left to right
//! ```
//!
//! Every end stands at a node of the row. It may have a delay of its own before its node, and it may be a
//! terminal of the access network (a station of a Wi-Fi cell, say), which its packets then cross first and
//! last. A [`Route`] lists the legs from one end to another: links and crossings of the access network.
//!
//! A [`Router`] owns all of it, and the packets that are under way. It has no clock. The simulator drives
//! it in virtual time and the emulator at the wall clock:
//!
//! 1. [`Router::enter`] puts a packet onto the first leg of its route.
//! 2. [`Router::next_event`] says when a part (a link, or the access network) has something to give.
//! 3. [`Router::poll`] takes what has come through a part, or was lost there.
//! 4. [`Router::go_on`] moves it to the next leg, or hands it over at the end of its route.
//!
//! A new kind of access network implements [`AccessNetwork`] for what runs and [`AccessKind`] for its
//! configuration, and has a line in `crates/net/src/access.rs`. Nothing else in this crate, the simulator or the emulator
//! names it.

mod network;
mod router;
#[cfg(test)]
mod tests;

pub use crate::access::{AccessConfig, AccessLog, AccessPlan};
pub use network::{
    AccessChange, AccessKind, AccessNetwork, Attachment, Crossing, NOTE_INTERVAL, Network, Way,
};
pub use router::{Carried, Leg, Onward, Part, Route, RouteId, Router, Site, Traveller};

use weir::units::Timestamp;

use crate::bottleneck::LinkConfig;
use crate::capacity::{Capacity, Schedule};

/// One bottleneck, both ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// Towards the higher nodes: from host A's side to host B's.
    pub up: LinkConfig,
    /// Towards the lower nodes.
    pub down: LinkConfig,
}

impl Hop {
    /// The same hop with each capacity schedule fixed at its first rate above zero. Programs that connect
    /// before a run need a network that does not change and that lets them through. A capacity trace has
    /// no such value: it stays as it is.
    #[must_use]
    pub fn standing(&self) -> Self {
        let stand = |link: &LinkConfig| {
            let first = link.capacity.nominal_rate(Timestamp::ZERO);
            match (&link.capacity, first) {
                (Capacity::Schedule(_), Some(first)) => {
                    let first = Schedule::constant(first).expect("a nominal rate is above zero");
                    LinkConfig { capacity: Capacity::Schedule(first), ..link.clone() }
                }
                _ => link.clone(),
            }
        };
        Self { up: stand(&self.up), down: stand(&self.down) }
    }
}

/// The name of a hop's streams of chance, and of the hop in records: `up`, `hop-2/down`. The first hop
/// has no prefix, so that a scenario keeps its draws when it gains a second hop.
fn link_name(hop: usize, way: Way) -> String {
    let way = match way {
        Way::Up => "up",
        Way::Down => "down",
    };
    if hop == 0 { way.into() } else { format!("hop-{}/{way}", hop + 1) }
}
