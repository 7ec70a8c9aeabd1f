//! The endpoints in an IPv4 packet, and how to change them with right checksums.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Size of an IPv4 header without options [RFC791 §3.1].
const IP_HEADER: usize = 20;
/// Size of the headers of UDP and ICMP.
const SHORT_HEADER: usize = 8;
/// Size of a TCP header without options.
const TCP_HEADER: usize = 20;
/// Where the checksum is in the header of each protocol.
const UDP_CHECKSUM: usize = 6;
const TCP_CHECKSUM: usize = 16;
const ICMP_CHECKSUM: usize = 2;
const IP_CHECKSUM: usize = 10;
/// Where the identifier of an echo is.
const ICMP_IDENTIFIER: usize = 4;
/// Bits of the fragment offset, and the flag for more fragments.
const FRAGMENT_BITS: u16 = 0x3FFF;

/// Types of ICMP messages [RFC792].
const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

/// A protocol whose endpoints are translated. The endpoint of an echo has the identifier as port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    Udp,
    Tcp,
    Echo,
}

/// One of the two endpoints of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Source,
    Destination,
}

impl End {
    const fn address(self) -> Range<usize> {
        match self {
            Self::Source => 12..16,
            Self::Destination => 16..20,
        }
    }

    const fn port(self) -> Range<usize> {
        match self {
            Self::Source => 0..2,
            Self::Destination => 2..4,
        }
    }
}

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) protocol: Protocol,
    pub(super) source: SocketAddrV4,
    pub(super) destination: SocketAddrV4,
}

/// What a NAT can do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Translate it.
    Plain(Said),
    /// Translate it and the packet that it is about, which begins at this byte.
    Error { about: Said, at: usize },
}

/// Reads a packet. `None` for fragments, other protocols, and bytes that are no such packet.
pub(super) fn read(packet: &[u8]) -> Option<Kind> {
    let header = header_length(packet)?;
    if word(packet, 6..8) & FRAGMENT_BITS != 0 {
        return None;
    }
    let is_icmp = packet[9] == ICMP && packet.len() >= header + SHORT_HEADER;
    if is_icmp && matches!(packet[header], UNREACHABLE | TIME_EXCEEDED | PARAMETER_PROBLEM) {
        // A message with a wrong checksum is dropped [RFC5508 §4.1].
        if checksum(&packet[header..]) != 0 {
            return None;
        }
        let at = header + SHORT_HEADER;
        let about = said(packet.get(at..)?, SHORT_HEADER)?;
        return Some(Kind::Error { about, at });
    }
    let least = if packet[9] == TCP { TCP_HEADER } else { SHORT_HEADER };
    said(packet, least).map(Kind::Plain)
}

/// The endpoints of a packet of which at least the header and `least` bytes are there.
fn said(packet: &[u8], least: usize) -> Option<Said> {
    let header = header_length(packet)?;
    let body = packet.get(header..).filter(|body| body.len() >= least)?;
    let protocol = match packet[9] {
        UDP => Protocol::Udp,
        TCP => Protocol::Tcp,
        ICMP if matches!(body[0], ECHO_REQUEST | ECHO_REPLY) => Protocol::Echo,
        _ => return None,
    };
    let [source, destination] = match protocol {
        Protocol::Echo => {
            // Only the end that asks has the identifier.
            let identifier = word(body, ICMP_IDENTIFIER..ICMP_IDENTIFIER + 2);
            if body[0] == ECHO_REQUEST { [identifier, 0] } else { [0, identifier] }
        }
        Protocol::Udp | Protocol::Tcp => [word(body, 0..2), word(body, 2..4)],
    };
    Some(Said {
        protocol,
        source: SocketAddrV4::new(address(packet, End::Source), source),
        destination: SocketAddrV4::new(address(packet, End::Destination), destination),
    })
}

/// Length of the IP header; `None` if there is no whole one.
fn header_length(packet: &[u8]) -> Option<usize> {
    let first = *packet.first()?;
    let length = usize::from(first & 0xF) * 4;
    (first >> 4 == 4 && length >= IP_HEADER && packet.len() >= length).then_some(length)
}

