//! Several packets in one system call: the super-packets of the TUN device.
//!
//! With `IFF_VNET_HDR` the kernel puts a header of [`VNET_HEADER`] bytes before what is read and
//! written. The header can say that what follows is a super-packet: one IP and one UDP or TCP
//! header, and the payload of many packets of equal size. [`split`] makes the packets of it before
//! the network model sees them, so that the model knows each packet with its own size. [`Batch`]
//! makes a super-packet of the UDP packets that are due together for one host. TCP packets are
//! written one by one, because a receiver of a super-packet acknowledges less often.

use std::ops::Range;
use std::time::Instant;

/// Bytes of `struct virtio_net_hdr`, in the byte order of the machine.
pub(crate) const VNET_HEADER: usize = 10;
/// A frame is at most this long: its header and an IPv4 packet.
pub(crate) const LARGEST_FRAME: usize = VNET_HEADER + LARGEST_PACKET;
/// No IPv4 packet is larger.
const LARGEST_PACKET: usize = 65_535;
/// A sender may give no more to the older kernels that know super-packets of UDP.
pub(crate) const MOST_SEGMENTS: usize = 64;

mod vnet {
    pub(super) const NEEDS_CHECKSUM: u8 = 1;
    pub(super) const NO_SEGMENTS: u8 = 0;
    pub(super) const TCP_IPV4: u8 = 1;
    pub(super) const UDP: u8 = 5;
}

const IPV4_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const HEADERS: usize = IPV4_HEADER + UDP_HEADER;
const TCP_HEADER: usize = 20;
const TCP: u8 = 6;
const UDP: u8 = 17;
const TOTAL_LENGTH: Range<usize> = 2..4;
const IDENTIFICATION: Range<usize> = 4..6;
const FRAGMENT: Range<usize> = 6..8;
const PROTOCOL: usize = 9;
const IP_CHECKSUM: Range<usize> = 10..12;
const ADDRESSES: Range<usize> = 12..20;
/// Within the UDP header.
const UDP_LENGTH: Range<usize> = 4..6;
const UDP_CHECKSUM: Range<usize> = 6..8;
/// Within the TCP header.
const TCP_SEQUENCE: Range<usize> = 4..8;
const TCP_OFFSET: usize = 12;
const TCP_FLAGS: usize = 13;
const TCP_CHECKSUM: Range<usize> = 16..18;
const TCP_FIN_PUSH: u8 = 0x09;
const TCP_CWR: u8 = 0x80;
const MORE_FRAGMENTS_AND_OFFSET: u16 = 0x3FFF;
const DO_NOT_FRAGMENT: u16 = 0x4000;

/// A frame whose headers contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Gives the IP packets of a frame to `each`, in their order and with complete checksums. `scratch`
/// only saves allocations.
///
/// # Errors
/// If the frame is malformed; then `each` has seen nothing of it.
pub(crate) fn split(
    frame: &mut [u8],
    scratch: &mut Vec<u8>,
    mut each: impl FnMut(&mut [u8]),
) -> Result<(), Malformed> {
    let (header, packet) = frame.split_at_mut_checked(VNET_HEADER).ok_or(Malformed)?;
    let field = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
    let (flags, kind, segment) = (header[0], header[1], field(4));
    let protocol = match kind {
        vnet::NO_SEGMENTS => {
            if flags & vnet::NEEDS_CHECKSUM != 0 {
                complete_checksum(packet, field(6), field(8))?;
            }
            each(packet);
            return Ok(());
        }
        vnet::TCP_IPV4 => TCP,
        vnet::UDP => UDP,
        _ => return Err(Malformed),
    };
    let headers = Headers::parse(packet, protocol)?;
    if segment == 0 {
        return Err(Malformed);
    }
    let (start, payload) = packet.split_at(headers.length);
    let count = payload.len().div_ceil(segment).max(1);
    for index in 0..count {
        let from = (index * segment).min(payload.len());
        let to = (from + segment).min(payload.len());
        scratch.clear();
        scratch.extend_from_slice(start);
        scratch.extend_from_slice(&payload[from..to]);
        headers.complete(scratch, index, from, index + 1 == count);
        each(scratch);
    }
    Ok(())
}

/// The headers of a super-packet.
#[derive(Clone, Copy, Debug)]
struct Headers {
    protocol: u8,
    /// Bytes of the IP header.
    ip: usize,
    /// Bytes of both headers.
    length: usize,
}

