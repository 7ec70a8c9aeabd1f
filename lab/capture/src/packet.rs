//! Captured IP packets: what they carry, and how many of their bytes are headers.
//!
//! Captures keep the headers of IP, UDP or TCP, and RTP with its extensions. SRTP leaves all of
//! these unencrypted [RFC3711 §3.1]. Of RTCP, the first eight bytes are unencrypted [RFC3711 §3.4].
//!
//! [RFC3711 §3.1]: https://www.rfc-editor.org/rfc/rfc3711#section-3.1
//! [RFC3711 §3.4]: https://www.rfc-editor.org/rfc/rfc3711#section-3.4

use std::net::SocketAddr;

use weir_wire::rtp;

use crate::ip::{Header, IP_HEADER, TCP, UDP, UDP_HEADER};
use crate::stun;

const TCP_HEADER: usize = 20;
/// Unencrypted bytes of RTCP: the header of the first packet of a compound, and its sender's SSRC.
const RTCP_IN_THE_CLEAR: usize = 8;
const DTLS_RECORD_HEADER: usize = 13;
/// Channel number and length, in front of data that a relay forwards [RFC8656 §12.4].
const CHANNEL_HEADER: usize = 4;

/// Message types of the indications that carry data to and from a relay before a channel is bound
/// [RFC8656 §11], and the attribute that contains the data [RFC8656 §18.4].
const SEND_INDICATION: u16 = 0x0016;
const DATA_INDICATION: u16 = 0x0017;
const DATA: u16 = 0x0013;

/// Maximum size of the headers that [`Packet::parse`] keeps: IP, UDP, a relay's header, and RTP
/// with all contributing sources and a header extension larger than those of browsers.
pub const LONGEST_HEADERS: usize = 512;

/// The information in a packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source address. Port 0 for protocols without ports.
    pub source: SocketAddr,
    /// Destination address.
    pub destination: SocketAddr,
    /// Bytes of the IP packet.
    pub size: u32,
    /// The identification of IPv4, equal in all copies of a packet; 0 in IPv6.
    pub id: u16,
    /// Routers that it may still pass: its time to live.
    pub hops_left: u8,
    /// Whether the rest of its datagram is in other packets.
    pub has_more: bool,
    /// What it carries.
    pub content: Content,
    /// Offset of RTP, RTCP, STUN, DTLS, or of the segment of TCP with its header, in the IP packet.
    pub content_at: u32,
    /// Its bytes on the wire.
    pub content_size: u32,
}

/// What an IP packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A media packet.
    Rtp(Rtp),
    /// Reports and feedback.
    Rtcp {
        /// Packet type of the first packet of the compound.
        packet_type: u8,
        /// SSRC of the sender of that packet.
        ssrc: u32,
    },
    /// A connectivity check, or a message to a relay.
    Stun,
    /// Key exchange.
    Dtls,
    /// A segment of TCP.
    Tcp,
    /// Anything else.
    Other,
}

/// An RTP packet under SRTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtp {
    /// SSRC of the stream.
    pub ssrc: u32,
    /// Sequence number, as on the wire.
    pub sequence_number: u16,
    /// RTP payload type.
    pub payload_type: u8,
    /// RTP timestamp, as on the wire.
    pub timestamp: u32,
    /// The marker: of video, the last packet of a frame.
    pub marker: bool,
    /// Bytes of the RTP header with its extensions.
    pub header_size: u32,
    /// Bytes after the header: payload, padding and the SRTP authentication tag.
    pub payload_size: u32,
    /// The padding flag. The amount of padding is encrypted. Browsers set the flag only in packets
    /// that contain nothing but padding.
    pub is_padding: bool,
}

impl Rtp {
    /// Size of the IPv4 packet between the peers, without the headers that a relay adds. A
    /// browser's statistics do not include those.
    pub fn size_between_peers(&self) -> u32 {
        const HEADERS: u32 = (IP_HEADER + UDP_HEADER) as u32;
        HEADERS + self.header_size + self.payload_size
    }
}

