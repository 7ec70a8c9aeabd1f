//! Configuration of a cell: its carrier, its terminals and their bearers, and how the base station
//! shares the resource blocks.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::carrier::{Carrier, Technology};
use super::directions::Directions;
use super::fading::Fading;
use super::service::{BearerChange, BearerConfig};
use crate::load::Arrivals;
use crate::path::Direction;

/// Configuration of a cell.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CellularConfig {
    /// TTI, resource blocks and block sizes.
    pub carrier: Carrier,
    /// Processing times.
    pub timing: Timing,
    /// Retransmission of blocks.
    pub harq: Harq,
    /// How modulation and coding follow the signal, in each direction.
    pub adaptation: Directions<Adaptation>,
    /// Who gets which resource blocks.
    pub scheduler: Scheduler,
    /// Whether the downlink scheduler knows when a queue is empty. The proportional fair scheduler
    /// of ns-3 does not: it fills the rest of a grant with padding.
    pub stops_at_queue_end: bool,
    /// How the bearers of a terminal share a block.
    pub sharing: Sharing,
    /// How a terminal asks for uplink resource blocks.
    pub uplink_access: UplinkAccess,
    /// Whether the control channel can fail when the signal is below -1 dB. A terminal that cannot
    /// decode it misses its blocks and grants.
    pub control_errors: bool,
    /// Rules for new bearers with a guaranteed bitrate.
    pub admission: Admission,
    /// The terminals.
    pub terminals: Vec<Terminal>,
    /// Bearers added, changed and removed during the run, ordered by time.
    pub changes: Vec<(Timestamp, BearerChange)>,
}

impl CellularConfig {
    /// A cell with the usual values of a commercial network: proportional fair scheduling that
    /// stops at a queue's end, priorities between bearers, scheduling requests each 10 ms, and an
    /// outer loop that steers to 10 % block errors.
    pub fn new(carrier: Carrier, terminals: Vec<Terminal>) -> Self {
        let adaptation = Adaptation::default();
        Self {
            timing: Timing::usual(&carrier),
            carrier,
            harq: Harq::default(),
            adaptation: Directions::both(adaptation),
            scheduler: Scheduler::default(),
            stops_at_queue_end: true,
            sharing: Sharing::Priority,
            uplink_access: UplinkAccess::Requested(SchedulingRequest::default()),
            control_errors: true,
            admission: Admission::default(),
            terminals,
            changes: Vec::new(),
        }
    }

    /// A cell that behaves as the LTE module of ns-3 3.37 with its default attributes, for
    /// validation against it.
    pub fn ns3(mut carrier: Carrier, terminals: Vec<Terminal>) -> Self {
        carrier.whole_groups = true;
        Self {
            carrier,
            timing: Timing::NS3,
            harq: Harq { round: Directions::both(7), ..Harq::default() },
            adaptation: Directions { up: Adaptation::NS3_UP, down: Adaptation::NS3_DOWN },
            scheduler: Scheduler::ProportionalFair,
            stops_at_queue_end: false,
            sharing: Sharing::Equal,
            uplink_access: UplinkAccess::Ideal,
            control_errors: true,
            admission: Admission::default(),
            terminals,
            changes: Vec::new(),
        }
    }
}

/// Processing times, in TTIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// From the decision of the scheduler to the downlink block on the air.
    pub down_prepare: u32,
    /// From the decision of the scheduler until the terminal reads the grant and fills its block.
    pub up_fill: u32,
    /// Symbols of that TTI that pass before the terminal has read the grant. Packets that arrive
    /// meanwhile can still use it.
    pub control_symbols: u8,
    /// From the decision of the scheduler to the uplink block on the air (`K2` of NR, plus the
    /// preparation of the grant).
    pub up_prepare: u32,
    /// From the start of a block on the air until its packets are delivered.
    pub decode: Directions<u32>,
    /// From a terminal's report (buffer status, signal quality) until the scheduler uses it.
    pub report: u32,
}

impl Timing {
    /// Times of the LTE module of ns-3 3.37.
    pub const NS3: Self = Self {
        down_prepare: 2,
        up_fill: 2,
        control_symbols: 3,
        up_prepare: 6,
        decode: Directions { up: 1, down: 1 },
        report: 5,
    };

    /// Usual times of LTE: one TTI to prepare, four from grant to block, three to decode
    /// (3GPP TR 36.912 §B.2).
    pub const LTE: Self = Self {
        down_prepare: 1,
        up_fill: 4,
        control_symbols: 0,
        up_prepare: 5,
        decode: Directions { up: 3, down: 3 },
        report: 5,
    };

