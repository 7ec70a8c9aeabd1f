//! What a scenario file may say of a kind of network, and what comes of it.

use std::ops::Range;

use weir::units::TimeDelta;
use weir_net::path::{AccessConfig, Attachment};

use super::error::ScenarioError;
use super::reader::Table;

type Result<T> = std::result::Result<T, ScenarioError>;

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
    /// Its keys of a `[[flow]]`.
    pub(super) fn flow_keys(&self) -> impl Iterator<Item = &'static str> {
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
