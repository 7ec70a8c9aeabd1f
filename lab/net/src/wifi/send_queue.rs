//! Send queue of an access category: for each receiver, the packets that wait and the window of
//! MPDUs that are in transmission.
//!
//! ```text
//! packet -> waiting -> window (up to 64 MPDUs, from the oldest that is not done) -> done
//!                        |  ^
//!                        v  | not received: again
//!                       frame -> receiver: duplicates away, in order -> delivery
//! ```
//!
//! The receiver's side is part of this file too, because the window already stores all its state.

use std::collections::VecDeque;
use std::fmt::Debug;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::config::{NodeQueue, WaitLimit};
use super::phy::{A_MPDU_COUNT_LIMIT, a_mpdu_with, mpdu_size};
use super::record::Ledger;
use super::retry::{Congestion, Retry, RetryDecision, RetryPolicy};
use crate::capacity::Capacity;
use crate::packet::{Delivery, DropCause, Dropped, Header, Waiting};
use crate::queue::QueueLimit;
use crate::queue::{Aqm, Discipline, Log, Queue, Room};
use crate::seed::Stream;

/// Airtime of one turn of a receiver, as in the airtime scheduler of Linux.
const TURN: TimeDelta = TimeDelta::from_micros(256);

/// The queue of one access category.
#[derive(Debug)]
pub(super) struct SendQueue<T> {
    kind: NodeQueue,
    retry: Retry,
    receivers: Vec<Receiver<T>>,
    /// Receivers in the order of their turns. A FIFO has one entry per packet; otherwise there is
    /// one entry per receiver that has packets.
    turns: VecDeque<usize>,
    /// Packets that are not done, and their bytes below.
    packets: usize,
    bytes: DataSize,
    /// When an MPDU was last done.
    last_done: Timestamp,
    log: Log<Option<T>>,
}

/// Packets for one receiver.
#[derive(Debug)]
struct Receiver<T> {
    waiting: Queue<Option<T>>,
    window: VecDeque<Mpdu<T>>,
    /// Number of packets that wait or are in the window and not done.
    packets: usize,
    /// Airtime left in its turn; negative if it used more.
    credit: TimeDelta,
}

/// A packet in the window. Packets of loads have no payload.
#[derive(Debug)]
struct Mpdu<T> {
    packet: Waiting<Option<T>>,
    /// Transmissions so far.
    attempts: u32,
    on_air: bool,
    /// Start of the frame in which the receiver first received it.
    received: Option<Timestamp>,
    delivered: bool,
    /// Either the sender knows that it was received, or it has given the packet up.
    done: bool,
}

/// Content of a frame: the number of its MPDUs and their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) mpdus: usize,
    first: DataSize,
    aggregate: DataSize,
}

impl Content {
    /// Size with all headers: of a plain MPDU if there is only one, otherwise of the A-MPDU.
    pub(super) fn size(&self) -> DataSize {
        if self.mpdus == 1 { self.first } else { self.aggregate }
    }

    fn with(self, mpdu: DataSize) -> Self {
        Self {
            mpdus: self.mpdus + 1,
            first: if self.mpdus == 0 { mpdu } else { self.first },
            aggregate: a_mpdu_with(self.aggregate, mpdu),
        }
    }
}

/// Limits on the content of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) mpdus: usize,
    pub(super) size: DataSize,
    /// One MPDU is allowed even if it exceeds `size`.
    pub(super) at_least_one: bool,
}

impl Limits {
    fn allow(&self, content: &Content) -> bool {
        content.size() <= self.size || (self.at_least_one && content.mpdus == 1)
    }
}

/// Result of a frame as its sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resolution {
    /// MPDUs that the sender knows to have been received.
    pub(super) acknowledged: usize,
    /// The contention window is reset although the frame failed: its oldest failed MPDU was given
    /// up or continues with a reset window.
    pub(super) is_fresh: bool,
}

