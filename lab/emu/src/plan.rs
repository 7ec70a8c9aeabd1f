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

use crate::nat::NatPlan;

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
    /// The NATs. A host is behind at most one.
    pub nats: Vec<NatPlan>,
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
    /// The index of an earlier host whose second interface this is; `None` for a host of its own.
    /// It is down until [`Host::bring_up`](crate::Host::bring_up).
    pub second_of: Option<usize>,
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
            nats: Vec::new(),
            local_traffic: false,
        }
    }

    /// The first host of each one that is a second interface.
    pub(crate) fn second_interfaces(&self) -> Vec<Option<usize>> {
        self.hosts.iter().map(|host| host.second_of).collect()
    }

    /// Whether the nodes, terminals and own networks of all hosts exist, and the hosts of all NATs.
    pub(crate) fn is_sound(&self) -> bool {
        let mut behind: Vec<usize> = self.nats.iter().flat_map(|nat| &nat.hosts).copied().collect();
        behind.sort_unstable();
        let are_sound = behind.iter().all(|host| *host < self.hosts.len())
            && behind.windows(2).all(|pair| pair[0] != pair[1])
            && self.nats.iter().all(|nat| !nat.hosts.is_empty());
        are_sound
            && self.hosts.iter().all(|host| {
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
