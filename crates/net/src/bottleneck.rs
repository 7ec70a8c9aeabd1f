//! One direction of a bottleneck link.
//!
//! ```text
//! enqueue -> loss -> duplication -> drop-tail queue -> capacity -> delay + jitter -> poll
//! ```
//!
//! A packet is lost before it enters the queue, as netem does it, so random loss takes no capacity.
//! The packet that is being sent has left the queue: a limit counts the packets that wait.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use crate::capacity::{Capacity, TraceCursor};
use crate::delay::Delay;
use crate::jitter::{Jitter, Order};
use crate::loss::{Loss, LossModel};
use crate::seed::{Seed, Stream};

/// How much may wait in a drop-tail queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Bytes.
    Bytes(DataSize),
    /// Packets of any size.
    Packets(usize),
    /// As many bytes as the capacity of the moment carries in this time.
    Time(TimeDelta),
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// What it carries.
    pub capacity: Capacity,
    /// What may wait for it.
    pub queue: QueueLimit,
    /// Propagation delay.
    pub delay: Delay,
    /// Variation of the propagation delay.
    pub jitter: Jitter,
    /// Loss that is not congestion.
    pub loss: LossModel,
    /// Probability that a packet enters twice.
    pub duplicate: f64,
}

impl LinkConfig {
    /// A link without limit, loss or jitter.
    pub fn unlimited(delay: impl Into<Delay>) -> Self {
        Self {
            capacity: Capacity::Unlimited,
            queue: QueueLimit::Packets(usize::MAX),
            delay: delay.into(),
            jitter: Jitter::None,
            loss: LossModel::None,
            duplicate: 0.0,
        }
    }
}

/// Why a packet did not get into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The loss model took it.
    RandomLoss,
    /// The queue was full.
    QueueFull,
}

/// A packet at the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<T> {
    /// When it arrives, exactly.
    pub due: Timestamp,
    /// How long it waited in the queue, its own serialisation not counted.
    pub queuing_delay: TimeDelta,
    /// Its size.
    pub size: DataSize,
    /// The packet.
    pub payload: T,
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came, duplicates that the link made not counted.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered: DataSize,
    /// Packets that the loss model took.
    pub lost_packets: u64,
    /// Packets that found the queue full.
    pub dropped_packets: u64,
    /// Packets that the link made a second time.
    pub duplicated_packets: u64,
    /// Packets that arrived.
    pub delivered_packets: u64,
    /// Bytes that arrived.
    pub delivered: DataSize,
    /// How long the packets that arrived had waited in the queue, all together.
    pub waited: TimeDelta,
}

#[derive(Clone, Debug)]
struct Waiting<T> {
    since: Timestamp,
    size: DataSize,
    payload: T,
}

#[derive(Clone, Debug)]
struct InService<T> {
    packet: Waiting<T>,
    start: Timestamp,
    finish: Timestamp,
}

/// One direction of a bottleneck link, with the packets that are on it.
#[derive(Clone, Debug)]
pub struct Bottleneck<T> {
    config: LinkConfig,
    cursor: TraceCursor,
    queue: VecDeque<Waiting<T>>,
    queued: DataSize,
    in_service: Option<InService<T>>,
    line: DelayLine<T>,
    /// What no packet's delay is below.
    least_delay: TimeDelta,
    order: Order,
    loss: Loss,
    duplicate: Stream,
    jitter: Stream,
    counters: Counters,
}

impl<T: Clone> Bottleneck<T> {
    /// An empty link. `name` tells its streams of chance from those of other links, e.g. `up`.
    pub fn new(config: &LinkConfig, seed: Seed, name: &str) -> Self {
        Self {
            config: config.clone(),
            cursor: TraceCursor::new(),
            queue: VecDeque::new(),
            queued: DataSize::ZERO,
            in_service: None,
            line: DelayLine::new(config.jitter.may_reorder() || config.delay.may_reorder()),
            least_delay: (config.delay.minimum() + config.jitter.minimum()).max(TimeDelta::ZERO),
            order: Order::default(),
            loss: Loss::new(config.loss, seed.stream(&format!("{name}/loss"))),
            duplicate: seed.stream(&format!("{name}/duplicate")),
            jitter: seed.stream(&format!("{name}/jitter")),
            counters: Counters::default(),
        }
    }

    /// A packet arrives at the near end.
    pub fn enqueue(&mut self, now: Timestamp, size: DataSize, payload: T) -> Result<(), DropCause> {
        self.counters.offered_packets += 1;
        self.counters.offered += size;
        if self.loss.draw() {
            self.counters.lost_packets += 1;
            return Err(DropCause::RandomLoss);
        }
        if self.config.duplicate > 0.0 && self.duplicate.chance(self.config.duplicate) {
            self.counters.duplicated_packets += 1;
            // The copy may find the queue full; the packet itself is judged below.
            let _ = self.admit(now, size, payload.clone());
        }
        self.admit(now, size, payload)
    }

    fn admit(&mut self, now: Timestamp, size: DataSize, payload: T) -> Result<(), DropCause> {
        let packet = Waiting { since: now, size, payload };
        if self.config.capacity == Capacity::Unlimited {
            self.depart(now, now, packet);
            return Ok(());
        }
        self.serve_until(now);
        if self.in_service.is_none() {
            self.start_service(now, packet);
            return Ok(());
        }
        if !self.has_room(now, size) {
            self.counters.dropped_packets += 1;
            return Err(DropCause::QueueFull);
        }
        self.queued += size;
        self.queue.push_back(packet);
        Ok(())
    }

