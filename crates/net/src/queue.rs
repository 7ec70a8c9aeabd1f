//! Queue disciplines: what waits in which order, and what is dropped or marked.
//!
//! Each is a file that reads as its standard's pseudo-code. All of them obey the link's limit; most
//! of them drop or mark before it is reached, so that senders slow down in time.

mod codel;
mod drop_tail;
mod dualpi2;
mod fifo;
mod fq_codel;
mod pie;
mod red;
mod ticks;

pub use codel::CoDelConfig;
pub use dualpi2::DualPi2Config;
pub use pie::PieConfig;
pub use red::RedConfig;

use std::collections::VecDeque;
use std::fmt::Debug;

use weir::feedback::Ecn;
use weir::units::{DataSize, TimeDelta, Timestamp};

use crate::capacity::Capacity;
use crate::packet::{DropCause, Dropped, Waiting};
use crate::seed::Stream;
use codel::CoDel;
use drop_tail::DropTail;
use dualpi2::DualPi2;
use fq_codel::FqCoDel;
use pie::Pie;
use red::Red;

/// Active queue management: which packets a queue drops or marks before it is full.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Aqm {
    /// None: a newcomer that does not fit is dropped.
    #[default]
    DropTail,
    /// Controlled delay, RFC 8289.
    CoDel(CoDelConfig),
    /// A queue under controlled delay for each flow, RFC 8290.
    FqCoDel(CoDelConfig),
    /// Proportional integral controller, enhanced, RFC 8033.
    Pie(PieConfig),
    /// Random early detection, Floyd and Jacobson 1993.
    Red(RedConfig),
    /// Two queues under coupled controllers, for L4S, RFC 9332.
    DualPi2(DualPi2Config),
}

/// How much may wait in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Bytes.
    Bytes(DataSize),
    /// Packets of any size.
    Packets(usize),
    /// As many bytes as the capacity's nominal rate carries in this time: see
    /// [`Capacity::nominal_rate`].
    Time(TimeDelta),
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
                self.capacity.nominal_rate(now).is_none_or(|rate| bytes <= rate * limit)
            }
        }
    }
}

/// What a discipline does.
pub(crate) trait Discipline<T>: Debug {
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
#[derive(Debug)]
pub(crate) enum Queue<T> {
    /// By itself, because most links have it: its packets take no detour.
    DropTail(DropTail<T>),
    Managed(Box<dyn Discipline<T> + Send>),
}

impl<T: Debug + Send + 'static> Queue<T> {
    /// An empty queue; what it leaves to chance comes from the stream.
    pub(crate) fn new(aqm: Aqm, mut stream: Stream) -> Self {
        match aqm {
            Aqm::DropTail => Self::DropTail(DropTail::new()),
            Aqm::CoDel(config) => Self::Managed(Box::new(CoDel::new(config))),
            Aqm::FqCoDel(config) => Self::Managed(Box::new(FqCoDel::new(config, stream.bits()))),
            Aqm::Pie(config) => Self::Managed(Box::new(Pie::new(config, stream))),
            Aqm::Red(config) => Self::Managed(Box::new(Red::new(config, stream))),
            Aqm::DualPi2(config) => Self::Managed(Box::new(DualPi2::new(config))),
        }
    }
}

impl<T: Debug> Discipline<T> for Queue<T> {
    fn enqueue(&mut self, now: Timestamp, room: Room<'_>, packet: Waiting<T>, log: &mut Log<T>) {
        match self {
            Self::DropTail(queue) => queue.enqueue(now, room, packet, log),
            Self::Managed(queue) => queue.enqueue(now, room, packet, log),
        }
    }

    fn dequeue(&mut self, now: Timestamp, log: &mut Log<T>) -> Option<Waiting<T>> {
        match self {
            Self::DropTail(queue) => queue.dequeue(now, log),
            Self::Managed(queue) => queue.dequeue(now, log),
        }
    }

    fn bytes(&self) -> DataSize {
        match self {
            Self::DropTail(queue) => queue.bytes(),
            Self::Managed(queue) => queue.bytes(),
        }
    }
}

#[cfg(test)]
mod testing;
