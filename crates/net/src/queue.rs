//! Queue disciplines: what waits in which order, and what is dropped or marked.
//!
//! Each is a file that reads as its standard's pseudo-code. All of them obey the link's limit; most
//! of them drop or mark before it is reached, so that senders slow down in time.

mod codel;
mod drop_tail;
mod fifo;

pub use codel::CoDelConfig;
pub(crate) use drop_tail::DropTail;

use std::collections::VecDeque;

use weir::feedback::Ecn;
use weir::units::{DataSize, Timestamp};

use crate::bottleneck::QueueLimit;
use crate::capacity::Capacity;
use crate::packet::{DropCause, Dropped, Waiting};
use codel::CoDel;

/// Active queue management: which packets a queue drops or marks before it is full.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Aqm {
    /// None: a newcomer that does not fit is dropped.
    #[default]
    DropTail,
    /// Controlled delay [RFC8289].
    CoDel(CoDelConfig),
}

/// What the link offers a newcomer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room<'a> {
    pub(crate) capacity: &'a Capacity,
    pub(crate) limit: QueueLimit,
}

impl Room<'_> {
    /// Whether so much may wait.
    pub(crate) fn holds(self, now: Timestamp, bytes: DataSize, packets: usize) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => packets <= limit,
            QueueLimit::Bytes(limit) => bytes <= limit,
            QueueLimit::Time(limit) => {
                self.capacity.rate(now).is_none_or(|rate| bytes <= rate * limit)
            }
        }
    }
}

/// What a discipline does.
pub(crate) trait Discipline<T> {
    /// A packet comes; it, or others, may be dropped.
    fn enqueue(&mut self, now: Timestamp, room: Room<'_>, packet: Waiting<T>, log: &mut Log<T>);

    /// The next packet to be sent; `None` only if nothing waits.
    fn dequeue(&mut self, now: Timestamp, log: &mut Log<T>) -> Option<Waiting<T>>;

    /// Bytes that wait.
    fn bytes(&self) -> DataSize;
}

/// What happened to packets in a queue, until the driver hears of it.
#[derive(Clone, Debug)]
pub(crate) struct Log<T> {
    pub(crate) dropped: VecDeque<Dropped<T>>,
    /// Packets dropped because the queue was full.
    pub(crate) full: u64,
    /// Packets dropped by the management.
    pub(crate) managed: u64,
    /// Packets that were marked.
    pub(crate) marked: u64,
}

impl<T> Log<T> {
    pub(crate) fn new() -> Self {
        Self { dropped: VecDeque::new(), full: 0, managed: 0, marked: 0 }
    }

    /// A packet that found no room.
    pub(crate) fn drop_full(&mut self, now: Timestamp, packet: Waiting<T>) {
        self.full += 1;
        self.drop(now, DropCause::QueueFull, packet);
    }

    /// A packet that the management takes out.
    pub(crate) fn drop_managed(&mut self, now: Timestamp, packet: Waiting<T>) {
        self.managed += 1;
        self.drop(now, DropCause::Managed, packet);
    }

    /// Hands a packet back to the driver.
    pub(crate) fn drop(&mut self, at: Timestamp, cause: DropCause, packet: Waiting<T>) {
        let Waiting { header, payload, .. } = packet;
        self.dropped.push_back(Dropped { at, cause, size: header.size, payload });
    }

    /// Sets Congestion Experienced [RFC3168 §5].
    pub(crate) fn mark(&mut self, packet: &mut Waiting<T>) {
        debug_assert!(packet.header.is_ecn_capable(), "a mark would be lost on this packet");
        if packet.header.ecn != Ecn::Ce {
            packet.header.ecn = Ecn::Ce;
            self.marked += 1;
        }
    }
}

/// The discipline of a link.
#[derive(Clone, Debug)]
pub(crate) enum Queue<T> {
    DropTail(DropTail<T>),
    CoDel(CoDel<T>),
}

impl<T> Queue<T> {
    pub(crate) fn new(aqm: Aqm) -> Self {
        match aqm {
            Aqm::DropTail => Self::DropTail(DropTail::new()),
            Aqm::CoDel(config) => Self::CoDel(CoDel::new(config)),
        }
    }
}

impl<T> Discipline<T> for Queue<T> {
    fn enqueue(&mut self, now: Timestamp, room: Room<'_>, packet: Waiting<T>, log: &mut Log<T>) {
        match self {
            Self::DropTail(queue) => queue.enqueue(now, room, packet, log),
            Self::CoDel(queue) => queue.enqueue(now, room, packet, log),
        }
    }

    fn dequeue(&mut self, now: Timestamp, log: &mut Log<T>) -> Option<Waiting<T>> {
        match self {
            Self::DropTail(queue) => queue.dequeue(now, log),
            Self::CoDel(queue) => queue.dequeue(now, log),
        }
    }

    fn bytes(&self) -> DataSize {
        match self {
            Self::DropTail(queue) => queue.bytes(),
            Self::CoDel(queue) => queue.bytes(),
        }
    }
}

#[cfg(test)]
mod testing;
