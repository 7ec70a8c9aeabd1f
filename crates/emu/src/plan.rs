//! What an emulated network looks like: bottlenecks in a row, and the hosts at its nodes.
//!
//! ```text
//!   node 0 ---- hop 0 ---- node 1 ---- hop 1 ---- node 2        up is from left to right
//!   hosts                  hosts                  hosts
//! ```
//!
//! Before the nodes there may be a Wi-Fi cell: a host that is a station of it reaches its node, and other
//! hosts of that node, over the air.
//!
//! A packet crosses every hop between the node of its sender and the node of its receiver, and the
//! access delay of both; hosts at one node share all queues. One hop is the usual bottleneck with
//! hosts on both sides. A relay in the middle is a host at node 1 of two hops, each a leg of the path;
//! a relay whose own access is the bottleneck is the only host at node 1 of one hop, with everybody
//! else at node 0.

use std::ops::Range;

use weir::units::{TimeDelta, Timestamp};
use weir_net::LinkConfig;
use weir_net::wifi::{Association, CellConfig, NodeId};

/// An emulated network.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The Wi-Fi cell that some hosts are stations of. Stations without a host are simulated: they send
    /// what the cell's own loads say.
    pub cell: Option<CellPlan>,
    /// The bottlenecks, in a row. Node `i` is before hop `i`, the last node behind the last hop.
    pub hops: Vec<Hop>,
    /// The hosts; their order gives their addresses.
    pub hosts: Vec<HostPlan>,
    /// Whether hosts at one node reach each other, around all hops. Else such packets are dropped.
    pub local_traffic: bool,
}

/// A Wi-Fi cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellPlan {
    /// Its nodes and their loads.
    pub config: CellConfig,
    /// The time of which every frame is written down; may be empty.
    pub airtime: Range<Timestamp>,
}

/// One bottleneck, both ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// Towards the higher nodes.
    pub up: LinkConfig,
    /// Towards the lower nodes.
    pub down: LinkConfig,
}

/// Where a host stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPlan {
    /// Its node.
    pub node: usize,
    /// Delay of its own way to its node, in each direction.
    pub access_delay: TimeDelta,
    /// The station of the cell that it is, several hosts sharing one if they name the same; without
    /// one it is wired.
    pub station: Option<Association>,
}

impl HostPlan {
    /// A host at a node, without a delay of its own.
    pub fn at(node: usize) -> Self {
        Self { node, ..Self::default() }
    }

    /// Whether packets between the two need neither a hop nor the air.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        let station = |host: &Self| host.station.map(|own| own.station);
        self.node == other.node && station(self) == station(other)
    }
}

impl Plan {
    /// One bottleneck between two hosts: the first is host A, where `up` begins, the second host B.
    pub fn two_hosts(up: &LinkConfig, down: &LinkConfig) -> Self {
        let hop = Hop { up: up.clone(), down: down.clone() };
        Self {
            cell: None,
            hops: vec![hop],
            hosts: vec![HostPlan::at(0), HostPlan::at(1)],
            local_traffic: false,
        }
    }

    /// Whether every host has a node, and every station that hosts are is one of the cell.
    pub(crate) fn is_sound(&self) -> bool {
        let stations = self.cell.as_ref().map_or(0, |cell| cell.config.stations.len());
        self.hosts.iter().all(|host| {
            let station = host.station.map(|own| own.station);
            let is_station = |own: NodeId| (1..=stations).contains(&own.0);
            host.node <= self.hops.len() && station.is_none_or(is_station)
        })
    }
}
