//! A host's capture in memory: each media packet, and counts of everything else.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use weir::feedback::SeqUnwrapper;
use weir::units::{TimeDelta, Timestamp};
use weir_capture::{Content, Packet, Rtp};
use weir_record::calls::derive::Count;

use super::pcapng::Reader;
use super::recorder::Recorded;
use crate::error::CallError;

/// Maximum number of streams in a capture. Further SSRCs, which only a hostile peer sends, are
/// ignored.
const STREAMS_MAX: usize = 256;

/// A media packet observed at one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// When it passed the host's interface.
    pub time: Timestamp,
    /// Unwrapped sequence number.
    pub sequence: i64,
    /// Bytes of the IP packet, without the headers that a relay adds.
    pub size: u32,
    /// RTP payload type.
    pub payload_type: u8,
    /// Bytes of payload with the SRTP tag. `None` for a padding packet, which has no payload.
    pub payload: Option<u32>,
}

/// IP packets between two hosts. Packets near the edges of the window are also counted separately,
/// because another witness may have counted them on the other side of the edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windowed {
    /// Within the window.
    pub within: Count,
    /// Within the edge's width of either end of the window, inside and outside.
    pub at_edges: Count,
}

impl Windowed {
    fn add(&mut self, time: Timestamp, size: u32, is_sent: bool, window: &Window) {
        if window.contains(time) {
            self.within.add(size);
        }
        if window.is_at_an_edge(time, is_sent) {
            self.at_edges.add(size);
        }
    }

    /// The traffic of one side with another host.
    pub(crate) fn with(side: &Side, other: Ipv4Addr) -> Self {
        side.hosts.get(&other).copied().unwrap_or_default()
    }

    /// Counts the packets of a stream.
    pub(crate) fn of(sightings: &[Sighting], window: &Window) -> Self {
        Self::by(sightings, window, |sighting| sighting.size)
    }

    /// Like [`of`](Self::of), but `bytes` gives the size of each packet.
    pub(crate) fn by(
        sightings: &[Sighting],
        window: &Window,
        bytes: impl Fn(&Sighting) -> u32,
    ) -> Self {
        let mut count = Self::default();
        for it in sightings {
            count.add(it.time, bytes(it), true, window);
        }
        count
    }

    /// The sum of two counts.
    pub(crate) fn plus(self, other: Self) -> Self {
        let mut sum = self;
        for (sum, other) in [(&mut sum.within, other.within), (&mut sum.at_edges, other.at_edges)] {
            sum.packets += other.packets;
            sum.bytes += other.bytes;
        }
        sum
    }
}

/// A span of scenario time over which witnesses are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the window, exclusive.
    pub start: Timestamp,
    /// End of the window, inclusive.
    pub end: Timestamp,
    /// Maximum clock difference between two witnesses.
    pub edge: TimeDelta,
    /// Packets that arrive within this time after the start may have left before it. A log that
    /// begins with the start does not contain those.
    pub travel: TimeDelta,
}

impl Window {
    pub(crate) fn contains(&self, time: Timestamp) -> bool {
        self.start < time && time <= self.end
    }

    fn is_at_an_edge(&self, time: Timestamp, is_sent: bool) -> bool {
        let travel = if is_sent { TimeDelta::ZERO } else { self.travel };
        let since_start = time - self.start;
        let is_at_start = -self.edge <= since_start && since_start <= travel + self.edge;
        is_at_start || (time - self.end).abs() <= self.edge
    }
}

/// Packets that one host sent, or received.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Media streams, by the other host's address and SSRC. Packets are sorted by time.
    pub streams: BTreeMap<(Ipv4Addr, u32), Vec<Sighting>>,
    /// All IP packets by the address of the other host.
    pub hosts: BTreeMap<Ipv4Addr, Windowed>,
}

/// The packets of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCapture {
    /// The host's address.
    pub address: Ipv4Addr,
    /// Sent packets.
    pub sent: Side,
    /// Received packets.
    pub received: Side,
}

impl HostCapture {
    /// Reads a capture file. `zero` is the start of the scenario, as time since 1970. Traffic is
    /// counted over the window.
    ///
    /// # Errors
    /// If the file cannot be read or is not a capture.
    pub fn open(recorded: &Recorded, zero: Duration, window: &Window) -> io::Result<Self> {
        let file = BufReader::new(File::open(&recorded.path)?);
        Self::read(file, recorded.address, zero, window)
    }

    fn read(
        from: impl Read,
        address: Ipv4Addr,
        zero: Duration,
        window: &Window,
    ) -> io::Result<Self> {
        let mut reader = Reader::new(from)?;
        let (mut sent, mut received) = (Collector::default(), Collector::default());
        while let Some(seen) = reader.packet()? {
            let Some((packet, _)) = Packet::parse(seen.data, seen.length as usize) else {
                continue;
            };
            let time = scenario_time(seen.time, zero);
            let (collector, other) = match seen.is_sent {
                true => (&mut sent, packet.destination.ip()),
                false => (&mut received, packet.source.ip()),
            };
            let IpAddr::V4(other) = other else { continue };
            collector.add(time, &packet, (other, seen.is_sent), window);
        }
        Ok(Self { address, sent: sent.side, received: received.side })
    }
}

