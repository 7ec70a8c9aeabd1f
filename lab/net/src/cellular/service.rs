//! Configuration of bearers: quality of service, packet filters, queues, and changes during a run.

use std::fmt::{self, Display};
use std::net::Ipv4Addr;

use weir::units::{Bitrate, DataSize, TimeDelta};

use super::directions::Directions;
use crate::packet::FlowKey;
use crate::path::Direction;
use crate::queue::{Aqm, QueueLimit};

/// Names a bearer within its terminal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BearerRef {
    /// Number of the terminal in the configuration.
    pub terminal: usize,
    /// Name of the bearer.
    pub bearer: String,
}

/// A bearer of a terminal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BearerConfig {
    /// Its name, unique within the terminal.
    pub name: String,
    /// Class of its quality of service.
    pub qci: Qci,
    /// `GBR`: its guaranteed bitrate; `None` for a bearer without a guarantee.
    pub guarantee: Option<Guarantee>,
    /// `ARP`: who gets a bearer when not all fit.
    pub priority: Priority,
    /// Packets that use it. A later bearer of a terminal is asked first.
    pub filters: Vec<PacketFilter>,
    /// Retransmission and reordering.
    pub rlc: RlcMode,
    /// Its queues.
    pub queue: Directions<BearerQueue>,
}

impl Default for BearerConfig {
    /// The default bearer for internet traffic: QCI 9, acknowledged mode, FIFO queues of 4 MB down
    /// and 2.5 MB up.
    fn default() -> Self {
        let [up, down] = [2_500_000, 4_000_000].map(|bytes| BearerQueue {
            limit: QueueLimit::Bytes(DataSize::from_bytes(bytes)),
            aqm: Aqm::DropTail,
        });
        Self {
            name: "default".into(),
            qci: Qci::DEFAULT,
            guarantee: None,
            priority: Priority::default(),
            filters: Vec::new(),
            rlc: RlcMode::AM,
            queue: Directions { up, down },
        }
    }
}

/// Class of a bearer's quality of service (QCI of LTE, 5QI of NR; 3GPP TS 23.203 §6.1.7).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Qci {
    /// Number of the class.
    pub number: u8,
    /// Priority; a smaller number is more urgent.
    pub priority: f64,
    /// Longest delay between the terminal and the gateway.
    pub budget: TimeDelta,
    /// Whether bearers of the class have a guaranteed bitrate.
    pub guaranteed: bool,
}

impl Qci {
    /// Class 9, of the default bearer.
    pub const DEFAULT: Self = Self::TABLE[8];

    /// The classes 1 to 9.
    const TABLE: [Self; 9] = [
        Self::row(1, 2.0, 100, true),
        Self::row(2, 4.0, 150, true),
        Self::row(3, 3.0, 50, true),
        Self::row(4, 5.0, 300, true),
        Self::row(5, 1.0, 100, false),
        Self::row(6, 6.0, 300, false),
        Self::row(7, 7.0, 100, false),
        Self::row(8, 8.0, 300, false),
        Self::row(9, 9.0, 300, false),
    ];

    const fn row(number: u8, priority: f64, budget_ms: i64, guaranteed: bool) -> Self {
        Self { number, priority, budget: TimeDelta::from_millis(budget_ms), guaranteed }
    }

    /// The class with this number; `None` if the table has none.
    pub fn new(number: u8) -> Option<Self> {
        Self::TABLE.into_iter().find(|class| class.number == number)
    }

    /// All classes of the table.
    pub fn all() -> &'static [Self] {
        &Self::TABLE
    }
}

/// Bitrates of a bearer with a guarantee, in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// `GBR`: the rate that the scheduler serves before others.
    pub rate: Directions<Bitrate>,
    /// `MBR`: the rate above which packets wait.
    pub limit: Directions<Bitrate>,
}

/// `ARP`: allocation and retention priority of a bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 1 is the most important level, 15 the least.
    pub level: u8,
    /// Whether it may take the place of a bearer with a higher level number.
    pub may_preempt: bool,
    /// Whether another bearer may take its place.
    pub preemptable: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { level: 8, may_preempt: false, preemptable: true }
    }
}

/// Selects packets for a bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFilter {
    /// Packets of one flow, in both directions.
    Flow {
        /// The flow from the terminal.
        up: FlowKey,
        /// The flow to the terminal.
        down: FlowKey,
    },
    /// Real packets by the components of a traffic flow template, in both directions
    /// (3GPP TS 24.008 §10.5.6.12). Simulated flows have none of them.
    Packets {
        /// Number of the protocol: 6 for TCP, 17 for UDP.
        protocol: u8,
        /// Ports at the terminal.
        ports: PortRange,
        /// Address at the other end.
        remote: Subnet,
        /// Ports at the other end.
        remote_ports: PortRange,
    },
}

/// A range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl PortRange {
    /// All ports.
    pub const ANY: Self = Self { first: 0, last: u16::MAX };

    fn contains(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// One of its addresses.
    pub address: Ipv4Addr,
    /// Number of bits that all its addresses have in common, at most 32.
    pub prefix: u8,
}

