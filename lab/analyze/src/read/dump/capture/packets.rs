//! Sorts the packets of a file: RTP to its streams, and everything else to what it tells.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_capture::file::{Body, Frame};
use weir_capture::stream::{Framing, Segment, Streams as TcpStreams};
use weir_capture::{Content, ETHERNET, NoIp, Packet, Rtp, inner, rtp_of, subframes};
use weir_wire::rtp::View;

use super::clock::{self, Step};
use super::ends::{LocalEnd, Signs};
use super::flows::{Ends, Flows, Moved};
use super::handshakes::Handshakes;
use super::hosts::hosts;
use super::sessions::Sessions;
use crate::KeyLog;
use crate::read::packets::extensions::Candidates;
use crate::read::packets::recorder::is_readable;
use crate::read::srtp::Opener;

/// Latest time in ns since 1970: the year 2200.
const LATEST: u64 = 7_300_000_000_000_000_000;
/// Most bytes and datagrams of RTCP.
const RTCP_BYTES_MAX: usize = 32 << 20;
const RTCP_MAX: usize = 300_000;
/// Ports of other protocols, whose packets may look like RTP: DNS, DHCP, TFTP, NTP, NetBIOS, SNMP,
/// IKE, syslog. Larger ones may be a call's, which are drawn by chance.
const OTHERS: [u16; 11] = [53, 67, 68, 69, 123, 137, 138, 161, 162, 500, 514];
/// A datagram of more bytes does not fit into a packet of the internet's usual 1500.
const SUPER_PACKET: u32 = 1_472;
/// Usual sizes of the packets of which such a datagram is made.
const SEGMENT: std::ops::RangeInclusive<u32> = 200..=SUPER_PACKET;
/// Packets of one datagram that was to be split behind the place of the capture.
const SEGMENTS_MAX: u16 = 128;
/// The end that recorded, of recordings that do not name it.
const RECORDER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 1);

/// A datagram of RTCP in the clear.
pub(super) struct Rtcp {
    pub time: i64,
    /// Packets of RTP before it.
    place: usize,
    pub ends: Ends,
    pub bytes: Vec<u8>,
}

#[derive(Default)]
pub(super) struct Packets {
    count: u64,
    /// Frames without IP that can be read, by the reason.
    refused: BTreeMap<NoIp, u64>,
    first: Option<i64>,
    last: i64,
    /// Packets without a time.
    untimed: u64,
    pub flows: Flows,
    /// Streams that went on between other sockets, by time.
    pub moved: Vec<Moved>,
    pub rtcp: Vec<Rtcp>,
    rtcp_bytes: usize,
    pub handshakes: Handshakes,
    pub signs: Signs,
    pub sessions: Sessions,
    tcp: TcpStreams,
    /// Packets of media in TCP.
    pub in_tcp: u64,
    /// Datagrams of several packets that were to be split later, and those that were not kept for
    /// long enough to do it here.
    pub super_packets: u64,
    unsplit: u64,
    /// A datagram that may be of several packets, until the next one of its stream tells.
    waiting: HashMap<(u32, u32), (i64, Rtp, u16)>,
    /// Paths with such datagrams, and the largest packets of which these were made.
    segments: HashMap<u32, u32>,
    opener: Opener,
    unreadable: u64,
    /// Packets that open a connection of QUIC.
    quic: u64,
    /// Steps of the clock, which are corrected.
    pub steps: Vec<Step>,
}