impl Headers {
    fn parse(packet: &[u8], protocol: u8) -> Result<Self, Malformed> {
        if packet.len() < IPV4_HEADER || packet[0] >> 4 != 4 || packet[PROTOCOL] != protocol {
            return Err(Malformed);
        }
        let ip = usize::from(packet[0] & 0xF) * 4;
        let is_fragment = word(packet, FRAGMENT) & MORE_FRAGMENTS_AND_OFFSET != 0;
        if ip < IPV4_HEADER || is_fragment || packet.len() > LARGEST_PACKET {
            return Err(Malformed);
        }
        let transport = if protocol == UDP {
            UDP_HEADER
        } else {
            let offset = packet.get(ip + TCP_OFFSET).ok_or(Malformed)?;
            usize::from(offset >> 4) * 4
        };
        let least = if protocol == UDP { UDP_HEADER } else { TCP_HEADER };
        let length = ip + transport;
        if transport < least || packet.len() < length {
            return Err(Malformed);
        }
        Ok(Self { protocol, ip, length })
    }

    /// Makes the headers right that were copied from the super-packet. `from` is where the payload
    /// of the packet began in the super-packet.
    fn complete(&self, packet: &mut [u8], index: usize, from: usize, is_last: bool) {
        let id = word(packet, IDENTIFICATION).wrapping_add(index as u16);
        put(packet, IDENTIFICATION, id);
        put_ip_length(packet, self.ip);
        let transport = &mut packet[self.ip..];
        let checksum = if self.protocol == UDP {
            let length = transport.len() as u16;
            put(transport, UDP_LENGTH, length);
            UDP_CHECKSUM
        } else {
            let sequence: [u8; 4] =
                transport[TCP_SEQUENCE].try_into().expect("the number has four bytes");
            let sequence = u32::from_be_bytes(sequence).wrapping_add(from as u32);
            transport[TCP_SEQUENCE].copy_from_slice(&sequence.to_be_bytes());
            if !is_last {
                transport[TCP_FLAGS] &= !TCP_FIN_PUSH;
            }
            if index > 0 {
                transport[TCP_FLAGS] &= !TCP_CWR;
            }
            TCP_CHECKSUM
        };
        let at = self.ip + checksum.start..self.ip + checksum.end;
        put(packet, at.clone(), 0);
        let sum = sum(&packet[self.ip..]) + pseudo_header(packet, self.ip);
        put(packet, at, not_zero(!fold(sum)));
    }
}

/// Completes a checksum of which the field holds the sum of the pseudo-header [RFC768] [RFC9293
/// §3.1].
fn complete_checksum(packet: &mut [u8], start: usize, offset: usize) -> Result<(), Malformed> {
    let covered = packet.get_mut(start..).ok_or(Malformed)?;
    if start < IPV4_HEADER || covered.len() < offset + 2 {
        return Err(Malformed);
    }
    let checksum = not_zero(!fold(sum(covered)));
    put(covered, offset..offset + 2, checksum);
    Ok(())
}

/// The packets for one host that are due at the same wake-up, and that one write can take.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Begins with the virtio header. The lengths and checksums are written at the end.
    frame: Vec<u8>,
    /// When each packet was due.
    due: Vec<Instant>,
    /// Bytes of payload of the first packet.
    segment: usize,
    /// Whether another packet may follow.
    is_open: bool,
}

impl Batch {
    /// Adds a packet to the batch; `false` if it must go in a write of its own or with others. An
    /// empty batch takes every packet. Only where the kernel takes UDP super-packets may a batch
    /// `grow` beyond one packet.
    pub(crate) fn push(&mut self, due: Instant, packet: &[u8], grow: bool) -> bool {
        if self.due.is_empty() {
            self.frame.clear();
            self.frame.resize(VNET_HEADER, 0);
            self.frame.extend_from_slice(packet);
            self.segment = packet.len().saturating_sub(HEADERS);
            self.is_open = grow && self.segment > 0 && is_plain_udp(packet);
        } else if self.is_open && self.continues(packet) {
            let payload = &packet[HEADERS..];
            self.frame.extend_from_slice(payload);
            // Only the last packet may be smaller.
            self.is_open = payload.len() == self.segment && self.due.len() + 1 < MOST_SEGMENTS;
        } else {
            return false;
        }
        self.due.push(due);
        true
    }

