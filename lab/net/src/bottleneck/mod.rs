//! One direction of a bottleneck link.
//!
//! ```text
//! enqueue -> loss -> duplication -> policer -> queue -> capacity -> delay + jitter -> poll
//! ```
//!
//! Random loss happens before the queue, as in netem, so lost packets use no capacity. The packet
//! in transmission has left the queue, so a queue limit counts only the packets that wait. A queue
//! may drop a packet on arrival, when it reaches the head, or to make room for another packet. The
//! driver receives dropped packets from [`Bottleneck::poll`], as it does delivered ones.

mod account;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt::Debug;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use crate::capacity::{Capacity, TraceCursor};
use crate::delay::Delay;
use crate::jitter::{Deviates, Jitter, Order};
use crate::loss::{Loss, LossModel};
use crate::packet::{Delivery, DropCause, Header, Outcome, Waiting};
use crate::policer::{Policer, PolicerConfig};
use crate::queue::{Aqm, Discipline, Log, Queue, QueueLimit, Room};
use crate::seed::{Seed, Stream};
use account::Ledger;

/// A token bucket has filled since then, so it is full at the start.
const LONG_AGO: Timestamp = Timestamp::from_secs(-100_000);

/// Configuration of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkConfig {
    /// Capacity.
    pub capacity: Capacity,
    /// Queue limit.
    pub queue: QueueLimit,
    /// Queue management: which packets are dropped or marked before the limit is reached.
    pub aqm: Aqm,
    /// Policer in front of the queue, if there is one.
    pub policer: Option<PolicerConfig>,
    /// Propagation delay.
    pub delay: Delay,
    /// Jitter: random variation of the propagation delay.
    pub jitter: Jitter,
    /// Loss that is not caused by congestion.
    pub loss: LossModel,
    /// Probability that a packet is duplicated.
    pub duplicate: f64,
    /// Probability that a packet skips the delay, and so overtakes others, as with netem's
    /// `reorder`.
    pub reorder: f64,
    /// Size of a token bucket that fills at the rates of a schedule: so much may leave at once
    /// after a pause, as with tc's tbf.
    pub burst: Option<DataSize>,
    /// Later changes of jitter and loss.
    pub changes: Changes,
}

/// Later changes of jitter and loss. Each list is ordered by time and starts after time zero.
/// Capacity and delay contain their own steps.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Changes {
    /// Changes of the jitter, for packets that leave the bottleneck from that time on.
    pub jitter: Vec<(Timestamp, Jitter)>,
    /// Changes of the loss, for packets that arrive from that time on.
    pub loss: Vec<(Timestamp, LossModel)>,
}

impl Changes {
    /// Changes with these steps.
    pub const fn new(jitter: Vec<(Timestamp, Jitter)>, loss: Vec<(Timestamp, LossModel)>) -> Self {
        Self { jitter, loss }
    }

    weir::with! {
        with_jitter: jitter: Vec<(Timestamp, Jitter)>,
        with_loss: loss: Vec<(Timestamp, LossModel)>,
    }
}

impl LinkConfig {
    /// A link with unlimited capacity, without loss or jitter.
    pub fn unlimited(delay: impl Into<Delay>) -> Self {
        Self {
            capacity: Capacity::Unlimited,
            queue: QueueLimit::Packets(usize::MAX),
            aqm: Aqm::DropTail,
            policer: None,
            delay: delay.into(),
            jitter: Jitter::None,
            loss: LossModel::None,
            duplicate: 0.0,
            reorder: 0.0,
            burst: None,
            changes: Changes::default(),
        }
    }

    weir::with! {
        with_capacity: capacity: Capacity,
        with_queue: queue: QueueLimit,
        with_aqm: aqm: Aqm,
        with_policer: policer: Option<PolicerConfig>,
        with_delay: delay: Delay,
        with_jitter: jitter: Jitter,
        with_loss: loss: LossModel,
        with_duplicate: duplicate: f64,
        with_reorder: reorder: f64,
        with_burst: burst: Option<DataSize>,
        with_changes: changes: Changes,
    }