    /// Usual times of a carrier's technology.
    pub fn usual(carrier: &Carrier) -> Self {
        match carrier.technology {
            Technology::Lte => Self::LTE,
            // Slots are shorter, but decoding takes fewer of them only with capability 2.
            Technology::Nr { .. } => Self {
                down_prepare: 1,
                up_fill: 1,
                control_symbols: 0,
                up_prepare: 3,
                decode: Directions { up: 2, down: 2 },
                report: 4,
            },
        }
    }
}

/// Hybrid automatic repeat request: retransmission of blocks that were not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Harq {
    /// Number of blocks of a terminal that can be in progress in one direction.
    pub processes: u32,
    /// Number of transmissions of a block, the first one included.
    pub transmissions: u32,
    /// Least time between two transmissions of a block, in TTIs.
    pub round: Directions<u32>,
    /// Whether the receiver combines all transmissions of a block (incremental redundancy).
    /// Otherwise each one is decoded alone.
    pub combining: bool,
}

impl Default for Harq {
    fn default() -> Self {
        Self { processes: 8, transmissions: 4, round: Directions::both(8), combining: true }
    }
}

/// How the modulation and coding scheme of a terminal follows its signal.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Adaptation {
    /// How a signal quality becomes a report.
    pub estimate: Estimate,
    /// Time between two reports; at least one TTI.
    pub period: TimeDelta,
    /// Share of the first transmissions that may fail.
    pub target: f64,
    /// Correction from the outcome of blocks; `None` to believe the reports.
    pub outer_loop: Option<OuterLoop>,
    /// Whether only every second scheme is used, the one that ns-3 takes for each report.
    pub by_report_index: bool,
}

impl Adaptation {
    /// Downlink of ns-3 3.37. Its reports each TTI go out each second TTI.
    pub const NS3_DOWN: Self = Self {
        estimate: Estimate::BlockErrors,
        period: TimeDelta::from_millis(2),
        target: 0.1,
        outer_loop: None,
        by_report_index: true,
    };
    /// Uplink of ns-3 3.37.
    pub const NS3_UP: Self = Self {
        estimate: Estimate::Efficiency,
        period: TimeDelta::from_millis(40),
        ..Self::NS3_DOWN
    };
}

impl Default for Adaptation {
    fn default() -> Self {
        Self {
            estimate: Estimate::BlockErrors,
            period: TimeDelta::from_millis(5),
            target: 0.1,
            outer_loop: Some(OuterLoop::default()),
            by_report_index: false,
        }
    }
}

/// How a signal quality becomes the report of a channel quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimate {
    /// The fastest scheme whose predicted block error rate is within the target.
    BlockErrors,
    /// The scheme whose efficiency is below log2(1 + SINR / 5.53), for bit errors of 5e-5. The
    /// worst resource block of a grant decides.
    Efficiency,
}

/// Outer loop of the link adaptation: it moves the estimated signal quality until the share of
/// failed first transmissions is the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OuterLoop {
    /// Decrease after a failed block, in decibels.
    pub step_db: f64,
    /// Largest correction in both directions, in decibels.
    pub limit_db: f64,
}

impl Default for OuterLoop {
    fn default() -> Self {
        Self { step_db: 0.5, limit_db: 6.0 }
    }
}

/// Who gets the resource blocks of a TTI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheduler {
    /// The terminal whose possible rate is highest beside its average.
    #[default]
    ProportionalFair,
    /// Equal shares, in turn.
    RoundRobin,
    /// The terminal with the highest possible rate.
    MaximumRate,
    /// Guaranteed bitrates first, by priority and by delay within the budget, then proportional
    /// fair.
    QualityOfService,
}

/// How the bearers of a terminal share a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Equal parts for the bearers with data; a part that is not needed is padding. ns-3 does this.
    Equal,
    /// By priority: each bearer first up to its prioritised bitrate, then all that is left
    /// (3GPP TS 36.321 §5.4.3.1).
    Priority,
}

/// How a terminal obtains uplink resource blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UplinkAccess {
    /// Each new packet is reported at the next TTI, without error and at no cost. The report
    /// overwrites what the scheduler knew, so bytes already granted are granted again. ns-3 does
    /// this.
    Ideal,
    /// Scheduling request, then a small grant, then buffer reports within the blocks.
    Requested(SchedulingRequest),
    /// A grant in each period without a request (configured grant of NR, semi-persistent
    /// scheduling of LTE); buffer reports within the blocks bring the rest.
    Configured {
        /// Time between two grants.
        period: TimeDelta,
        /// Size of a grant.
        size: DataSize,
    },
}

/// Scheduling requests of terminals without a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulingRequest {
    /// Time between two occasions of a terminal.
    pub period: TimeDelta,
    /// Bytes granted for a request. They carry the buffer report, and data if there is room.
    pub grant: DataSize,
}

impl Default for SchedulingRequest {
    fn default() -> Self {
        Self { period: TimeDelta::from_millis(10), grant: DataSize::from_bytes(80) }
    }
}

