//! What an emulated network looks like: bottlenecks in a row, and the hosts at its nodes.
//!
//! ```text
//!   node 0 ---- hop 0 ---- node 1 ---- hop 1 ---- node 2        up is from left to right
//!   hosts                  hosts                  hosts
//! ```
//!
//! Before the nodes there may be an access network, such as a Wi-Fi cell. A host that is one of its
//! terminals reaches its node, and other hosts of that node, over that network.
//!
//! A packet crosses every hop between the node of its sender and the node of its receiver, and the
//! access delay of both; hosts at one node share all queues. One hop is the usual bottleneck with
//! hosts on both sides. A relay in the middle is a host at node 1 of two hops, each a leg of the path;
//! a relay whose own access is the bottleneck is the only host at node 1 of one hop, with everybody
//! else at node 0.

use weir::units::TimeDelta;
use weir_net::LinkConfig;
use weir_net::path::{AccessPlan, Attachment, Hop};

/// An emulated network.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The access network that some hosts are terminals of. Terminals without a host are simulated: they
    /// send what the loads of the network's own configuration say.
    pub access: Option<AccessPlan>,
    /// The bottlenecks, in a row. Node `i` is before hop `i`, the last node behind the last hop.
    pub hops: Vec<Hop>,
    /// The hosts; their order gives their addresses.
    pub hosts: Vec<HostPlan>,
    /// Whether hosts at one node reach each other, around all hops. Else such packets are dropped.
    pub local_traffic: bool,
}

/// Where a host stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPlan {
    /// Its node.
    pub node: usize,
    /// Delay of its own way to its node, in each direction.
    pub access_delay: TimeDelta,
    /// The terminal of the access network that it is; without one it is wired. Several hosts that name the
    /// same terminal share it.
    pub attachment: Option<Attachment>,
}

impl HostPlan {
    /// A host at a node, without a delay of its own.
    pub fn at(node: usize) -> Self {
        Self { node, ..Self::default() }
    }
}

impl Plan {
    /// One bottleneck between two hosts: the first is host A, where `up` begins, the second host B.
    pub fn two_hosts(up: &LinkConfig, down: &LinkConfig) -> Self {
        let hop = Hop { up: up.clone(), down: down.clone() };
        Self {
            access: None,
            hops: vec![hop],
            hosts: vec![HostPlan::at(0), HostPlan::at(1)],
            local_traffic: false,
        }
    }

    /// Whether every host has a node, and every terminal that hosts are is one of the access network.
    pub(crate) fn is_sound(&self) -> bool {
        let terminals = self.access.as_ref().map_or(0..0, |access| access.config.terminals());
        self.hosts.iter().all(|host| {
            let is_terminal = |own: Attachment| terminals.contains(&own.terminal);
            host.node <= self.hops.len() && host.attachment.is_none_or(is_terminal)
        })
    }
}
