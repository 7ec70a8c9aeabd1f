//! Media in TCP: the messages of its streams, whatever frames them.
//!
//! Three frames are told by their first bytes: that of [RFC4571 §2], which ICE uses over TCP
//! [RFC6544 §3]; STUN and channel data of a relay [RFC8656 §12.5]; and RTSP's [RFC7826 §14]. TLS is
//! told, too, and nothing in it can be read. SIP has no media, but the descriptions of it
//! [RFC3261 §18.3].
//!
//! [RFC4571 §2]: https://www.rfc-editor.org/rfc/rfc4571#section-2
//! [RFC6544 §3]: https://www.rfc-editor.org/rfc/rfc6544#section-3
//! [RFC8656 §12.5]: https://www.rfc-editor.org/rfc/rfc8656#section-12.5
//! [RFC7826 §14]: https://www.rfc-editor.org/rfc/rfc7826#section-14
//! [RFC3261 §18.3]: https://www.rfc-editor.org/rfc/rfc3261#section-18.3

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::stun;

/// Streams that are followed, each direction for itself.
const STREAMS_MAX: usize = 1_024;
/// Bytes of a stream that wait for the rest of a message, or for a segment that is missing.
const WAITING_MAX: usize = 128 << 10;
/// Bytes that tell the frame. Some write a length by itself.
const TELLING: usize = 12;
/// Segments that wait for one that is missing.
const SEGMENTS_MAX: usize = 64;

/// A segment of TCP.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Who sent it, and to whom.
    pub ends: (SocketAddr, SocketAddr),
    /// Its sequence number.
    pub sequence: u32,
    /// Whether it opens the connection.
    pub opens: bool,
    /// Its data, as far as they were captured.
    pub data: &'a [u8],
    /// Bytes of its data on the wire.
    pub length: usize,
}

impl<'a> Segment<'a> {
    /// A segment with its header, of which `length` bytes were on the wire.
    pub fn of(ends: (SocketAddr, SocketAddr), segment: &'a [u8], length: usize) -> Option<Self> {
        const SYN: u8 = 2;
        let header = segment.first_chunk::<20>()?;
        let size = usize::from(header[12] >> 4) * 4;
        Some(Self {
            ends,
            sequence: u32::from_be_bytes(*header[4..].first_chunk()?),
            opens: header[13] & SYN != 0,
            data: segment.get(size..)?,
            length: length.saturating_sub(size),
        })
    }
}

/// What frames the messages of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A length of two bytes.
    Length,
    /// STUN messages and channel data.
    Relay,
    /// RTSP with packets in between.
    Rtsp,
    /// Messages of SIP.
    Sip,
    /// TLS, in which nothing can be read.
    Tls,
}

/// One direction of a connection.
#[derive(Default)]
struct Stream {
    framing: Option<Framing>,
    /// The sequence number that follows.
    next: Option<u32>,
    /// What is no whole message yet.
    waiting: Vec<u8>,
    /// Segments behind a hole.
    behind: BTreeMap<u32, Vec<u8>>,
}

/// The streams of TCP of a capture.
#[derive(Default)]
pub struct Streams {
    streams: BTreeMap<(SocketAddr, SocketAddr), Stream>,
}

impl Streams {
    /// Adds a segment, and gives the messages that it completes.
    pub fn add(&mut self, segment: &Segment<'_>, take: &mut dyn FnMut(&[u8])) {
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&segment.ends) {
            return;
        }
        self.streams.entry(segment.ends).or_default().add(segment, take);
    }

    /// How many streams have this frame.
    pub fn count(&self, framing: Framing) -> usize {
        self.streams.values().filter(|it| it.framing == Some(framing)).count()
    }
}