/// Rules for new bearers with a guaranteed bitrate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Admission {
    /// Share of the cell's resource blocks that guarantees may take together.
    pub share: f64,
}

impl Default for Admission {
    fn default() -> Self {
        Self { share: 0.8 }
    }
}

/// A terminal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Terminal {
    /// Name of the terminal. Its random streams are derived from it.
    pub name: String,
    /// Its bearers. The first one is the default bearer, which takes what no filter selects.
    pub bearers: Vec<BearerConfig>,
    /// Its signal in each direction.
    pub signal: Directions<Signal>,
    /// `AMBR`: limit of all its bearers without a guarantee together; `None` for no limit.
    pub ambr: Directions<Option<Bitrate>>,
    /// Traffic generated within the cell.
    pub loads: Vec<Load>,
    /// Discontinuous reception; `None` if the terminal always listens.
    pub drx: Option<Drx>,
    /// Interruptions by handovers, ordered by time.
    pub handovers: Vec<Handover>,
}

impl Terminal {
    /// A terminal with one default bearer and a constant signal.
    pub fn new(name: impl Into<String>, signal: Directions<Signal>) -> Self {
        Self {
            name: name.into(),
            bearers: vec![BearerConfig::default()],
            signal,
            ambr: Directions::both(None),
            loads: Vec::new(),
            drx: None,
            handovers: Vec::new(),
        }
    }
}

/// Signal-to-interference-and-noise ratio (SINR) of a terminal in one direction: power over the
/// whole carrier, noise and interference over the whole carrier.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Signal {
    /// Its mean over time.
    pub mean: SignalChange,
    /// Multipath fading about the mean; `None` for none.
    pub fading: Option<Fading>,
}

impl Signal {
    /// A constant signal without fading.
    pub const fn constant(sinr_db: f64) -> Self {
        Self { mean: SignalChange::Constant(sinr_db), fading: None }
    }

    /// The signal with this mean and this fading.
    pub const fn new(mean: SignalChange, fading: Option<Fading>) -> Self {
        Self { mean, fading }
    }
}

/// Mean signal over time.
#[derive(Clone, Debug, PartialEq)]
pub enum SignalChange {
    /// Always this SINR, in decibels.
    Constant(f64),
    /// A value in decibels from each time on. The first value also holds before its time.
    Trace {
        /// Times and values, ordered by time; at least one.
        values: Vec<(Timestamp, f64)>,
        /// Time after which the trace starts again; `None` to hold the last value.
        period: Option<TimeDelta>,
    },
    /// From the distance to the base station.
    Moving(MovingTerminal),
}

/// A terminal at a distance that may change, with shadowing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MovingTerminal {
    /// Distance at the start, in metres.
    pub distance_m: f64,
    /// Change of the distance, in metres a second. It turns round at `range_m`.
    pub speed_mps: f64,
    /// Smallest and largest distance, in metres.
    pub range_m: (f64, f64),
    /// SINR at one kilometre without shadowing, in decibels.
    pub sinr_at_1_km_db: f64,
    /// Decrease per factor of ten in distance, in decibels.
    pub slope_db: f64,
    /// Standard deviation of the shadowing, in decibels.
    pub shadowing_db: f64,
    /// Distance over which the shadowing changes, in metres.
    pub correlation_m: f64,
}

/// Traffic generated within the cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Its direction.
    pub direction: Direction,
    /// Number of its bearer among those of the configuration.
    pub bearer: usize,
    /// When its packets arrive.
    pub arrivals: Arrivals,
    /// Size of its IP packets.
    pub size: DataSize,
    /// No packet arrives before this time.
    pub start: Timestamp,
    /// No packet arrives at this time or later.
    pub stop: Timestamp,
}

impl Load {
    /// A load that lasts the whole run.
    pub const fn new(
        direction: Direction,
        bearer: usize,
        arrivals: Arrivals,
        size: DataSize,
    ) -> Self {
        Self { direction, bearer, arrivals, size, start: Timestamp::ZERO, stop: Timestamp::MAX }
    }
}

/// Discontinuous reception (DRX): an idle terminal listens only now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drx {
    /// How long the terminal listens after its last packet.
    pub inactivity: TimeDelta,
    /// Time from one listening period to the next.
    pub cycle: TimeDelta,
    /// Length of a listening period.
    pub on: TimeDelta,
}

impl Default for Drx {
    fn default() -> Self {
        Self {
            inactivity: TimeDelta::from_millis(100),
            cycle: TimeDelta::from_millis(160),
            on: TimeDelta::from_millis(10),
        }
    }
}

/// A handover: for a while the terminal cannot send or receive. Packets wait and follow in a burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handover {
    /// When the terminal leaves.
    pub at: Timestamp,
    /// How long the interruption lasts.
    pub gap: TimeDelta,
    /// Change of the mean SINR from then on, in decibels.
    pub change_db: f64,
}
