//! A packet capture: pcap, or pcapng.
//!
//! Streams are the SSRCs of RTP, whose headers SRTP leaves in the clear. Packets of an interval
//! become a report like a browser's: what was sent, or what arrived and how many sequence numbers
//! are missing. RTCP that is readable, or that a key opens, adds round-trip times, losses, and the
//! fate of each packet. Without it, rules that need these are silent.

use std::io::BufRead;
use std::net::IpAddr;

use weir::units::Timestamp;
use weir_capture::{Content, Packet, Rtp};
use weir_wire::rtp::View;

use super::left_out::LeftOut;
use super::{Dump, StreamDirection};
use crate::CaptureOptions;
use crate::format::{Format, MICROS, NANOS, SECTION};
use crate::packets::PacketLog;
use crate::packets::extensions::Candidates;
use crate::packets::recorder::{Recorder, is_readable};
use crate::packets::rtp::{Extensions, RtpPacket};
use crate::srtp::Opener;

/// Bytes of RTCP that count as headers.
const RTCP_IN_THE_CLEAR: usize = 8;
/// Bytes of DTLS that count as headers.
const DTLS_IN_THE_CLEAR: usize = 13;
/// Longest captured packet, or block of other content, in bytes.
const LONGEST: u32 = 1 << 20;
/// Latest time in ns since 1970: the year 2200.
const LATEST: u64 = 7_300_000_000_000_000_000;

// Blocks of pcapng [PCAPNG §4.1, §4.2, §4.3].
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Option of an interface: the resolution of its times.
const RESOLUTION: u16 = 9;
/// Option of a packet: its direction, in the lowest bits.
const FLAGS: u16 = 2;

/// Reads the packets one by one.
pub(crate) fn read(mut from: Box<dyn BufRead>, options: &CaptureOptions) -> Result<Dump, String> {
    let opener = Opener::new(options.keys.as_ref());
    let mut collector = Packets { opener, local: options.local, ..Packets::default() };
    let first = number(&mut from)?.ok_or("an empty capture")?;
    let mut left_out = LeftOut::default();
    let whole = if first == SECTION.to_le_bytes() {
        pcapng(&mut from, &mut collector)
    } else {
        pcap(first, &mut from, &mut collector)
    };
    if let Err(what) = whole {
        // What came before is still a capture.
        if collector.zero.is_none() {
            return Err(what);
        }
        left_out.stop(format!("after packet {}: {what}", collector.count));
    }
    // Keys for RTCP that is in the clear anyway are no mistake.
    if let Some(complaint) = collector.opener.complaint().filter(|_| collector.recorder.is_blind())
    {
        return Err(complaint);
    }
    if collector.zero.is_none() {
        return Err(collector.without_rtp());
    }
    if let Some(local) = options.local.filter(|_| !collector.has_local) {
        return Err(format!("no RTP in the capture comes from {local} or goes there"));
    }
    let connection = collector.recorder.finish("capture");
    left_out.note(connection.packets.as_ref().and_then(PacketLog::cut_warning));
    Ok(Dump {
        format: Format::Capture,
        program: None,
        connections: vec![connection],
        warnings: left_out.warnings("packets"),
        events: Vec::new(),
    })
}

/// Four bytes; `None` at the end of the file.
fn number(from: &mut dyn BufRead) -> Result<Option<[u8; 4]>, String> {
    let mut bytes = [0; 4];
    let mut filled = 0;
    while filled < bytes.len() {
        match from.read(&mut bytes[filled..]).map_err(|error| error.to_string())? {
            0 if filled == 0 => return Ok(None),
            0 => return Err("the capture ends within a packet".into()),
            read => filled += read,
        }
    }
    Ok(Some(bytes))
}

fn bytes(from: &mut dyn BufRead, length: u32) -> Result<Vec<u8>, String> {
    if length > LONGEST {
        return Err(format!("a packet or block of {length} bytes"));
    }
    let mut body = vec![0; length as usize];
    from.read_exact(&mut body).map_err(|_| "the capture ends within a packet")?;
    Ok(body)
}

/// Numbers in the byte order of the machine that wrote the file.
#[derive(Clone, Copy)]
struct Order {
    is_big: bool,
}

impl Order {
    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let four = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.is_big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
    }

    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let two = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.is_big { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) })
    }
}

fn pcap(magic: [u8; 4], from: &mut dyn BufRead, to: &mut Packets) -> Result<(), String> {
    let little = u32::from_le_bytes(magic);
    let is_big = ![MICROS, NANOS].contains(&little);
    let order = Order { is_big };
    let magic = if is_big { u32::from_be_bytes(magic) } else { little };
    let unit = if magic == NANOS { 1 } else { 1_000 };
    let heading = bytes(from, 20)?;
    let major = order.u16(&heading, 0).unwrap_or_default();
    if major != 2 {
        return Err(format!("pcap of version {major}, and only 2 is known here"));
    }
    let link = order.u32(&heading, 16).unwrap_or_default() & 0xFFFF;
    while let Some(seconds) = number(from)? {
        let seconds = u64::from(order.u32(&seconds, 0).unwrap_or_default());
        let rest = bytes(from, 12)?;
        let field = |at| order.u32(&rest, at).unwrap_or_default();
        let data = bytes(from, field(4))?;
        let time = seconds * 1_000_000_000 + u64::from(field(0)) * unit;
        to.add(time, link, &data, field(8), None)?;
    }
    Ok(())
}

