//! Tunnels: what IP carries that is a packet again.

use crate::ip::{MORE_THAN_IP, UDP, UDP_HEADER};

// Ports of tunnels over UDP, as registered.
const VXLAN: u16 = 4789;
/// The port of VXLAN on Linux, before one was registered.
const VXLAN_LINUX: u16 = 8472;
const VXLAN_GPE: u16 = 4790;
const GENEVE: u16 = 6081;
const GTP_U: u16 = 2152;
const TZSP: u16 = 37_008;
const LISP: u16 = 4341;
const GRE_IN_UDP: u16 = 4754;
const MPLS_IN_UDP: u16 = 6635;
const L2TP: u16 = 1701;

/// What follows a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// IPv4 or IPv6, by its first four bits.
    Ip,
    /// An Ethernet frame.
    Ethernet,
    /// What this EtherType says.
    Ether(u16),
    /// PPP, its address and control bytes perhaps left out.
    Ppp,
    /// A stack of MPLS labels.
    Labels,
    /// A network service header [RFC8300 §2].
    Service,
}

/// What a payload of this protocol carries, and where; `None` if it is no tunnel.
pub(crate) fn behind(protocol: u8, payload: &[u8]) -> Option<(usize, Next)> {
    match protocol {
        _ if MORE_THAN_IP.ip_in_ip.contains(&protocol) => Some((0, Next::Ip)),
        _ if protocol == MORE_THAN_IP.gre => gre(payload),
        _ if protocol == MORE_THAN_IP.mpls => Some((0, Next::Labels)),
        _ if protocol == MORE_THAN_IP.ethernet => Some((0, Next::Ethernet)),
        // Two bytes of version 3 before the frame [RFC3378 §3].
        _ if protocol == MORE_THAN_IP.ether_ip => match payload.first_chunk()? {
            [0x30, 0] => Some((2, Next::Ethernet)),
            _ => None,
        },
        UDP => {
            let body = payload.get(UDP_HEADER..)?;
            let ports = [word(payload, 0)?, word(payload, 2)?];
            let (length, next) = ports.into_iter().find_map(|port| over_udp(port, body))?;
            Some((UDP_HEADER + length, next))
        }
        _ => None,
    }
}

/// GRE [RFC2784 §2], with key and sequence number [RFC2890 §2], and that of PPTP [RFC2637 §4.1].
fn gre(payload: &[u8]) -> Option<(usize, Next)> {
    const CHECKSUM: u16 = 0x8000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGED: u16 = 0x0080;
    let (flags, kind) = (word(payload, 0)?, word(payload, 2)?);
    let mut at = 4;
    for flag in [CHECKSUM, KEY, SEQUENCE] {
        at += if flags & flag != 0 { 4 } else { 0 };
    }
    if flags & 7 == 1 {
        at += if flags & ACKNOWLEDGED != 0 { 4 } else { 0 };
        return Some((at, Next::Ppp));
    }
    Some(match kind {
        // ERSPAN: its first version has no header, the second one of 8 bytes behind a sequence
        // number, the third one of 12 and at times 8 more.
        0x88BE if flags & SEQUENCE == 0 => (at, Next::Ethernet),
        0x88BE => (at + 8, Next::Ethernet),
        0x22EB => {
            let has_more = payload.get(at + 11)? & 1 != 0;
            (at + 12 + if has_more { 8 } else { 0 }, Next::Ethernet)
        }
        kind => (at, Next::Ether(kind)),
    })
}

/// A tunnel over UDP, if the port is one's and the first bytes are, too.
fn over_udp(port: u16, body: &[u8]) -> Option<(usize, Next)> {
    const VXLAN_HEADER: usize = 8;
    match (port, *body.first_chunk::<4>()?) {
        // The flag says that there is a network identifier [RFC7348 §5].
        (VXLAN | VXLAN_LINUX, [flags, _, 0, 0]) if flags & 8 != 0 && flags >> 6 == 0 => {
            Some((VXLAN_HEADER, Next::Ethernet))
        }
        // The same with a group of a policy, as data centres have it.
        (VXLAN | VXLAN_LINUX, [0x88, ..]) => Some((VXLAN_HEADER, Next::Ethernet)),
        (VXLAN_GPE, [flags, _, _, next]) if flags & 4 != 0 && flags >> 6 == 0 => match next {
            1 | 2 => Some((VXLAN_HEADER, Next::Ip)),
            3 => Some((VXLAN_HEADER, Next::Ethernet)),
            4 => Some((VXLAN_HEADER, Next::Service)),
            _ => None,
        },
        // The version of the packet behind its header tells its family [RFC9300 §5].
        (LISP, _) => match body.get(8)? >> 4 {
            4 | 6 => Some((8, Next::Ip)),
            _ => None,
        },
        // [RFC8086 §3]
        (GRE_IN_UDP, [_, version, ..]) if version & 7 == 0 => gre(body),
        // [RFC7510 §3]
        (MPLS_IN_UDP, _) => Some((0, Next::Labels)),
        // Length of the options in words [RFC8926 §3.4].
        (GENEVE, [length, _, a, b]) if length >> 6 == 0 => {
            let kind = u16::from_be_bytes([a, b]);
            Some((8 + 4 * usize::from(length & 0x3F), Next::Ether(kind)))
        }
        (GTP_U, [flags, 0xFF, ..]) if flags >> 5 == 1 => gtp_u(flags, body),
        (TZSP, [1, 0, 0, 1]) => tzsp(body),
        (L2TP, [flags, 2, ..]) if flags & 0x80 == 0 => l2tp(flags, body),
        _ => None,
    }
}

/// A packet of a subscriber in GTP-U, behind its optional fields and extension headers (3GPP TS
/// 29.281, 5.1 and 5.2).
fn gtp_u(flags: u8, body: &[u8]) -> Option<(usize, Next)> {
    const OPTIONAL: u8 = 7;
    const EXTENDED: u8 = 4;
    let mut at = 8;
    if flags & OPTIONAL != 0 {
        at += 4;
    }
    let mut next = if flags & EXTENDED != 0 { *body.get(11)? } else { 0 };
    while next != 0 {
        let length = 4 * usize::from(*body.get(at)?);
        if length == 0 {
            return None;
        }
        at += length;
        next = *body.get(at - 1)?;
    }
    // A session of 5G may carry Ethernet.
    let is_ip = matches!(body.get(at)? >> 4, 4 | 6);
    Some((at, if is_ip { Next::Ip } else { Next::Ethernet }))
}

/// PPP in L2TP, behind the fields that its flags name [RFC2661 §3.1].
fn l2tp(flags: u8, body: &[u8]) -> Option<(usize, Next)> {
    const LENGTH: u8 = 0x40;
    const SEQUENCE: u8 = 0x08;
    const OFFSET: u8 = 0x02;
    let mut at = 6 + if flags & LENGTH != 0 { 2 } else { 0 };
    at += if flags & SEQUENCE != 0 { 4 } else { 0 };
    if flags & OFFSET != 0 {
        at += 2 + usize::from(word(body, at)?);
    }
    Some((at, Next::Ppp))
}

/// An Ethernet frame in TZSP, behind its tags.
fn tzsp(body: &[u8]) -> Option<(usize, Next)> {
    let mut at = 4;
    loop {
        match *body.get(at)? {
            0 => at += 1,
            1 => return Some((at + 1, Next::Ethernet)),
            _ => at += 2 + usize::from(*body.get(at + 1)?),
        }
    }
}

/// A 16-bit number, the higher byte first.
pub(crate) fn word(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*data.get(at..)?.first_chunk()?))
}