impl Stream {
    fn add(&mut self, segment: &Segment<'_>, take: &mut dyn FnMut(&[u8])) {
        if segment.opens {
            *self = Self { next: Some(segment.sequence.wrapping_add(1)), ..Self::default() };
            return;
        }
        if segment.length == 0 || segment.length > WAITING_MAX {
            return;
        }
        // What was not captured is zero: a message that begins in it ends the frame.
        let mut data = segment.data[..segment.data.len().min(segment.length)].to_vec();
        data.resize(segment.length, 0);
        let next = *self.next.get_or_insert(segment.sequence);
        let ahead = segment.sequence.wrapping_sub(next) as i32;
        if ahead > 0 {
            self.behind.insert(segment.sequence, data);
            let held: usize = self.behind.values().map(Vec::len).sum();
            if self.behind.len() <= SEGMENTS_MAX && held <= WAITING_MAX {
                return;
            }
            // What is missing was not captured.
            self.waiting.clear();
            let first = self.first_behind(next);
            self.next = first;
        } else if (data.len() as i64) + i64::from(ahead) > 0 {
            self.append(&data[ahead.unsigned_abs() as usize..], take);
        }
        while let Some(next) = self.next
            && let Some(first) = self.first_behind(next)
            && first.wrapping_sub(next) as i32 <= 0
        {
            let data = self.behind.remove(&first).unwrap_or_default();
            let old = next.wrapping_sub(first) as usize;
            if let Some(new) = data.get(old..).filter(|new| !new.is_empty()) {
                self.append(new, take);
            }
        }
    }

    /// The segment behind the hole that follows first.
    fn first_behind(&self, next: u32) -> Option<u32> {
        self.behind.keys().copied().min_by_key(|sequence| sequence.wrapping_sub(next) as i32)
    }

    fn append(&mut self, data: &[u8], take: &mut dyn FnMut(&[u8])) {
        self.next = self.next.map(|next| next.wrapping_add(data.len() as u32));
        self.waiting.extend_from_slice(data);
        let mut at = 0;
        loop {
            let rest = &self.waiting[at..];
            let Some(framing) = self.framing.or_else(|| told_by(rest)) else {
                // Most streams are none of media.
                at = if rest.len() < TELLING { at } else { self.waiting.len() };
                break;
            };
            self.framing = Some(framing);
            match framing.message(rest) {
                Part::Message { from, to, end } => {
                    take(&rest[from..to]);
                    at += end;
                }
                Part::Other { end } => at += end,
                Part::Open if rest.len() < WAITING_MAX => break,
                Part::Open | Part::Broken => {
                    at = self.waiting.len();
                    break;
                }
            }
        }
        self.waiting.drain(..at.min(self.waiting.len()));
    }
}

/// The first part of a stream.
enum Part {
    /// A message, and where it ends with its padding.
    Message { from: usize, to: usize, end: usize },
    /// Something without a message.
    Other { end: usize },
    /// It is not whole yet.
    Open,
    /// It is none.
    Broken,
}

/// What frames a stream that begins like this.
fn told_by(data: &[u8]) -> Option<Framing> {
    const CHANNELS: std::ops::RangeInclusive<u8> = 0x40..=0x7F;
    let first = *data.first()?;
    if (0x14..=0x17).contains(&first) && data.get(1) == Some(&3) {
        return Some(Framing::Tls);
    }
    if is_rtsp(data) || first == b'$' && data.get(4).is_some_and(|it| is_media(*it)) {
        return Some(Framing::Rtsp);
    }
    if is_sip(data) {
        return Some(Framing::Sip);
    }
    if is_stun(data) || CHANNELS.contains(&first) && data.get(4).is_some_and(|it| is_peer(*it)) {
        return Some(Framing::Relay);
    }
    let inner = data.get(2..)?;
    let is_dtls = inner.len() > 2 && (20..=63).contains(&inner[0]) && inner[1] == 0xFE;
    let starts = inner.first().is_some_and(|it| is_media(*it)) || is_stun(inner) || is_dtls;
    (starts && stun::u16_at(data, 0)? >= 8).then_some(Framing::Length)
}

/// RTP or RTCP [RFC7983 §7].
fn is_media(first: u8) -> bool {
    (128..=191).contains(&first)
}

/// Anything that peers exchange over a relay [RFC7983 §7].
fn is_peer(first: u8) -> bool {
    is_media(first) || first <= 3 || (20..=63).contains(&first)
}

fn is_stun(data: &[u8]) -> bool {
    data.first().is_some_and(|first| *first <= 3)
        && data.get(4..8).is_some_and(|cookie| cookie == stun::MAGIC_COOKIE)
}

