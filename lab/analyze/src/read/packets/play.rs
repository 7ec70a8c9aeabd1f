//! Plays a log: its packets and its feedback, joined, in the order of time.

use weir::SendHistory;
use weir::feedback::{ArrivalTimes, FeedbackReport, Outgoing, PacketReport, RtpNumber, SentPacket};
use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_rtcp::{FeedbackInput, FeedbackKind, Message, compact_ntp_to_time, messages};
use weir_wire::report::ReportBlock;

use super::{PacketLog, Sent};

/// A hole of more transport-wide numbers is a new begin.
const LARGEST_HOLE: i64 = 1_000;
/// Most numbers of all holes. A file of few packets must not make many.
const HOLES_MAX: i64 = 500_000;

/// What happens at the sender.
pub(crate) enum Event<'a> {
    /// A packet left.
    Sent(SentPacket),
    /// Feedback arrived.
    Report { report: &'a FeedbackReport, indices: &'a Indices },
    /// A receiver report gave a round-trip time.
    RoundTrip(TimeDelta),
}

/// Places in the log, by unwrapped transport-wide number.
#[derive(Default)]
pub(crate) struct Indices {
    first: i64,
    places: Vec<Option<usize>>,
}

impl Indices {
    /// Place in the log of the packet with this number.
    pub fn get(&self, number: i64) -> Option<usize> {
        *self.places.get(usize::try_from(number - self.first).ok()?)?
    }
}

/// Calls `take` for everything that happened, with its time. Without feedback nothing follows from
/// what was sent.
pub(crate) fn play(log: &PacketLog, take: &mut dyn FnMut(Timestamp, Event<'_>)) {
    if !log.has_feedback() {
        return;
    }
    let mut player = Player::new(log);
    let mut sent = log.sent.iter().enumerate().peekable();
    for (time, bytes) in &log.rtcp {
        while let Some((index, packet)) = sent.next_if(|(_, packet)| packet.time <= *time) {
            player.send(index, packet, take);
        }
        player.receive(*time, bytes, take);
    }
    for (index, packet) in sent {
        player.send(index, packet, take);
    }
}

/// The round-trip time without queues: the smallest by receiver reports, which leave out the
/// receiver's own delay, or by the other feedback, without what its newest packet waited.
pub(crate) fn base_round_trip(log: &PacketLog) -> Option<TimeDelta> {
    let mut smallest: Option<TimeDelta> = None;
    let mut base_delay: Option<TimeDelta> = None;
    // Round-trip time without the one-way delay of the newest packet.
    let mut rest: Option<TimeDelta> = None;
    play(log, &mut |now, event| match event {
        Event::Sent(_) => {}
        Event::RoundTrip(rtt) => smallest = [smallest, Some(rtt)].into_iter().flatten().min(),
        Event::Report { report, .. } if report.arrival_times != ArrivalTimes::Measured => {}
        Event::Report { report, .. } => {
            let delays = report.received().filter_map(PacketReport::one_way_delay);
            base_delay = delays.chain(base_delay).min();
            let newest = report.received().max_by_key(|packet| packet.send_time);
            let delay = newest.and_then(PacketReport::one_way_delay);
            let without = report.rtt(now).zip(delay).map(|(rtt, delay)| rtt - delay);
            rest = [rest, without].into_iter().flatten().min();
        }
    });
    let measured = rest.zip(base_delay).map(|(rest, base)| rest + base);
    // Zero is what drifting clocks give.
    [smallest, measured].into_iter().flatten().filter(|rtt| *rtt > TimeDelta::ZERO).min()
}

/// The most precise kind of feedback that came.
pub(crate) fn most_precise(log: &PacketLog) -> Option<FeedbackKind> {
    let mut most_precise = None;
    for (_, bytes) in &log.rtcp {
        for message in messages(bytes).flatten() {
            most_precise = most_precise.max(message.kind());
        }
    }
    most_precise
}

struct Player<'a> {
    log: &'a PacketLog,
    history: SendHistory,
    indices: Indices,
    /// The number that follows the last sent packet's.
    next: i64,
    /// Numbers of all holes so far.
    holes: i64,
    feedback: FeedbackInput,
}

impl<'a> Player<'a> {
    fn new(log: &'a PacketLog) -> Self {
        let next = log.sent.first().and_then(|packet| packet.number.get()).unwrap_or(0);
        let (history, indices) = begin(next);
        Self {
            log,
            history,
            indices,
            next,
            holes: 0,
            feedback: FeedbackInput::new(most_precise(log)),
        }
    }

    fn send(&mut self, index: usize, packet: &Sent, take: &mut dyn FnMut(Timestamp, Event<'_>)) {
        if let Some(number) = packet.number.get() {
            let hole = number - self.next;
            if hole > LARGEST_HOLE || hole > HOLES_MAX - self.holes {
                (self.history, self.indices) = begin(number);
                self.next = number;
            }
            self.holes += (number - self.next).max(0);
            // A packet that the log lacks has a number all the same.
            while self.next < number {
                self.put(packet.time, Outgoing::media(DataSize::ZERO), None, take);
            }
        }
        let rtp = RtpNumber { ssrc: packet.ssrc, sequence_number: packet.sequence_number };
        let outgoing = Outgoing::media(DataSize::from_bytes(u64::from(packet.size)))
            .with_padding(packet.is_padding)
            .with_rtp(Some(rtp));
        self.put(packet.time, outgoing, Some(index), take);
    }

    fn put(
        &mut self,
        time: Timestamp,
        outgoing: Outgoing,
        index: Option<usize>,
        take: &mut dyn FnMut(Timestamp, Event<'_>),
    ) {
        let packet = self.history.on_packet_sent(time, outgoing);
        self.indices.places.push(index);
        self.next += 1;
        take(time, Event::Sent(packet));
    }

    fn receive(
        &mut self,
        time: Timestamp,
        bytes: &[u8],
        take: &mut dyn FnMut(Timestamp, Event<'_>),
    ) {
        for message in messages(bytes).flatten() {
            let Some(kind) = message.kind() else { continue };
            if let Message::Report(view) = &message {
                for block in view.blocks() {
                    if let Some(rtt) = round_trip_time(self.log, time, &block) {
                        take(time, Event::RoundTrip(rtt));
                    }
                }
            }
            if self.feedback.accepts(time, kind) {
                let rtt = |block: &ReportBlock| round_trip_time(self.log, time, block);
                if let Some(report) = message.join_with(time, &mut self.history, rtt) {
                    take(time, Event::Report { report, indices: &self.indices });
                }
            }
        }
    }
}

/// A history whose first packet has this number, of which the low 16 bits matter.
fn begin(number: i64) -> (SendHistory, Indices) {
    let first = (number & 0xFFFF) as u16;
    (SendHistory::new(first), Indices { first: i64::from(first), places: Vec::new() })
}

/// The time since the sender report that a block answers left, without the receiver's delay
/// [RFC3550 §6.4.1].
///
/// [RFC3550 §6.4.1]: https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1
fn round_trip_time(log: &PacketLog, now: Timestamp, block: &ReportBlock) -> Option<TimeDelta> {
    let left = log.sender_reports.get(&block.last_sender_report)?;
    let held = compact_ntp_to_time(block.delay_since_last_sender_report);
    Some((now - *left - held).max(TimeDelta::ZERO))
}
