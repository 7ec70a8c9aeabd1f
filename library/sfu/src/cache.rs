//! The newest packets of a stream, to answer requests for retransmission.

use alloc::vec::Vec;

use weir::feedback::SeqUnwrapper;
use weir::units::{TimeDelta, Timestamp};
use weir_wire::rtp::{PayloadType, View};

/// Most repetitions of a packet.
const MAX_REPEATS: u8 = 8;

/// Places at the start.
const FEWEST: usize = 128;

/// The packets of some time, by their sequence numbers. It grows with the rate of its stream, up to
/// a number of packets. Its memory is that of its packets, and does not shrink.
///
/// ```
/// use weir::{TimeDelta, Timestamp};
/// use weir_sfu::{Cache, Resend};
///
/// let now = Timestamp::ZERO;
/// let mut cache = Cache::new(TimeDelta::from_secs(1), 1_024);
/// cache.insert(now, 7, b"a packet");
/// let soon = TimeDelta::from_millis(40); // No second repeat within a round trip.
/// assert_eq!(cache.request(now, 7, soon), Resend::Packet(b"a packet"));
/// assert_eq!(cache.request(now, 7, soon), Resend::TooSoon);
/// ```
#[derive(Clone, Debug)]
pub struct Cache {
    entries: Vec<Entry>,
    numbers: SeqUnwrapper,
    time: TimeDelta,
    most: usize,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    number: i64,
    bytes: Vec<u8>,
    kept: Timestamp,
    repeats: u8,
    last: Option<Timestamp>,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resend<'a> {
    /// Send this packet again.
    Packet(&'a [u8]),
    /// It was sent again a moment ago, or too often.
    TooSoon,
    /// It is not here.
    Unknown,
}

impl Cache {
    /// A cache that keeps packets for this time, but at most this many, up to 32,768.
    pub fn new(time: TimeDelta, packets: usize) -> Self {
        let most = packets.min(1 << 15);
        let mut entries = Vec::new();
        entries.resize(most.min(FEWEST), Entry::default());
        Self { entries, numbers: SeqUnwrapper::default(), time, most }
    }

    /// Keeps a copy of a packet in place of the oldest.
    pub fn insert(&mut self, now: Timestamp, number: u16, packet: &[u8]) {
        let number = self.numbers.unwrap(number.into());
        let Some(mut place) = self.place(number) else { return };
        while self.is_young(now, place) && self.entries.len() < self.most {
            self.grow();
            place = self.place(number).unwrap_or_default();
        }
        let entry = &mut self.entries[place];
        entry.bytes.clear();
        entry.bytes.extend_from_slice(packet);
        (entry.number, entry.kept, entry.repeats, entry.last) = (number, now, 0, None);
    }

    /// Forgets all packets. Their memory is kept.
    pub(crate) fn clear(&mut self) {
        for entry in &mut self.entries {
            entry.bytes.clear();
        }
    }

    /// Places follow each other over the wrap, too, however many there are.
    fn place(&self, number: i64) -> Option<usize> {
        let place = number.checked_rem_euclid(self.entries.len() as i64)?;
        Some(place as usize)
    }

    /// Whether there is a packet that is to be kept longer.
    fn is_young(&self, now: Timestamp, place: usize) -> bool {
        let entry = &self.entries[place];
        !entry.bytes.is_empty() && now - entry.kept < self.time
    }

    /// Doubles the places.
    fn grow(&mut self) {
        let mut before = core::mem::take(&mut self.entries);
        self.entries.resize((before.len() * 2).min(self.most), Entry::default());
        for entry in &mut before {
            let Some(place) = self.place(entry.number).filter(|_| !entry.bytes.is_empty()) else {
                continue;
            };
            let there = &mut self.entries[place];
            if there.bytes.is_empty() || there.number < entry.number {
                *there = core::mem::take(entry);
            }
        }
    }

    /// The receiver misses a packet. So soon after a repetition that one is still on its way, or
    /// still in the sender's queue.
    pub fn request(&mut self, now: Timestamp, number: u16, soon: TimeDelta) -> Resend<'_> {
        let number = self.numbers.peek(number.into());
        let Some(place) = self.place(number) else { return Resend::Unknown };
        let entry = &mut self.entries[place];
        if entry.number != number || entry.bytes.is_empty() {
            return Resend::Unknown;
        }
        let is_soon = entry.last.is_some_and(|last| now - last < soon);
        if is_soon || entry.repeats >= MAX_REPEATS {
            return Resend::TooSoon;
        }
        entry.repeats += 1;
        entry.last = Some(now);
        Resend::Packet(&entry.bytes)
    }
}