    /// What the link carries at a time: its capacity, or the rate of its policer if that is lower;
    /// `None` if neither limits it.
    pub fn rate(&self, at: Timestamp) -> Option<Bitrate> {
        let policed = self.policer.map(|policer| policer.rate);
        self.capacity.rate(at).into_iter().chain(policed).min()
    }

    /// What the link can carry between two times, in bits: the integral of [`LinkConfig::rate`];
    /// `None` if nothing limits it.
    pub fn bits(&self, from: Timestamp, to: Timestamp) -> Option<f64> {
        let policed = self.policer.map(|of| of.rate.as_bps_f64() * (to - from).as_secs_f64());
        match (self.capacity.bits(from, to), policed) {
            (Some(bits), Some(policed)) => Some(bits.min(policed)),
            (bits, policed) => bits.or(policed),
        }
    }

    /// All jitter settings over time, the first included.
    pub fn jitters(&self) -> impl Iterator<Item = Jitter> {
        let later = self.changes.jitter.iter().map(|step| step.1);
        std::iter::once(self.jitter).chain(later)
    }
}

/// Steps that are still to come.
#[derive(Clone, Debug)]
struct Steps<T>(VecDeque<(Timestamp, T)>);

impl<T: Copy> Steps<T> {
    fn new(steps: &[(Timestamp, T)]) -> Self {
        Self(steps.iter().copied().collect())
    }

    /// Removes the steps that are due and returns the last of them.
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
    /// Packets enqueued. Duplicates made by the link do not count.
    pub offered_packets: u64,
    /// Bytes enqueued.
    pub offered: DataSize,
    /// Packets that the loss model dropped.
    pub lost_packets: u64,
    /// Packets dropped because the queue was full.
    pub dropped_packets: u64,
    /// Packets dropped by the queue management.
    pub managed_packets: u64,
    /// Packets dropped by the policer.
    pub policed_packets: u64,
    /// Packets marked by the queue management.
    pub marked_packets: u64,
    /// Packets that the link duplicated.
    pub duplicated_packets: u64,
    /// Packets delivered.
    pub delivered_packets: u64,
    /// Bytes delivered.
    pub delivered: DataSize,
    /// Sum of the queuing delays of the packets delivered.
    pub waited: TimeDelta,
}

/// One direction of a bottleneck link with the packets on it.
#[derive(Debug)]
pub struct Bottleneck<T> {
    config: LinkConfig,
    cursor: TraceCursor,
    policer: Option<Policer>,
    queue: Queue<T>,
    log: Log<T>,
    /// The latest time that a caller has passed.
    now: Timestamp,
    /// When the current transmission ends; `None` if there is none. The packet is on the delay line
    /// already, because its arrival time is determined when its transmission starts.
    busy_until: Option<Timestamp>,
    /// A packet whose transmission never ends, because the capacity stays zero from some time on.
    /// Only [`Bottleneck::set_capacity`] can release it.
    stuck: Option<Waiting<T>>,
    line: DelayLine<T>,
    /// Minimum one-way delay.
    least_delay: TimeDelta,
    order: Order,
    /// Whether there is jitter at any time.
    varies: bool,
    jitters: Steps<Jitter>,
    losses: Steps<LossModel>,
    loss: Loss,
    duplicate: Stream,
    jitter: Deviates,
    reorder: Stream,
    /// When the tokens in the bucket began to flow in.
    filling_since: Timestamp,
    counters: Counters,
    ledger: Ledger,
}