    /// Whether the packet differs from the first one only where a split makes the difference.
    fn continues(&self, packet: &[u8]) -> bool {
        let first = &self.frame[VNET_HEADER..];
        let fits = first.len() + packet.len() <= LARGEST_PACKET;
        let expected = word(first, IDENTIFICATION).wrapping_add(self.due.len() as u16);
        fits && packet.len() > HEADERS
            && packet.len() - HEADERS <= self.segment
            && is_plain_udp(packet)
            && packet[..2] == first[..2]
            && packet[FRAGMENT.start..IP_CHECKSUM.start] == first[FRAGMENT.start..IP_CHECKSUM.start]
            && packet[ADDRESSES.start..HEADERS - 4] == first[ADDRESSES.start..HEADERS - 4]
            // The identification of a packet that is not to be fragmented means nothing (RFC 6864).
            && (word(packet, IDENTIFICATION) == expected
                || word(packet, FRAGMENT) & DO_NOT_FRAGMENT != 0)
    }

    /// What is to be written, as one frame; `None` if the batch is empty.
    pub(crate) fn frame(&mut self) -> Option<&[u8]> {
        if self.due.len() > 1 {
            let (header, packet) = self.frame.split_at_mut(VNET_HEADER);
            header[0] = vnet::NEEDS_CHECKSUM;
            header[1] = vnet::UDP;
            let fields = [HEADERS, self.segment, IPV4_HEADER, UDP_CHECKSUM.start];
            for (to, field) in header[2..].chunks_exact_mut(2).zip(fields) {
                to.copy_from_slice(&(field as u16).to_ne_bytes());
            }
            put_ip_length(packet, IPV4_HEADER);
            let length = (packet.len() - IPV4_HEADER) as u16;
            put(&mut packet[IPV4_HEADER..], UDP_LENGTH, length);
            let pseudo = fold(pseudo_header(packet, IPV4_HEADER));
            put(&mut packet[IPV4_HEADER..], UDP_CHECKSUM, pseudo);
        }
        (!self.due.is_empty()).then_some(&self.frame)
    }

    /// Empties the batch; when its packets were due.
    pub(crate) fn take_due(&mut self) -> impl Iterator<Item = Instant> {
        self.due.drain(..)
    }
}

/// Whether a packet is UDP in IPv4 without options, whole, with right lengths and a right checksum.
/// A packet with a wrong checksum must stay wrong.
fn is_plain_udp(packet: &[u8]) -> bool {
    packet.len() >= HEADERS
        && packet[0] == 0x45
        && packet[PROTOCOL] == UDP
        && word(packet, FRAGMENT) & MORE_FRAGMENTS_AND_OFFSET == 0
        && usize::from(word(packet, TOTAL_LENGTH)) == packet.len()
        && usize::from(word(&packet[IPV4_HEADER..], UDP_LENGTH)) == packet.len() - IPV4_HEADER
        && fold(sum(&packet[..IPV4_HEADER])) == 0xFFFF
        && word(&packet[IPV4_HEADER..], UDP_CHECKSUM) != 0
        && fold(sum(&packet[IPV4_HEADER..]) + pseudo_header(packet, IPV4_HEADER)) == 0xFFFF
}

/// Writes the length of a packet into its IP header, and the header's checksum.
fn put_ip_length(packet: &mut [u8], header: usize) {
    put(packet, TOTAL_LENGTH, packet.len() as u16);
    put(packet, IP_CHECKSUM, 0);
    let checksum = !fold(sum(&packet[..header]));
    put(packet, IP_CHECKSUM, checksum);
}

/// The sum of the addresses, the protocol and the length of what follows the IP header.
fn pseudo_header(packet: &[u8], header: usize) -> u64 {
    let length = (packet.len() - header) as u16;
    let words = [0, packet[PROTOCOL], (length >> 8) as u8, length as u8];
    sum(&packet[ADDRESSES]) + sum(&words)
}

/// The ones' complement sum of 16-bit words, before the carries are folded [RFC1071]. The words are
/// in the byte order of the machine, which [`fold`] undoes.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).map(|word| u64::from(u32::from_ne_bytes(*word))).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    u16::from_be(sum as u16)
}

/// A checksum of zero would mean "none" in UDP; in ones' complement all ones is zero too [RFC768].
fn not_zero(checksum: u16) -> u16 {
    if checksum == 0 { 0xFFFF } else { checksum }
}

fn word(bytes: &[u8], at: Range<usize>) -> u16 {
    u16::from_be_bytes([bytes[at.start], bytes[at.start + 1]])
}

fn put(bytes: &mut [u8], at: Range<usize>, value: u16) {
    bytes[at].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests;
