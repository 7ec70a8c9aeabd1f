//! Reads the fields of IPv4 packets that the models need, and sets CE marks [RFC791 §3.1].

use std::net::Ipv4Addr;
use std::ops::Range;

use weir::feedback::Ecn;
use weir::units::DataSize;
use weir_net::{FlowKey, Header};

mod field {
    use super::Range;

    pub(super) const VERSION_AND_LENGTH: usize = 0;
    /// The byte whose two low bits are ECN [RFC3168 §5].
    pub(super) const TRAFFIC_CLASS: usize = 1;
    pub(super) const FRAGMENT: Range<usize> = 6..8;
    pub(super) const PROTOCOL: usize = 9;
    pub(super) const CHECKSUM: Range<usize> = 10..12;
    pub(super) const SOURCE: Range<usize> = 12..16;
    pub(super) const DESTINATION: Range<usize> = 16..20;
}

/// Size of a header without options.
const HEADER: usize = 20;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Bits of the fragment offset, and the flag for more fragments.
const FRAGMENT_OFFSET: u16 = 0x1FFF;
const MORE_FRAGMENTS: u16 = 0x2000;
const ECN_BITS: u8 = 0b11;

/// Source and destination of an IPv4 packet; `None` for anything else.
pub(crate) fn addresses(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let is_ipv4 = packet.len() >= HEADER && packet[field::VERSION_AND_LENGTH] >> 4 == 4;
    is_ipv4.then(|| (address(packet, field::SOURCE), address(packet, field::DESTINATION)))
}

fn address(packet: &[u8], field: Range<usize>) -> Ipv4Addr {
    let octets: [u8; 4] = packet[field].try_into().expect("an address has four bytes");
    octets.into()
}

/// The header fields that the models need, of a packet that has [`addresses`]. `pair` is a number
/// below 2^24 that stands for source and destination.
pub(crate) fn header(packet: &[u8], pair: u64) -> Header {
    let ecn = match packet[field::TRAFFIC_CLASS] & ECN_BITS {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    };
    let size = DataSize::from_bytes(packet.len() as u64);
    Header::new(size).with_ecn(ecn).with_flow(flow(packet, pair))
}

/// The flow by protocol and ports. Ports of fragments are ignored: only the first fragment has
/// them, and all fragments should belong to the same flow.
fn flow(packet: &[u8], pair: u64) -> FlowKey {
    let protocol = packet[field::PROTOCOL];
    let header = usize::from(packet[field::VERSION_AND_LENGTH] & 0xF) * 4;
    let fragment = word(packet, field::FRAGMENT);
    let whole = fragment & (FRAGMENT_OFFSET | MORE_FRAGMENTS) == 0;
    let (source, destination) = match packet.get(header..header + 4) {
        Some(ports) if whole && matches!(protocol, TCP | UDP) => {
            (word(ports, 0..2), word(ports, 2..4))
        }
        _ => (0, 0),
    };
    FlowKey::of_packet(pair, protocol, source, destination)
}

/// Sets the CE mark of a packet and updates its checksum.
pub(crate) fn mark(packet: &mut [u8]) {
    let old = word(packet, 0..2);
    packet[field::TRAFFIC_CLASS] |= ECN_BITS;
    let new = word(packet, 0..2);
    // HC' = ~(~HC + ~m + m') in ones' complement arithmetic [RFC1624 §3].
    let sum = u32::from(!word(packet, field::CHECKSUM)) + u32::from(!old) + u32::from(new);
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let folded = (folded & 0xFFFF) + (folded >> 16);
    let checksum = !(folded as u16);
    packet[field::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
}

fn word(packet: &[u8], at: Range<usize>) -> u16 {
    u16::from_be_bytes([packet[at.start], packet[at.start + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    /// UDP from port 0x1234 to port 0x5678, with these ECN bits.
    fn udp(ecn: u8) -> Vec<u8> {
        let mut packet = vec![0x45, ecn, 0, 28, 0, 0, 0x40, 0, 64, UDP, 0, 0];
        packet.extend(A.octets().iter().chain(&B.octets()));
        packet.extend([0x12, 0x34, 0x56, 0x78, 0, 8, 0, 0]);
        let checksum = checksum(&packet);
        packet[field::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    /// Computes the checksum over a header including its checksum field. The result is zero if that
    /// field is correct.
    fn checksum(packet: &[u8]) -> u16 {
        let words = packet[..HEADER].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
        let sum: u32 = words.sum();
        !((sum & 0xFFFF) as u16).wrapping_add((sum >> 16) as u16)
    }

    // [RFC3168 §5]
    #[test]
    fn the_two_low_bits_of_the_traffic_class_are_ecn() {
        let ecn = |bits| header(&udp(bits), 0).ecn;
        assert_eq!([0, 1, 2, 3].map(ecn), [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]);
        // The DSCP has no effect.
        assert_eq!(ecn(0xB8 | 2), Ecn::Ect0);
    }

    #[test]
    fn only_a_whole_ipv4_header_has_addresses() {
        let mut ipv6 = udp(0);
        ipv6[0] = 0x60;
        assert_eq!(addresses(&udp(0)), Some((A, B)));
        assert_eq!(addresses(&ipv6), None);
        assert_eq!(addresses(&udp(0)[..19]), None);
        assert_eq!(addresses(&[]), None);
    }

    #[test]
    fn a_flow_is_its_hosts_its_protocol_and_its_ports() {
        let key = |packet: &[u8]| header(packet, 0).flow;
        assert_eq!(key(&udp(0)), FlowKey(0x11_1234_5678));
        let mut other = udp(0);
        other[21] += 1;
        assert_eq!(key(&other), FlowKey(0x11_1235_5678));
        let mut tcp = udp(0);
        tcp[9] = TCP;
        assert_eq!(key(&tcp), FlowKey(0x06_1234_5678));
        assert_eq!(header(&tcp, 3).flow, FlowKey(0x0306_1234_5678));
    }

    #[test]
    fn fragments_and_packets_without_ports_are_told_apart_by_protocol_alone() {
        let key = |packet: &[u8]| header(packet, 0).flow;
        let mut icmp = udp(0);
        icmp[9] = 1;
        assert_eq!(key(&icmp), FlowKey(0x01_0000_0000));
        for fragment in [[0x20, 0x00], [0x00, 0xB9], [0x20, 0xB9]] {
            let mut packet = udp(0);
            packet[field::FRAGMENT].copy_from_slice(&fragment);
            assert_eq!(key(&packet), FlowKey(0x11_0000_0000));
        }
        // A header with options that leaves no room for ports.
        let mut options = udp(0);
        options[0] = 0x47;
        assert_eq!(key(&options), FlowKey(0x11_0000_0000));
    }

    // [RFC1624 §3]
    #[test]
    fn a_mark_leaves_the_checksum_right_and_the_rest_as_it_was() {
        for (bits, dscp) in [(1, 0), (2, 0), (3, 0), (2, 0xB8), (1, 0xFC)] {
            for identification in [0_u16, 1, 0x7F3A, 0xFFFF] {
                let mut packet = udp(bits | dscp);
                packet[4..6].copy_from_slice(&identification.to_be_bytes());
                packet[field::CHECKSUM].fill(0);
                let sum = checksum(&packet);
                packet[field::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
                let before = packet.clone();
                mark(&mut packet);
                assert_eq!(packet[1], dscp | 3);
                assert_eq!(checksum(&packet), 0);
                packet[1] = before[1];
                packet[field::CHECKSUM].copy_from_slice(&before[field::CHECKSUM]);
                assert_eq!(packet, before);
            }
        }
    }
}
