//! Configuration of a cell: its nodes, their contention and queues, and which nodes hear each
//! other.

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::phy::{A_MPDU_COUNT_LIMIT, A_MPDU_SIZE_LIMIT, Band, FRAME_TIME_LIMIT};
use super::propagation::{Fading, Propagation, RadioPath};
use super::rate::RateControl;
use super::retry::RetryPolicy;
use crate::load::Arrivals;
use crate::queue::CoDelConfig;
use crate::queue::QueueLimit;
use crate::seed::Seed;

/// Number of a node: 0 is the access point, then come the stations, then the neighbours, each in
/// the order of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

impl NodeId {
    /// The access point.
    pub const ACCESS_POINT: Self = Self(0);

    /// The station with this index in the configuration.
    pub const fn station(index: usize) -> Self {
        Self(index + 1)
    }
}

/// Access categories, in ascending order of urgency [IEEE80211 §9.2.4.2].
///
/// [IEEE80211 §9.2.4.2]: https://doi.org/10.1109/IEEESTD.2012.6178212
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessCategory {
    /// `AC_BK`: traffic of the lowest priority.
    Background,
    /// `AC_BE`: ordinary traffic.
    #[default]
    BestEffort,
    /// `AC_VI`: video.
    Video,
    /// `AC_VO`: voice, the most urgent category.
    Voice,
}

impl AccessCategory {
    /// Number of access categories.
    pub(super) const COUNT: usize = 4;
    pub(super) const EACH: [Self; Self::COUNT] =
        [Self::Background, Self::BestEffort, Self::Video, Self::Voice];
    /// All categories, in ascending order of urgency.
    pub const ALL: &'static [Self] = &Self::EACH;

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// How an access category contends for the channel [IEEE80211 §8.4.2.31].
///
/// [IEEE80211 §8.4.2.31]: https://doi.org/10.1109/IEEESTD.2012.6178212
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdcaParameters {
    /// `AIFSN`: number of slots after SIFS during which the channel must have been idle.
    pub aifsn: u32,
    /// `CWmin`: the smallest contention window, in slots.
    pub cw_min: u32,
    /// `CWmax`: the largest contention window, in slots.
    pub cw_max: u32,
    /// `TXOP limit`: how long the node may hold the channel; zero allows one data frame.
    pub txop: TimeDelta,
}

impl EdcaParameters {
    const fn new(aifsn: u32, cw_min: u32, cw_max: u32, txop_us: i64) -> Self {
        Self { aifsn, cw_min, cw_max, txop: TimeDelta::from_micros(txop_us) }
    }
}

/// The parameters of the four access categories of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edca(pub(super) [EdcaParameters; AccessCategory::COUNT]);

impl Edca {
    /// Defaults for stations [IEEE80211 §8.4.2.31, Table 8-105].
    ///
    /// [IEEE80211 §8.4.2.31, Table 8-105]: https://doi.org/10.1109/IEEESTD.2012.6178212
    pub const STATION: Self = Self([
        EdcaParameters::new(7, 15, 1_023, 0),
        EdcaParameters::new(3, 15, 1_023, 0),
        EdcaParameters::new(2, 7, 15, 3_008),
        EdcaParameters::new(2, 3, 7, 1_504),
    ]);

    /// Parameters that access points commonly use for themselves: a smaller largest window for best
    /// effort, and one slot less for video and voice.
    pub const ACCESS_POINT: Self = Self([
        EdcaParameters::new(7, 15, 1_023, 0),
        EdcaParameters::new(3, 15, 63, 0),
        EdcaParameters::new(1, 7, 15, 3_008),
        EdcaParameters::new(1, 3, 7, 1_504),
    ]);

    /// The parameters of a category.
    pub const fn of(&self, category: AccessCategory) -> &EdcaParameters {
        &self.0[category.index()]
    }

    /// Returns a copy with other parameters for one category.
    #[must_use]
    pub const fn with(mut self, category: AccessCategory, parameters: EdcaParameters) -> Self {
        self.0[category.index()] = parameters;
        self
    }
}

/// Limits on what a node puts into one data frame. Values above the standard's limits have no
/// effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Aggregation {
    /// Maximum number of MPDUs; 1 means no aggregation.
    pub mpdus: usize,
    /// Maximum size.
    pub bytes: DataSize,
    /// Maximum time on the air.
    pub duration: TimeDelta,
}

impl Aggregation {
    /// One MPDU per frame.
    pub const NONE: Self = Self { mpdus: 1, ..Self::STANDARD };
    /// The limits of the standard.
    pub const STANDARD: Self =
        Self { mpdus: A_MPDU_COUNT_LIMIT, bytes: A_MPDU_SIZE_LIMIT, duration: FRAME_TIME_LIMIT };

    weir::with! {
        with_mpdus: mpdus: usize,
        with_bytes: bytes: DataSize,
        with_duration: duration: TimeDelta,
    }
}

