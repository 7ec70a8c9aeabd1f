//! Radio link control (RLC): packets become parts of blocks, and parts become packets again, in
//! order.
//!
//! Both ends of a bearer's direction are one object. Its packets form a stream of bytes; a block
//! carries a range of it. The receiver keeps the ranges that arrived, delivers packets in order,
//! and holds back what follows a gap. In unacknowledged mode it gives up a gap after
//! `t-Reordering`; in acknowledged mode the sender learns of it and sends it again
//! (3GPP TS 36.322 §5.1.2, §5.1.3).

use std::collections::VecDeque;
use std::fmt::Debug;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::service::{BearerQueue, RlcMode};
use crate::capacity::Capacity;
use crate::packet::{Delivery, DropCause, Dropped, Header, Waiting};
use crate::queue::{Discipline, Log, Queue, QueueLimit, Room};
use crate::seed::Stream;

/// Bytes that PDCP adds to a packet.
const PDCP_HEADER: u64 = 2;
/// Bytes of the header of a part: RLC with a sequence number of ten bits.
const HEADER: u64 = 2;
/// Bytes of the header in acknowledged mode beyond [`HEADER`]. ns-3 counts four in all.
const ACKNOWLEDGED_HEADER: u64 = 2;
/// A part with less room than this is not worth a header.
pub(super) const PART_MIN: u64 = 8;