impl<T: Clone + Debug + Send + 'static> Bottleneck<T> {
    /// An empty link. Its random streams are derived from `name`, for example `up`.
    pub fn new(config: &LinkConfig, seed: Seed, name: &str) -> Self {
        Self {
            config: config.clone(),
            cursor: TraceCursor::default(),
            policer: config.policer.map(Policer::new),
            queue: Queue::new(config.aqm, seed.stream(&format!("{name}/queue"))),
            log: Log::new(),
            now: Timestamp::ZERO,
            busy_until: None,
            stuck: None,
            line: DelayLine::new(
                config.jitters().any(|jitter| jitter.may_reorder())
                    || config.delay.may_reorder()
                    || config.reorder > 0.0,
            ),
            least_delay: least_delay(config),
            order: Order::default(),
            varies: config.jitters().any(|jitter| jitter != Jitter::None)
                || config.delay.keeps_order(),
            jitters: Steps::new(&config.changes.jitter),
            losses: Steps::new(&config.changes.loss),
            loss: Loss::new(config.loss, seed.stream(&format!("{name}/loss"))),
            duplicate: seed.stream(&format!("{name}/duplicate")),
            jitter: Deviates::new(seed.stream(&format!("{name}/jitter"))),
            reorder: seed.stream(&format!("{name}/reorder")),
            filling_since: LONG_AGO,
            counters: Counters::default(),
            ledger: Ledger::default(),
        }
    }

    /// A packet arrives at the near end of the link.
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
        if let Some(policer) = &mut self.policer
            && !policer.passes(now, packet.size())
        {
            self.counters.policed_packets += 1;
            self.log.drop(now, DropCause::Policed, packet);
            return;
        }
        if self.config.capacity == Capacity::Unlimited {
            if self.policer.is_some() {
                self.ledger.begin(packet.header.account, packet.size(), now, Some(now));
            }
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
            // Nothing waits, so there is room, but the queue management must see every packet.
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
            Capacity::Schedule(schedule) => match self.config.burst {
                Some(burst) => {
                    let since = schedule.filling_since(self.filling_since, start, burst);
                    let paid = schedule.finish(since, packet.size());
                    self.filling_since = paid.unwrap_or(since);
                    paid.map(|paid| paid.max(start))
                }
                None => schedule.finish(start, packet.size()),
            },
            Capacity::Trace(trace) => self.cursor.finish(trace, packet.since, start, packet.size()),
        };
        self.ledger.begin(packet.header.account, packet.size(), start, finish);
        self.busy_until = finish;
        match finish {
            Some(finish) => self.depart(start, finish, packet),
            None => self.stuck = Some(packet),
        }
    }

    /// Bits of packets of this [account](Header::account) that the link has carried before `now`,
    /// since the last call for it. Of a packet in transmission the part that is out counts. A link
    /// that nothing limits counts none.
    pub fn take_carried(&mut self, now: Timestamp, account: usize) -> u64 {
        self.serve_until(now - TimeDelta::from_nanos(1));
        self.now = now;
        self.ledger.take(now, account, &self.config.capacity, &self.cursor)
    }

    /// Starts the transmissions that are due by `now`.
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
        let mut delay = self.config.delay.at(finish) + self.config.jitter.draw(&mut self.jitter);
        let overtakes = self.config.reorder > 0.0 && self.reorder.chance(self.config.reorder);
        if overtakes {
            delay = TimeDelta::ZERO;
        }
        // A packet cannot arrive before it was sent, however large the jitter.
        let mut due = finish + delay.max(TimeDelta::ZERO);
        if self.varies && !overtakes && !self.config.jitter.may_reorder() {
            // If the rate falls during a packet's transmission, it takes less time than at the new
            // rate alone.
            let transmission = self.config.capacity.transmission_time(finish, packet.size());
            due = self.order.hold(due, transmission.min(finish - start));
        }
        let Waiting { since, header: Header { size, ecn, .. }, payload } = packet;
        self.line.push(Delivery { due, queuing_delay: start - since, size, ecn, payload });
    }

    /// The earliest time at which [`Bottleneck::poll`] may return something; `None` if nothing will
    /// arrive. It may be too early: poll, and ask again.
    pub fn next_event(&self) -> Option<Timestamp> {
        if !self.log.dropped.is_empty() {
            return Some(self.now);
        }
        let due = self.line.next_due()?;
        match (&self.line, self.busy_until) {
            // A packet that still waits may overtake those on the line.
            (DelayLine::Heap { .. }, Some(finish)) => Some(due.min(finish + self.least_delay)),
            _ => Some(due),
        }
    }

    /// The outcome of the next packet that was dropped, or that has arrived by `now`, in the order
    /// of arrival. Call it until it returns `None`.
    pub fn poll(&mut self, now: Timestamp) -> Option<Outcome<T>> {
        self.serve_until(now);
        if let Some(dropped) = self.log.dropped.pop_front() {
            return Some(Outcome::Dropped(dropped));
        }
        let delivery = self.line.pop(now)?;
        self.counters.delivered_packets += 1;
        self.counters.delivered += delivery.size;
        self.counters.waited += delivery.queuing_delay;
        Some(Outcome::Delivered(delivery))
    }

    /// What the link carries at a time, as [`LinkConfig::rate`]; zero in an outage, `None` if
    /// unlimited.
    pub fn capacity(&self, at: Timestamp) -> Option<Bitrate> {
        self.config.rate(at)
    }

    /// The mean of what the link carries between two times; `None` if unlimited.
    pub fn mean_capacity(&self, from: Timestamp, to: Timestamp) -> Option<Bitrate> {
        let bits = self.config.bits(from, to)?;
        Some(Bitrate::from_bps_f64(bits / (to - from).as_secs_f64()))
    }

    /// The propagation delay at a time, without jitter.
    pub fn delay(&self, at: Timestamp) -> TimeDelta {
        self.config.delay.at(at)
    }

    /// Bytes in the queue at a time.
    pub fn queued(&mut self, now: Timestamp) -> DataSize {
        self.serve_until(now);
        self.queue.bytes()
    }

    /// Time to send the queued bytes at the [nominal rate](Capacity::nominal_rate). It does not
    /// exceed a limit given as time. In an outage it shows how full the queue is, not how long the
    /// outage lasts.
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

