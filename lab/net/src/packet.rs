//! A packet as a link sees it, and the report of its outcome.

use weir::feedback::Ecn;
use weir::units::{DataSize, TimeDelta, Timestamp};

/// Identifies the flow of a packet, as addresses and ports do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowKey(pub u64);

impl FlowKey {
    /// The flow of a real packet. `pair` is a number below 2^24 that stands for the addresses; a
    /// packet without ports has zeroes.
    pub const fn of_packet(pair: u64, protocol: u8, source: u16, destination: u16) -> Self {
        let ports = (source as u64) << 16 | destination as u64;
        Self(pair << 40 | (protocol as u64) << 32 | ports)
    }

    /// The number of a real packet's addresses.
    pub(crate) const fn pair(self) -> usize {
        (self.0 >> 40) as usize
    }

    /// Protocol number of a real packet. Simulated flows have none.
    pub(crate) const fn protocol(self) -> u8 {
        (self.0 >> 32) as u8
    }

    /// Source and destination port of a real packet.
    pub(crate) const fn ports(self) -> (u16, u16) {
        ((self.0 >> 16) as u16, self.0 as u16)
    }
}

/// The properties of a packet that a link depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Size of the whole IP packet.
    pub size: DataSize,
    /// ECN bits [RFC3168 §5].
    ///
    /// [RFC3168 §5]: https://www.rfc-editor.org/rfc/rfc3168#section-5
    pub ecn: Ecn,
    /// The flow of the packet.
    pub flow: FlowKey,
    /// Small number under which a link counts what it carries. A router counts by route.
    pub account: usize,
}

impl Header {
    /// A packet of this size that is not ECN-capable and belongs to flow 0.
    pub const fn new(size: DataSize) -> Self {
        Self { size, ecn: Ecn::NotEct, flow: FlowKey(0), account: 0 }
    }

    weir::with! {
        with_ecn: ecn: Ecn,
        with_flow: flow: FlowKey,
        with_account: account: usize,
    }

    /// Whether a queue may mark the packet instead of dropping it [RFC3168 §5].
    pub(crate) fn is_ecn_capable(&self) -> bool {
        self.ecn != Ecn::NotEct
    }
}

/// The outcome of a packet on a link: delivered or dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It has arrived at the far end.
    Delivered(Delivery<T>),
    /// It was dropped on the way.
    Dropped(Dropped<T>),
}

/// A packet that has arrived at the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery<T> {
    /// Exact time of arrival.
    pub due: Timestamp,
    /// How long it waited in the queue, excluding its own transmission time.
    pub queuing_delay: TimeDelta,
    /// Its size.
    pub size: DataSize,
    /// ECN bits on arrival, with any mark that the link has set.
    pub ecn: Ecn,
    /// The packet.
    pub payload: T,
}

/// A packet that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped<T> {
    /// When it was dropped.
    pub at: Timestamp,
    /// Why it was dropped.
    pub cause: DropCause,
    /// Its size.
    pub size: DataSize,
    /// The packet.
    pub payload: T,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The loss model dropped it.
    RandomLoss,
    /// The queue was full.
    QueueFull,
    /// It exceeded the rate of a policer.
    Policed,
    /// The queue management dropped it, to signal congestion to its sender.
    Managed,
    /// A radio sent it the maximum number of times without an answer.
    RetryLimit,
}

/// A packet in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) since: Timestamp,
    pub(crate) header: Header,
    pub(crate) payload: T,
}

impl<T> Waiting<T> {
    pub(crate) fn size(&self) -> DataSize {
        self.header.size
    }
}