/// A range of a bearer's stream of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Span {
    pub(super) const fn is_empty(self) -> bool {
        self.to <= self.from
    }

    const fn len(self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// A packet of which the first byte has been sent.
#[derive(Debug)]
struct Sent<T> {
    packet: Waiting<Option<T>>,
    /// When its first byte was put into a block.
    begun: Timestamp,
    span: Span,
    lost: bool,
}

/// What happened to packets, for the caller to pass on.
#[derive(Debug)]
pub(super) struct Fates<T> {
    pub(super) delivered: VecDeque<Delivery<Option<T>>>,
    pub(super) dropped: Log<Option<T>>,
}

impl<T> Fates<T> {
    pub(super) fn new() -> Self {
        Self { delivered: VecDeque::new(), dropped: Log::new() }
    }
}

/// One direction of a bearer.
#[derive(Debug)]
pub(super) struct Channel<T> {
    mode: RlcMode,
    limit: QueueLimit,
    waiting: Queue<Option<T>>,
    packets: usize,
    sent: VecDeque<Sent<T>>,
    /// End of the last packet in the stream, and of what has been put into blocks.
    end: u64,
    next: u64,
    /// Acknowledged mode: ranges to be sent again.
    again: VecDeque<Span>,
    receiver: Receiver,
    acknowledgements: Acknowledgements,
}

/// The ranges that have arrived.
#[derive(Debug, Default)]
struct Receiver {
    /// Everything before is delivered or given up.
    delivered: u64,
    /// Ranges beyond, in order, not adjacent.
    ahead: VecDeque<Span>,
    /// When `t-Reordering` ends, and the end of what had arrived when it began.
    reordering: Option<(Timestamp, u64)>,
}

/// What sender and receiver know of each other in acknowledged mode.
#[derive(Debug, Default)]
struct Acknowledgements {
    /// Gaps before this offset are old enough to be reported.
    reportable: u64,
    /// When the next status may be sent, and when the last one reaches the sender.
    prohibited_until: Timestamp,
    report: Option<(Timestamp, u64)>,
    is_due: bool,
    /// When the sender last sent something.
    last_sent: Timestamp,
    /// Everything before is known to have arrived.
    acknowledged: u64,
}

impl<T: Debug + Send + 'static> Channel<T> {
    pub(super) fn new(mode: RlcMode, queue: &BearerQueue, stream: Stream) -> Self {
        Self {
            mode,
            limit: queue.limit,
            waiting: Queue::new(queue.aqm, stream),
            packets: 0,
            sent: VecDeque::new(),
            end: 0,
            next: 0,
            again: VecDeque::new(),
            receiver: Receiver::default(),
            acknowledgements: Acknowledgements::default(),
        }
    }

    /// Puts a packet into the queue.
    pub(super) fn enqueue(
        &mut self,
        now: Timestamp,
        header: Header,
        payload: Option<T>,
        outcomes: &mut Fates<T>,
    ) {
        let packet = Waiting { since: now, header, payload };
        // The limit counts the rest of a packet that is partly sent, and the headers of PDCP.
        let headers = PDCP_HEADER * (self.packets as u64 + 1);
        let more = DataSize::from_bytes(self.end - self.next + headers);
        let limit = match self.limit {
            QueueLimit::Bytes(limit) => QueueLimit::Bytes(limit.saturating_sub(more)),
            other => other,
        };
        let room = Room { capacity: &Capacity::Unlimited, limit };
        let dropped = outcomes.dropped.dropped.len();
        self.waiting.enqueue(now, room, packet, &mut outcomes.dropped);
        self.packets += 1;
        self.packets -= outcomes.dropped.dropped.len() - dropped;
    }

    /// Whether the queue holds fewer bytes than this. Loads that never end refill it until it does
    /// not.
    pub(super) fn holds_less_than(&self, bytes: u64) -> bool {
        self.backlog() < bytes
    }

    /// Bytes that wait to be put into blocks, with the headers of PDCP.
    pub(super) fn backlog(&self) -> u64 {
        self.repeated() + self.new_bytes()
    }

    fn repeated(&self) -> u64 {
        if self.again.is_empty() {
            return 0;
        }
        self.again.iter().map(|span| span.len()).sum()
    }

    fn new_bytes(&self) -> u64 {
        let waiting = self.waiting.bytes().as_bytes() + PDCP_HEADER * self.packets as u64;
        waiting + (self.end - self.next)
    }

    /// The size that a buffer report gives: the backlog and an estimate of the headers.
    pub(super) fn reported(&self) -> u64 {
        let begun = u64::from(self.end > self.next);
        self.backlog() + HEADER * (self.packets as u64 + begun)
    }

    /// The size that a buffer report of ns-3 gives. In acknowledged mode it counts all bytes that
    /// were sent and are not acknowledged, and no headers.
    pub(super) fn claimed(&self) -> u64 {
        match self.mode {
            RlcMode::Unacknowledged { .. } => self.reported(),
            RlcMode::Acknowledged { .. } => {
                self.backlog() + (self.next - self.acknowledgements.acknowledged)
            }
        }
    }

    /// Bytes in the queue and in blocks that are not done.
    pub(super) fn bytes(&self) -> DataSize {
        DataSize::from_bytes(self.backlog())
    }

    /// Age of the oldest packet that is not wholly in a block.
    pub(super) fn head_delay(&self, now: Timestamp) -> TimeDelta {
        let begun = self.sent.back().filter(|_| self.end > self.next);
        let begun = begun.map_or(TimeDelta::ZERO, |sent| now - sent.packet.since);
        begun.max(self.waiting.head_delay(now))
    }

    fn header(&self) -> u64 {
        match self.mode {
            RlcMode::Unacknowledged { .. } => HEADER,
            RlcMode::Acknowledged { .. } => HEADER + ACKNOWLEDGED_HEADER,
        }
    }

    /// Fills a part of a block of at most this size. Returns the range that it carries, which is
    /// empty if there is nothing to send or no room, and the bytes that it takes with its headers.
    pub(super) fn fill(
        &mut self,
        now: Timestamp,
        size: u64,
        outcomes: &mut Fates<T>,
    ) -> (Span, u64) {
        let Some(mut room) = size.checked_sub(self.header()).filter(|room| *room > 0) else {
            return (Span::default(), 0);
        };
        self.acknowledgements.last_sent = now;
        if let Some(span) = self.again.front_mut() {
            let part = Span { from: span.from, to: span.to.min(span.from + room) };
            span.from = part.to;
            if span.is_empty() {
                self.again.pop_front();
            }
            return (part, self.header() + part.len());
        }
        let from = self.next;
        let mut lengths = 0_u64;
        while room > 0 {
            if self.next == self.end && !self.begin(now, outcomes) {
                break;
            }
            let taken = room.min(self.end - self.next);
            self.next += taken;
            room -= taken;
            // A boundary within the part needs a length field of 12 bits: two bytes for the first
            // of a pair, one more for the second. With no more room than that, the part ends.
            if room <= 2 || self.packets == 0 {
                break;
            }
            room -= if lengths.is_multiple_of(2) { 2 } else { 1 };
            lengths += 1;
        }
        let span = Span { from, to: self.next };
        (span, if span.is_empty() { 0 } else { size - room })
    }

    /// Takes the next packet from the queue into the stream.
    fn begin(&mut self, now: Timestamp, outcomes: &mut Fates<T>) -> bool {
        let dropped = outcomes.dropped.dropped.len();
        let packet = self.waiting.dequeue(now, &mut outcomes.dropped);
        self.packets -= outcomes.dropped.dropped.len() - dropped + usize::from(packet.is_some());
        let Some(packet) = packet else { return false };
        let span = Span { from: self.end, to: self.end + packet.size().as_bytes() + PDCP_HEADER };
        self.end = span.to;
        self.sent.push_back(Sent { packet, begun: now, span, lost: false });
        true
    }

    /// A part has been decoded.
    pub(super) fn receive(&mut self, now: Timestamp, span: Span, outcomes: &mut Fates<T>) {
        self.receiver.insert(span);
        self.advance(now, outcomes);
        if let RlcMode::Acknowledged { .. } = self.mode {
            self.acknowledgements.is_due = true;
        }
    }

    /// A part will not be decoded: its block has had its last transmission. In unacknowledged mode
    /// its packets are given up with the timer of the gap, also if nothing follows them.
    pub(super) fn lose(&mut self, now: Timestamp, span: Span) {
        if let RlcMode::Unacknowledged { reordering } = self.mode
            && span.to > self.receiver.delivered
        {
            self.receiver.reordering.get_or_insert((now + reordering, span.to));
        }
    }

    /// Delivers what is in order, and starts or stops the timer of a gap.
    fn advance(&mut self, now: Timestamp, outcomes: &mut Fates<T>) {
        let timer = match self.mode {
            RlcMode::Unacknowledged { reordering } | RlcMode::Acknowledged { reordering, .. } => {
                reordering
            }
        };
        self.receiver.advance(now, timer);
        while let Some(sent) = self.sent.front()
            && sent.span.to <= self.receiver.delivered
        {
            let Sent { packet, begun, lost, .. } = self.sent.pop_front().expect("it is the front");
            let Waiting { since, header, payload } = packet;
            if lost {
                let cause = DropCause::RetryLimit;
                let dropped = Dropped { at: now, cause, size: header.size, payload };
                outcomes.dropped.dropped.push_back(dropped);
            } else {
                outcomes.delivered.push_back(Delivery {
                    due: now,
                    queuing_delay: begun - since,
                    size: header.size,
                    ecn: header.ecn,
                    payload,
                });
            }
        }
    }

    /// When [`Channel::on_time`] has something to do; `MAX` for never. It may be too early.
    pub(super) fn next_timer(&self) -> Timestamp {
        let reordering = self.receiver.reordering.map_or(Timestamp::MAX, |(end, _)| end);
        let RlcMode::Acknowledged { poll_retransmit, .. } = self.mode else { return reordering };
        let Acknowledgements { report, is_due, prohibited_until, last_sent, .. } =
            &self.acknowledgements;
        let arrival = report.map_or(Timestamp::MAX, |(arrival, _)| arrival);
        let status = if *is_due { *prohibited_until } else { Timestamp::MAX };
        let poll = if self.has_unknown() { *last_sent + poll_retransmit } else { Timestamp::MAX };
        reordering.min(arrival).min(status).min(poll)
    }

    /// Whether bytes that were sent have neither arrived nor are about to be sent again.
    fn has_unknown(&self) -> bool {
        self.receiver.delivered < self.next && self.again.is_empty()
    }

    /// Runs the timers that are due. A status takes `delay` to the sender.
    pub(super) fn on_time(&mut self, now: Timestamp, delay: TimeDelta, outcomes: &mut Fates<T>) {
        if let Some((_, reached)) = self.receiver.reordering.filter(|(end, _)| *end <= now) {
            self.receiver.reordering = None;
            match self.mode {
                RlcMode::Unacknowledged { .. } => self.give_up(now, reached, outcomes),
                RlcMode::Acknowledged { .. } => {
                    self.acknowledgements.reportable = reached;
                    self.acknowledgements.is_due = true;
                    self.advance(now, outcomes);
                }
            }
        }
        let RlcMode::Acknowledged { status_prohibit, poll_retransmit, .. } = self.mode else {
            return;
        };
        let state = &mut self.acknowledgements;
        if state.is_due && state.prohibited_until <= now {
            state.is_due = false;
            state.prohibited_until = now + status_prohibit;
            state.report.get_or_insert((now + delay, state.reportable));
        }
        if let Some((_, reached)) = state.report.filter(|(arrival, _)| *arrival <= now) {
            state.report = None;
            state.acknowledged = self.receiver.delivered;
            self.send_again(reached);
        }
        let silent = now >= self.acknowledgements.last_sent + poll_retransmit;
        if silent && self.has_unknown() {
            self.acknowledgements.last_sent = now;
            self.send_again(self.next);
        }
    }

    /// Puts the gaps before an offset into the list of ranges to be sent again.
    fn send_again(&mut self, before: u64) {
        let before = before.min(self.next);
        let mut from = self.receiver.delivered;
        let arrived = self.receiver.ahead.iter().copied();
        for span in arrived.chain([Span { from: before, to: u64::MAX }]) {
            let gap = Span { from, to: span.from.min(before) };
            let is_listed = self.again.iter().any(|it| it.from < gap.to && gap.from < it.to);
            if !gap.is_empty() && !is_listed {
                self.again.push_back(gap);
            }
            from = from.max(span.to);
        }
    }

    /// Gives up what is missing before an offset: the packets concerned are lost.
    fn give_up(&mut self, now: Timestamp, before: u64, outcomes: &mut Fates<T>) {
        while self.receiver.delivered < before {
            let from = self.receiver.delivered;
            let to = self.receiver.ahead.front().map_or(before, |span| span.from.min(before));
            for sent in &mut self.sent {
                sent.lost |= sent.span.from < to && from < sent.span.to;
            }
            self.receiver.skip_to(to);
        }
        self.advance(now, outcomes);
    }

    /// Takes back or gives up everything that is on the air, as at a handover: acknowledged mode
    /// sends it again, unacknowledged mode loses it.
    pub(super) fn interrupt(&mut self, now: Timestamp, outcomes: &mut Fates<T>) {
        match self.mode {
            RlcMode::Acknowledged { .. } => {
                self.again.clear();
                self.send_again(self.next);
            }
            RlcMode::Unacknowledged { .. } => self.give_up(now, self.next, outcomes),
        }
    }

    /// Drops all packets, as when the bearer ends.
    pub(super) fn clear(&mut self, now: Timestamp, outcomes: &mut Fates<T>) {
        while self.begin(now, outcomes) {}
        for Sent { packet, .. } in self.sent.drain(..) {
            outcomes.dropped.drop(now, DropCause::RetryLimit, packet);
        }
        self.next = self.end;
        self.again.clear();
        self.receiver = Receiver { delivered: self.end, ..Receiver::default() };
        self.acknowledgements =
            Acknowledgements { acknowledged: self.end, ..Acknowledgements::default() };
    }
}