/// Changes during a run. They apply to packets whose transmission starts later; the packet in
/// transmission is not affected. Changes that the configuration had planned for later are
/// discarded.
impl<T: Clone + Debug + Send + 'static> Bottleneck<T> {
    /// Changes the capacity. Zero is an outage until the next change.
    pub fn set_capacity(&mut self, now: Timestamp, rate: Bitrate) {
        self.serve_until(now);
        if self.stuck.is_some() {
            self.ledger.give_up(now, &self.config.capacity, &self.cursor);
        }
        self.config.capacity.set(now, rate);
        if let Some(packet) = self.stuck.take() {
            self.start_service(now, packet);
        }
    }

    /// Changes the propagation delay.
    pub fn set_delay(&mut self, now: Timestamp, delay: TimeDelta) {
        self.serve_until(now);
        self.config.delay = delay.into();
        // Later packets may overtake packets with a longer delay.
        self.line.allow_reordering();
        self.least_delay = least_delay(&self.config);
    }

    /// Changes the jitter.
    pub fn set_jitter(&mut self, now: Timestamp, jitter: Jitter) {
        self.serve_until(now);
        self.config.jitter = jitter;
        self.varies = jitter != Jitter::None || self.config.delay.keeps_order();
        (self.jitters, self.config.changes.jitter) = (Steps::new(&[]), Vec::new());
        if jitter.may_reorder() {
            self.line.allow_reordering();
        }
        self.least_delay = least_delay(&self.config);
    }

    /// Changes the loss model for packets that arrive from now on.
    pub fn set_loss(&mut self, loss: LossModel) {
        self.losses = Steps::new(&[]);
        self.loss.set(loss);
    }
}

/// Minimum one-way delay over all delays and jitters of a link.
fn least_delay(config: &LinkConfig) -> TimeDelta {
    if config.reorder > 0.0 {
        return TimeDelta::ZERO;
    }
    let jitter = config.jitters().map(|jitter| jitter.minimum()).min();
    (config.delay.minimum() + jitter.unwrap_or(TimeDelta::ZERO)).max(TimeDelta::ZERO)
}

/// Packets between the bottleneck and the far end: a FIFO, or a heap by time if they can be
/// reordered.
#[derive(Clone, Debug)]
enum DelayLine<T> {
    Fifo(VecDeque<Delivery<T>>),
    Heap { heap: BinaryHeap<Reverse<Timed<T>>>, count: u64 },
}

/// A delivery ordered by time; ties are ordered by insertion.
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

    /// Allows later packets to overtake earlier ones.
    fn allow_reordering(&mut self) {
        if let Self::Fifo(fifo) = self {
            let mut line = Self::new(true);
            for delivery in fifo.drain(..) {
                line.push(delivery);
            }
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
