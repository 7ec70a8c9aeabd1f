//! One direction of a bottleneck link.
//!
//! ```text
//! enqueue -> loss -> duplication -> queue -> capacity -> delay + jitter -> poll
//! ```
//!
//! A packet is lost before it enters the queue, as netem does it, so random loss takes no capacity.
//! The packet that is being sent has left the queue: a limit counts the packets that wait. A queue
//! may drop a packet when it comes, when its turn has come, or for the sake of another one; the
//! driver hears of all of them by [`Bottleneck::poll`], in the same way as of those that arrive.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt::Debug;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use crate::capacity::{Capacity, TraceCursor};
use crate::delay::Delay;
use crate::jitter::{Jitter, Order};
use crate::loss::{Loss, LossModel};
use crate::packet::{Delivery, DropCause, Fate, Header, Waiting};
use crate::queue::{Aqm, Discipline, Log, Queue, QueueLimit, Room};
use crate::seed::{Seed, Stream};

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkConfig {
    /// What it carries.
    pub capacity: Capacity,
    /// What may wait for it.
    pub queue: QueueLimit,
    /// What is dropped or marked before that.
    pub aqm: Aqm,
    /// Propagation delay.
    pub delay: Delay,
    /// Variation of the propagation delay.
    pub jitter: Jitter,
    /// Loss that is not congestion.
    pub loss: LossModel,
    /// Probability that a packet enters twice.
    pub duplicate: f64,
    /// What jitter and loss become later.
    pub changes: Changes,
}

/// Steps of what has none of its own, as capacity and delay do: each list by rising time, after zero.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Changes {
    /// Of the jitter, for packets that leave the bottleneck from then on.
    pub jitter: Vec<(Timestamp, Jitter)>,
    /// Of the loss, for packets that come from then on.
    pub loss: Vec<(Timestamp, LossModel)>,
}

impl Changes {
    /// These steps of the jitter and of the loss.
    pub const fn new(jitter: Vec<(Timestamp, Jitter)>, loss: Vec<(Timestamp, LossModel)>) -> Self {
        Self { jitter, loss }
    }
}

impl LinkConfig {
    /// A link without limit, loss or jitter.
    pub fn unlimited(delay: impl Into<Delay>) -> Self {
        Self {
            capacity: Capacity::Unlimited,
            queue: QueueLimit::Packets(usize::MAX),
            aqm: Aqm::DropTail,
            delay: delay.into(),
            jitter: Jitter::None,
            loss: LossModel::None,
            duplicate: 0.0,
            changes: Changes::default(),
        }
    }

    with! {
        with_capacity: capacity: Capacity,
        with_queue: queue: QueueLimit,
        with_aqm: aqm: Aqm,
        with_delay: delay: Delay,
        with_jitter: jitter: Jitter,
        with_loss: loss: LossModel,
        with_duplicate: duplicate: f64,
        with_changes: changes: Changes,
    }

    /// Every jitter that it will have.
    pub fn jitters(&self) -> impl Iterator<Item = Jitter> {
        let later = self.changes.jitter.iter().map(|step| step.1);
        std::iter::once(self.jitter).chain(later)
    }
}

/// Steps that have not come yet.
#[derive(Clone, Debug)]
struct Steps<T>(VecDeque<(Timestamp, T)>);

impl<T: Copy> Steps<T> {
    fn new(steps: &[(Timestamp, T)]) -> Self {
        Self(steps.iter().copied().collect())
    }

    /// The last one whose time has come.
    fn take(&mut self, now: Timestamp) -> Option<T> {
        let mut last = None;
        while self.0.front().is_some_and(|step| step.0 <= now) {
            last = self.0.pop_front().map(|step| step.1);
        }
        last
    }
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Packets that came, duplicates that the link made not counted.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered: DataSize,
    /// Packets that the loss model took.
    pub lost_packets: u64,
    /// Packets dropped because the queue was full.
    pub dropped_packets: u64,
    /// Packets dropped by the management of the queue.
    pub managed_packets: u64,
    /// Packets marked by the management of the queue.
    pub marked_packets: u64,
    /// Packets that the link made a second time.
    pub duplicated_packets: u64,
    /// Packets that arrived.
    pub delivered_packets: u64,
    /// Bytes that arrived.
    pub delivered: DataSize,
    /// How long the packets that arrived had waited in the queue, all together.
    pub waited: TimeDelta,
}