impl Receiver {
    /// Adds a range that has arrived; it may overlap what is there.
    fn insert(&mut self, span: Span) {
        let mut span = Span { from: span.from.max(self.delivered), ..span };
        if span.is_empty() {
            return;
        }
        let first = self.ahead.partition_point(|other| other.to < span.from);
        let mut last = first;
        while let Some(other) = self.ahead.get(last).filter(|other| other.from <= span.to) {
            span = Span { from: span.from.min(other.from), to: span.to.max(other.to) };
            last += 1;
        }
        self.ahead.drain(first..last);
        self.ahead.insert(first, span);
    }

    /// Moves the end of what is in order; starts `t-Reordering` at a gap, and stops it when what it
    /// waited for has arrived.
    fn advance(&mut self, now: Timestamp, timer: TimeDelta) {
        while let Some(span) = self.ahead.front().filter(|span| span.from <= self.delivered) {
            self.delivered = self.delivered.max(span.to);
            self.ahead.pop_front();
        }
        if self.reordering.is_some_and(|(_, reached)| self.delivered >= reached) {
            self.reordering = None;
        }
        if self.reordering.is_none()
            && let Some(last) = self.ahead.back()
        {
            // The gaps before the last range; the range itself has arrived.
            self.reordering = Some((now + timer, last.from));
        }
    }

    /// Treats everything before an offset as arrived.
    fn skip_to(&mut self, offset: u64) {
        self.delivered = self.delivered.max(offset);
        while let Some(span) = self.ahead.front().filter(|span| span.from <= self.delivered) {
            self.delivered = self.delivered.max(span.to);
            self.ahead.pop_front();
        }
    }
}