impl Packet {
    /// Parses a packet of `length` bytes, of which `bytes` are the first. Also returns how many of
    /// these are headers. `None` if the packet is neither IPv4 nor IPv6.
    pub fn parse(bytes: &[u8], length: usize) -> Option<(Self, usize)> {
        let header = Header::parse(bytes)?;
        let rest = &bytes[header.size..];
        // An Ethernet frame may be padded behind the IP packet.
        let whole = if header.length == 0 { length } else { header.length.min(length) };
        let left = whole.saturating_sub(header.size);
        let (found, behind, has_ports) = match header.protocol {
            UDP if header.is_first && rest.len() >= UDP_HEADER => {
                // The first fragment has the length of the whole datagram.
                let stated = stun::u16_at(rest, 4).map_or(0, usize::from);
                let left = if header.has_more { stated.max(left) } else { left };
                let found = datagram(&rest[UDP_HEADER..], left.saturating_sub(UDP_HEADER));
                (found, UDP_HEADER, true)
            }
            TCP if header.is_first && rest.len() >= TCP_HEADER => {
                let size = (usize::from(rest[12] >> 4) * 4).max(TCP_HEADER);
                (Found { size: left, ..Found::of(Content::Tcp, size) }, 0, true)
            }
            _ => (Found::of(Content::Other, 0), 0, false),
        };
        let port = |at| if has_ports { stun::u16_at(rest, at).unwrap_or_default() } else { 0 };
        let start = header.size + behind;
        let packet = Self {
            source: SocketAddr::new(header.source, port(0)),
            destination: SocketAddr::new(header.destination, port(2)),
            size: u32::try_from(length).unwrap_or(u32::MAX),
            id: header.id,
            hops_left: header.hops_left,
            has_more: header.has_more,
            content: found.content,
            content_at: u32::try_from(start + found.at).unwrap_or(u32::MAX),
            content_size: u32::try_from(found.size).unwrap_or(u32::MAX),
        };
        Some((packet, (start + found.kept).min(bytes.len())))
    }

    /// A datagram from one end to the other, without the headers of IP and UDP, as recordings of
    /// servers have it.
    pub fn of_datagram(payload: &[u8], source: SocketAddr, destination: SocketAddr) -> Self {
        let found = datagram(payload, payload.len());
        let size = IP_HEADER + UDP_HEADER + payload.len();
        Self {
            source,
            destination,
            size: u32::try_from(size).unwrap_or(u32::MAX),
            id: 0,
            hops_left: 0,
            has_more: false,
            content: found.content,
            content_at: u32::try_from(found.at).unwrap_or(u32::MAX),
            content_size: u32::try_from(found.size).unwrap_or(u32::MAX),
        }
    }
}

/// What a datagram carries.
struct Found {
    content: Content,
    /// Offset of the content in the datagram's payload, and its bytes on the wire.
    at: usize,
    size: usize,
    /// Bytes of the payload that are headers.
    kept: usize,
}

impl Found {
    fn of(content: Content, kept: usize) -> Self {
        Self { content, at: 0, size: 0, kept }
    }
}

/// Classifies a datagram on the port of media by its first byte [RFC7983 §7]. It had `length` bytes
/// on the wire.
fn datagram(payload: &[u8], length: usize) -> Found {
    match payload.first() {
        Some(0..=3) if length >= stun::HEADER_BYTES => {
            let carried = indicated(payload).map(|(at, size)| (at, media(&payload[at..], size)));
            match carried {
                Some((at, found)) if found.content != Content::Other => {
                    Found { at, kept: at + found.kept, ..found }
                }
                _ => Found { size: length, ..Found::of(Content::Stun, stun::HEADER_BYTES) },
            }
        }
        Some(20..=63) if length >= DTLS_RECORD_HEADER => {
            Found { size: length, ..Found::of(Content::Dtls, DTLS_RECORD_HEADER) }
        }
        Some(64..=79) if payload.len() > CHANNEL_HEADER => {
            let stated = stun::u16_at(payload, 2).map_or(0, usize::from);
            let size = stated.min(length.saturating_sub(CHANNEL_HEADER));
            let found = carried(&payload[CHANNEL_HEADER..], size);
            Found { at: found.at + CHANNEL_HEADER, kept: found.kept + CHANNEL_HEADER, ..found }
        }
        _ => media(payload, length),
    }
}

