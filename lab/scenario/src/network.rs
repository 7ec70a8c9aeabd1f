//! The `[network]` table: selects the kind of network and reads what all kinds have in common.
//!
//! Each kind has its keys and its reader in a separate module. To add a kind, add one line to
//! [`KINDS`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use weir::units::TimeDelta;
use weir_net::Hop;
use weir_net::path::Attachment;

use super::error::ScenarioError;
use super::kind::{Access, Kind};
use super::reader::{Item, Table};
use super::trace_files::TraceFiles;
use super::{cellular, wifi, wired};

type Result<T> = std::result::Result<T, ScenarioError>;

/// The kinds of networks. The first one is the default.
const KINDS: &[&Kind] = &[&wired::KIND, &wifi::KIND, &cellular::KIND];

/// The network between host A and host B.
pub(super) struct Network {
    kind: &'static Kind,
    pub(super) access: Option<Access>,
    /// The bottlenecks, in order from host A (or the access network) to host B.
    pub(super) hops: Vec<Hop>,
}

/// All keys of `[network]`.
static KEYS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let own = KINDS.iter().flat_map(|kind| kind.keys).copied();
    std::iter::once("kind").chain(wired::KEYS.iter().copied()).chain(own).collect()
});

/// The keys of a `[[flow]]` that select where it is attached, of all kinds of networks.
pub(super) fn place_keys() -> impl Iterator<Item = &'static str> {
    KINDS.iter().flat_map(|kind| kind.place_keys).copied()
}

/// The keys of a `[[flow]]` that select its class there, of all kinds of networks.
pub(super) fn class_keys() -> impl Iterator<Item = &'static str> {
    KINDS.iter().flat_map(|kind| kind.class_keys).copied()
}

pub(super) fn network(top: &Table, duration: TimeDelta, files: &TraceFiles<'_>) -> Result<Network> {
    read(&top.require("network", "{ up = { capacity = \"2Mbps\" } }")?, duration, files)
}

/// The network between a participant of an application under test and the application's server.
#[derive(Clone, Debug, PartialEq)]
pub struct ParticipantNetwork {
    /// The access network, of which the participant is the default terminal.
    pub access: Option<Access>,
    /// The bottlenecks behind it, in order from the participant.
    pub hops: Vec<Hop>,
}

/// The networks of the tables `[participant.NAME]`. A participant's name is `p` and its number.
pub(super) fn participants(
    top: &Table,
    duration: TimeDelta,
    files: &TraceFiles<'_>,
) -> Result<BTreeMap<String, ParticipantNetwork>> {
    let named = top.or("participant", Vec::new(), Item::named)?;
    let mut found = BTreeMap::new();
    for (name, item) in named {
        let number = name.strip_prefix('p').and_then(|number| number.parse::<usize>().ok());
        let number = number.filter(|number| format!("p{number}") == name);
        match number {
            Some(2..) => {}
            Some(1) => return Err(item.error("p1 is behind [network]; write p2, p3 and so on")),
            _ => return Err(item.error("participants of an application are p2, p3 and so on")),
        }
        let Network { access, hops, .. } = read(&item, duration, files)?;
        found.insert(name.to_owned(), ParticipantNetwork { access, hops });
    }
    Ok(found)
}

fn read(item: &Item, duration: TimeDelta, files: &TraceFiles<'_>) -> Result<Network> {
    let network = item.table(&KEYS)?;
    let names: Vec<(&str, &'static Kind)> = KINDS.iter().map(|kind| (kind.name, *kind)).collect();
    let kind = network.choice("kind", KINDS[0], &names)?;
    for other in KINDS {
        for key in other.keys.iter().filter(|key| !kind.keys.contains(key)) {
            network.refuse(key, other.refusal)?;
        }
    }
    let has_hops = kind.has_hop || wired::KEYS.iter().any(|key| network.get(key).is_some());
    let hops = if has_hops { wired::hops(&network, duration, files)? } else { Vec::new() };
    Ok(Network { kind, access: (kind.access)(&network, duration, files)?, hops })
}

impl Network {
    /// The attachments of a table's flows, used in turn; empty if they do not cross an access
    /// network.
    pub(super) fn attachments(&self, flow: &Table) -> Result<Vec<Attachment>> {
        for other in KINDS {
            for key in other.flow_keys().filter(|key| !self.kind.flow_keys().any(|own| own == *key))
            {
                flow.refuse(key, other.flow_refusal)?;
            }
        }
        match &self.access {
            Some(access) => (self.kind.attachments)(flow, access),
            None => Ok(Vec::new()),
        }
    }
}
