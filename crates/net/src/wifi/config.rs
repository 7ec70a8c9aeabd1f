//! What a cell consists of: its nodes, how they contend, what they queue, whom they hear.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::phy::{A_MPDU_COUNT_LIMIT, A_MPDU_SIZE_LIMIT, Band, FRAME_TIME_LIMIT};
use super::propagation::{Fading, Propagation, RadioPath};
use super::rate::RateControl;
use super::retry::RetryPolicy;
use crate::queue::CoDelConfig;
use crate::queue::QueueLimit;
use crate::seed::Seed;

/// A node of a cell: 0 is the access point, then come the stations and then the neighbours, each in the
/// order of the configuration.
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

/// Access categories, from the least urgent [IEEE80211 §9.2.4.2].
///
/// [IEEE80211 §9.2.4.2]: https://doi.org/10.1109/IEEESTD.2012.6178212
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessCategory {
    /// `AC_BK`.
    Background,
    /// `AC_BE`.
    #[default]
    BestEffort,
    /// `AC_VI`.
    Video,
    /// `AC_VO`.
    Voice,
}

impl AccessCategory {
    /// How many there are.
    pub const COUNT: usize = 4;
    /// All, from the least urgent.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Background, Self::BestEffort, Self::Video, Self::Voice];

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// How an access category contends for the channel [IEEE80211 §8.4.2.31].
///
/// [IEEE80211 §8.4.2.31]: https://doi.org/10.1109/IEEESTD.2012.6178212
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdcaParameters {
    /// `AIFSN`: slots that the channel must have been idle, after SIFS.
    pub aifsn: u32,
    /// `CWmin`: the first contention window, in slots.
    pub cw_min: u32,
    /// `CWmax`: the largest contention window.
    pub cw_max: u32,
    /// `TXOP limit`: how long the channel may be held; zero allows one data frame.
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

    /// What the firmware of access points commonly uses for itself: a lower ceiling for best effort, and
    /// one slot less for video and voice.
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

    /// Other parameters for a category.
    #[must_use]
    pub const fn with(mut self, category: AccessCategory, parameters: EdcaParameters) -> Self {
        self.0[category.index()] = parameters;
        self
    }
}

/// How much a node puts into one data frame. Beyond the limits of the standard these have no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregation {
    /// Most MPDUs; 1 is no aggregation.
    pub mpdus: usize,
    /// Most bytes.
    pub bytes: DataSize,
    /// Longest time on the air.
    pub duration: TimeDelta,
}

impl Aggregation {
    /// One MPDU a frame.
    pub const NONE: Self = Self { mpdus: 1, ..Self::STANDARD };
    /// As much as the standard allows.
    pub const STANDARD: Self =
        Self { mpdus: A_MPDU_COUNT_LIMIT, bytes: A_MPDU_SIZE_LIMIT, duration: FRAME_TIME_LIMIT };
}

/// What waits in a node, for each access category on its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NodeQueue {
    /// One queue for all receivers; a newcomer that does not fit is dropped.
    Fifo {
        /// What may wait. A limit in time does not apply: a cell has no capacity to reckon with.
        limit: WaitLimit,
    },
    /// A queue for each receiver, served in turn; in it flows take turns under CoDel.
    FairCoDel {
        /// What may wait for each receiver; beyond it the longest flow loses packets.
        limit: WaitLimit,
        /// CoDel's parameters.
        codel: CoDelConfig,
    },
}

/// How much may wait in a queue of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    /// Packets of any size.
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

/// A node, as a sender.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeConfig {
    /// Names its streams of chance.
    pub name: String,
    /// How it contends.
    pub edca: Edca,
    /// What it puts into one frame.
    pub aggregation: Aggregation,
    /// What waits in it.
    pub queue: NodeQueue,
    /// When it gives a packet up.
    pub retry: RetryPolicy,
}

/// Packets that wait in a node unless it says otherwise, as in the transmit queue of Linux.
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
}

/// One direction between a node and its access point.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// How data is sent.
    pub rate: RateControl,
    /// What goes wrong besides collisions.
    pub errors: Errors,
    /// Traffic that begins in the cell, in addition to what its driver brings.
    pub loads: Vec<StationLoad>,
}

impl Link {
    /// A link with this rate control and without errors or traffic of its own.
    pub fn new(rate: RateControl) -> Self {
        Self { rate, errors: Errors::NONE, loads: Vec::new() }
    }

    /// The same link with a load.
    #[must_use]
    pub fn with_load(mut self, load: StationLoad) -> Self {
        self.loads.push(load);
        self
    }
}

/// Errors of MPDUs that are not collisions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Errors {
    /// Each MPDU on its own with this probability.
    Ratio(f64),
    /// Good and bad times in turn, each with an exponential duration.
    Bursts(Bursts),
    /// As the power at the receiver, noise and fading make them.
    Noise(Noise),
}

impl Errors {
    /// None.
    pub const NONE: Self = Self::Ratio(0.0);
}

