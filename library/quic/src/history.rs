//! The packets that the host sent, and what is known of them.

use alloc::collections::VecDeque;
use core::ops::RangeInclusive;

use weir::controller::ProbeId;
use weir::{DataSize, TimeDelta, Timestamp};

/// Packets older than this are forgotten: no host waits longer for an ACK.
const HISTORY: TimeDelta = TimeDelta::from_secs(10);
/// The most packets that are kept, whatever the rate.
const MAX_PACKETS: usize = 1 << 16;
/// Room for this many packets from the start.
const ROOM: usize = 1 << 10;

/// A packet number space [RFC9000 §12.3]. Each one counts its packets from 0.
///
/// [RFC9000 §12.3]: https://www.rfc-editor.org/rfc/rfc9000#section-12.3
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Of Initial packets.
    Initial,
    /// Of Handshake packets.
    Handshake,
    /// Of 0-RTT and 1-RTT packets.
    Data,
}

/// An ack-eliciting packet that left the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// Its number space; `None` if the host does not tell.
    pub space: Option<Space>,
    /// Its packet number; `None` if the host does not tell.
    pub number: Option<u64>,
    /// The bytes of the QUIC packet, without IP and UDP.
    pub size: DataSize,
    /// It carries padding alone, as a probe of the application does.
    pub padding: bool,
}

impl Sent {
    /// A packet of this space and number.
    pub const fn new(space: Space, number: u64, size: DataSize) -> Self {
        Self { space: Some(space), number: Some(number), size, padding: false }
    }

    /// A packet of a host that does not tell number spaces.
    pub const fn numbered(number: u64, size: DataSize) -> Self {
        Self { space: None, number: Some(number), size, padding: false }
    }

    /// A packet of a host that tells no numbers.
    pub const fn unnumbered(size: DataSize) -> Self {
        Self { space: None, number: None, size, padding: false }
    }

    /// The same as padding or not.
    #[must_use]
    pub const fn with_padding(mut self, padding: bool) -> Self {
        self.padding = padding;
        self
    }
}

/// How a host names a packet that it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketName {
    /// Its number space and number: exact.
    Numbered(Space, u64),
    /// Its number and, if known, the time at which it was sent. Of several, the newest of which
    /// nothing is known yet.
    Number(u64, Option<Timestamp>),
    /// When it was sent. Of several, the oldest of which nothing is known yet.
    SentAt(Timestamp),
}

/// What the host said of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receipt {
    Unknown,
    Lost,
    Received,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    space: Option<Space>,
    number: u64,
    pub(crate) send_time: Timestamp,
    /// With the headers of IP and UDP.
    pub(crate) size: DataSize,
    pub(crate) probe: Option<ProbeId>,
    pub(crate) receipt: Receipt,
    /// The ACK frame that is being read acknowledges it.
    pub(crate) is_acked: bool,
    /// When the receiver says that it arrived, on its own clock.
    pub(crate) receive_time: Option<Timestamp>,
}

impl Entry {
    /// Whether the host has said nothing of it.
    pub(crate) fn is_unknown(&self) -> bool {
        self.receipt == Receipt::Unknown && !self.is_acked
    }
}