impl Subnet {
    /// All addresses.
    pub const ANY: Self = Self { address: Ipv4Addr::UNSPECIFIED, prefix: 0 };

    fn contains(&self, address: Ipv4Addr) -> bool {
        let differing = address.to_bits() ^ self.address.to_bits();
        // A shift by all 32 bits leaves nothing: every address is in a subnet without a prefix.
        let own = 32_u32.saturating_sub(self.prefix.into());
        differing.checked_shr(own).unwrap_or(0) == 0
    }
}

impl PacketFilter {
    /// Whether the filter selects a packet of this flow. `addresses` are the source and destination
    /// for each number that stands for them in a [`FlowKey`].
    pub fn selects(
        &self,
        direction: Direction,
        flow: FlowKey,
        addresses: &[(Ipv4Addr, Ipv4Addr)],
    ) -> bool {
        match self {
            Self::Flow { up, down } => flow == if direction == Direction::Up { *up } else { *down },
            Self::Packets { protocol, ports, remote, remote_ports } => {
                let (source, destination) = flow.ports();
                let (own, far) = if direction == Direction::Up {
                    (source, destination)
                } else {
                    (destination, source)
                };
                if flow.protocol() != *protocol
                    || !ports.contains(own)
                    || !remote_ports.contains(far)
                {
                    return false;
                }
                let far = addresses
                    .get(flow.pair())
                    .map(|(from, to)| if direction == Direction::Up { *to } else { *from });
                *remote == Subnet::ANY || far.is_some_and(|far| remote.contains(far))
            }
        }
    }
}

/// Queue of a bearer in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BearerQueue {
    /// How much may wait, in bytes or packets. A limit in time has no effect, because a cell has
    /// no fixed capacity.
    pub limit: QueueLimit,
    /// Its discipline.
    pub aqm: Aqm,
}

/// Mode of the radio link control (RLC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RlcMode {
    /// Unacknowledged mode: what HARQ does not deliver is lost.
    Unacknowledged {
        /// `t-Reordering`: how long a gap holds back what follows.
        reordering: TimeDelta,
    },
    /// Acknowledged mode: what HARQ does not deliver is sent again.
    Acknowledged {
        /// `t-Reordering`: how long the receiver waits before it reports a gap.
        reordering: TimeDelta,
        /// `t-StatusProhibit`: least time between two reports.
        status_prohibit: TimeDelta,
        /// `t-PollRetransmit`: after this silence the sender repeats what no report covers.
        poll_retransmit: TimeDelta,
    },
}

impl RlcMode {
    /// Unacknowledged mode with the reordering timer of ns-3.
    pub const UM: Self = Self::Unacknowledged { reordering: TimeDelta::from_millis(100) };
    /// Acknowledged mode with usual timers.
    pub const AM: Self = Self::Acknowledged {
        reordering: TimeDelta::from_millis(35),
        status_prohibit: TimeDelta::from_millis(10),
        poll_retransmit: TimeDelta::from_millis(45),
    };
    /// Acknowledged mode with the timers of ns-3.
    pub const AM_NS3: Self = Self::Acknowledged {
        reordering: TimeDelta::from_millis(10),
        status_prohibit: TimeDelta::from_millis(10),
        poll_retransmit: TimeDelta::from_millis(20),
    };
}

/// A change of a terminal's bearers during a run.
#[derive(Clone, Debug, PartialEq)]
pub enum BearerChange {
    /// Adds a bearer, if its guarantee fits.
    Add {
        /// Number of the terminal in the configuration.
        terminal: usize,
        /// The bearer.
        bearer: BearerConfig,
    },
    /// Gives a bearer another guarantee, or none, if it fits.
    Guarantee {
        /// The bearer.
        bearer: BearerRef,
        /// The new guarantee.
        guarantee: Option<Guarantee>,
    },
    /// Removes a bearer. Its packets are dropped, and later ones use another bearer.
    Remove(BearerRef),
}

impl BearerChange {
    /// Number of the terminal in the configuration.
    pub fn terminal(&self) -> usize {
        match self {
            Self::Add { terminal, .. } => *terminal,
            Self::Guarantee { bearer, .. } | Self::Remove(bearer) => bearer.terminal,
        }
    }

    /// Name of the bearer.
    pub fn bearer(&self) -> &str {
        match self {
            Self::Add { bearer, .. } => &bearer.name,
            Self::Guarantee { bearer, .. } | Self::Remove(bearer) => &bearer.bearer,
        }
    }
}

impl Display for BearerChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, node) = (self.bearer(), self.terminal() + 1);
        match self {
            Self::Add { .. } => write!(f, "bearer {name} of terminal {node} added"),
            Self::Guarantee { guarantee: Some(guarantee), .. } => write!(
                f,
                "bearer {name} of terminal {node} guaranteed {} kbit/s up, {} kbit/s down",
                guarantee.rate.up.as_kbps_f64(),
                guarantee.rate.down.as_kbps_f64()
            ),
            Self::Guarantee { guarantee: None, .. } => {
                write!(f, "bearer {name} of terminal {node} without a guarantee")
            }
            Self::Remove(_) => write!(f, "bearer {name} of terminal {node} removed"),
        }
    }
}