/// Writes the retransmission of a packet [RFC4588 §4]: a stream and number of its own, and the
/// number of the original before the payload. Header extensions are kept. `false` if the bytes are
/// not RTP.
pub(crate) fn write_rtx(
    original: &[u8],
    ssrc: u32,
    payload_type: PayloadType,
    number: u16,
    packet: &mut Vec<u8>,
) -> bool {
    const MARKER_FLAG: u8 = 1 << 7;
    let Ok(view) = View::parse(original) else { return false };
    let start = view.header_size();
    packet.clear();
    packet.extend_from_slice(&original[..start]);
    packet.extend_from_slice(&view.sequence_number().to_be_bytes());
    packet.extend_from_slice(&original[start..]);
    packet[1] = packet[1] & MARKER_FLAG | payload_type.get();
    packet[2..4].copy_from_slice(&number.to_be_bytes());
    packet[8..12].copy_from_slice(&ssrc.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtp::{RtpHeader, Rtx};

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    const SECOND: TimeDelta = TimeDelta::from_secs(1);

    #[test]
    fn a_packet_is_repeated_but_not_at_once_and_not_without_end() {
        let mut cache = Cache::new(SECOND, 4);
        cache.insert(at(0), 7, b"seven");
        let soon = TimeDelta::from_millis(40);
        assert_eq!(cache.request(at(0), 7, soon), Resend::Packet(b"seven"));
        assert_eq!(cache.request(at(39), 7, soon), Resend::TooSoon);
        for repeat in 1..8 {
            assert_eq!(cache.request(at(repeat * 40), 7, soon), Resend::Packet(b"seven"));
        }
        assert_eq!(cache.request(at(10_000), 7, soon), Resend::TooSoon);
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut cache = Cache::new(SECOND, 2);
        for number in [65_535, 0, 1] {
            cache.insert(at(0), number, b"x");
        }
        let soon = TimeDelta::ZERO;
        assert_eq!(cache.request(at(0), 65_535, soon), Resend::Unknown);
        assert_eq!(cache.request(at(0), 0, soon), Resend::Packet(b"x"));
        assert_eq!(Cache::new(SECOND, 0).request(at(0), 0, soon), Resend::Unknown);
    }

    #[test]
    fn the_wrap_of_the_numbers_costs_nothing_however_many_places_there_are() {
        for most in [1, 3, 100, 128, 190, 1_000, 4_096, 30_000, 1 << 15] {
            let mut cache = Cache::new(TimeDelta::from_secs(1_000), most);
            for number in 0..200_000_u32 {
                cache.insert(at(i64::from(number)), number as u16, &number.to_be_bytes());
                let oldest = (number + 1).saturating_sub(most as u32);
                for known in [oldest, oldest.midpoint(number), number] {
                    let bytes = known.to_be_bytes();
                    let found = cache.request(at(0), known as u16, TimeDelta::ZERO);
                    let is_found =
                        matches!(found, Resend::TooSoon) || found == Resend::Packet(&bytes);
                    assert!(is_found, "{most} places: {known} at {number}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn it_grows_to_what_a_stream_sends_in_its_time_and_no_further() {
        for (per_ms, most, known) in [(1_u16, 1 << 14, 900), (10, 1 << 14, 900), (10, 2_000, 190)] {
            let mut cache = Cache::new(SECOND, most);
            for ms in 0..3_000_u16 {
                for packet in 0..per_ms {
                    cache.insert(at(ms.into()), ms.wrapping_mul(per_ms) + packet, b"x");
                }
            }
            let back = |ms: u16| 2_999_u16.wrapping_sub(ms).wrapping_mul(per_ms);
            assert_eq!(cache.request(at(3_000), back(known), SECOND), Resend::Packet(b"x"));
            let places = cache.entries.len();
            assert!(places <= most.min(usize::from(per_ms) * 2_048), "{places}");
        }
    }

    // [RFC4588 §4]
    #[test]
    fn a_retransmission_has_numbers_of_its_own() {
        let header = RtpHeader::new(1, PayloadType::new(96).unwrap(), 500, 9_000).with_marker(true);
        let mut original = std::vec![0; header.size()];
        header.emit(&mut original);
        original.extend_from_slice(b"media");
        let mut packet = Vec::new();
        assert!(write_rtx(&original, 2, PayloadType::new(97).unwrap(), 3, &mut packet));
        let view = View::parse(&packet).unwrap();
        assert_eq!((view.ssrc(), view.sequence_number(), view.timestamp()), (2, 3, 9_000));
        assert!(view.marker() && view.payload_type().get() == 97);
        let rtx = Rtx::parse(view.payload()).unwrap();
        assert_eq!((rtx.sequence_number, rtx.payload), (500, b"media".as_slice()));
    }
}