/// One direction of a bottleneck link, with the packets that are on it.
#[derive(Debug)]
pub struct Bottleneck<T> {
    config: LinkConfig,
    cursor: TraceCursor,
    queue: Queue<T>,
    log: Log<T>,
    /// The latest time that anyone told.
    now: Timestamp,
    /// When the packet that is being sent will be through. It is on the line already: all that will
    /// become of it was settled when its turn came.
    busy_until: Option<Timestamp>,
    /// The packet whose turn has come and that will never be through, because the capacity is zero from
    /// some time on. Only a change by hand can send it.
    stuck: Option<Waiting<T>>,
    line: DelayLine<T>,
    /// What no packet's delay is below.
    least_delay: TimeDelta,
    order: Order,
    /// Whether there is jitter at any time.
    varies: bool,
    jitters: Steps<Jitter>,
    losses: Steps<LossModel>,
    loss: Loss,
    duplicate: Stream,
    jitter: Stream,
    counters: Counters,
}

impl<T: Clone + Debug + Send + 'static> Bottleneck<T> {
    /// An empty link. `name` tells its streams of chance from those of other links, e.g. `up`.
    pub fn new(config: &LinkConfig, seed: Seed, name: &str) -> Self {
        Self {
            config: config.clone(),
            cursor: TraceCursor::new(),
            queue: Queue::new(config.aqm, seed.stream(&format!("{name}/queue"))),
            log: Log::new(),
            now: Timestamp::ZERO,
            busy_until: None,
            stuck: None,
            line: DelayLine::new(
                config.jitters().any(|jitter| jitter.may_reorder()) || config.delay.may_reorder(),
            ),
            least_delay: least_delay(config),
            order: Order::default(),
            varies: config.jitters().any(|jitter| jitter != Jitter::None),
            jitters: Steps::new(&config.changes.jitter),
            losses: Steps::new(&config.changes.loss),
            loss: Loss::new(config.loss, seed.stream(&format!("{name}/loss"))),
            duplicate: seed.stream(&format!("{name}/duplicate")),
            jitter: seed.stream(&format!("{name}/jitter")),
            counters: Counters::default(),
        }
    }

    /// A packet arrives at the near end.
    pub fn enqueue(&mut self, now: Timestamp, header: Header, payload: T) {
        self.counters.offered_packets += 1;
        self.counters.offered += header.size;
        self.now = now;
        let packet = Waiting { since: now, header, payload };
        if let Some(loss) = self.losses.take(now) {
            self.loss.set(loss);
        }
        if self.loss.draw() {
            self.counters.lost_packets += 1;
            self.log.drop(now, DropCause::RandomLoss, packet);
            return;
        }
        if self.config.duplicate > 0.0 && self.duplicate.chance(self.config.duplicate) {
            self.counters.duplicated_packets += 1;
            self.admit(now, packet.clone());
        }
        self.admit(now, packet);
    }

    #[inline]
    fn admit(&mut self, now: Timestamp, packet: Waiting<T>) {
        if self.config.capacity == Capacity::Unlimited {
            self.depart(now, now, packet);
            return;
        }
        self.serve_until(now);
        if self.busy_until.is_some() || self.stuck.is_some() {
            let room = Room { capacity: &self.config.capacity, limit: self.config.queue };
            self.queue.enqueue(now, room, packet, &mut self.log);
        } else if matches!(self.queue, Queue::DropTail(_)) {
            self.start_service(now, packet);
        } else {
            // Nothing waits, so there is room, but the management has to see every packet.
            let limit = QueueLimit::Packets(usize::MAX);
            let room = Room { capacity: &self.config.capacity, limit };
            self.queue.enqueue(now, room, packet, &mut self.log);
            self.serve_next(now);
        }
    }

    fn serve_next(&mut self, start: Timestamp) {
        if let Some(packet) = self.queue.dequeue(start, &mut self.log) {
            self.start_service(start, packet);
        }
    }

    fn start_service(&mut self, start: Timestamp, packet: Waiting<T>) {
        let finish = match &self.config.capacity {
            Capacity::Unlimited => Some(start),
            Capacity::Schedule(schedule) => schedule.finish(start, packet.size()),
            Capacity::Trace(trace) => Some(self.cursor.finish(trace, start, packet.size())),
        };
        self.busy_until = finish;
        match finish {
            Some(finish) => self.depart(start, finish, packet),
            None => self.stuck = Some(packet),
        }
    }

    /// Lets what waits have its turn, up to `now`.
    fn serve_until(&mut self, now: Timestamp) {
        self.now = now;
        while let Some(finish) = self.busy_until.take_if(|finish| *finish <= now) {
            self.serve_next(finish);
        }
    }

    fn depart(&mut self, start: Timestamp, finish: Timestamp, packet: Waiting<T>) {
        if let Some(jitter) = self.jitters.take(finish) {
            self.config.jitter = jitter;
        }
        let delay = self.config.delay.at(finish) + self.config.jitter.draw(&mut self.jitter);
        // A packet cannot arrive before it was sent, however large the jitter.
        let mut due = finish + delay.max(TimeDelta::ZERO);
        if self.varies && !self.config.jitter.may_reorder() {
            // A packet that is being sent when the rate falls takes less than at the new rate alone.
            let transmission = self.config.capacity.transmission_time(finish, packet.size());
            due = self.order.hold(due, transmission.min(finish - start));
        }
        let Waiting { since, header: Header { size, ecn, .. }, payload } = packet;
        self.line.push(Delivery { due, queuing_delay: start - since, size, ecn, payload });
    }

    /// A time before which [`Bottleneck::poll`] gives nothing; `None` if nothing will arrive. It may be
    /// early: poll, and ask again.
    pub fn next_event(&self) -> Option<Timestamp> {
        if !self.log.dropped.is_empty() {
            return Some(self.now);
        }
        let due = self.line.next_due()?;
        match (&self.line, self.busy_until) {
            // What waits may overtake what is on the line.
            (DelayLine::Heap { .. }, Some(finish)) => Some(due.min(finish + self.least_delay)),
            _ => Some(due),
        }
    }

    /// The fate of the next packet that was dropped or has arrived by `now`, by time of arrival. Call
    /// until `None`.
    pub fn poll(&mut self, now: Timestamp) -> Option<Fate<T>> {
        self.serve_until(now);
        if let Some(dropped) = self.log.dropped.pop_front() {
            return Some(Fate::Dropped(dropped));
        }
        let delivery = self.line.pop(now)?;
        self.counters.delivered_packets += 1;
        self.counters.delivered += delivery.size;
        self.counters.waited += delivery.queuing_delay;
        Some(Fate::Delivered(delivery))
    }

    /// The capacity at a time, zero in an outage; `None` if unlimited.
    pub fn capacity(&self, at: Timestamp) -> Option<Bitrate> {
        self.config.capacity.rate(at)
    }

    /// The propagation delay at a time, without its variation.
    pub fn delay(&self, at: Timestamp) -> TimeDelta {
        self.config.delay.at(at)
    }

    /// Bytes that wait at a time.
    pub fn queued(&mut self, now: Timestamp) -> DataSize {
        self.serve_until(now);
        self.queue.bytes()
    }

    /// How long what waits takes at the [nominal rate](Capacity::nominal_rate), so at most a limit that
    /// is given as time. In an outage it tells how full the queue is, not when the outage will end.
    pub fn queuing_delay(&mut self, now: Timestamp) -> TimeDelta {
        let queued = self.queued(now);
        self.config.capacity.nominal_rate(now).map_or(TimeDelta::ZERO, |rate| queued / rate)
    }

    /// Totals since the start.
    pub fn counters(&self) -> Counters {
        let Log { full, managed, marked, .. } = self.log;
        Counters {
            dropped_packets: full,
            managed_packets: managed,
            marked_packets: marked,
            ..self.counters
        }
    }
}