impl<T: Debug + Send + 'static> SendQueue<T> {
    /// An empty queue for this many receivers. `chance` supplies the random stream of each
    /// receiver's queue.
    pub(super) fn new(
        kind: NodeQueue,
        retry: RetryPolicy,
        receivers: usize,
        chance: impl Fn(usize) -> Stream,
    ) -> Self {
        let aqm = match kind {
            NodeQueue::Fifo { .. } => Aqm::DropTail,
            NodeQueue::FairCoDel { codel, .. } => Aqm::FqCoDel(codel),
        };
        let receiver = |index| Receiver {
            waiting: Queue::new(aqm, chance(index)),
            window: VecDeque::new(),
            packets: 0,
            credit: TURN,
        };
        Self {
            kind,
            retry: Retry::new(retry),
            receivers: (0..receivers).map(receiver).collect(),
            turns: VecDeque::new(),
            packets: 0,
            bytes: DataSize::ZERO,
            last_done: Timestamp::ZERO,
            log: Log::new(),
        }
    }

    pub(super) fn has_packets(&self) -> bool {
        self.packets > 0
    }

    /// Bytes of IP packets that are not done.
    pub(super) fn bytes(&self) -> DataSize {
        self.bytes
    }

    /// Number of packets for a receiver that are not done.
    pub(super) fn packets_for(&self, receiver: usize) -> usize {
        self.receivers[receiver].packets
    }

    /// Number of transmissions so far of the next packet for a receiver.
    pub(super) fn attempts(&self, receiver: usize) -> u32 {
        let next = self.receivers[receiver].window.iter().find(|mpdu| !mpdu.done);
        next.map_or(0, |mpdu| mpdu.attempts)
    }

    /// The congestion that the sender has measured on its channel.
    pub(super) fn congestion(&mut self, now: Timestamp) -> Congestion {
        self.retry.congestion(now)
    }

    /// Whether a packet of this size fits without a drop.
    pub(super) fn has_room(&self, receiver: usize, size: DataSize) -> bool {
        let (limit, packets, bytes) = match self.kind {
            NodeQueue::Fifo { limit } => (limit, self.packets, self.bytes),
            NodeQueue::FairCoDel { limit, .. } => {
                let Receiver { waiting, packets, window, .. } = &self.receivers[receiver];
                (limit, packets - pending(window), waiting.bytes())
            }
        };
        match limit {
            WaitLimit::Packets(limit) => packets < limit,
            WaitLimit::Bytes(limit) => bytes + size <= limit,
        }
    }

    /// Enqueues a packet. This packet or others may be dropped.
    pub(super) fn enqueue(
        &mut self,
        now: Timestamp,
        receiver: usize,
        (header, payload): (Header, Option<T>),
        ledger: &mut Ledger<'_, T>,
    ) {
        let packet = Waiting { since: now, header, payload };
        ledger.offer(header.size);
        self.retry.on_arrival(now, header.size);
        let limit = match self.kind {
            NodeQueue::Fifo { .. } if !self.has_room(receiver, header.size) => {
                self.log.drop_full(now, packet);
                for dropped in self.log.dropped.drain(..) {
                    ledger.drop(dropped);
                }
                return;
            }
            NodeQueue::Fifo { .. } => QueueLimit::Packets(usize::MAX),
            NodeQueue::FairCoDel { limit, .. } => limit.into(),
        };
        let is_fifo = self.is_fifo();
        let entry = &mut self.receivers[receiver];
        if is_fifo || entry.packets == 0 {
            self.turns.push_back(receiver);
        }
        entry.packets += 1;
        self.packets += 1;
        self.bytes += header.size;
        let room = Room { capacity: &Capacity::Unlimited, limit };
        entry.waiting.enqueue(now, room, packet, &mut self.log);
        self.take_dropped(receiver, ledger);
    }

    /// Handles the packets that a receiver's queue has dropped.
    fn take_dropped(&mut self, receiver: usize, ledger: &mut Ledger<'_, T>) {
        while let Some(dropped) = self.log.dropped.pop_front() {
            self.forget(receiver, dropped.size);
            ledger.drop(dropped);
        }
    }

    /// Removes a packet for a receiver from the totals.
    fn forget(&mut self, receiver: usize, size: DataSize) {
        self.packets -= 1;
        self.bytes = self.bytes.saturating_sub(size);
        let is_fifo = self.is_fifo();
        let entry = &mut self.receivers[receiver];
        entry.packets -= 1;
        if is_fifo || entry.packets == 0 {
            entry.credit = TURN;
            let turn = self.turns.iter().position(|&other| other == receiver);
            self.turns.remove(turn.expect("a receiver with packets has a turn"));
        }
    }

    fn is_fifo(&self) -> bool {
        matches!(self.kind, NodeQueue::Fifo { .. })
    }

    /// The receiver of the next frame: in a FIFO that of the oldest packet, otherwise the one whose
    /// turn it is.
    pub(super) fn next_receiver(&mut self) -> Option<usize> {
        let is_fifo = self.is_fifo();
        loop {
            let receiver = *self.turns.front()?;
            let credit = &mut self.receivers[receiver].credit;
            if is_fifo || *credit > TimeDelta::ZERO {
                return Some(receiver);
            }
            *credit += TURN;
            self.turns.rotate_left(1);
        }
    }

    /// Charges a receiver's turn with the airtime of its frame.
    pub(super) fn charge(&mut self, receiver: usize, airtime: TimeDelta) {
        self.receivers[receiver].credit -= airtime;
    }

    /// Puts MPDUs for a receiver into a frame. The frame may stay empty: because of the limits, or
    /// because the queue management has dropped all waiting packets.
    pub(super) fn fill(
        &mut self,
        now: Timestamp,
        receiver: usize,
        limits: Limits,
        ledger: &mut Ledger<'_, T>,
    ) -> Content {
        let entry = &mut self.receivers[receiver];
        let mut content = Content::default();
        for position in 0..A_MPDU_COUNT_LIMIT {
            if content.mpdus >= limits.mpdus.max(1) {
                break;
            }
            if position == entry.window.len() {
                let Some(packet) = entry.waiting.dequeue(now, &mut self.log) else { break };
                entry.window.push_back(Mpdu::new(packet));
            }
            let mpdu = &mut entry.window[position];
            if mpdu.done {
                continue;
            }
            let more = content.with(mpdu_size(mpdu.packet.size()));
            if !limits.allow(&more) {
                break;
            }
            content = more;
            mpdu.on_air = true;
            mpdu.attempts += 1;
        }
        self.take_dropped(receiver, ledger);
        content
    }

    /// Handles the end of a frame at its receiver; the frame began at `start`. `decodes` says
    /// whether an MPDU can be decoded, given the offsets at which it begins and ends. Returns the
    /// number decoded.
    pub(super) fn receive(
        &mut self,
        now: Timestamp,
        (receiver, start): (usize, Timestamp),
        mut decodes: impl FnMut(DataSize, DataSize) -> bool,
        ledger: &mut Ledger<'_, T>,
    ) -> usize {
        let entry = &mut self.receivers[receiver];
        let mut decoded = 0;
        let mut content = Content::default();
        for mpdu in entry.window.iter_mut().filter(|mpdu| mpdu.on_air) {
            let size = mpdu_size(mpdu.packet.size());
            let begin = content.aggregate;
            content = content.with(size);
            if decodes(begin, content.aggregate) {
                decoded += 1;
                ledger.counters.duplicates += u64::from(mpdu.received.is_some());
                mpdu.received.get_or_insert(start);
            }
        }
        entry.deliver(now, ledger);
        decoded
    }

    /// Handles the result of a frame. Without an answer, the sender treats all its MPDUs as failed.
    pub(super) fn resolve(
        &mut self,
        now: Timestamp,
        receiver: usize,
        is_answered: bool,
        ledger: &mut Ledger<'_, T>,
    ) -> Resolution {
        let mut resolution = Resolution { acknowledged: 0, is_fresh: false };
        let mut is_oldest = true;
        for position in 0..self.receivers[receiver].window.len() {
            let mpdu = &mut self.receivers[receiver].window[position];
            if !mpdu.on_air {
                continue;
            }
            mpdu.on_air = false;
            ledger.counters.attempts += 1;
            let (size, since) = (mpdu.packet.size(), mpdu.packet.since);
            let is_acknowledged = is_answered && mpdu.received.is_some();
            if is_acknowledged {
                resolution.acknowledged += 1;
            } else {
                ledger.counters.failures += 1;
                let verdict = self.retry.verdict(now, mpdu.attempts, self.bytes);
                let is_fresh = verdict != RetryDecision::Transmit { reset_window: false };
                resolution.is_fresh |= is_oldest && is_fresh;
                is_oldest = false;
                if verdict != RetryDecision::Drop {
                    continue;
                }
                mpdu.give_up(now, ledger);
            }
            mpdu.done = true;
            self.forget(receiver, size);
            let delivered = if is_acknowledged { size } else { DataSize::ZERO };
            self.retry.on_finished(now, delivered, now - self.last_done.max(since));
            self.last_done = now;
        }
        let entry = &mut self.receivers[receiver];
        entry.deliver(now, ledger);
        while entry.window.front().is_some_and(|mpdu| mpdu.done) {
            entry.window.pop_front();
        }
        resolution
    }
}

