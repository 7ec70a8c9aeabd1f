//! The packets of a call, from the captures of both of its hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::time::Duration;

use weir::feedback::Unwrapper;
use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_call::capture::Reader;
use weir_capture::{Content, Packet, Rtp};
use weir_sim::{SpeechPacket, VideoPacket};

/// Ticks of the RTP timestamps in a second.
const VIDEO_CLOCK: i64 = 90_000;
const OPUS_CLOCK: i64 = 48_000;
/// A retransmission has the number of the lost packet before the payload [RFC4588 §4].
const NUMBER_BYTES: u32 = 2;
/// Among so many frames after one that never was complete, the largest is taken for the key frame:
/// what tells a key frame is encrypted.
const KEY_FRAME_WITHIN: usize = 60;
/// What SRTP adds to the payload.
const TAG_BYTES: u32 = 10;

/// A packet of a stream.
#[derive(Clone, Copy, Debug)]
struct Seen {
    time: Timestamp,
    number: i64,
    /// Unwrapped RTP timestamp.
    ticks: i64,
    rtp: Rtp,
}

/// A stream as it left its host and as it came to the other.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    sent: Seens,
    came: Seens,
}

#[derive(Clone, Debug, Default)]
struct Seens {
    packets: Vec<Seen>,
    numbers: Unwrapper<16>,
    ticks: Unwrapper<32>,
}

impl Seens {
    fn push(&mut self, time: Timestamp, rtp: Rtp) {
        let number = self.numbers.unwrap(rtp.sequence_number.into());
        let ticks = self.ticks.unwrap(rtp.timestamp);
        self.packets.push(Seen { time, number, ticks, rtp });
    }
}

/// The streams of a call by their sources.
#[derive(Debug, Default)]
pub struct Streams {
    /// Time of the first packet since 1970.
    zero: Option<Duration>,
    streams: BTreeMap<u32, Stream>,
}

impl Streams {
    /// Adds the packets of a host.
    pub fn add(&mut self, capture: impl Read) -> io::Result<()> {
        let mut reader = Reader::new(capture)?;
        while let Some(packet) = reader.packet()? {
            let zero = *self.zero.get_or_insert(packet.time);
            let Some((parsed, _)) = Packet::parse(packet.data, packet.length as usize) else {
                continue;
            };
            let Content::Rtp(rtp) = parsed.content else { continue };
            let since = packet.time.as_nanos() as i64 - zero.as_nanos() as i64;
            let stream = self.streams.entry(rtp.ssrc).or_default();
            let side = if packet.is_sent { &mut stream.sent } else { &mut stream.came };
            side.push(Timestamp::from_nanos(since), rtp);
        }
        Ok(())
    }

    /// The stream of a source.
    pub fn get(&self, ssrc: u32) -> Option<&Stream> {
        self.streams.get(&ssrc)
    }
}

fn at(ticks: i64, clock: i64) -> Timestamp {
    Timestamp::ZERO + TimeDelta::from_secs(1) * ticks / clock
}

/// Speech in the order in which it came. A number that came already is left out.
pub fn speech(stream: &Stream) -> Vec<SpeechPacket> {
    let came = &stream.came.packets;
    let Some(first) = came.first() else { return Vec::new() };
    let mut seen = BTreeSet::new();
    let new = came.iter().filter(|packet| seen.insert(packet.number));
    new.map(|packet| SpeechPacket {
        came: packet.time,
        start: first.time + (at(packet.ticks, OPUS_CLOCK) - at(first.ticks, OPUS_CLOCK)),
    })
    .collect()
}

