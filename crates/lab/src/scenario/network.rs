//! The `[network]` table: which kind of network it describes, and what every kind has in common.
//!
//! A kind has its keys and its reader in a module of its own. A new kind is one line in [`KINDS`].

use std::ops::Range;
use std::sync::LazyLock;

use weir::units::TimeDelta;
use weir_net::Hop;
use weir_net::path::{AccessConfig, Attachment};

use super::error::ScenarioError;
use super::reader::Table;
use super::trace_files::TraceFiles;
use super::{wifi, wired};

type Result<T> = std::result::Result<T, ScenarioError>;

/// The kinds of networks. The first one is meant where a file names none.
const KINDS: &[&Kind] = &[&wired::KIND, &wifi::KIND];

/// A kind of network, as a scenario file describes it.
pub(super) struct Kind {
    /// The value of the key `kind`.
    pub(super) name: &'static str,
    /// The keys of `[network]` that it has beside those of the hops.
    pub(super) keys: &'static [&'static str],
    /// What a network of another kind hears where it has one of these keys.
    pub(super) refusal: &'static str,
    /// The keys of a `[[flow]]` that say where its end on A's side is attached.
    pub(super) place_keys: &'static [&'static str],
    /// The keys of a `[[flow]]` that say how its packets are treated there. Defaults of a kind of flow,
    /// such as `[media]`, may have them too.
    pub(super) class_keys: &'static [&'static str],
    /// What a flow hears that has one of the two where the network is of another kind.
    pub(super) flow_refusal: &'static str,
    /// Whether there is a hop even where the file describes none.
    pub(super) has_hop: bool,
    /// Reads the access network; `None` for a kind that has hops alone.
    pub(super) access: fn(&Table, TimeDelta) -> Result<Option<Access>>,
    /// Reads where the flows of one table are attached, in turn; none if they do not cross the access
    /// network.
    pub(super) attachments: fn(&Table, &Access) -> Result<Vec<Attachment>>,
}

impl Kind {
    fn flow_keys(&self) -> impl Iterator<Item = &'static str> {
        self.place_keys.iter().chain(self.class_keys).copied()
    }
}

/// An access network, as a scenario describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// What to build it from.
    pub config: AccessConfig,
    /// What its nodes are called together, by the numbers of the nodes.
    pub groups: Vec<NodeGroup>,
    /// The network in words, for reports: a line a node or group of them.
    pub words: Vec<String>,
}

/// Nodes of an access network that one table describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeGroup {
    /// The table's name.
    pub name: String,
    /// The numbers of its nodes.
    pub nodes: Range<usize>,
}

impl Access {
    /// The nodes of a group, or the one node, of this name.
    pub fn nodes(&self, name: &str) -> Option<Range<usize>> {
        let group = self.groups.iter().find(|group| group.name == name);
        let number = || self.names().iter().position(|node| node == name);
        group.map(|group| group.nodes.clone()).or_else(|| number().map(|node| node..node + 1))
    }

    /// Names of the nodes, by number.
    pub fn names(&self) -> Vec<String> {
        self.config.names()
    }
}

/// What lies between host A and host B.
pub(super) struct Network {
    kind: &'static Kind,
    pub(super) access: Option<Access>,
    /// The bottlenecks, in order from host A, or the access network, to host B.
    pub(super) hops: Vec<Hop>,
}

/// Every key of `[network]`.
static KEYS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let own = KINDS.iter().flat_map(|kind| kind.keys).copied();
    std::iter::once("kind").chain(wired::KEYS.iter().copied()).chain(own).collect()
});

/// The keys of a `[[flow]]` that say where it is attached, of all kinds of networks.
pub(super) fn place_keys() -> impl Iterator<Item = &'static str> {
    KINDS.iter().flat_map(|kind| kind.place_keys).copied()
}

/// The keys of a `[[flow]]` that say how it is treated there, of all kinds of networks.
pub(super) fn class_keys() -> impl Iterator<Item = &'static str> {
    KINDS.iter().flat_map(|kind| kind.class_keys).copied()
}

pub(super) fn network(top: &Table, duration: TimeDelta, files: &TraceFiles<'_>) -> Result<Network> {
    let network = top.require("network", "{ up = { capacity = \"2Mbps\" } }")?.table(&KEYS)?;
    let names: Vec<(&str, &'static Kind)> = KINDS.iter().map(|kind| (kind.name, *kind)).collect();
    let kind = network.get("kind").map_or(Ok(KINDS[0]), |item| item.choice(&names))?;
    for other in KINDS {
        for key in other.keys.iter().filter(|key| !kind.keys.contains(key)) {
            network.refuse(key, other.refusal)?;
        }
    }
    let has_hops = kind.has_hop || wired::KEYS.iter().any(|key| network.get(key).is_some());
    let read_hops = || wired::hops(&network, duration, files);
    let hops = if has_hops { read_hops()? } else { Vec::new() };
    Ok(Network { kind, access: (kind.access)(&network, duration)?, hops })
}

impl Network {
    /// Where the flows of a table are attached, in turn; none if they do not cross an access network.
    pub(super) fn attachments(&self, flow: &Table) -> Result<Vec<Attachment>> {
        for other in KINDS {
            for key in other.flow_keys().filter(|key| !self.kind.flow_keys().any(|own| own == *key))
            {
                flow.refuse(key, other.flow_refusal)?;
            }
        }
        self.access.as_ref().map_or(Ok(Vec::new()), |access| (self.kind.attachments)(flow, access))
    }
}