fn scenario_time(time: Duration, zero: Duration) -> Timestamp {
    let nanos = i128::from(time.as_nanos() as u64) - i128::from(zero.as_nanos() as u64);
    Timestamp::from_nanos(nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

/// Reads captures. `zero` is the start of the scenario, as time since 1970.
///
/// # Errors
/// If a file cannot be read.
pub fn read(
    recorded: &[Recorded],
    zero: Duration,
    window: &Window,
) -> Result<Vec<HostCapture>, CallError> {
    let captures = recorded.iter().map(|file| HostCapture::open(file, zero, window));
    captures.collect::<Result<_, _>>().map_err(CallError::system("read a capture"))
}

#[derive(Default)]
struct Collector {
    side: Side,
    sequences: BTreeMap<(Ipv4Addr, u32), SeqUnwrapper>,
}

impl Collector {
    fn add(
        &mut self,
        time: Timestamp,
        packet: &Packet,
        (other, is_sent): (Ipv4Addr, bool),
        window: &Window,
    ) {
        self.side.hosts.entry(other).or_default().add(time, packet.size, is_sent, window);
        let Content::Rtp(media) = packet.content else { return };
        let Rtp { ssrc, sequence_number, payload_type, .. } = media;
        let payload = (!media.is_padding).then_some(media.payload_size);
        let key = (other, ssrc);
        if self.sequences.len() >= STREAMS_MAX && !self.sequences.contains_key(&key) {
            return;
        }
        let sequence = self.sequences.entry(key).or_default().unwrap(sequence_number.into());
        let size = media.size_between_peers();
        let sighting = Sighting { time, sequence, size, payload_type, payload };
        self.side.streams.entry(key).or_default().push(sighting);
    }
}

#[cfg(test)]
mod tests {
    use super::super::pcapng::{self, Writer};
    use super::*;

    const ZERO: Duration = Duration::new(1_700_000_000, 0);
    const WINDOW: Window = Window {
        start: Timestamp::ZERO,
        end: Timestamp::from_secs(1),
        edge: TimeDelta::from_millis(10),
        travel: TimeDelta::from_millis(25),
    };

    /// A packet of RTP from 10.45.0.1 to 10.45.0.2 with one extension word and this much payload.
    fn media_packet(ssrc: u32, sequence_number: u16, payload: usize) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
        packet.extend([10, 45, 0, 1, 10, 45, 0, 2, 0x13, 0x88, 0x17, 0x70, 0, 0, 0, 0, 0x90, 96]);
        packet.extend(sequence_number.to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(ssrc.to_be_bytes());
        packet.extend([0xBE, 0xDE, 0, 1, 0x31, 0, 7, 0]);
        packet.resize(packet.len() + payload, 0xAA);
        let length = packet.len() as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[24..26].copy_from_slice(&(length - 20).to_be_bytes());
        packet
    }

    /// A capture of media packets: ms since the start, whether sent, sequence number.
    fn capture(packets: &[(i64, bool, u16)]) -> HostCapture {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, "weir0", "").unwrap();
        for &(ms, is_sent, sequence_number) in packets {
            let data = media_packet(7, sequence_number, 52);
            let length = data.len() as u32;
            let time = if ms < 0 {
                ZERO - Duration::from_millis(ms.unsigned_abs())
            } else {
                ZERO + Duration::from_millis(ms.unsigned_abs())
            };
            writer.packet(&pcapng::Packet { time, is_sent, length, data: &data[..48] }).unwrap();
        }
        HostCapture::read(bytes.as_slice(), Ipv4Addr::LOCALHOST, ZERO, &WINDOW).unwrap()
    }

    #[test]
    fn media_is_kept_by_stream_with_sequence_numbers_that_do_not_wrap() {
        let capture = capture(&[(-1, true, 65_535), (20, true, 0), (30, false, 4)]);
        let sighting = |ms, sequence| Sighting {
            time: Timestamp::from_millis(ms),
            sequence,
            size: 100,
            payload_type: 96,
            payload: Some(52),
        };
        let (a, b) = (Ipv4Addr::new(10, 45, 0, 1), Ipv4Addr::new(10, 45, 0, 2));
        assert_eq!(capture.sent.streams[&(b, 7)], [sighting(-1, 65_535), sighting(20, 65_536)]);
        assert_eq!(capture.received.streams[&(a, 7)], [sighting(30, 4)]);
    }

    #[test]
    fn traffic_is_counted_within_the_window_and_at_its_edges() {
        let times = [-11, -10, 0, 1, 500, 995, 1_000, 1_001, 1_011];
        let packets: Vec<_> = times.iter().map(|ms| (*ms, true, 1)).collect();
        let traffic = capture(&packets).sent.hosts[&Ipv4Addr::new(10, 45, 0, 2)];
        assert_eq!(traffic.within, Count { packets: 4, bytes: 400 });
        assert_eq!(traffic.at_edges, Count { packets: 6, bytes: 600 });
    }

    #[test]
    fn arrivals_soon_after_the_start_count_at_the_edge() {
        let packets = [(-5, false, 1), (34, false, 2), (36, false, 3), (995, false, 4)];
        let traffic = capture(&packets).received.hosts[&Ipv4Addr::new(10, 45, 0, 1)];
        assert_eq!((traffic.within.packets, traffic.at_edges.packets), (3, 3));
    }

    #[test]
    fn a_flood_of_streams_is_counted_and_not_followed() {
        let mut collector = Collector::default();
        for ssrc in 0..1_000 {
            let bytes = media_packet(ssrc, 1, 10);
            let (packet, _) = Packet::parse(&bytes, bytes.len()).unwrap();
            let from = (Ipv4Addr::new(10, 45, 0, 1), false);
            collector.add(Timestamp::from_millis(5), &packet, from, &WINDOW);
        }
        assert_eq!(collector.side.streams.len(), STREAMS_MAX);
        assert!(collector.side.hosts.values().all(|count| count.within.packets == 1_000));
    }
}