/// Video in the order in which it came, with what retransmissions and parity brought back.
pub fn video(media: &Stream, again: Option<&Stream>) -> Vec<VideoPacket> {
    let (sent, spans) = sort_out(&media.sent.packets);
    let times: BTreeMap<i64, Timestamp> =
        media.came.packets.iter().rev().map(|packet| (packet.number, packet.time)).collect();
    let mut came: BTreeMap<i64, Arrival> = BTreeMap::new();
    for number in sent.keys() {
        let original = times.get(number).map(|&at| Arrival { at, repeated: false });
        came.extend(original.map(|arrival| (*number, arrival)));
    }
    let recovered: Vec<(i64, Arrival)> =
        spans.iter().flat_map(|span| span.recovered(&times)).collect();
    let mut missing: BTreeSet<i64> =
        sent.keys().copied().filter(|number| !came.contains_key(number)).collect();
    for packet in again.map_or(&[][..], |again| &again.came.packets) {
        let lost = missing.iter().copied().find(|number| is_copy(&packet.rtp, &sent[number].rtp));
        if let Some(number) = lost {
            missing.remove(&number);
            came.insert(number, Arrival { at: packet.time, repeated: true });
        }
    }
    for (number, arrival) in recovered {
        missing.remove(&number);
        let first = came.entry(number).or_insert(arrival);
        first.at = first.at.min(arrival.at);
    }
    let keys = key_frames(&sent, &missing);
    let mut packets: Vec<VideoPacket> =
        came.into_iter().map(|(number, arrival)| sent[&number].packet(arrival, &keys)).collect();
    packets.sort_by_key(|packet| (packet.came, packet.number));
    packets
}

/// How a packet came, or what it had.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Timestamp,
    repeated: bool,
}

/// A packet with a part of a picture.
#[derive(Clone, Copy, Debug)]
struct Picture {
    /// Its place among these.
    index: i64,
    is_first: bool,
    ticks: i64,
    rtp: Rtp,
}

impl Picture {
    fn packet(&self, arrival: Arrival, keys: &BTreeSet<i64>) -> VideoPacket {
        let size = self.rtp.payload_size.saturating_sub(TAG_BYTES);
        VideoPacket {
            came: arrival.at,
            number: self.index,
            captured: at(self.ticks, VIDEO_CLOCK),
            first: self.is_first,
            last: self.rtp.marker,
            key: self.is_first && keys.contains(&self.ticks),
            size: DataSize::from_bytes(size.into()),
            repeated: arrival.repeated,
        }
    }
}

/// Packets with pictures, and the parity that was sent next and protects them.
#[derive(Clone, Debug, Default)]
struct Span {
    pictures: Vec<i64>,
    parity: Vec<i64>,
}

impl Span {
    /// The pictures that parity brought back, if no more of them are lost than parity came: which
    /// parity protects which is encrypted. All of them had been asked for.
    fn recovered(&self, times: &BTreeMap<i64, Timestamp>) -> Vec<(i64, Arrival)> {
        let (came, lost): (Vec<i64>, Vec<i64>) =
            self.pictures.iter().partition(|number| times.contains_key(number));
        let mut parity: Vec<Timestamp> =
            self.parity.iter().filter_map(|number| times.get(number).copied()).collect();
        parity.sort_unstable();
        let Some(&enough) = lost.len().checked_sub(1).and_then(|last| parity.get(last)) else {
            return Vec::new();
        };
        let last = came.iter().map(|number| times[number]).max();
        let arrival = Arrival { at: last.map_or(enough, |last| last.max(enough)), repeated: true };
        lost.into_iter().map(|number| (number, arrival)).collect()
    }
}

/// The packets with pictures, by their numbers, and what parity protects them. Parity has numbers
/// of the same stream, and the time of a frame whose last packet was sent before it [RFC5109 §7.3].
fn sort_out(sent: &[Seen]) -> (BTreeMap<i64, Picture>, Vec<Span>) {
    let mut pictures = BTreeMap::new();
    let mut spans = vec![Span::default()];
    let mut newest: Option<&Seen> = None;
    for packet in sent {
        let Seen { number, ticks, rtp, .. } = *packet;
        let is_parity = newest
            .is_some_and(|last| ticks < last.ticks || (ticks == last.ticks && last.rtp.marker));
        if is_parity {
            spans.last_mut().expect("there is always one").parity.push(number);
            continue;
        }
        let is_first = newest.is_none_or(|last| last.ticks != ticks);
        newest = Some(packet);
        if spans.last().is_some_and(|span| !span.parity.is_empty()) {
            spans.push(Span::default());
        }
        spans.last_mut().expect("there is always one").pictures.push(number);
        let index = pictures.len() as i64;
        pictures.insert(number, Picture { index, is_first, ticks, rtp });
    }
    (pictures, spans)
}

/// Whether a retransmission has the payload of a packet, by its time and size.
fn is_copy(again: &Rtp, original: &Rtp) -> bool {
    again.timestamp == original.timestamp
        && again.payload_size == original.payload_size + NUMBER_BYTES
}