impl Packets {
    pub fn new(keys: Option<&KeyLog>) -> Self {
        Self { opener: Opener::new(keys), ..Self::default() }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Time of the first packet of RTP, or else of the file.
    pub fn zero(&self) -> i64 {
        let streams = self.flows.streams.iter().filter(|it| it.is_rtp());
        streams.map(|it| it.first).min().or(self.first).unwrap_or_default()
    }

    pub fn end(&self) -> i64 {
        self.last
    }

    /// Adds a packet of the file.
    pub fn add(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        if frame.time.is_some_and(|time| time > LATEST) {
            return Err("a packet has a time after the year 2200".into());
        }
        self.count += 1;
        self.untimed += u64::from(frame.time.is_none());
        let now = frame.time.map_or(self.last, |time| time as i64);
        self.first.get_or_insert(now);
        self.last = self.last.max(now);
        match frame.body {
            Body::Link(link, data) => {
                let several = subframes(link, data);
                if several.is_empty() {
                    self.frame(now, (link, data), frame.length as usize, frame.is_sent);
                }
                for own in several {
                    self.frame(now, (ETHERNET, own), own.len(), frame.is_sent);
                }
            }
            Body::Received(source, payload) => {
                let parsed = Packet::of_datagram(payload, source, RECORDER);
                self.ip(now, payload, &parsed, frame.is_sent, None);
            }
        }
        Ok(())
    }

    /// A frame of a link, of `length` bytes on the wire.
    fn frame(
        &mut self,
        now: i64,
        (link, data): (u32, &[u8]),
        length: usize,
        is_sent: Option<bool>,
    ) {
        let found = match inner(link, data) {
            Ok(found) => found,
            Err(why) => {
                *self.refused.entry(why).or_default() += 1;
                return;
            }
        };
        let packet = &data[found.at..];
        let length = length.saturating_sub(found.at);
        if let Some((parsed, _)) = Packet::parse(packet, length) {
            self.ip(now, packet, &parsed, is_sent.or(found.is_sent), found.hardware);
        }
    }

    fn ip(
        &mut self,
        now: i64,
        packet: &[u8],
        parsed: &Packet,
        is_sent: Option<bool>,
        hardware: Option<([u8; 6], [u8; 6])>,
    ) {
        let ends = (parsed.source, parsed.destination);
        if let Some((source, _)) = hardware {
            self.signs.hardware(ends.0.ip(), source);
        }
        if parsed.content == Content::Tcp {
            let segment = packet.get(parsed.content_at as usize..).unwrap_or_default();
            let segment = Segment::of(ends, segment, parsed.content_size as usize);
            let mut messages: Vec<Vec<u8>> = Vec::new();
            if let Some(segment) = segment {
                self.tcp.add(&segment, &mut |message| messages.push(message.to_vec()));
            }
            for message in messages {
                let inside = Packet::of_datagram(&message, ends.0, ends.1);
                self.in_tcp += u64::from(matches!(inside.content, Content::Rtp(_)));
                self.datagram(now, &message, &inside, is_sent);
            }
            return;
        }
        if matches!(parsed.content, Content::Rtp(_) | Content::Rtcp { .. } | Content::Dtls) {
            self.signs.packet(hosts(ends).0, parsed.hops_left, hardware);
        }
        self.datagram(now, packet, parsed, is_sent);
    }

    /// A datagram; `bytes` are what its offsets are in.
    fn datagram(&mut self, now: i64, bytes: &[u8], parsed: &Packet, is_sent: Option<bool>) {
        let ends = (parsed.source, parsed.destination);
        if [ends.0.port(), ends.1.port()].iter().any(|port| OTHERS.contains(port)) {
            return;
        }
        let (at, size) = (parsed.content_at as usize, parsed.content_size as usize);
        let Some(rest) = bytes.get(at..) else { return };
        let content = &rest[..rest.len().min(size)];
        match parsed.content {
            Content::Rtp(rtp) => {
                let Some(path) = self.flows.path(ends) else { return };
                let flagged = &mut self.flows.paths[path as usize].flagged;
                match is_sent {
                    Some(true) => flagged.0 += 1,
                    Some(false) => flagged.1 += 1,
                    None => {}
                }
                let is_cut = content.len() < size && !parsed.has_more;
                self.rtp(now, path, &rtp, (content, is_cut), parsed.id);
            }
            Content::Rtcp { .. } => self.rtcp(now, ends, content, size),
            Content::Stun => self.handshakes.stun(ends, now, content),
            Content::Dtls => {
                self.handshakes.dtls(ends, now, content);
                self.opener.dtls(ends, content);
            }
            Content::Other if opens_quic(content) => self.quic += 1,
            Content::Other if content.first().is_some_and(u8::is_ascii_uppercase) => {
                self.sessions.add(content);
            }
            _ => {}
        }
    }

    fn rtcp(&mut self, now: i64, ends: Ends, content: &[u8], size: usize) {
        let is_whole = content.len() == size;
        let plain = if is_whole && is_readable(content) {
            Some(content.to_vec())
        } else {
            self.opener.open(content).filter(|plain| is_readable(plain))
        };
        match plain {
            Some(bytes) if self.rtcp.len() < RTCP_MAX => {
                if self.rtcp_bytes + bytes.len() <= RTCP_BYTES_MAX {
                    self.handshakes.rtcp(self.flows.media_ends(ends), now, &bytes);
                    self.rtcp_bytes += bytes.len();
                    let place = self.flows.count();
                    self.rtcp.push(Rtcp { time: now, place, ends, bytes });
                }
            }
            Some(_) => {}
            None => {
                self.unreadable += 1;
                if let Some(path) = self.flows.path(ends) {
                    self.flows.paths[path as usize].unreadable += 1;
                }
            }
        }
    }

    fn rtp(
        &mut self,
        now: i64,
        path: u32,
        rtp: &Rtp,
        (content, is_cut): (&[u8], bool),
        ip_id: u16,
    ) {
        let key = (path, rtp.ssrc);
        if !self.waiting.is_empty()
            && let Some((time, whole, id)) = self.waiting.remove(&key)
        {
            self.split_by_numbers(path, time, &whole, rtp.sequence_number, id);
        }
        let size = rtp.header_size + rtp.payload_size;
        let is_offloaded = !self.segments.is_empty() && self.segments.contains_key(&path);
        // Small packets may be one datagram of usual size, which the first one of a stream tells.
        if size <= SUPER_PACKET
            && !is_offloaded
            && self.flows.add_known(path, now, rtp, &candidates(content), ip_id)
        {
            return;
        }
        if let Some(segment) = segment_size(content, rtp) {
            self.super_packets += 1;
            let largest = self.segments.entry(path).or_default();
            *largest = (*largest).max(segment as u32);
            return self.split(path, now, rtp, (content, segment), ip_id);
        }
        self.flows.add(path, now, rtp, candidates(content), ip_id);
        if size > SUPER_PACKET && is_cut {
            self.waiting.insert(key, (now, *rtp, ip_id));
        }
    }

    /// Adds the packets of a datagram that was to be split into parts of this size.
    fn split(
        &mut self,
        path: u32,
        now: i64,
        rtp: &Rtp,
        (content, segment): (&[u8], usize),
        ip_id: u16,
    ) {
        let size = (rtp.header_size + rtp.payload_size) as usize;
        for index in 0..size.div_ceil(segment).min(SEGMENTS_MAX.into()) {
            let from = index * segment;
            let length = segment.min(size - from);
            let part = content.get(from..).unwrap_or_default();
            // What was not captured follows the rest.
            let number = rtp.sequence_number.wrapping_add(index as u16);
            let own = rtp_of(part, length).unwrap_or(Rtp {
                sequence_number: number,
                payload_size: length as u32 - rtp.header_size.min(length as u32),
                ..*rtp
            });
            self.flows.add(path, now, &own, candidates(part), ip_id);
        }
    }

    /// A datagram of several packets, of which the first only was captured: the number of the next
    /// one tells how many, or, where some are missing behind it, the usual size of such packets.
    fn split_by_numbers(&mut self, path: u32, time: i64, whole: &Rtp, next: u16, ip_id: u16) {
        let size = whole.header_size + whole.payload_size;
        let numbers = next.wrapping_sub(whole.sequence_number);
        if !(2..=SEGMENTS_MAX).contains(&numbers) {
            return;
        }
        let own = Some(size.div_ceil(numbers.into())).filter(|it| SEGMENT.contains(it));
        let Some(segment) = own.max(self.segments.get(&path).copied()) else { return };
        self.segments.insert(path, segment);
        let count = size.div_ceil(segment).min(numbers.into());
        self.split_unseen(path, time, whole, count, ip_id);
    }

    /// Adds the packets behind the first one of a datagram of so many.
    fn split_unseen(&mut self, path: u32, time: i64, whole: &Rtp, count: u32, ip_id: u16) {
        let size = whole.header_size + whole.payload_size;
        self.super_packets += 1;
        self.unsplit += 1;
        for index in 1..count {
            let payload_size = (size / count).saturating_sub(whole.header_size);
            let sequence_number = whole.sequence_number.wrapping_add(index as u16);
            let own = Rtp { sequence_number, payload_size, ..*whole };
            self.flows.add(path, time, &own, Candidates::default(), ip_id);
        }
    }

    /// No packet tells of how many the last datagrams were: the usual size of their path does.
    fn split_last(&mut self) {
        // In an order that does not depend on the map's.
        let last: BTreeMap<_, _> = std::mem::take(&mut self.waiting).into_iter().collect();
        for ((path, _), (time, whole, ip_id)) in last {
            let size = whole.header_size + whole.payload_size;
            if let Some(segment) = self.segments.get(&path) {
                let count = size.div_ceil(*segment).min(SEGMENTS_MAX.into());
                self.split_unseen(path, time, &whole, count, ip_id);
            }
        }
    }

    /// No more packets come.
    pub fn flush(&mut self, local: Option<LocalEnd>) {
        self.split_last();
        self.flows.finish();
        if self.untimed > 0 && self.untimed == self.count {
            self.last = self.flows.retime();
        } else {
            self.correct_clock();
        }
        self.moved = self.flows.join_moved(|before, now| may_move(local, before, now));
        self.signs.streams(&self.flows);
    }

    /// Corrects what came before the steps of the clock.
    fn correct_clock(&mut self) {
        let steps = clock::steps(&self.flows);
        if steps.is_empty() {
            return;
        }
        clock::correct(&mut self.flows, &steps);
        for report in &mut self.rtcp {
            report.time += clock::missing(&steps, report.place);
        }
        for (_, time, _) in &mut self.handshakes.round_trips {
            *time += clock::missing_at(&steps, *time);
        }
        self.first = self.first.map(|first| first + clock::missing(&steps, 0));
        for stream in self.flows.streams.iter().filter(|it| it.is_rtp()) {
            self.last = self.last.max(stream.last);
        }
        self.steps = steps;
    }

    pub fn has_media(&self) -> bool {
        self.flows.streams.iter().any(|it| it.is_rtp())
    }

    /// Whether an end has RTP.
    pub fn has_media_of(&self, local: Option<LocalEnd>) -> bool {
        self.flows.streams.iter().filter(|it| it.is_rtp()).any(|stream| {
            let (from, to) = self.flows.paths[stream.path as usize].ends;
            local.is_some_and(|local| local.has(from) || local.has(to))
        })
    }

    /// Keys for RTCP that is in the clear anyway are no mistake.
    pub fn complaint(&self) -> Option<String> {
        let is_blind = self.unreadable > 0 && self.rtcp.is_empty();
        self.opener.complaint().filter(|_| is_blind)
    }

    /// What a file of this name has instead of RTP, without numbers: a fleet counts files by this
    /// line.
    pub fn without_rtp(&self, name: &str) -> String {
        if self.count == 0 {
            return format!("no RTP: the {name} has a heading and no packets");
        }
        let mut text = format!("no RTP in this {name}");
        if let Some((why, _)) = self.refused.iter().max_by_key(|(_, count)| **count) {
            text += &match why {
                NoIp::Link(_) => {
                    format!(", which has frames of {why}, and those are not read here")
                }
                _ => format!(", which has {why}"),
            };
        }
        if self.quic > 0 {
            text += "; it has QUIC, which encrypts media, packet numbers and ACKs: give the qlog \
                     of the stack instead (JSON-SEQ, .sqlog)";
        }
        if self.tcp.count(Framing::Tls) > 0 {
            text += "; media inside its streams of TLS would be encrypted as a whole";
        }
        text
    }

    /// What a reader should know of the capture.
    pub fn note(&self) -> Option<String> {
        let mut known = Vec::new();
        if self.untimed > 0 {
            known.push(
                "packets without times (simple packet blocks): those of RTP timestamps are taken"
                    .to_owned(),
            );
        }
        if self.unsplit > 0 {
            known.push(format!(
                "{} datagrams were captured before they were split into several packets, of which \
                 the first only was kept: capture with segmentation offload switched off (ethtool \
                 -K DEVICE tx-udp-segmentation off), or whole packets",
                self.unsplit
            ));
        }
        known.extend(self.handshakes.unanswered(&|ends| self.has_rtp(ends)));
        (!known.is_empty()).then(|| known.join("; "))
    }

    /// Whether there is RTP between two sockets.
    pub fn has_rtp(&self, ends: Ends) -> bool {
        let back = (ends.1, ends.0);
        self.flows.streams.iter().any(|it| {
            let own = self.flows.paths[it.path as usize].ends;
            it.is_rtp() && (own == ends || own == back)
        })
    }
}

/// Whether two paths may be those of one stream: one end stays. An end that someone named is this
/// one on both.
fn may_move(local: Option<LocalEnd>, before: Ends, now: Ends) -> bool {
    let stays = before.0.ip() == now.0.ip() || before.1.ip() == now.1.ip();
    let is_named = local.is_none_or(|local| {
        local.has(before.0) && local.has(now.0) || local.has(before.1) && local.has(now.1)
    });
    stays && is_named
}

/// Whether this is a packet of QUIC with a long header [RFC9000 §17.2], of version 1 or 2.
fn opens_quic(content: &[u8]) -> bool {
    const VERSIONS: [[u8; 4]; 2] = [[0, 0, 0, 1], [0x6B, 0x33, 0x43, 0xCF]];
    let version = content.get(1..5);
    let is_long = content.first().is_some_and(|first| first & 0xC0 == 0xC0);
    is_long && version.is_some_and(|version| VERSIONS.iter().any(|known| known == version))
}

/// Values of header extensions.
fn candidates(content: &[u8]) -> Candidates {
    View::parse_header(content).map(|view| Candidates::of(&view)).unwrap_or_default()
}

/// Size of the packets of a datagram that is to be split into equal parts: where the header of the
/// next packet is.
fn segment_size(content: &[u8], first: &Rtp) -> Option<usize> {
    const HEADER: usize = 12;
    let kind = first.payload_type;
    let next = first.sequence_number.wrapping_add(1).to_be_bytes();
    let ssrc = first.ssrc.to_be_bytes();
    let from = first.header_size as usize + 1;
    let last = content.len().checked_sub(HEADER)?;
    (from..=last).find(|at| {
        let header = &content[*at..*at + HEADER];
        header[0] >> 6 == 2
            && header[1] & 0x7F == kind
            && header[2..4] == next
            && header[8..12] == ssrc
    })
}