/// The packets of the last seconds, in the order in which they were sent. Each has a number of its
/// own here, which grows by one, because the three number spaces all begin at 0.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// The own number of the front entry.
    first: i64,
    entries: VecDeque<Entry>,
    /// Own numbers at which a run begins. In a run the host's numbers increase. During the
    /// handshake runs are short; after it there is one.
    runs: VecDeque<i64>,
    newest: Timestamp,
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            first: 0,
            entries: VecDeque::with_capacity(ROOM),
            runs: VecDeque::with_capacity(ROOM),
            newest: Timestamp::ZERO,
        }
    }

    /// Records a packet. Returns its own number.
    pub(crate) fn add(
        &mut self,
        now: Timestamp,
        sent: &Sent,
        size: DataSize,
        probe: Option<ProbeId>,
    ) -> i64 {
        self.forget(now);
        let own = self.first + self.entries.len() as i64;
        let last = self.entries.back().map(|entry| entry.number);
        let number = sent.number.unwrap_or(last.map_or(0, |last| last.saturating_add(1)));
        if last.is_none_or(|last| number <= last) {
            self.runs.push_back(own);
        }
        // Search by time needs an order, also if the host's clock was set back.
        self.newest = if self.entries.is_empty() { now } else { self.newest.max(now) };
        self.entries.push_back(Entry {
            space: sent.space,
            number,
            send_time: self.newest,
            size,
            probe,
            receipt: Receipt::Unknown,
            is_acked: false,
            receive_time: None,
        });
        own
    }

    /// Forgets all packets. Own numbers go on.
    pub(crate) fn clear(&mut self) {
        self.first += self.entries.len() as i64;
        self.entries.clear();
        self.runs.clear();
    }

    pub(crate) fn get(&mut self, own: i64) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(own - self.first).ok()?)
    }

    /// The own number of a packet.
    pub(crate) fn find(&self, name: PacketName) -> Option<i64> {
        let index = match name {
            PacketName::Numbered(space, number) => {
                self.in_runs(number, |entry| entry.space.is_none_or(|known| known == space))
            }
            PacketName::Number(number, Some(time)) => {
                self.in_runs(number, |entry| entry.send_time == time)
            }
            PacketName::Number(number, None) => self.in_runs(number, |entry| entry.is_unknown()),
            PacketName::SentAt(time) => self.sent_at(time),
        }?;
        Some(self.first + index as i64)
    }

    /// The newest packet of this number that fits.
    fn in_runs(&self, number: u64, fits: impl Fn(&Entry) -> bool) -> Option<usize> {
        let mut end = self.entries.len();
        for &run in self.runs.iter().rev() {
            let begin = self.index(run);
            let at = self.position(begin, end, number);
            if self
                .entries
                .get(at)
                .is_some_and(|entry| at < end && entry.number == number && fits(entry))
            {
                return Some(at);
            }
            end = begin;
        }
        None
    }

    fn sent_at(&self, time: Timestamp) -> Option<usize> {
        let begin = self.entries.partition_point(|entry| entry.send_time < time);
        let same = self.entries.range(begin..).take_while(|entry| entry.send_time == time);
        let unknown = same.enumerate().find(|(_, entry)| entry.is_unknown());
        unknown.map(|(offset, _)| begin + offset)
    }

    /// Appends the own numbers of the packets of this space in the range, newest run first.
    pub(crate) fn find_range(
        &self,
        space: Space,
        range: &RangeInclusive<u64>,
        found: &mut alloc::vec::Vec<i64>,
    ) {
        let mut end = self.entries.len();
        for &run in self.runs.iter().rev() {
            let begin = self.index(run);
            for index in self.position(begin, end, *range.start())..end {
                let entry = &self.entries[index];
                if entry.number > *range.end() {
                    break;
                }
                if entry.space.is_none_or(|known| known == space) {
                    found.push(self.first + index as i64);
                }
            }
            end = begin;
        }
    }

    /// The first index in this part of a run whose number is at least `number`.
    fn position(&self, begin: usize, end: usize, number: u64) -> usize {
        let Some(first) = self.entries.get(begin).map(|entry| entry.number) else { return begin };
        // Hosts skip few numbers, so it is mostly there, and never behind.
        let guess = begin.saturating_add(number.saturating_sub(first) as usize);
        if guess < end && self.entries[guess].number == number {
            return guess;
        }
        let (mut low, mut high) = (begin, end.min(guess));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entries[middle].number < number {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Own numbers of the packets of which nothing is known, sent at this time or before, newest
    /// first, until their sizes without `headers` make up `bytes`.
    pub(crate) fn newest_unknown(
        &self,
        sent_by: Timestamp,
        mut bytes: DataSize,
        headers: DataSize,
        found: &mut alloc::vec::Vec<i64>,
    ) {
        let end = self.entries.partition_point(|entry| entry.send_time <= sent_by);
        for index in (0..end).rev() {
            if bytes == DataSize::ZERO {
                return;
            }
            let entry = &self.entries[index];
            if entry.is_unknown() {
                bytes = bytes.saturating_sub(entry.size.saturating_sub(headers));
                found.push(self.first + index as i64);
            }
        }
    }

    /// Own numbers of the packets called lost and sent at this time or later.
    pub(crate) fn lost_since(&self, since: Timestamp, found: &mut alloc::vec::Vec<i64>) {
        let begin = self.entries.partition_point(|entry| entry.send_time < since);
        for (offset, entry) in self.entries.range(begin..).enumerate() {
            if entry.receipt == Receipt::Lost {
                found.push(self.first + (begin + offset) as i64);
            }
        }
    }

    fn index(&self, own: i64) -> usize {
        (own - self.first).max(0) as usize
    }

    /// Nothing changes a received packet. A lost one may still be acknowledged.
    fn forget(&mut self, now: Timestamp) {
        while let Some(front) = self.entries.front() {
            let is_old = front.send_time + HISTORY < now || self.entries.len() >= MAX_PACKETS;
            if front.receipt != Receipt::Received && !is_old {
                break;
            }
            self.entries.pop_front();
            self.first += 1;
        }
        while self.runs.get(1).is_some_and(|&second| second <= self.first) {
            self.runs.pop_front();
        }
        if self.entries.is_empty() {
            self.runs.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn history(packets: &[(i64, Space, u64)]) -> History {
        let size = DataSize::from_bytes(100);
        let mut history = History::new();
        for &(ms, space, number) in packets {
            history.add(at(ms), &Sent::new(space, number, size), size, None);
        }
        history
    }

    // [RFC9000 §12.3]
    #[test]
    fn the_same_number_in_another_space_is_another_packet() {
        use Space::{Data, Handshake, Initial};
        let packets = [(0, Initial, 0), (1, Initial, 1), (1, Handshake, 0), (2, Data, 0)];
        let mut history = history(&packets);
        for (own, (ms, space, number)) in (0..).zip(packets) {
            assert_eq!(history.find(PacketName::Numbered(space, number)), Some(own));
            assert_eq!(history.find(PacketName::Number(number, Some(at(ms)))), Some(own));
        }
        assert_eq!(history.find(PacketName::Numbered(Data, 1)), None);
        // Without a space or a time, the newest of which nothing is known.
        assert_eq!(history.find(PacketName::Number(0, None)), Some(3));
        history.get(3).unwrap().receipt = Receipt::Received;
        assert_eq!(history.find(PacketName::Number(0, None)), Some(2));
    }

    #[test]
    fn a_range_finds_what_was_sent_in_it_and_no_skipped_number() {
        use Space::{Data, Handshake};
        let history = history(&[(0, Handshake, 7), (1, Data, 3), (2, Data, 5), (3, Data, 9)]);
        let mut found = Vec::new();
        history.find_range(Data, &(0..=u64::MAX), &mut found);
        assert_eq!(found, [1, 2, 3]);
        found.clear();
        history.find_range(Data, &(4..=8), &mut found);
        assert_eq!(found, [2]);
    }

    #[test]
    fn a_search_by_time_takes_the_oldest_of_which_nothing_is_known() {
        use Space::Data;
        let mut history = history(&[(0, Data, 0), (5, Data, 1), (5, Data, 2), (9, Data, 3)]);
        assert_eq!(history.find(PacketName::SentAt(at(5))), Some(1));
        history.get(1).unwrap().receipt = Receipt::Received;
        assert_eq!(history.find(PacketName::SentAt(at(5))), Some(2));
        assert_eq!(history.find(PacketName::SentAt(at(6))), None);
    }

    #[test]
    fn packets_of_the_last_seconds_are_kept_and_no_older_ones() {
        let mut history = history(&[]);
        let size = DataSize::from_bytes(100);
        for number in 0..100_000 {
            let sent = Sent::new(Space::Data, number, size);
            history.add(at(number as i64 * 10), &sent, size, None);
        }
        assert_eq!(history.entries.len(), 1_001);
        assert_eq!(history.find(PacketName::Numbered(Space::Data, 99_999)), Some(99_999));
        assert_eq!(history.find(PacketName::Numbered(Space::Data, 1)), None);
    }
}