/// A request or an answer of RTSP.
fn is_rtsp(data: &[u8]) -> bool {
    let line = first_line(data);
    line.starts_with(b"RTSP/") || line.windows(6).any(|it| it == b" RTSP/")
}

/// A request or an answer of SIP.
fn is_sip(data: &[u8]) -> bool {
    let line = first_line(data);
    line.starts_with(b"SIP/2.0 ") || line.ends_with(b" SIP/2.0")
}

fn first_line(data: &[u8]) -> &[u8] {
    let line = data.split(|byte| *byte == b'\r').next().unwrap_or_default();
    &line[..line.len().min(512)]
}

impl Framing {
    fn message(self, data: &[u8]) -> Part {
        let found = match self {
            Self::Length => length(data),
            Self::Relay => relayed(data),
            Self::Rtsp => rtsp(data),
            Self::Sip => sip(data),
            Self::Tls => Some(Part::Other { end: data.len() }),
        };
        match found {
            Some(Part::Message { end, .. } | Part::Other { end }) if end > data.len() => Part::Open,
            Some(Part::Other { end: 0 }) | None => Part::Open,
            Some(part) => part,
        }
    }
}

/// [RFC4571 §2]
fn length(data: &[u8]) -> Option<Part> {
    let end = 2 + usize::from(stun::u16_at(data, 0)?);
    Some(match data.get(2) {
        Some(first) if is_peer(*first) => Part::Message { from: 2, to: end, end },
        Some(_) => Part::Broken,
        None => Part::Open,
    })
}

/// STUN, or channel data, which are padded to four bytes [RFC8656 §12.5].
fn relayed(data: &[u8]) -> Option<Part> {
    const CHANNEL: usize = 4;
    let size = usize::from(stun::u16_at(data, 2)?);
    let to = match *data.first()? {
        0..=3 => stun::HEADER_BYTES + size,
        0x40..=0x7F => CHANNEL + size,
        _ => return Some(Part::Broken),
    };
    Some(Part::Message { from: 0, to, end: to.next_multiple_of(4) })
}

/// A packet behind a dollar sign, a channel and a length [RFC7826 §14], or a message of RTSP.
fn rtsp(data: &[u8]) -> Option<Part> {
    const HEADER: usize = 4;
    if *data.first()? == b'$' {
        let end = HEADER + usize::from(stun::u16_at(data, 2)?);
        return Some(Part::Message { from: HEADER, to: end, end });
    }
    if !data[0].is_ascii_alphabetic() {
        return Some(Part::Broken);
    }
    Some(Part::Other { end: text_end(data)? })
}

/// A message, or the empty lines that keep the connection open.
fn sip(data: &[u8]) -> Option<Part> {
    match *data.first()? {
        b'\r' | b'\n' => Some(Part::Other { end: 1 }),
        first if first.is_ascii_alphabetic() => {
            let end = text_end(data)?;
            Some(Part::Message { from: 0, to: end, end })
        }
        _ => Some(Part::Broken),
    }
}