/// Changes by hand. They hold for the packets whose turn comes from then on: what becomes of the packet
/// that is being sent was settled before. What the configuration had planned for later is gone.
impl<T: Clone + Debug + Send + 'static> Bottleneck<T> {
    /// Changes the capacity; zero is an outage until the next change.
    pub fn set_capacity(&mut self, now: Timestamp, rate: Bitrate) {
        self.serve_until(now);
        self.config.capacity.set(now, rate);
        if let Some(packet) = self.stuck.take() {
            self.start_service(now, packet);
        }
    }

    /// Changes the propagation delay.
    pub fn set_delay(&mut self, now: Timestamp, delay: TimeDelta) {
        self.serve_until(now);
        self.config.delay = delay.into();
        // What follows may overtake packets with a longer delay.
        self.line.allow_reordering();
        self.least_delay = least_delay(&self.config);
    }

    /// Changes the variation of the delay.
    pub fn set_jitter(&mut self, now: Timestamp, jitter: Jitter) {
        self.serve_until(now);
        self.config.jitter = jitter;
        self.varies = jitter != Jitter::None;
        (self.jitters, self.config.changes.jitter) = (Steps::new(&[]), Vec::new());
        if jitter.may_reorder() {
            self.line.allow_reordering();
        }
        self.least_delay = least_delay(&self.config);
    }

    /// Changes the loss that is not congestion, of the packets that come from now on.
    pub fn set_loss(&mut self, loss: LossModel) {
        self.losses = Steps::new(&[]);
        self.loss.set(loss);
    }
}

/// What no packet's delay is below.
fn least_delay(config: &LinkConfig) -> TimeDelta {
    let jitter = config.jitters().map(|jitter| jitter.minimum()).min();
    (config.delay.minimum() + jitter.unwrap_or(TimeDelta::ZERO)).max(TimeDelta::ZERO)
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

    /// From now on a packet may overtake those before it.
    fn allow_reordering(&mut self) {
        if let Self::Fifo(fifo) = self {
            let mut line = Self::new(true);
            fifo.drain(..).for_each(|delivery| line.push(delivery));
            *self = line;
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