fn pcapng(from: &mut dyn BufRead, to: &mut Packets) -> Result<(), String> {
    let mut order = Order { is_big: false };
    let mut interfaces: Vec<(u32, u64)> = Vec::new();
    let mut kind = SECTION.to_le_bytes();
    loop {
        let length = number(from)?.ok_or("the capture ends within a block")?;
        let is_section = kind == SECTION.to_le_bytes();
        let mut start = Vec::new();
        if is_section {
            start = bytes(from, 4)?;
            order.is_big =
                u32::from_be_bytes([start[0], start[1], start[2], start[3]]) == BYTE_ORDER;
            if order.u32(&start, 0) != Some(BYTE_ORDER) {
                return Err("a section of pcapng without its byte order".into());
            }
            interfaces.clear();
        }
        let length = order.u32(&length, 0).unwrap_or_default();
        let left = length.checked_sub(8 + start.len() as u32).filter(|it| *it >= 4);
        let body = bytes(from, left.ok_or("a block of pcapng that is too short")?)?;
        let body = &body[..body.len() - 4];
        if is_section && order.u16(body, 0) != Some(1) {
            return Err("a pcapng of a version that is not known here".into());
        }
        match order.u32(&kind, 0).unwrap_or_default() {
            INTERFACE => interfaces.push(interface(order, body)),
            PACKET => packet(order, body, &interfaces, to)?,
            _ => {}
        }
        match number(from)? {
            Some(next) => kind = next,
            None => return Ok(()),
        }
    }
}

/// Link type, and units of time in a second.
fn interface(order: Order, body: &[u8]) -> (u32, u64) {
    let link = u32::from(order.u16(body, 0).unwrap_or_default());
    let resolution = option(order, body.get(8..).unwrap_or_default(), RESOLUTION);
    let units = match resolution.and_then(|value| value.first()) {
        Some(power) if power & 0x80 != 0 => 1_u64.checked_shl(u32::from(power & 0x7F)),
        Some(power) => 10_u64.checked_pow(u32::from(*power)),
        None => Some(1_000_000),
    };
    (link, units.unwrap_or(1_000_000))
}

fn packet(
    order: Order,
    body: &[u8],
    interfaces: &[(u32, u64)],
    to: &mut Packets,
) -> Result<(), String> {
    let broken = "a packet of pcapng that is not whole";
    let field = |at| order.u32(body, at).ok_or(broken);
    let (link, units) = *interfaces
        .get(field(0)? as usize)
        .ok_or("a packet of an interface that is not described")?;
    let ticks = u64::from(field(4)?) << 32 | u64::from(field(8)?);
    let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(units);
    let captured = field(12)? as usize;
    let data = body.get(20..).and_then(|rest| rest.get(..captured)).ok_or(broken)?;
    let options = body.get(20 + captured.next_multiple_of(4)..).unwrap_or_default();
    let flags = option(order, options, FLAGS).and_then(|value| order.u32(value, 0));
    let is_sent = match flags.map(|flags| flags & 0b11) {
        Some(1) => Some(false),
        Some(2) => Some(true),
        _ => None,
    };
    to.add(u64::try_from(nanos).unwrap_or(u64::MAX), link, data, field(16)?, is_sent)
}

/// The value of an option.
fn option(order: Order, mut options: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (code, length) = (order.u16(options, 0)?, usize::from(order.u16(options, 2)?));
        let value = options.get(4..4 + length)?;
        if code == wanted {
            return Some(value);
        }
        options = options.get(4 + length.next_multiple_of(4)..).filter(|_| code != 0)?;
    }
}

/// Links whose headers are known: BSD loopback, Ethernet, raw IP, and the two kinds of Linux "any".
const LINKS: [u32; 9] = [0, 108, 1, 12, 14, 101, 228, 113, 276];

/// Offset of the IP header behind the header of a link; `None` where no IP follows.
fn ip_at(link: u32, data: &[u8]) -> Option<usize> {
    const IP: [u16; 2] = [0x0800, 0x86DD];
    const VLAN: [u16; 2] = [0x8100, 0x88A8];
    let (mut type_at, behind_type) = match link {
        0 | 108 => return Some(4),
        12 | 14 | 101 | 228 => return Some(0),
        1 => (12, 2),
        113 => (14, 2),
        276 => (0, 20),
        _ => return None,
    };
    while link == 1 && VLAN.contains(&word(data, type_at)?) {
        type_at += 4;
    }
    IP.contains(&word(data, type_at)?).then_some(type_at + behind_type)
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*data.get(at..)?.first_chunk()?))
}

