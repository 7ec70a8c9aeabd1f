//! The sender's memory of what it sent, joined with feedback.

use alloc::collections::VecDeque;

use super::{Ecn, FeedbackReport, PacketReport, SentPacket, Unwrapper};
use crate::controller::ProbeId;
use crate::units::{DataSize, TimeDelta, Timestamp};

/// Packets older than this are forgotten: feedback on them is worth nothing any more.
const HISTORY: TimeDelta = TimeDelta::from_secs(10);
/// No more than half the sequence-number space, or a late number would be taken for a new one.
const MAX_PACKETS: usize = 1 << 15;
/// One tick of a TWCC reference time (64 ms) and of a receive delta (250 us), in microseconds.
const REFERENCE_TICK_US: i64 = 64_000;
const DELTA_TICK_US: i64 = 250;

/// A packet that is about to leave: [`SentPacket`] before it has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// As in [`SentPacket::size`].
    pub size: DataSize,
    /// As in [`SentPacket::queued`].
    pub queued: DataSize,
    /// As in [`SentPacket::probe`].
    pub probe: Option<ProbeId>,
    /// As in [`SentPacket::padding`].
    pub padding: bool,
}

impl Outgoing {
    /// A media packet of this size with nothing behind it.
    pub const fn media(size: DataSize) -> Self {
        Self { size, queued: DataSize::ZERO, probe: None, padding: false }
    }
}

/// The fields of a transport-wide feedback packet that stand before its arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwccHeader {
    /// Reference time on the wire: 24 bits, unit 64 ms.
    pub reference_time: u32,
    /// Feedback packet count: wraps at 256.
    pub feedback_count: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Unknown,
    Lost,
    Received,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    send_time: Timestamp,
    size: DataSize,
    probe: Option<ProbeId>,
    fate: Fate,
}

/// What was sent in the last seconds, and what feedback said of it.
///
/// Memory is bounded: 10 s or 32,768 packets, whichever is less.
#[derive(Clone, Debug, Default)]
pub struct SendHistory {
    /// Sequence number of the front entry.
    first: i64,
    entries: VecDeque<Entry>,
    reference_time: Unwrapper<24>,
    feedback_count: Option<Unwrapper<8>>,
    last_feedback: i64,
    report: FeedbackReport,
}

impl SendHistory {
    /// An empty history whose first packet gets sequence number `first`.
    pub fn new(first: u16) -> Self {
        Self { first: i64::from(first), ..Self::default() }
    }

    /// The sequence number of the next packet, unwrapped; the wire carries its low 16 bits.
    pub fn next_sequence_number(&self) -> i64 {
        self.first + self.entries.len() as i64
    }

    /// Notes a packet as sent and numbers it.
    pub fn on_packet_sent(&mut self, now: Timestamp, packet: Outgoing) -> SentPacket {
        while self.entries.len() >= MAX_PACKETS
            || self.entries.front().is_some_and(|entry| entry.send_time + HISTORY < now)
        {
            self.entries.pop_front();
            self.first += 1;
        }
        let sequence_number = self.next_sequence_number();
        let Outgoing { size, queued, probe, padding } = packet;
        self.entries.push_back(Entry { send_time: now, size, probe, fate: Fate::Unknown });
        SentPacket { sequence_number, size, queued, probe, padding }
    }

    /// Joins a transport-wide feedback packet with what was sent. `arrivals` gives, by rising sequence
    /// number, the number on the wire and the arrival in 250 us ticks after the reference time, or
    /// `None` for a packet that was not received.
    ///
    /// Returns `None` if it tells nothing new: a duplicate, or packets that are forgotten or were never
    /// sent.
    pub fn on_twcc(
        &mut self,
        header: TwccHeader,
        arrivals: impl Iterator<Item = (u16, Option<i32>)>,
    ) -> Option<&FeedbackReport> {
        let reference_us = self.reference_time.unwrap(header.reference_time) * REFERENCE_TICK_US;
        self.report.packets.clear();
        // The newest number is the anchor: all others are at most half a number space older.
        let newest = self.next_sequence_number() - 1;
        let mut unwrapper = Unwrapper::<16>::default();
        unwrapper.set_last(newest);
        for (number, ticks) in arrivals {
            let arrival = ticks.map(|ticks| {
                Timestamp::from_micros(reference_us + i64::from(ticks) * DELTA_TICK_US)
            });
            self.judge(unwrapper.peek(number.into()), arrival);
        }
        self.count_missing_feedback(header.feedback_count);
        (!self.report.packets.is_empty()).then_some(&self.report)
    }

    fn judge(&mut self, sequence_number: i64, arrival_time: Option<Timestamp>) {
        let Ok(index) = usize::try_from(sequence_number - self.first) else { return };
        let Some(entry) = self.entries.get_mut(index) else { return };
        let recovered = match (entry.fate, arrival_time) {
            (Fate::Unknown, _) => false,
            (Fate::Lost, Some(_)) => true,
            (Fate::Lost, None) | (Fate::Received, _) => return,
        };
        entry.fate = if arrival_time.is_some() { Fate::Received } else { Fate::Lost };
        self.report.packets.push(PacketReport {
            sequence_number,
            size: entry.size,
            send_time: entry.send_time,
            arrival_time,
            ecn: Ecn::NotEct,
            recovered,
            probe: entry.probe,
        });
    }

