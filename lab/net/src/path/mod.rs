//! Paths: the networks between two ends, and the router that carries packets along them.
//!
//! ```text
//!   access network          the row of hops
//!                    node 0 ---- hop 0 ---- node 1 ---- hop 1 ---- node 2
//!   terminals ------ ends                   ends                   ends   up: from left to right
//! ```
//!
//! Every end is placed at a node of the row. It may have a delay of its own before that node. It
//! may also be a terminal of the access network (for example a station of a Wi-Fi cell). Then its
//! packets cross the access network first when it sends and last when it receives. A [`Route`]
//! lists the legs from one end to another: links and crossings of the access network.
//!
//! A [`Router`] owns all of these parts and the packets in transit. It has no clock. The simulator
//! drives it in virtual time, and the emulator in real time:
//!
//! 1. [`Router::enter`] puts a packet onto the first leg of its route.
//! 2. [`Router::next_event`] returns when a part (a link or the access network) next has an event.
//! 3. [`Router::poll`] takes the packets that have passed a part or were lost there.
//! 4. [`Router::go_on`] moves a packet to its next leg, or returns it at the end of its route.
//!
//! To add a kind of access network, implement [`AccessNetwork`] for its model, and add its
//! configuration and its log to the types of `lab/net/src/access`. No other code in this crate,
//! the simulator or the emulator names the kind.

mod network;
mod router;
#[cfg(test)]
mod tests;

pub use crate::access::{AccessChange, AccessConfig, AccessLog, AccessNetwork, AccessPlan};
pub use network::{Attachment, Crossing, Direction, NOTE_INTERVAL, Network};
pub use router::{
    Carried, InFlight, Leg, NextHop, OwnLinks, Part, Placement, Routable, Route, RouteId, Router,
};

use weir::units::Timestamp;

use crate::bottleneck::LinkConfig;
use crate::capacity::{Capacity, Schedule};

/// One bottleneck, with both directions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Hop {
    /// Towards the higher nodes: from host A's side to host B's.
    pub up: LinkConfig,
    /// Towards the lower nodes.
    pub down: LinkConfig,
}

impl Hop {
    /// A hop with these two directions.
    pub const fn new(up: LinkConfig, down: LinkConfig) -> Self {
        Self { up, down }
    }

    /// The link in this direction.
    pub const fn link(&self, direction: Direction) -> &LinkConfig {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// The same hop with each capacity schedule fixed at its first rate above zero. Programs that
    /// connect before a run need a network that does not change and lets packets through. A
    /// capacity trace cannot be fixed; it stays as it is.
    #[must_use]
    pub fn before_run(&self) -> Self {
        let fix = |link: &LinkConfig| {
            let first = link.capacity.nominal_rate(Timestamp::ZERO);
            match (&link.capacity, first) {
                (Capacity::Schedule(_), Some(first)) => {
                    let first = Schedule::constant(first).expect("a nominal rate is above zero");
                    LinkConfig { capacity: Capacity::Schedule(first), ..link.clone() }
                }
                _ => link.clone(),
            }
        };
        Self { up: fix(&self.up), down: fix(&self.down) }
    }
}

/// Name of a link in records and of its random streams: `up`, `hop-2/down`. The first hop has no
/// prefix, so a scenario keeps its random numbers when it gains a second hop.
fn link_name(hop: usize, direction: Direction) -> String {
    let direction = direction.word();
    if hop == 0 { direction.into() } else { format!("hop-{}/{direction}", hop + 1) }
}