impl<T> Receiver<T> {
    /// Delivers the received packets up to the first gap. An MPDU that was given up leaves no gap,
    /// because the sender moves the receiver's window forward.
    fn deliver(&mut self, now: Timestamp, ledger: &mut Ledger<'_, T>) {
        for mpdu in &mut self.window {
            match mpdu.received {
                Some(start) if !mpdu.delivered => ledger.deliver(mpdu.deliver(now, start)),
                None if !mpdu.done => break,
                Some(_) | None => {}
            }
        }
    }
}

impl<T> Mpdu<T> {
    fn new(packet: Waiting<Option<T>>) -> Self {
        Self { packet, attempts: 0, on_air: false, received: None, delivered: false, done: false }
    }

    fn deliver(&mut self, now: Timestamp, start: Timestamp) -> Delivery<Option<T>> {
        self.delivered = true;
        let Waiting { since, header: Header { size, ecn, .. }, ref mut payload } = self.packet;
        Delivery { due: now, queuing_delay: start - since, size, ecn, payload: payload.take() }
    }

    /// The sender gives the packet up. It counts as dropped only if the receiver did not receive it
    /// either.
    fn give_up(&mut self, now: Timestamp, ledger: &mut Ledger<'_, T>) {
        if self.received.is_none() {
            let (size, payload) = (self.packet.size(), self.packet.payload.take());
            ledger.drop(Dropped { at: now, cause: DropCause::RetryLimit, size, payload });
        }
    }
}

fn pending<T>(window: &VecDeque<Mpdu<T>>) -> usize {
    window.iter().filter(|mpdu| !mpdu.done).count()
}