    fn count_missing_feedback(&mut self, count: u8) {
        let unwrapper = self.feedback_count.get_or_insert_with(|| {
            let mut fresh = Unwrapper::default();
            fresh.set_last(i64::from(count) - 1);
            self.last_feedback = i64::from(count) - 1;
            fresh
        });
        let number = unwrapper.unwrap(count.into());
        // A late or repeated packet misses nothing and does not move the newest number back.
        self.report.missing_feedback = u32::try_from(number - self.last_feedback - 1).unwrap_or(0);
        self.last_feedback = self.last_feedback.max(number);
        unwrapper.set_last(self.last_feedback);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: DataSize = DataSize::from_bytes(1200);

    fn history_of(first: u16, packets: i64) -> SendHistory {
        let mut history = SendHistory::new(first);
        for number in 0..packets {
            history.on_packet_sent(Timestamp::from_millis(number), Outgoing::media(SIZE));
        }
        history
    }

    fn header(feedback_count: u8) -> TwccHeader {
        TwccHeader { reference_time: 0, feedback_count }
    }

    #[test]
    fn feedback_is_joined_over_the_wrap_of_the_sequence_number() {
        let mut history = history_of(65_534, 4);
        let arrivals = [(65_534, Some(4)), (65_535, None), (0, Some(8)), (1, Some(12))];
        let report = history.on_twcc(header(0), arrivals.into_iter()).unwrap();
        let seen: alloc::vec::Vec<_> =
            report.packets.iter().map(|p| (p.sequence_number, p.arrival_time)).collect();
        assert_eq!(
            seen,
            [
                (65_534, Some(Timestamp::from_millis(1))),
                (65_535, None),
                (65_536, Some(Timestamp::from_millis(2))),
                (65_537, Some(Timestamp::from_millis(3))),
            ]
        );
    }

    #[test]
    fn a_fate_is_told_once_and_again_only_when_a_lost_packet_arrives() {
        let mut history = history_of(0, 2);
        let first = history.on_twcc(header(0), [(0, None), (1, Some(4))].into_iter()).unwrap();
        assert_eq!(
            first.loss_counts(),
            super::super::LossCounts { received: 1, lost: 1, recovered: 0 }
        );
        let again = history.on_twcc(header(1), [(0, None), (1, Some(4))].into_iter());
        assert_eq!(again, None);
        let late = history.on_twcc(header(2), [(0, Some(9))].into_iter()).unwrap();
        assert_eq!(
            late.loss_counts(),
            super::super::LossCounts { received: 0, lost: 0, recovered: 1 }
        );
    }

    #[test]
    fn packets_that_were_never_sent_or_are_forgotten_are_ignored() {
        let mut history = history_of(0, 2);
        assert_eq!(history.on_twcc(header(0), [(2, Some(1)), (40_000, Some(1))].into_iter()), None);
        history.on_packet_sent(Timestamp::from_secs(60), Outgoing::media(SIZE));
        assert_eq!(history.on_twcc(header(1), [(0, Some(1))].into_iter()), None);
    }

    #[test]
    fn missing_feedback_is_counted_modulo_256_and_a_late_one_is_not_missing() {
        let mut history = history_of(0, 10);
        let mut missing = |count, number| {
            history
                .on_twcc(header(count), [(number, Some(1))].into_iter())
                .unwrap()
                .missing_feedback
        };
        assert_eq!(missing(254, 0), 0);
        assert_eq!(missing(255, 1), 0);
        assert_eq!(missing(2, 2), 2);
        assert_eq!(missing(0, 3), 0);
        assert_eq!(missing(3, 4), 0);
    }

    #[test]
    fn the_reference_time_counts_on_over_its_24_bits() {
        let mut history = history_of(0, 2);
        let before = TwccHeader { reference_time: 0xFF_FFFF, feedback_count: 0 };
        let after = TwccHeader { reference_time: 0, feedback_count: 1 };
        let a = history.on_twcc(before, [(0, Some(0))].into_iter()).unwrap().packets[0];
        let b = history.on_twcc(after, [(1, Some(0))].into_iter()).unwrap().packets[0];
        assert_eq!(b.arrival_time.unwrap() - a.arrival_time.unwrap(), TimeDelta::from_millis(64));
    }

    #[test]
    fn memory_is_bounded_by_half_the_number_space() {
        let mut history = SendHistory::new(0);
        for _ in 0..100_000 {
            history.on_packet_sent(Timestamp::ZERO, Outgoing::media(SIZE));
        }
        assert_eq!(history.entries.len(), MAX_PACKETS);
        assert_eq!(history.next_sequence_number(), 100_000);
    }
}