/// The address of one end of a packet with a whole IP header.
pub(super) fn address(packet: &[u8], end: End) -> Ipv4Addr {
    let octets: [u8; 4] = packet[end.address()].try_into().expect("an address has four bytes");
    octets.into()
}

/// Writes one endpoint of a packet that was [`read`], and updates its checksums.
pub(super) fn write(packet: &mut [u8], protocol: Protocol, end: End, to: SocketAddrV4) {
    let header = header_length(packet).expect("the packet was read");
    let (ip, body) = packet.split_at_mut(header);
    let (old_address, new_address) = (word_pair(ip, end.address()), to.ip().octets());
    ip[end.address()].copy_from_slice(&new_address);
    adjust(ip, IP_CHECKSUM, &old_address, &new_address);
    let port = match protocol {
        Protocol::Echo => ICMP_IDENTIFIER..ICMP_IDENTIFIER + 2,
        Protocol::Udp | Protocol::Tcp => end.port(),
    };
    let (old_port, new_port) = ([body[port.start], body[port.start + 1]], to.port().to_be_bytes());
    body[port].copy_from_slice(&new_port);
    match protocol {
        // Its checksum covers no address [RFC792].
        Protocol::Echo => adjust(body, ICMP_CHECKSUM, &old_port, &new_port),
        Protocol::Tcp => {
            adjust(body, TCP_CHECKSUM, &old_address, &new_address);
            adjust(body, TCP_CHECKSUM, &old_port, &new_port);
        }
        // Zero means that there is no checksum [RFC768].
        Protocol::Udp if word(body, UDP_CHECKSUM..UDP_CHECKSUM + 2) == 0 => {}
        Protocol::Udp => {
            adjust(body, UDP_CHECKSUM, &old_address, &new_address);
            adjust(body, UDP_CHECKSUM, &old_port, &new_port);
            if word(body, UDP_CHECKSUM..UDP_CHECKSUM + 2) == 0 {
                body[UDP_CHECKSUM..UDP_CHECKSUM + 2].fill(0xFF);
            }
        }
    }
}

/// Writes an endpoint of the packet that an ICMP error is about, and the address of the error's own
/// `outer` end. Both checksums of the error are right afterwards [RFC5508 §4.2].
pub(super) fn write_error(
    packet: &mut [u8],
    (at, protocol, inner): (usize, Protocol, End),
    outer: End,
    [inner_to, outer_to]: [SocketAddrV4; 2],
) {
    write(&mut packet[at..], protocol, inner, inner_to);
    let header = header_length(packet).expect("the packet was read");
    let old = word_pair(packet, outer.address());
    packet[outer.address()].copy_from_slice(&outer_to.ip().octets());
    adjust(packet, IP_CHECKSUM, &old, &outer_to.ip().octets());
    let body = &mut packet[header..];
    body[ICMP_CHECKSUM..ICMP_CHECKSUM + 2].fill(0);
    let sum = checksum(body);
    body[ICMP_CHECKSUM..ICMP_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Updates a checksum for words that change: HC' = ~(~HC + ~m + m') [RFC1624 §3]. A checksum that
/// the packet is too short to have, as in an ICMP error, is left out.
fn adjust(bytes: &mut [u8], at: usize, old: &[u8], new: &[u8]) {
    let Some(field) = bytes.get(at..at + 2) else { return };
    let mut sum = u32::from(!word(field, 0..2));
    for (old, new) in old.chunks(2).zip(new.chunks(2)) {
        sum += u32::from(!word(old, 0..2)) + u32::from(word(new, 0..2));
    }
    let folded = !fold(sum);
    bytes[at..at + 2].copy_from_slice(&folded.to_be_bytes());
}

/// The Internet checksum over bytes; zero over bytes with their right checksum [RFC1624 §2].
pub(super) fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    }
    !fold(sum)
}

fn fold(sum: u32) -> u16 {
    let once = (sum & 0xFFFF) + (sum >> 16);
    ((once & 0xFFFF) + (once >> 16)) as u16
}

fn word(bytes: &[u8], at: Range<usize>) -> u16 {
    u16::from_be_bytes([bytes[at.start], bytes[at.start + 1]])
}

fn word_pair(bytes: &[u8], at: Range<usize>) -> [u8; 4] {
    bytes[at].try_into().expect("an address has four bytes")
}