/// What a channel of a relay carries: anything that the peers exchange.
fn carried(payload: &[u8], length: usize) -> Found {
    match payload.first() {
        Some(0..=3) if length >= stun::HEADER_BYTES => {
            Found { size: length, ..Found::of(Content::Stun, stun::HEADER_BYTES) }
        }
        Some(20..=63) if length >= DTLS_RECORD_HEADER => {
            Found { size: length, ..Found::of(Content::Dtls, DTLS_RECORD_HEADER) }
        }
        _ => media(payload, length),
    }
}

/// Offset and length of the data in an indication; `None` for any other message.
fn indicated(message: &[u8]) -> Option<(usize, usize)> {
    if !matches!(stun::u16_at(message, 0)?, SEND_INDICATION | DATA_INDICATION) {
        return None;
    }
    stun::attribute(message, DATA)
}

fn media(payload: &[u8], length: usize) -> Found {
    // On a shared port, RTCP packet types do not overlap with RTP payload types [RFC5761 §4].
    let is_rtcp = payload.get(1).is_some_and(|kind| (192..=223).contains(kind));
    if !matches!(payload.first(), Some(128..=191)) {
        return Found { size: length, ..Found::of(Content::Other, 0) };
    }
    if is_rtcp && let Some(&[_, packet_type, _, _, a, b, c, d]) = payload.first_chunk() {
        let ssrc = u32::from_be_bytes([a, b, c, d]);
        let content = Content::Rtcp { packet_type, ssrc };
        return Found { size: length, ..Found::of(content, RTCP_IN_THE_CLEAR) };
    }
    let Some(stream) = rtp_of(payload, length) else {
        return Found { size: length, ..Found::of(Content::Other, 0) };
    };
    Found { size: length, ..Found::of(Content::Rtp(stream), stream.header_size as usize) }
}