/// Where a message of lines ends, with the body whose length its heading says.
fn text_end(data: &[u8]) -> Option<usize> {
    // SIP may shorten the name [RFC3261 §20.14].
    const LENGTHS: [&str; 2] = ["content-length", "l"];
    let end = data.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&data[..end]).to_ascii_lowercase();
    let mut body = 0;
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        if LENGTHS.contains(&name.trim()) {
            body = value.trim().parse().unwrap_or(0);
        }
    }
    end.checked_add(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of RTP of this many bytes.
    fn rtp(number: u8, size: usize) -> Vec<u8> {
        let mut packet = vec![0x80, 96, 0, number];
        packet.resize(size, number);
        packet
    }

    /// What comes of these segments, each with its place in the stream.
    fn messages(segments: &[(u32, Vec<u8>)]) -> (Vec<Vec<u8>>, Streams) {
        let ends = ("192.0.2.1:9".parse().unwrap(), "192.0.2.2:10".parse().unwrap());
        let mut streams = Streams::default();
        let mut found = Vec::new();
        for (sequence, data) in segments {
            let segment =
                Segment { ends, sequence: *sequence, opens: false, data, length: data.len() };
            streams.add(&segment, &mut |message| found.push(message.to_vec()));
        }
        (found, streams)
    }

    /// The stream of three packets in this frame, and the packets.
    fn framed(frame: fn(&[u8]) -> Vec<u8>) -> (Vec<u8>, Vec<Vec<u8>>) {
        let packets: Vec<Vec<u8>> =
            [(1, 50), (2, 61), (3, 1_000)].map(|(number, size)| rtp(number, size)).to_vec();
        (packets.iter().flat_map(|packet| frame(packet)).collect(), packets)
    }

    fn with_length(packet: &[u8]) -> Vec<u8> {
        [&(packet.len() as u16).to_be_bytes()[..], packet].concat()
    }

    fn in_rtsp(packet: &[u8]) -> Vec<u8> {
        [&b"$\0"[..], &with_length(packet)].concat()
    }

    // [RFC4571 §2], [RFC7826 §14]
    #[test]
    fn messages_are_found_however_the_stream_is_cut() {
        for frame in [with_length as fn(&[u8]) -> Vec<u8>, in_rtsp] {
            let (stream, packets) = framed(frame);
            for size in [1_200, 700, 100, 8] {
                let mut segments = Vec::new();
                // The numbers wrap.
                for (index, part) in stream.chunks(size).enumerate() {
                    let sequence = (u32::MAX - 100).wrapping_add((index * size) as u32);
                    segments.push((sequence, part.to_vec()));
                }
                assert_eq!(messages(&segments).0, packets, "{size}");
                if segments.len() > 2 {
                    segments.swap(1, 2);
                    assert_eq!(messages(&segments).0, packets, "{size}, out of order");
                    let again = segments[0].clone();
                    segments.insert(1, again);
                    assert_eq!(messages(&segments).0, packets, "{size}, once again");
                }
            }
        }
    }

    // [RFC8656 §12.5]
    #[test]
    fn channel_data_is_padded_over_tcp() {
        let (stream, packets) = framed(|packet| {
            let mut data = [&[0x40, 1][..], &with_length(packet)].concat();
            data.resize(data.len().next_multiple_of(4), 0);
            data
        });
        let (found, _) = messages(&[(7, stream)]);
        let inner: Vec<&[u8]> = found.iter().map(|it| &it[4..]).collect();
        assert_eq!(inner, packets);
    }

    #[test]
    fn requests_of_rtsp_stand_between_the_packets() {
        let text = b"RTSP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nv=0\r\n".to_vec();
        let stream = [&text[..], &in_rtsp(&rtp(1, 40)), &text, &in_rtsp(&rtp(2, 40))].concat();
        assert_eq!(messages(&[(1, stream)]).0, [rtp(1, 40), rtp(2, 40)]);
    }

    // [RFC3261 §18.3]
    #[test]
    fn messages_of_sip_are_whole_with_their_bodies() {
        let message = |length: &str| format!("SIP/2.0 200 OK\r\n{length}: 5\r\n\r\nv=0\r\n");
        let (long, short) = (message("Content-Length").into_bytes(), message("l").into_bytes());
        let stream = [&long[..], b"\r\n\r\n", &short].concat();
        let mut segments = Vec::new();
        for (index, part) in stream.chunks(30).enumerate() {
            segments.push((index as u32 * 30, part.to_vec()));
        }
        assert_eq!(messages(&segments).0, [long, short]);
    }

    #[test]
    fn tls_and_other_streams_give_no_messages() {
        let (found, streams) = messages(&[(1, [&[0x17, 3, 3, 0, 9][..], &[0x80; 9]].concat())]);
        assert!(found.is_empty() && streams.count(Framing::Tls) == 1);
        let (found, _) = messages(&[(1, b"GET / HTTP/1.1\r\n\r\n".to_vec()), (19, vec![0; 99])]);
        assert!(found.is_empty());
    }

    #[test]
    fn a_hole_that_never_closes_ends_the_wait() {
        let packet = with_length(&rtp(1, 100));
        let mut segments = vec![(0, packet.clone())];
        for index in 2..90_u32 {
            segments.push((index * packet.len() as u32, packet.clone()));
        }
        let (found, _) = messages(&segments);
        assert!(found.len() > 80, "{}", found.len());
    }
}
