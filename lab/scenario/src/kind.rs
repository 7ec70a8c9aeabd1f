//! The interface of a kind of network in scenario files, and the access network that it reads.

use std::ops::Range;

use weir::units::TimeDelta;
use weir_net::cellular::CellularConfig;
use weir_net::path::{AccessConfig, Attachment};

use super::error::ScenarioError;
use super::reader::Table;
use super::trace_files::TraceFiles;

/// Name of the group of a Wi-Fi cell's access point.
const ACCESS_POINT: &str = "ap";

type Result<T> = std::result::Result<T, ScenarioError>;

/// How scenario files describe one kind of network.
pub(super) struct Kind {
    /// The value of the key `kind`.
    pub(super) name: &'static str,
    /// Its keys in `[network]`, besides those of the hops.
    pub(super) keys: &'static [&'static str],
    /// Error for one of these keys in a network of another kind.
    pub(super) refusal: &'static str,
    /// Its keys in a `[[flow]]` that select where the end on A's side is attached.
    pub(super) place_keys: &'static [&'static str],
    /// Its keys in a `[[flow]]` that select the class of the packets there. The default tables for
    /// kinds of flows, such as `[media]`, may have them too.
    pub(super) class_keys: &'static [&'static str],
    /// Error for one of these flow keys in a network of another kind.
    pub(super) flow_refusal: &'static str,
    /// Whether there is a hop even if the file describes none.
    pub(super) has_hop: bool,
    /// Reads the access network; returns `None` for a kind that has only hops.
    pub(super) access: fn(&Table, TimeDelta, &TraceFiles<'_>) -> Result<Option<Access>>,
    /// Reads the attachments of one table's flows, used in turn; empty if they do not cross the
    /// access network.
    pub(super) attachments: fn(&Table, &Access) -> Result<Vec<Attachment>>,
}

impl Kind {
    /// Its keys in a `[[flow]]`.
    pub(super) fn flow_keys(&self) -> impl Iterator<Item = &'static str> {
        self.place_keys.iter().chain(self.class_keys).copied()
    }
}

/// An access network as described by a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Configuration of the network.
    pub config: AccessConfig,
    /// Groups of nodes, each described by one table.
    pub groups: Vec<NodeGroup>,
    /// The network in words, for reports: one line per node or group of nodes.
    pub words: Vec<String>,
}

/// Nodes of an access network that one table describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeGroup {
    /// Name of the table.
    pub name: String,
    /// Numbers of the nodes in the group.
    pub nodes: Range<usize>,
}

impl Access {
    /// Whether it is a Wi-Fi cell, whose nodes and frames have files and metrics of their own.
    pub fn is_wifi(&self) -> bool {
        matches!(self.config, AccessConfig::Wifi(_))
    }

    /// Names and nodes of the groups of a Wi-Fi cell that are measured; none in another network.
    pub fn wifi_groups(&self) -> Vec<(String, Range<usize>)> {
        if !self.is_wifi() {
            return Vec::new();
        }
        let groups = self.groups.iter().map(|group| (group.name.clone(), group.nodes.clone()));
        std::iter::once((ACCESS_POINT.to_string(), 0..1)).chain(groups).collect()
    }

    /// Numbers of the nodes with this name, which may be the name of a group or of one node.
    pub fn nodes(&self, name: &str) -> Option<Range<usize>> {
        if let Some(group) = self.groups.iter().find(|group| group.name == name) {
            return Some(group.nodes.clone());
        }
        let number = self.names().iter().position(|node| node == name)?;
        Some(number..number + 1)
    }

    /// Whether it is a cellular cell.
    pub fn is_cellular(&self) -> bool {
        self.cellular().is_some()
    }

    /// The configuration of a cellular cell; `None` for another network.
    pub fn cellular(&self) -> Option<&CellularConfig> {
        match &self.config {
            AccessConfig::Cellular(config) => Some(config),
            _ => None,
        }
    }

    /// Names of the nodes, in the order of their numbers.
    pub fn names(&self) -> Vec<String> {
        self.config.names()
    }
}