/// Queue of a node. Each access category has its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NodeQueue {
    /// One queue for all receivers. A new packet that does not fit is dropped.
    Fifo {
        /// How much may wait. A limit in time is not possible here, because a cell has no fixed
        /// capacity.
        limit: WaitLimit,
    },
    /// One queue per receiver, served in turn. Within it flows take turns, and CoDel manages each.
    FairCoDel {
        /// How much may wait per receiver. When it is exceeded, the longest flow loses packets.
        limit: WaitLimit,
        /// CoDel's parameters.
        codel: CoDelConfig,
    },
}

/// How much may wait in a queue of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    /// Number of packets of any size.
    Packets(usize),
    /// Bytes of IP packets.
    Bytes(DataSize),
}

impl From<WaitLimit> for QueueLimit {
    fn from(limit: WaitLimit) -> Self {
        match limit {
            WaitLimit::Packets(packets) => Self::Packets(packets),
            WaitLimit::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

/// Configuration of a node as a sender.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NodeConfig {
    /// Name of the node. Its random streams are derived from it.
    pub name: String,
    /// Contention parameters.
    pub edca: Edca,
    /// Limits on the content of a frame.
    pub aggregation: Aggregation,
    /// Its queues.
    pub queue: NodeQueue,
    /// When it gives up a packet.
    pub retry: RetryPolicy,
}

/// Default queue limit in packets, as in the transmit queue of Linux.
const DEFAULT_QUEUE: usize = 1_000;

impl NodeConfig {
    /// A node with the defaults of a station, no aggregation, and a FIFO of 1000 packets.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            edca: Edca::STATION,
            aggregation: Aggregation::NONE,
            queue: NodeQueue::Fifo { limit: WaitLimit::Packets(DEFAULT_QUEUE) },
            retry: RetryPolicy::default(),
        }
    }

    weir::with! {
        with_name: name: String,
        with_edca: edca: Edca,
        with_aggregation: aggregation: Aggregation,
        with_queue: queue: NodeQueue,
        with_retry: retry: RetryPolicy,
    }
}

/// One direction between a node and its access point.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Link {
    /// Rate control of its data frames.
    pub rate: RateControl,
    /// Errors other than collisions.
    pub errors: Errors,
    /// Traffic generated within the cell, in addition to the packets that the caller enqueues.
    pub loads: Vec<StationLoad>,
}

impl Link {
    /// A link with this rate control, without errors and without traffic of its own.
    pub fn new(rate: RateControl) -> Self {
        Self { rate, errors: Errors::NONE, loads: Vec::new() }
    }

    weir::with! {
        with_errors: errors: Errors,
        with_loads: loads: Vec<StationLoad>,
    }

    /// Returns the link with one more load.
    #[must_use]
    pub fn with_load(mut self, load: StationLoad) -> Self {
        self.loads.push(load);
        self
    }
}

/// Error models for MPDUs, besides collisions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Errors {
    /// Each MPDU is lost independently with this probability.
    Ratio(f64),
    /// Good and bad periods alternate, each with an exponentially distributed duration.
    Bursts(Bursts),
    /// Errors follow from received power, noise and fading.
    Noise(Noise),
}

impl Errors {
    /// No errors.
    pub const NONE: Self = Self::Ratio(0.0);
}

/// A channel that alternates between good and bad periods, independently of the traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Mean duration of a good period.
    pub good: TimeDelta,
    /// Mean duration of a bad period.
    pub bad: TimeDelta,
    /// Probability that an MPDU is lost in a good period.
    pub error_good: f64,
    /// Probability that an MPDU is lost in a bad period.
    pub error_bad: f64,
}

/// Noise and fading at a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Noise {
    /// Noise figure of the receiver, in decibels.
    pub figure_db: f64,
    /// How the received power varies about its mean, equally in both directions; `None` if it does
    /// not.
    pub fading: Option<Fading>,
}

impl Noise {
    /// Noise of a receiver with this noise figure, in decibels, without fading.
    pub const fn new(figure_db: f64) -> Self {
        Self { figure_db, fading: None }
    }

    weir::with! {
        with_fading: fading: Option<Fading>,
    }
}

/// Traffic generated within the cell.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct StationLoad {
    /// When its packets arrive.
    pub arrivals: Arrivals,
    /// Size of its IP packets.
    pub size: DataSize,
    /// Access category of its packets.
    pub category: AccessCategory,
    /// No packet arrives before this time.
    pub start: Timestamp,
    /// No packet arrives at this time or later.
    pub stop: Timestamp,
}

impl StationLoad {
    /// A best-effort load that lasts the whole run.
    pub const fn new(arrivals: Arrivals, size: DataSize) -> Self {
        let category = AccessCategory::BestEffort;
        Self { arrivals, size, category, start: Timestamp::ZERO, stop: Timestamp::MAX }
    }

    weir::with! {
        with_category: category: AccessCategory,
        with_start: start: Timestamp,
        with_stop: stop: Timestamp,
    }
}

/// A station of the cell.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Station {
    /// The station as a sender.
    pub node: NodeConfig,
    /// Link to the access point.
    pub up: Link,
    /// Link from the access point.
    pub down: Link,
}

impl Station {
    /// A station with the defaults of a node and with these rate controls.
    pub fn new(name: impl Into<String>, up: RateControl, down: RateControl) -> Self {
        Self::from_parts(NodeConfig::new(name), Link::new(up), Link::new(down))
    }