/// The times of the frames that need no other: the first, and after each frame that was never
/// complete the largest of those that follow.
fn key_frames(sent: &BTreeMap<i64, Picture>, missing: &BTreeSet<i64>) -> BTreeSet<i64> {
    let mut sizes: BTreeMap<i64, u32> = BTreeMap::new();
    for packet in sent.values() {
        *sizes.entry(packet.ticks).or_default() += packet.rtp.payload_size;
    }
    let mut keys: BTreeSet<i64> = sizes.keys().next().copied().into_iter().collect();
    for lost in missing {
        let after = sizes.range(sent[lost].ticks + 1..).take(KEY_FRAME_WITHIN);
        keys.extend(after.max_by_key(|(_, size)| **size).map(|(ticks, _)| *ticks));
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn rtp(ticks: u32, marker: bool, payload_size: u32) -> Rtp {
        Rtp {
            ssrc: 1,
            sequence_number: 0,
            payload_type: 96,
            timestamp: ticks,
            marker,
            header_size: 20,
            payload_size,
            is_padding: false,
        }
    }

    /// Three frames of two packets, of 1,000 and 1,001 bytes, with a packet of parity after each.
    fn sent() -> Vec<Seen> {
        let packets = (0..9_u32).map(|number| {
            let (ticks, place) = (number / 3 * 3_000, number % 3);
            let rtp = rtp(ticks, place == 1, if place == 2 { 1_030 } else { 1_000 + place });
            let time = ms(i64::from(number / 3 * 33 + place));
            Seen { time, number: number.into(), ticks: ticks.into(), rtp }
        });
        packets.collect()
    }

    fn stream(lost: &[i64]) -> Stream {
        let mut stream = Stream::default();
        stream.sent.packets = sent();
        stream.came.packets = sent();
        stream.came.packets.retain(|packet| !lost.contains(&packet.number));
        for packet in &mut stream.came.packets {
            packet.time += TimeDelta::from_millis(50);
        }
        stream
    }

    /// Place, arrival in ms, and whether it had been asked for, of each packet.
    fn arrivals(media: &Stream, again: Option<&Stream>) -> Vec<(i64, i64, bool)> {
        let packets = video(media, again);
        packets.iter().map(|it| (it.number, it.came.as_millis(), it.repeated)).collect()
    }

    #[test]
    fn parity_is_no_part_of_a_frame() {
        let packets = video(&stream(&[]), None);
        let ends: Vec<_> = packets.iter().map(|it| (it.number, it.first, it.last)).collect();
        let frame = |at: i64| [(at, true, false), (at + 1, false, true)];
        assert_eq!(ends, [frame(0), frame(2), frame(4)].concat());
        assert_eq!(packets.iter().filter(|it| it.key).count(), 1);
        assert_eq!(packets[3].size, DataSize::from_bytes(991));
    }

    // [RFC5109 §7.3]
    #[test]
    fn one_packet_of_parity_brings_back_one_lost_packet() {
        let came = arrivals(&stream(&[3]), None);
        assert_eq!(came[2..4], [(3, 84, false), (2, 85, true)]);
    }

    // [RFC4588 §4]
    #[test]
    fn a_retransmission_is_known_by_its_time_and_size() {
        let media = stream(&[3, 4, 5]);
        let mut again = Stream::default();
        for (at, size) in [(130, 1_003), (140, 1_002), (150, 1_002)] {
            let packet =
                Seen { time: ms(at), number: 0, ticks: 3_000, rtp: rtp(3_000, false, size) };
            again.came.packets.push(packet);
        }
        let came = arrivals(&media, Some(&again));
        assert_eq!(came[4..], [(3, 130, true), (2, 140, true)]);
        assert!(video(&media, None).iter().any(|it| it.key && it.captured > Timestamp::ZERO));
    }

    #[test]
    fn speech_begins_with_its_first_packet_and_none_counts_twice() {
        let mut stream = Stream::default();
        for number in [7, 8, 8, 10] {
            let ticks = number * 960;
            let packet =
                Seen { time: ms(20 * number), number, ticks, rtp: rtp(ticks as u32, false, 80) };
            stream.came.packets.push(packet);
        }
        let starts: Vec<_> = speech(&stream).iter().map(|it| it.start).collect();
        assert_eq!(starts, [ms(140), ms(160), ms(200)]);
    }
}
