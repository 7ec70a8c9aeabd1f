//! The kinds of access networks by their configurations.

use std::fmt::Debug;
use std::ops::Range;

use weir::units::Timestamp;

use super::network::AccessNetwork;
use crate::cellular::{self, CellularConfig};
use crate::path::Attachment;
use crate::seed::Seed;
use crate::wifi::{self, CellConfig};

/// An access network and what to log of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AccessPlan {
    /// Configuration of the network.
    pub config: AccessConfig,
    /// Time range in which every detail is logged (which node held the channel when); may be empty.
    pub noted: Range<Timestamp>,
}

impl AccessPlan {
    /// A network of which no details are logged.
    pub fn new(config: impl Into<AccessConfig>) -> Self {
        Self { config: config.into(), noted: Timestamp::ZERO..Timestamp::ZERO }
    }

    weir::with! {
        with_noted: noted: Range<Timestamp>,
    }

    /// The network as it is before a run; see [`AccessConfig::before_run`].
    #[must_use]
    pub fn before_run(&self) -> Self {
        Self::new(self.config.before_run())
    }
}

/// The configuration of an access network.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AccessConfig {
    /// A Wi-Fi cell of 802.11n.
    Wifi(CellConfig),
    /// A cellular cell of LTE or NR.
    Cellular(CellularConfig),
}

impl AccessConfig {
    /// Name of the network in messages, for example `Wi-Fi cell`.
    pub const fn title(&self) -> &'static str {
        match self {
            Self::Wifi(_) => "Wi-Fi cell",
            Self::Cellular(_) => "cellular cell",
        }
    }

    /// Name of a terminal in messages, for example `station`.
    pub const fn terminal_word(&self) -> &'static str {
        match self {
            Self::Wifi(_) => "station",
            Self::Cellular(_) => "terminal",
        }
    }

    /// Builds the network in its idle state. It logs every detail within `noted`, which may be
    /// empty.
    pub fn build<T: Clone + Debug + Send + 'static>(
        &self,
        noted: &Range<Timestamp>,
        seed: Seed,
    ) -> Box<dyn AccessNetwork<T>> {
        match self {
            Self::Wifi(config) => wifi::build(config, noted, seed),
            Self::Cellular(config) => cellular::build(config, noted, seed),
        }
    }

    /// Names of its nodes, in the order of their numbers.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Wifi(config) => config.names().map(String::from).collect(),
            Self::Cellular(config) => config.names(),
        }
    }

    /// Numbers of the nodes to which hosts and flows can be attached.
    pub fn terminals(&self) -> Range<usize> {
        match self {
            Self::Wifi(config) => 1..1 + config.stations.len(),
            Self::Cellular(config) => 1..1 + config.terminals.len(),
        }
    }

    /// The default attachment of a host: the first terminal, in its usual class.
    pub fn default_attachment(&self) -> Attachment {
        match self {
            Self::Wifi(_) => CellConfig::default_attachment(),
            Self::Cellular(_) => CellularConfig::default_attachment(),
        }
    }

    /// The same network as it is before a run: it does not change, and the loads that begin with
    /// the run last forever. Programs that connect before a run need it.
    #[must_use]
    pub fn before_run(&self) -> Self {
        match self {
            Self::Wifi(config) => Self::Wifi(config.before_run()),
            Self::Cellular(config) => Self::Cellular(config.before_run()),
        }
    }
}

impl From<CellConfig> for AccessConfig {
    fn from(config: CellConfig) -> Self {
        Self::Wifi(config)
    }
}

impl From<CellularConfig> for AccessConfig {
    fn from(config: CellularConfig) -> Self {
        Self::Cellular(config)
    }
}