/// A channel that is good and bad in turn, whoever sends and whenever.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Mean duration of a good time.
    pub good: TimeDelta,
    /// Mean duration of a bad time.
    pub bad: TimeDelta,
    /// Probability that an MPDU is lost in a good time.
    pub error_good: f64,
    /// Probability that an MPDU is lost in a bad time.
    pub error_bad: f64,
}

/// What is added to a signal, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Noise figure of the receiver, in decibels.
    pub figure_db: f64,
    /// How its power varies about its mean, in both directions alike.
    pub fading: Option<Fading>,
}

/// Traffic that begins in the cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationLoad {
    /// When its packets come.
    pub arrivals: Arrivals,
    /// Size of its IP packets.
    pub size: DataSize,
    /// Their access category.
    pub category: AccessCategory,
    /// The first packet does not come before this.
    pub start: Timestamp,
    /// No packet comes at this time or later.
    pub stop: Timestamp,
}

impl StationLoad {
    /// Best-effort traffic for all time.
    pub const fn new(arrivals: Arrivals, size: DataSize) -> Self {
        let category = AccessCategory::BestEffort;
        Self { arrivals, size, category, start: Timestamp::ZERO, stop: Timestamp::MAX }
    }
}

/// When the packets of a load come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// There is always one more: the queue is never empty, and never full.
    Saturated,
    /// At equal distances, for this bitrate of IP packets; the first one somewhere within the first
    /// distance, so that the loads of several nodes are not in step.
    Constant(Bitrate),
    /// With exponential distances, for this mean bitrate of IP packets.
    Poisson(Bitrate),
    /// So many at once, each period, from the start on.
    Bursts {
        /// From burst to burst.
        period: TimeDelta,
        /// Packets of a burst.
        packets: u32,
    },
}

/// A station of the cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// Itself, as a sender.
    pub node: NodeConfig,
    /// To the access point.
    pub up: Link,
    /// From the access point.
    pub down: Link,
}

impl Station {
    /// A station with the defaults of a node, and these rate controls.
    pub fn new(name: impl Into<String>, up: RateControl, down: RateControl) -> Self {
        Self { node: NodeConfig::new(name), up: Link::new(up), down: Link::new(down) }
    }
}

/// A node of another cell on the same channel, which sends to an access point that nobody here reaches
/// and that hears nobody here: its frames arrive whatever this cell does.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Itself, as a sender.
    pub node: NodeConfig,
    /// To its own access point.
    pub link: Link,
}

/// How something outside the cell takes part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Association {
    /// The station that it is at.
    pub station: NodeId,
    /// The category of its packets, both ways.
    pub category: AccessCategory,
}

/// Power at which nodes receive each other unless the configuration says otherwise.
const DEFAULT_POWER_DBM: f64 = -50.0;

/// At which power the nodes receive each other. What comes later here overrides what comes before.
#[derive(Clone, Debug, PartialEq)]
pub struct Powers {
    /// Between two nodes of which the rest says nothing.
    pub default_dbm: f64,
    /// Where the nodes are, if the powers follow from that.
    pub placement: Option<Placement>,
    /// From a node, to a node, in dBm; a later entry overrides an earlier one.
    pub between: Vec<(NodeId, NodeId, f64)>,
}

/// Where the nodes are, and what lies between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// Places in metres, by number of the node.
    pub places: Vec<(f64, f64)>,
    /// Power that every node sends with.
    pub sent_dbm: f64,
    /// How the power falls with the distance. Fading is left to the links ([`Noise`]).
    pub propagation: Propagation,
}

impl Default for Powers {
    fn default() -> Self {
        Self { default_dbm: DEFAULT_POWER_DBM, placement: None, between: Vec::new() }
    }
}

impl Powers {
    /// The power of each node at each other one, by sender, as this seed has the shadowing.
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

    /// Two nodes that receive nothing of each other.
    pub fn hide(&mut self, a: NodeId, b: NodeId) {
        self.between.extend([(a, b, f64::NEG_INFINITY), (b, a, f64::NEG_INFINITY)]);
    }
}

impl Placement {
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

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellConfig {
    /// Times that the band fixes.
    pub band: Band,
    /// The access point, as a sender.
    pub access_point: NodeConfig,
    /// Its stations.
    pub stations: Vec<Station>,
    /// Nodes of other cells.
    pub neighbours: Vec<Neighbour>,
    /// Who hears whom.
    pub powers: Powers,
}

impl CellConfig {
    /// A cell of these stations, all of which hear each other.
    pub fn new(band: Band, stations: Vec<Station>) -> Self {
        Self {
            band,
            access_point: NodeConfig::new("ap"),
            stations,
            neighbours: Vec::new(),
            powers: Powers::default(),
        }
    }

    /// Names of the nodes, by number.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let stations = self.stations.iter().map(|station| &station.node);
        let neighbours = self.neighbours.iter().map(|neighbour| &neighbour.node);
        let nodes = std::iter::once(&self.access_point).chain(stations).chain(neighbours);
        nodes.map(|node| node.name.as_str())
    }
}
