//! Queue disciplines: the order in which packets leave, and which packets are dropped or marked.
//!
//! Each file follows the pseudo-code of its standard. All disciplines obey the link's limit. Most
//! of them drop or mark packets before it is reached, so that senders slow down in time.

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

/// Active queue management (AQM): which packets a queue drops or marks before it is full.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Aqm {
    /// No management: a new packet that does not fit is dropped.
    #[default]
    DropTail,
    /// CoDel (controlled delay), RFC 8289.
    CoDel(CoDelConfig),
    /// FQ-CoDel: one CoDel queue per flow, RFC 8290.
    FqCoDel(CoDelConfig),
    /// PIE (proportional integral controller, enhanced), RFC 8033.
    Pie(PieConfig),
    /// RED (random early detection), Floyd and Jacobson 1993.
    Red(RedConfig),
    /// DualPI2: two queues with coupled controllers, for L4S, RFC 9332.
    DualPi2(DualPi2Config),
}

/// How much may wait in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Number of bytes.
    Bytes(DataSize),
    /// Number of packets of any size.
    Packets(usize),
    /// Number of bytes that the capacity's nominal rate carries in this time; see
    /// [`Capacity::nominal_rate`].
    Time(TimeDelta),
}

/// The link's capacity and queue limit, which decide whether a new packet fits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room<'a> {
    pub(crate) capacity: &'a Capacity,
    pub(crate) limit: QueueLimit,
}

impl Room<'_> {
    /// Whether a queue with these totals is within the limit.
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

/// A queue discipline.
pub(crate) trait Discipline<T>: Debug {
    /// Enqueues a packet. This packet or others may be dropped.
    fn enqueue(&mut self, now: Timestamp, room: Room<'_>, packet: Waiting<T>, log: &mut Log<T>);

    /// Returns the next packet to send; `None` only if the queue is empty.
    fn dequeue(&mut self, now: Timestamp, log: &mut Log<T>) -> Option<Waiting<T>>;

    /// Bytes in the queue.
    fn bytes(&self) -> DataSize;

    /// Age of the oldest packet in the queue; zero if it is empty.
    fn head_delay(&self, now: Timestamp) -> TimeDelta;
}

/// Drops and marks of a queue. Dropped packets stay here until the driver polls them.
#[derive(Clone, Debug)]
pub(crate) struct Log<T> {
    pub(crate) dropped: VecDeque<Dropped<T>>,
    /// Packets dropped because the queue was full.
    pub(crate) full: u64,
    /// Packets dropped by the queue management.
    pub(crate) managed: u64,
    /// Packets marked by the queue management.
    pub(crate) marked: u64,
}

impl<T> Log<T> {
    pub(crate) fn new() -> Self {
        Self { dropped: VecDeque::new(), full: 0, managed: 0, marked: 0 }
    }

    /// Drops a packet because the queue is full.
    pub(crate) fn drop_full(&mut self, now: Timestamp, packet: Waiting<T>) {
        self.full += 1;
        self.drop(now, DropCause::QueueFull, packet);
    }

    /// Drops a packet by decision of the queue management.
    pub(crate) fn drop_managed(&mut self, now: Timestamp, packet: Waiting<T>) {
        self.managed += 1;
        self.drop(now, DropCause::Managed, packet);
    }

    /// Queues a dropped packet for the driver.
    pub(crate) fn drop(&mut self, at: Timestamp, cause: DropCause, packet: Waiting<T>) {
        let Waiting { header, payload, .. } = packet;
        self.dropped.push_back(Dropped { at, cause, size: header.size, payload });
    }

    /// Marks a packet with Congestion Experienced [RFC3168 §5].
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
    /// A separate variant without a box, for speed: most links use it.
    DropTail(DropTail<T>),
    Managed(Box<dyn Discipline<T> + Send>),
}

impl<T: Debug + Send + 'static> Queue<T> {
    /// An empty queue. Its random decisions use `stream`.
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

    fn head_delay(&self, now: Timestamp) -> TimeDelta {
        match self {
            Self::DropTail(queue) => queue.head_delay(now),
            Self::Managed(queue) => queue.head_delay(now),
        }
    }
}

#[cfg(test)]
mod testing;
