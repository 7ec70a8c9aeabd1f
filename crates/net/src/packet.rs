//! What a link sees of a packet, and what it tells of it afterwards.

use weir::feedback::Ecn;
use weir::units::{DataSize, TimeDelta, Timestamp};

/// Tells the packets of one flow from those of another, as addresses and ports do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowKey(pub u64);

/// What a link sees of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size of the whole IP packet.
    pub size: DataSize,
    /// ECN bits [RFC3168 §5].
    ///
    /// [RFC3168 §5]: https://www.rfc-editor.org/rfc/rfc3168#section-5
    pub ecn: Ecn,
    /// The flow that it belongs to.
    pub flow: FlowKey,
}

impl Header {
    /// A packet of this size that is not ECN-capable, of the flow with key 0.
    pub const fn new(size: DataSize) -> Self {
        Self { size, ecn: Ecn::NotEct, flow: FlowKey(0) }
    }

    /// Whether a queue may mark the packet instead of dropping it [RFC3168 §5].
    pub(crate) fn is_ecn_capable(&self) -> bool {
        self.ecn != Ecn::NotEct
    }
}

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<T> {
    /// It is at the far end.
    Delivered(Delivery<T>),
    /// It is gone.
    Dropped(Dropped<T>),
}

/// A packet at the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery<T> {
    /// When it arrives, exactly.
    pub due: Timestamp,
    /// How long it waited in the queue, its own serialisation not counted.
    pub queuing_delay: TimeDelta,
    /// Its size.
    pub size: DataSize,
    /// ECN bits on arrival.
    pub ecn: Ecn,
    /// The packet.
    pub payload: T,
}

/// A packet that does not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped<T> {
    /// When it was dropped.
    pub at: Timestamp,
    /// Why.
    pub cause: DropCause,
    /// Its size.
    pub size: DataSize,
    /// The packet.
    pub payload: T,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The loss model took it.
    RandomLoss,
    /// The queue was full.
    QueueFull,
    /// The queue's management took it, to tell its sender of congestion.
    Managed,
    /// A radio sent it as often as it may, and never had an answer.
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
