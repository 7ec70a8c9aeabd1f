//! Topology of an emulated network: a chain of bottlenecks, with hosts at its nodes.
//!
//! ```text
//!   node 0 ---- hop 0 ---- node 1 ---- hop 1 ---- node 2        up is from left to right
//!   hosts                  hosts                  hosts
//! ```
//!
//! There may also be an access network, such as a Wi-Fi cell. A host that is one of its terminals
//! reaches its node, and other hosts at that node, through that network.
//!
//! A host may have a network of its own between itself and its node: an access network, hops, or
//! both. Such hosts at one node are a star.
//!
//! A packet crosses every hop between the node of its sender and the node of its receiver, plus the
//! access delays of both. Hosts at the same node share all queues.
//!
//! A plan with one hop is the usual bottleneck with hosts on both sides. A relay on the path is a
//! host at node 1 of two hops. If a relay's own access link is the bottleneck, it is the only host
//! at node 1 of one hop, and all others are at node 0.

use weir::units::TimeDelta;
use weir_net::LinkConfig;
use weir_net::path::{AccessPlan, Attachment, Hop};

/// An emulated network.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The access network that some hosts use. Its other terminals are simulated: they send the
    /// loads of its configuration.
    pub access: Option<AccessPlan>,
    /// The bottlenecks, in order. Node `i` is before hop `i`; the last node is after the last hop.
    pub hops: Vec<Hop>,
    /// Networks of single hosts.
    pub own: Vec<OwnNetwork>,
    /// The hosts. Their addresses follow this order.
    pub hosts: Vec<HostPlan>,
    /// Whether hosts at the same node can reach each other directly, without crossing a hop. If
    /// not, such packets are dropped.
    pub local_traffic: bool,
}

/// Location of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPlan {
    /// Index of its node.
    pub node: usize,
    /// One-way delay of its own link to the node, in each direction.
    pub access_delay: TimeDelta,
    /// Its terminal of the access network; `None` for a wired host. Hosts with the same terminal
    /// share it.
    pub attachment: Option<Attachment>,
    /// Index of its own network in the plan; `None` for none. With one, the host has no access
    /// delay, and `attachment` is its terminal there.
    pub own: Option<usize>,
    /// Whether other networks are behind it: packets to addresses outside the emulated network go
    /// to this host, and it may send packets from such addresses. At most one host is the border.
    pub is_border: bool,
}

/// A network between a host and its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnNetwork {
    /// The access network, of which the host is a terminal.
    pub access: Option<AccessPlan>,
    /// The bottlenecks behind it, in order from the host to its node: `up` leads to the node.
    pub hops: Vec<Hop>,
}

impl OwnNetwork {
    /// The network as it is before a run.
    pub(crate) fn before_run(&self) -> Self {
        Self {
            access: self.access.as_ref().map(AccessPlan::before_run),
            hops: self.hops.iter().map(Hop::before_run).collect(),
        }
    }
}

impl HostPlan {
    /// A wired host at a node, without access delay.
    pub fn at(node: usize) -> Self {
        Self { node, ..Self::default() }
    }
}

impl Plan {
    /// One bottleneck between two hosts. The first is host A, the start of `up`; the second is host
    /// B.
    pub fn two_hosts(up: &LinkConfig, down: &LinkConfig) -> Self {
        let hop = Hop::new(up.clone(), down.clone());
        Self {
            access: None,
            hops: vec![hop],
            own: Vec::new(),
            hosts: vec![HostPlan::at(0), HostPlan::at(1)],
            local_traffic: false,
        }
    }

    /// Whether the nodes, terminals and own networks of all hosts exist.
    pub(crate) fn is_sound(&self) -> bool {
        self.hosts.iter().all(|host| {
            let access = match host.own {
                None => &self.access,
                Some(own) if own < self.own.len() => &self.own[own].access,
                Some(_) => return false,
            };
            let terminals = access.as_ref().map_or(0..0, |access| access.config.terminals());
            host.node <= self.hops.len()
                && host.attachment.is_none_or(|own| terminals.contains(&own.terminal))
        })
    }
}