    /// A station with this configuration as a sender and these links.
    pub const fn from_parts(node: NodeConfig, up: Link, down: Link) -> Self {
        Self { node, up, down }
    }
}

/// A node of another cell on the same channel. It sends to an access point that neither hears this
/// cell nor is heard by it, so its frames never collide at their receiver.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Neighbour {
    /// The neighbour as a sender.
    pub node: NodeConfig,
    /// Link to its own access point.
    pub link: Link,
}

impl Neighbour {
    /// A neighbour with this configuration as a sender and this link.
    pub const fn new(node: NodeConfig, link: Link) -> Self {
        Self { node, link }
    }
}

/// How a flow from outside the cell is attached to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Association {
    /// The station at which its packets enter or leave the cell.
    pub station: NodeId,
    /// Access category of its packets, in both directions.
    pub category: AccessCategory,
}

/// Default power with which nodes receive each other.
const DEFAULT_POWER_DBM: f64 = -50.0;

/// Received power between the nodes. A later field overrides an earlier one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Powers {
    /// Power between nodes that no other field specifies.
    pub default_dbm: f64,
    /// Positions of the nodes, if the powers are to be computed from them.
    pub placement: Option<Placement>,
    /// Power from one node to another, in dBm. A later entry overrides an earlier one.
    pub between: Vec<(NodeId, NodeId, f64)>,
}

/// Positions of the nodes, and the propagation between them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Placement {
    /// Positions in metres, by number of the node.
    pub places: Vec<(f64, f64)>,
    /// Power with which every node sends, in dBm.
    pub sent_dbm: f64,
    /// How the power decreases with distance. Its fading is ignored; links have their own
    /// ([`Noise`]).
    pub propagation: Propagation,
}

impl Default for Powers {
    fn default() -> Self {
        Self { default_dbm: DEFAULT_POWER_DBM, placement: None, between: Vec::new() }
    }
}

impl Powers {
    weir::with! {
        with_default_dbm: default_dbm: f64,
        with_placement: placement: Option<Placement>,
        with_between: between: Vec<(NodeId, NodeId, f64)>,
    }

    /// Power with which each node is received by each other one; the outer index is the sender. The
    /// seed determines the shadowing.
    pub(super) fn matrix(&self, nodes: usize, seed: Seed) -> Vec<Vec<f64>> {
        let mut dbm = vec![vec![self.default_dbm; nodes]; nodes];
        if let Some(placement) = &self.placement {
            placement.fill(&mut dbm, seed);
        }
        for &(from, to, power) in &self.between {
            dbm[from.0][to.0] = power;
        }
        dbm
    }

    /// Makes two nodes unable to hear each other.
    pub fn hide(&mut self, a: NodeId, b: NodeId) {
        self.between.extend([(a, b, f64::NEG_INFINITY), (b, a, f64::NEG_INFINITY)]);
    }
}

impl Placement {
    /// Nodes at these positions, which all send with this power.
    pub const fn new(places: Vec<(f64, f64)>, sent_dbm: f64, propagation: Propagation) -> Self {
        Self { places, sent_dbm, propagation }
    }

    fn fill(&self, dbm: &mut [Vec<f64>], seed: Seed) {
        let steady = Propagation { fading: None, ..self.propagation };
        for (a, at) in self.places.iter().enumerate() {
            for (b, other) in self.places.iter().enumerate().skip(a + 1) {
                let distance = libm::hypot(at.0 - other.0, at.1 - other.1);
                let stream = seed.stream(&format!("wifi/shadowing/{a}/{b}"));
                let gain_db = RadioPath::new(&steady, distance, stream).gain_db(Timestamp::ZERO);
                (dbm[a][b], dbm[b][a]) = (self.sent_dbm + gain_db, self.sent_dbm + gain_db);
            }
        }
    }
}

/// Configuration of a cell.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CellConfig {
    /// Band, which determines slot and interframe times.
    pub band: Band,
    /// The access point as a sender.
    pub access_point: NodeConfig,
    /// The stations of the cell.
    pub stations: Vec<Station>,
    /// Nodes of other cells.
    pub neighbours: Vec<Neighbour>,
    /// Which nodes hear each other, and how strongly.
    pub powers: Powers,
}

impl CellConfig {
    /// A cell with these stations, all of which hear each other.
    pub fn new(band: Band, stations: Vec<Station>) -> Self {
        Self {
            band,
            access_point: NodeConfig::new("ap"),
            stations,
            neighbours: Vec::new(),
            powers: Powers::default(),
        }
    }

    weir::with! {
        with_access_point: access_point: NodeConfig,
        with_neighbours: neighbours: Vec<Neighbour>,
        with_powers: powers: Powers,
    }

    /// Names of the nodes, in the order of their numbers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let stations = self.stations.iter().map(|station| &station.node);
        let neighbours = self.neighbours.iter().map(|neighbour| &neighbour.node);
        let nodes = std::iter::once(&self.access_point).chain(stations).chain(neighbours);
        nodes.map(|node| node.name.as_str())
    }
}