/// The header of a packet of RTP that had `length` bytes on the wire; `None` if it has none.
pub fn rtp_of(payload: &[u8], length: usize) -> Option<Rtp> {
    let view = rtp::View::parse_header(payload).ok()?;
    let header_size = view.header_size();
    Some(Rtp {
        ssrc: view.ssrc(),
        sequence_number: view.sequence_number(),
        payload_type: view.payload_type().get(),
        timestamp: view.timestamp(),
        marker: view.marker(),
        header_size: u32::try_from(header_size).unwrap_or(u32::MAX),
        payload_size: u32::try_from(length.saturating_sub(header_size)).unwrap_or(u32::MAX),
        is_padding: view.is_padded(),
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;
    use crate::ip::FRAGMENT;

    const HOP_BY_HOP: u8 = 0;

    /// An IPv4 packet from 10.45.0.1:5000 to 10.45.0.2:6000.
    fn ip(protocol: u8, rest: &[u8]) -> Vec<u8> {
        let length = (IP_HEADER + rest.len()) as u16;
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet.extend([10, 45, 0, 1, 10, 45, 0, 2]);
        packet.extend(rest);
        packet
    }

    fn udp(payload: &[u8]) -> Vec<u8> {
        let length = (UDP_HEADER + payload.len()) as u16;
        let mut rest = vec![0x13, 0x88, 0x17, 0x70, 0, 0, 0, 0];
        rest[4..6].copy_from_slice(&length.to_be_bytes());
        rest.extend(payload);
        ip(UDP, &rest)
    }

    /// An RTP packet of type 96 with one extension word and this much payload.
    fn media_packet(ssrc: u32, sequence_number: u16, payload: usize) -> Vec<u8> {
        let mut rtp = vec![0x90, 0x80 | 96];
        rtp.extend(sequence_number.to_be_bytes());
        rtp.extend(7_u32.to_be_bytes());
        rtp.extend(ssrc.to_be_bytes());
        rtp.extend([0xBE, 0xDE, 0, 1, 0x31, 0, 7, 0]);
        rtp.resize(rtp.len() + payload, 0xAA);
        udp(&rtp)
    }

    fn parse(packet: &[u8]) -> (Content, usize) {
        let (parsed, kept) = Packet::parse(packet, packet.len()).unwrap();
        assert_eq!(parsed.size as usize, packet.len());
        (parsed.content, kept)
    }

    #[test]
    fn headers_of_media_are_kept_and_payload_is_not() {
        let packet = media_packet(0xABCD, 65_535, 1_000);
        let (parsed, kept) = Packet::parse(&packet, packet.len()).unwrap();
        assert_eq!(parsed.source, "10.45.0.1:5000".parse().unwrap());
        assert_eq!(parsed.destination, "10.45.0.2:6000".parse().unwrap());
        let expected = Rtp {
            ssrc: 0xABCD,
            sequence_number: 65_535,
            payload_type: 96,
            timestamp: 7,
            marker: true,
            header_size: 20,
            payload_size: 1_000,
            is_padding: false,
        };
        assert_eq!(parsed.content, Content::Rtp(expected));
        assert_eq!(kept, 20 + 8 + 20);
        // A truncated packet parses to the same result as the whole packet.
        assert_eq!(Packet::parse(&packet[..kept], packet.len()).unwrap(), (parsed, kept));
        let mut padding = packet;
        padding[28] |= 0x20;
        assert_eq!(parse(&padding).0, Content::Rtp(Rtp { is_padding: true, ..expected }));
    }

    // [RFC7983 §7]
    #[test]
    fn what_shares_the_port_is_told_by_its_first_byte() {
        let mut rtcp = vec![0x80, 201, 0, 7, 0, 0, 0, 9];
        rtcp.resize(46, 0xEE);
        assert_eq!(parse(&udp(&rtcp)), (Content::Rtcp { packet_type: 201, ssrc: 9 }, 36));
        assert_eq!(parse(&udp(&[1; 80])), (Content::Stun, 48));
        assert_eq!(parse(&udp(&[22; 80])), (Content::Dtls, 41));
        assert_eq!(parse(&udp(&[0xFF; 80])), (Content::Other, 28));
        assert_eq!(parse(&udp(&[])), (Content::Other, 28));
    }

    // [RFC8656 §12.4]
    #[test]
    fn media_that_a_relay_passes_on_is_seen_through_its_channel() {
        let inner = &media_packet(7, 1, 100)[28..];
        let mut channel = vec![0x40, 0, 0, inner.len() as u8];
        channel.extend(inner);
        let (content, kept) = parse(&udp(&channel));
        let Content::Rtp(media) = content else { panic!("{content:?}") };
        assert_eq!((media.ssrc, media.payload_size), (7, 100));
        assert_eq!(kept, 28 + 4 + 20);
        // The same size as without the relay.
        assert_eq!(media.size_between_peers(), 28 + 20 + 100);
    }

    // [RFC8656 §11]
    #[test]
    fn media_before_the_channel_is_bound_is_seen_through_its_indication() {
        let inner = &media_packet(7, 1, 101)[28..];
        let mut message = vec![0, 0x16, 0, 140, 0x21, 0x12, 0xA4, 0x42];
        message.extend([9; 12]);
        // XOR-PEER-ADDRESS, then DATA, padded to a multiple of four.
        message.extend([0, 0x12, 0, 8, 0, 1, 1, 2, 3, 4, 5, 6]);
        message.extend([0, 0x13, 0, inner.len() as u8]);
        message.extend(inner);
        message.extend([0; 3]);
        let (content, kept) = parse(&udp(&message));
        let Content::Rtp(media) = content else { panic!("{content:?}") };
        assert_eq!((media.ssrc, media.payload_size), (7, 101));
        assert_eq!(kept, 28 + 20 + 12 + 4 + 20);
        assert_eq!(media.size_between_peers(), 28 + 20 + 101);
        // A DTLS packet in an indication counts as a message to the relay.
        message[36] = 22;
        assert_eq!(parse(&udp(&message)), (Content::Stun, 48));
        for end in 0..message.len() {
            let cut = udp(&message[..end]);
            assert!(Packet::parse(&cut, cut.len()).is_some_and(|(_, kept)| kept <= cut.len()));
        }
    }

    #[test]
    fn of_tcp_the_header_with_its_options_is_kept() {
        let mut segment = vec![0; 32 + 500];
        segment[12] = 8 << 4;
        assert_eq!(parse(&ip(TCP, &segment)), (Content::Tcp, 52));
        assert_eq!(parse(&ip(1, &[8; 64])), (Content::Other, 20));
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut packet = media_packet(7, 1, 100);
        packet[7] = 185;
        let (parsed, kept) = Packet::parse(&packet, packet.len()).unwrap();
        assert_eq!((parsed.content, parsed.source.port(), kept), (Content::Other, 0, 20));
    }

    #[test]
    fn no_cut_and_no_bytes_panic() {
        let packet = media_packet(0xABCD, 1, 30);
        for end in 0..packet.len() {
            let parsed = Packet::parse(&packet[..end], packet.len());
            assert_eq!(parsed.is_some(), end >= IP_HEADER);
            assert!(parsed.is_none_or(|(_, kept)| kept <= end));
        }
        let mut unknown = packet.clone();
        unknown[0] = 0x50;
        assert_eq!(Packet::parse(&unknown, unknown.len()), None);
        // A length that contradicts the bytes; no kernel reports this.
        assert!(Packet::parse(&packet, 0).is_some());
    }

    /// The same datagram in IPv6, behind these other headers.
    fn ipv6(next: u8, between: &[u8], datagram: &[u8]) -> Vec<u8> {
        let length = (between.len() + datagram.len()) as u16;
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        packet.extend(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 1).octets());
        packet.extend(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 2).octets());
        packet.extend([between, datagram].concat());
        packet
    }

    // [RFC8200 §4]
    #[test]
    fn media_in_ipv6_is_seen_behind_its_other_headers() {
        let datagram = &media_packet(7, 1, 100)[IP_HEADER..];
        let options = [FRAGMENT, 0, 1, 4, 0, 0, 0, 0];
        let fragment = |offset: u8| [UDP, 0, 0, offset, 0, 0, 0, 1];
        let whole = ipv6(UDP, &[], datagram);
        let (parsed, kept) = Packet::parse(&whole, whole.len()).unwrap();
        assert_eq!(parsed.source, "[fd00::1]:5000".parse().unwrap());
        assert_eq!(parsed.destination, "[fd00::2]:6000".parse().unwrap());
        let Content::Rtp(media) = parsed.content else { panic!("{parsed:?}") };
        assert_eq!((media.ssrc, media.payload_size, kept), (7, 100, 40 + 8 + 20));
        let first = ipv6(HOP_BY_HOP, &[options, fragment(1)].concat(), datagram);
        assert_eq!(parse(&first), (parsed.content, 40 + 16 + 8 + 20));
        let later = ipv6(HOP_BY_HOP, &[options, fragment(8)].concat(), datagram);
        assert_eq!(parse(&later), (Content::Other, 40 + 16));
        for end in 0..first.len() {
            let parsed = Packet::parse(&first[..end], first.len());
            assert_eq!(parsed.is_some(), end >= 40 + 16);
            assert!(parsed.is_none_or(|(_, kept)| kept <= end));
        }
    }
}