/// Whether this host sent a packet, where the link's header says so: Linux "any".
fn sent_by(link: u32, data: &[u8]) -> Option<bool> {
    const OUTGOING: u8 = 4;
    match link {
        113 => Some(*data.get(1)? == OUTGOING),
        276 => Some(*data.get(10)? == OUTGOING),
        _ => None,
    }
}

/// Gives the packets of RTP and RTCP to the recorder.
#[derive(Default)]
struct Packets {
    /// All packets of the file.
    count: u64,
    /// The first link whose headers are not known.
    unknown_link: Option<u32>,
    zero: Option<u64>,
    /// The end at which the capture was made, where the file does not say which packets were sent.
    local: Option<IpAddr>,
    /// Whether there is RTP of that end.
    has_local: bool,
    recorder: Recorder,
    opener: Opener,
}

impl Packets {
    fn add(
        &mut self,
        time: u64,
        link: u32,
        data: &[u8],
        length: u32,
        is_sent: Option<bool>,
    ) -> Result<(), String> {
        if time > LATEST {
            return Err("a packet has a time after the year 2200".into());
        }
        self.count += 1;
        if !LINKS.contains(&link) {
            self.unknown_link.get_or_insert(link);
        }
        let is_sent = is_sent.or_else(|| sent_by(link, data));
        let Some(at) = ip_at(link, data).filter(|at| *at <= data.len()) else { return Ok(()) };
        let length = (length as usize).saturating_sub(at);
        let Some((packet, headers)) = Packet::parse(&data[at..], length) else { return Ok(()) };
        // An Ethernet frame may be padded behind the IP packet.
        let end = (at + ip_length(&data[at..])).min(data.len());
        let content = match packet.content {
            Content::Rtp(rtp) => headers.checked_sub(rtp.header_size as usize),
            Content::Rtcp { .. } => headers.checked_sub(RTCP_IN_THE_CLEAR),
            Content::Dtls => headers.checked_sub(DTLS_IN_THE_CLEAR),
            _ => return Ok(()),
        };
        let Some(bytes) = content.and_then(|start| data.get(at + start..end)) else {
            return Ok(());
        };
        if packet.content == Content::Dtls {
            self.opener.dtls((packet.source, packet.destination), bytes);
            return Ok(());
        }
        if matches!(packet.content, Content::Rtp(_)) && self.zero.is_none() {
            self.zero = Some(time);
            self.local.get_or_insert(packet.source.ip());
        }
        let (Some(zero), Some(local)) = (self.zero, self.local) else { return Ok(()) };
        self.has_local |= [packet.source.ip(), packet.destination.ip()].contains(&local);
        let is_sent = is_sent.unwrap_or(packet.source.ip() == local);
        let way = if is_sent { StreamDirection::Sent } else { StreamDirection::Received };
        let now = Timestamp::from_nanos(time.saturating_sub(zero) as i64);
        match packet.content {
            Content::Rtp(rtp) => self.rtp(now, way, &rtp, bytes),
            _ if is_readable(bytes) => self.recorder.rtcp(now, way, bytes),
            _ => match self.opener.open(bytes) {
                Some(plain) if is_readable(&plain) => self.recorder.rtcp(now, way, &plain),
                _ => self.recorder.unreadable_rtcp(),
            },
        }
        Ok(())
    }

    /// What the file has instead.
    fn without_rtp(&self) -> String {
        match (self.count, self.unknown_link) {
            (0, _) => "the capture has no packets".into(),
            (count, None) => format!("none of the {count} packets in the capture is RTP over UDP"),
            (_, Some(link)) => format!(
                "the capture has no RTP on a link that is known here; one link has type {link}"
            ),
        }
    }

    fn rtp(&mut self, now: Timestamp, way: StreamDirection, rtp: &Rtp, bytes: &[u8]) {
        let Ok(view) = View::parse_header(bytes) else { return };
        let (payload_size, padding_size) =
            if rtp.is_padding { (0, rtp.payload_size) } else { (rtp.payload_size, 0) };
        let packet = RtpPacket {
            ssrc: rtp.ssrc,
            sequence_number: rtp.sequence_number,
            rtp_timestamp: view.timestamp(),
            header_size: rtp.header_size,
            payload_size,
            padding_size,
            is_padding: rtp.is_padding,
            extensions: Extensions::Unknown(Candidates::of(&view)),
        };
        self.recorder.rtp(now, way, &packet);
    }
}

/// The length that the header of an IP packet names [RFC791 §3.1], [RFC8200 §3].
fn ip_length(packet: &[u8]) -> usize {
    match packet.first().map(|first| first >> 4) {
        Some(6) => 40 + usize::from(word(packet, 4).unwrap_or(0)),
        _ => word(packet, 2).unwrap_or(0).into(),
    }
}
