//! Helpers for the tests of queue disciplines.

use weir::feedback::Ecn;
use weir::units::{Bitrate, DataSize, Timestamp};

use super::{Discipline, Log, Room};
use crate::capacity::{Capacity, Schedule};
use crate::packet::{FlowKey, Header, Waiting};
use crate::queue::QueueLimit;

pub(super) fn ms(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A packet of 1500 bytes of flow 0.
pub(super) fn packet(since: Timestamp, ecn: Ecn, payload: u32) -> Waiting<u32> {
    let header = Header { ecn, ..Header::new(DataSize::from_bytes(1_500)) };
    Waiting { since, header, payload }
}

/// The same packet, in another flow.
pub(super) fn of_flow(flow: u64, mut packet: Waiting<u32>) -> Waiting<u32> {
    packet.header.flow = FlowKey(flow);
    packet
}

/// A queue with its log, on a link that sends 1500 bytes in 10 ms.
#[derive(Clone, Debug)]
pub(super) struct Bench<Q> {
    pub(super) queue: Q,
    pub(super) log: Log<u32>,
    capacity: Capacity,
    limit: QueueLimit,
}

impl<Q: Discipline<u32>> Bench<Q> {
    pub(super) fn new(queue: Q) -> Self {
        let schedule = Schedule::constant(Bitrate::from_kbps(1_200)).unwrap();
        Self {
            queue,
            log: Log::new(),
            capacity: Capacity::Schedule(schedule),
            limit: QueueLimit::Packets(usize::MAX),
        }
    }

    pub(super) fn with_limit(self, limit: QueueLimit) -> Self {
        Self { limit, ..self }
    }

    pub(super) fn enqueue(&mut self, now: Timestamp, packet: Waiting<u32>) {
        let room = Room { capacity: &self.capacity, limit: self.limit };
        self.queue.enqueue(now, room, packet, &mut self.log);
    }

    /// Enqueues `count` packets of flow 0 at once, numbered from 0.
    pub(super) fn fill(&mut self, now: Timestamp, ecn: Ecn, count: u32) {
        for n in 0..count {
            self.enqueue(now, packet(now, ecn, n));
        }
    }

    pub(super) fn dequeue(&mut self, now: Timestamp) -> Option<Waiting<u32>> {
        self.queue.dequeue(now, &mut self.log)
    }

    /// The numbers of the packets dropped so far.
    pub(super) fn dropped(&self) -> Vec<u32> {
        self.log.dropped.iter().map(|dropped| dropped.payload).collect()
    }

    /// Number of packets dropped or marked by the queue management.
    pub(super) fn signals(&self) -> u64 {
        self.log.managed + self.log.marked
    }
}