    fn has_room(&self, now: Timestamp, size: DataSize) -> bool {
        match self.config.queue {
            QueueLimit::Packets(limit) => self.queue.len() < limit,
            QueueLimit::Bytes(limit) => self.queued + size <= limit,
            QueueLimit::Time(limit) => {
                self.config.capacity.rate(now).is_none_or(|rate| self.queued + size <= rate * limit)
            }
        }
    }

    fn start_service(&mut self, start: Timestamp, packet: Waiting<T>) {
        let finish = match &self.config.capacity {
            Capacity::Unlimited => start,
            Capacity::Schedule(schedule) => schedule.finish(start, packet.size),
            Capacity::Trace(trace) => self.cursor.finish(trace, start, packet.size),
        };
        self.in_service = Some(InService { packet, start, finish });
    }

    /// Sends what is through by `now` on its way.
    fn serve_until(&mut self, now: Timestamp) {
        while let Some(service) = self.in_service.take_if(|service| service.finish <= now) {
            self.depart(service.start, service.finish, service.packet);
            if let Some(next) = self.queue.pop_front() {
                self.queued = self.queued.saturating_sub(next.size);
                self.start_service(service.finish, next);
            }
        }
    }

    fn depart(&mut self, start: Timestamp, finish: Timestamp, packet: Waiting<T>) {
        let delay = self.config.delay.at(finish) + self.config.jitter.draw(&mut self.jitter);
        // A packet cannot arrive before it was sent, however large the jitter.
        let mut due = finish + delay.max(TimeDelta::ZERO);
        if self.config.jitter != Jitter::None && !self.config.jitter.may_reorder() {
            due = self.order.hold(due, finish - start);
        }
        let Waiting { since, size, payload } = packet;
        self.line.push(Delivery { due, queuing_delay: start - since, size, payload });
    }

    /// A time before which [`Bottleneck::poll`] gives nothing; `None` while the link is empty. It may
    /// be early (jitter is drawn when a packet departs): poll, and ask again.
    pub fn next_event(&self) -> Option<Timestamp> {
        let serviced = self.in_service.as_ref().map(|service| service.finish + self.least_delay);
        match (self.line.next_due(), serviced) {
            (Some(line), Some(service)) => Some(line.min(service)),
            (line, service) => line.or(service),
        }
    }

    /// The next packet that has arrived by `now`, by time of arrival. Call until `None`.
    pub fn poll(&mut self, now: Timestamp) -> Option<Delivery<T>> {
        self.serve_until(now);
        let delivery = self.line.pop(now)?;
        self.counters.delivered_packets += 1;
        self.counters.delivered += delivery.size;
        self.counters.waited += delivery.queuing_delay;
        Some(delivery)
    }

    /// The capacity at a time; `None` if unlimited.
    pub fn capacity(&self, at: Timestamp) -> Option<Bitrate> {
        self.config.capacity.rate(at)
    }

    /// Bytes that wait at a time.
    pub fn queued(&mut self, now: Timestamp) -> DataSize {
        self.serve_until(now);
        self.queued
    }

    /// How long what waits will take at the capacity of the moment.
    pub fn queuing_delay(&mut self, now: Timestamp) -> TimeDelta {
        let queued = self.queued(now);
        self.capacity(now).map_or(TimeDelta::ZERO, |rate| queued / rate)
    }

    /// Totals since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

/// Packets between the bottleneck and the far end: in order, or by time where they may overtake.
#[derive(Clone, Debug)]
enum DelayLine<T> {
    Fifo(VecDeque<Delivery<T>>),
    Heap { heap: BinaryHeap<Reverse<Timed<T>>>, count: u64 },
}

/// A delivery ordered by time, ties by insertion.
#[derive(Clone, Debug)]
struct Timed<T> {
    number: u64,
    delivery: Delivery<T>,
}

impl<T> Timed<T> {
    fn key(&self) -> (Timestamp, u64) {
        (self.delivery.due, self.number)
    }
}
impl<T> PartialEq for Timed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<T> Eq for Timed<T> {}
impl<T> PartialOrd for Timed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Timed<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> DelayLine<T> {
    fn new(may_reorder: bool) -> Self {
        if may_reorder {
            Self::Heap { heap: BinaryHeap::new(), count: 0 }
        } else {
            Self::Fifo(VecDeque::new())
        }
    }

    fn push(&mut self, delivery: Delivery<T>) {
        match self {
            Self::Fifo(fifo) => fifo.push_back(delivery),
            Self::Heap { heap, count } => {
                heap.push(Reverse(Timed { number: *count, delivery }));
                *count += 1;
            }
        }
    }

    fn next_due(&self) -> Option<Timestamp> {
        match self {
            Self::Fifo(fifo) => fifo.front().map(|delivery| delivery.due),
            Self::Heap { heap, .. } => heap.peek().map(|Reverse(timed)| timed.delivery.due),
        }
    }

    fn pop(&mut self, now: Timestamp) -> Option<Delivery<T>> {
        if self.next_due()? > now {
            return None;
        }
        match self {
            Self::Fifo(fifo) => fifo.pop_front(),
            Self::Heap { heap, .. } => heap.pop().map(|Reverse(timed)| timed.delivery),
        }
    }
}

#[cfg(test)]
mod tests;
