//! Links and tunnels: where in a captured frame the IP packet of the call begins.
//!
//! ```text
//! link -> [VLAN, MPLS, PPPoE ...] -> IP -> [GRE, VXLAN, GTP-U, IP in IP ...] -> IP of the call
//! ```

use crate::ip::{Header, MORE_THAN_IP};
use crate::tunnel::{self, Next, word};

// Link types, as the registry of pcap numbers them.
const NULL: u32 = 0;
/// Ethernet.
pub const ETHERNET: u32 = 1;
const PPP: u32 = 9;
const PPP_HDLC: u32 = 50;
const PPP_ETHER: u32 = 51;
const C_HDLC: u32 = 104;
const IEEE802_11: u32 = 105;
const FRAME_RELAY: u32 = 107;
const LOOP: u32 = 108;
const ENC: u32 = 109;
const LINUX_SLL: u32 = 113;
const PFLOG: u32 = 117;
const PRISM: u32 = 119;
const RADIOTAP: u32 = 127;
const AVS: u32 = 163;
const PPI: u32 = 192;
const PPP_WITH_DIRECTION: u32 = 204;
const NFLOG: u32 = 239;
const PKTAP: u32 = 258;
/// What Wireshark called PKTAP before it had a number.
const USER_2: u32 = 149;
const LINUX_SLL2: u32 = 276;
/// Raw IP, under the numbers of several systems.
const RAW: [u32; 5] = [12, 14, 101, 228, 229];

// Types of frames, as the cooked links say them: to this host, to all, to many, and from this host.
// Those between others say nothing.
const INCOMING: [u8; 3] = [0, 1, 2];
const OUTGOING: u8 = 4;
/// Headers inside each other. More are damage.
const DEEPEST: usize = 12;

/// The innermost IP packet of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inner {
    /// Where it begins in the frame.
    pub at: usize,
    /// Whether this host sent the frame, where the link's header says so.
    pub is_sent: Option<bool>,
    /// The hardware addresses of the innermost Ethernet frame: source, destination.
    pub hardware: Option<([u8; 6], [u8; 6])>,
}

/// Why a frame has no IP packet that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoIp {
    /// The link type is not known here.
    Link(u32),
    /// It carries something else, such as ARP, by EtherType.
    Ether(u16),
    /// It is encrypted: WPA, or IPsec.
    Encrypted(&'static str),
    /// It ends too soon, or contradicts itself.
    Damaged,
}

impl std::fmt::Display for NoIp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Link(link) => match link_name(*link) {
                Some(name) => write!(f, "link type {link} ({name})"),
                None => write!(f, "link type {link}"),
            },
            Self::Ether(kind) => write!(f, "EtherType 0x{kind:04x}"),
            Self::Encrypted(what) => f.write_str(what),
            Self::Damaged => f.write_str("frames that are cut or damaged"),
        }
    }
}

/// Names of links that carry media at times and are not read.
fn link_name(link: u32) -> Option<&'static str> {
    Some(match link {
        6 => "Token Ring",
        10 => "FDDI",
        122 => "Fibre Channel",
        187 | 201 => "Bluetooth",
        189 | 220 | 249 => "USB",
        195 | 230 => "IEEE 802.15.4",
        252 => "packets that Wireshark exported",
        253 => "Netlink",
        _ => return None,
    })
}

/// Finds the innermost IP packet of a frame.
///
/// # Errors
/// If there is none that can be read.
pub fn inner(link: u32, data: &[u8]) -> Result<Inner, NoIp> {
    if let Some((length, behind)) = in_another(link, data)? {
        let rest = data.get(length..).ok_or(NoIp::Damaged)?;
        let found = inner(behind, rest)?;
        let is_sent = sent_on_tap(data).filter(|_| link != PPI).or(found.is_sent);
        return Ok(Inner { at: found.at + length, is_sent, ..found });
    }
    let (at, next) = behind_link(link, data)?;
    let is_sent = sent_by(link, data);
    let mut outer = None;
    // What looks like a tunnel and holds no packet is none.
    match walk(data, at, next, is_sent, &mut outer) {
        Err(NoIp::Encrypted(what)) => Err(NoIp::Encrypted(what)),
        Err(why) => outer.ok_or(why),
        Ok(inner) => Ok(inner),
    }
}

/// Goes inwards. `outer` is the last IP packet on the way.
fn walk(
    data: &[u8],
    mut at: usize,
    mut next: Next,
    is_sent: Option<bool>,
    outer: &mut Option<Inner>,
) -> Result<Inner, NoIp> {
    let mut inner = Inner { at, is_sent, hardware: None };
    // Where the packet around ends, and whether something may follow what it carries.
    let (mut end, mut may_be_padded) = (None, false);
    for _ in 0..DEEPEST {
        match next {
            Next::Ip => {
                inner.at = at;
                let header = Header::parse(&data[at..]).ok_or(NoIp::Damaged)?;
                let own_end = if header.length > 0 { Some(at + header.length) } else { None };
                // Media on the port of a tunnel looks like one, of a packet with another length.
                if let (Some(end), Some(own_end)) = (end, own_end)
                    && (own_end > end || own_end < end && !may_be_padded)
                {
                    return Err(NoIp::Damaged);
                }
                (end, may_be_padded) = (if header.has_more { None } else { own_end }, false);
                let found = behind_ip(&header, &data[at..])?;
                *outer = Some(inner);
                match found {
                    Some((length, behind)) => (at, next) = (at + length, behind),
                    None => return Ok(inner),
                }
            }
            Next::Ethernet => {
                let header = data.get(at..at + 14).ok_or(NoIp::Damaged)?;
                let [to, from] = [0, 6].map(|start| {
                    let mut address = [0; 6];
                    address.copy_from_slice(&header[start..start + 6]);
                    address
                });
                inner.hardware = Some((from, to));
                may_be_padded = true;
                (at, next) = (at + 14, Next::Ether(word(data, at + 12).ok_or(NoIp::Damaged)?));
            }
            Next::Ether(kind) => (at, next) = behind_ether(data, at, kind)?,
            Next::Ppp => (at, next) = behind_ppp(data, at)?,
            Next::Labels => (at, next) = behind_labels(data, at).ok_or(NoIp::Damaged)?,
            Next::Service => (at, next) = behind_service(data, at).ok_or(NoIp::Damaged)?,
        }
        if at > data.len() {
            return Err(NoIp::Damaged);
        }
    }
    Err(NoIp::Damaged)
}

/// Where the flags of PKTAP are.
const TAP_FLAGS: usize = 36;

/// Length of a header that names the link behind it, and that link; `None` if it is none. Those of
/// macOS (PKTAP) and of PPI are in the byte order of most machines.
fn in_another(link: u32, data: &[u8]) -> Result<Option<(usize, u32)>, NoIp> {
    let (length, behind) = match link {
        PKTAP | USER_2 => (number(data, 0).map(|it| it as usize), number(data, 8)),
        PPI => (little(data, 2).map(usize::from), number(data, 4)),
        _ => return Ok(None),
    };
    let found = length.zip(behind);
    // One inside itself would have no end.
    let (length, behind) = found.ok_or(NoIp::Damaged)?;
    let is_sound = length >= 8 && ![PKTAP, USER_2, PPI].contains(&behind);
    if is_sound { Ok(Some((length, behind))) } else { Err(NoIp::Damaged) }
}

/// Whether the flags of PKTAP say that this host sent a frame.
fn sent_on_tap(data: &[u8]) -> Option<bool> {
    match number(data, TAP_FLAGS)? & 3 {
        1 => Some(false),
        2 => Some(true),
        _ => None,
    }
}

/// What follows the header of the link, and where.
fn behind_link(link: u32, data: &[u8]) -> Result<(usize, Next), NoIp> {
    let found = match link {
        // The address family, in an order of its own; the version of IP says the same.
        NULL | LOOP => Some((4, Next::Ip)),
        ENC => Some((12, Next::Ip)),
        // The header says its length, without what pads it to four bytes.
        PFLOG => data.first().map(|size| (usize::from(*size).next_multiple_of(4), Next::Ip)),
        link if RAW.contains(&link) => Some((0, Next::Ip)),
        ETHERNET => Some((0, Next::Ethernet)),
        LINUX_SLL => word(data, 14).map(|kind| (16, Next::Ether(kind))),
        LINUX_SLL2 => word(data, 0).map(|kind| (20, Next::Ether(kind))),
        PPP | PPP_HDLC => Some((0, Next::Ppp)),
        PPP_WITH_DIRECTION => Some((1, Next::Ppp)),
        PPP_ETHER => Some((6, Next::Ppp)),
        C_HDLC => word(data, 2).map(|kind| (4, Next::Ether(kind))),
        FRAME_RELAY => return frame_relay(data),
        NFLOG => nflog(data, NFLOG_PAYLOAD).map(|at| (at, Next::Ip)),
        IEEE802_11 | RADIOTAP | PRISM | AVS => {
            return wireless(data, wireless_at(link, data).ok_or(NoIp::Damaged)?);
        }
        _ => return Err(NoIp::Link(link)),
    };
    found.filter(|(at, _)| *at <= data.len()).ok_or(NoIp::Damaged)
}

/// Whether this host sent a frame, where the header of its link says so.
fn sent_by(link: u32, data: &[u8]) -> Option<bool> {
    // Hooks of netfilter: packets of this host pass "output" and "postrouting".
    const LOCAL_IN: u8 = 1;
    const LOCAL_OUT: u8 = 3;
    match link {
        LINUX_SLL => cooked(*data.get(1)?),
        LINUX_SLL2 => cooked(*data.get(10)?),
        PPP_WITH_DIRECTION => Some(*data.first()? != 0),
        NFLOG => match *data.get(nflog(data, NFLOG_HEADER)? + 2)? {
            LOCAL_IN => Some(false),
            LOCAL_OUT => Some(true),
            _ => None,
        },
        _ => None,
    }
}

fn cooked(kind: u8) -> Option<bool> {
    (kind == OUTGOING || INCOMING.contains(&kind)).then_some(kind == OUTGOING)
}

/// Attributes of NFLOG: the hook and protocol, and the packet.
const NFLOG_HEADER: u16 = 1;
const NFLOG_PAYLOAD: u16 = 9;

/// Where the value of an attribute of NFLOG begins. Its lengths are in the byte order of the host
/// that captured: the one that fits.
fn nflog(data: &[u8], wanted: u16) -> Option<usize> {
    const HEADER: usize = 4;
    let walk = |number: fn(&[u8], usize) -> Option<u16>| {
        let mut at = HEADER;
        loop {
            let (length, kind) = (usize::from(number(data, at)?), number(data, at + 2)?);
            if length < HEADER {
                return None;
            }
            // The highest bits are flags.
            if kind & 0x3FFF == wanted {
                return Some(at + HEADER);
            }
            at += length.next_multiple_of(4);
        }
    };
    walk(little).or_else(|| walk(word))
}

/// Behind the header of a data frame of IEEE 802.11, and behind LLC and SNAP.
fn wireless(data: &[u8], at: usize) -> Result<(usize, Next), NoIp> {
    const SNAP: [u8; 3] = [0xAA, 0xAA, 3];
    let frame = data.get(at..).ok_or(NoIp::Damaged)?;
    let Wireless { length, has_several } = Wireless::parse(frame)?;
    if has_several {
        return Ok((at + length, Next::Ethernet));
    }
    // Some drivers pad the header to four bytes.
    for start in [length, length.next_multiple_of(4)] {
        if frame.get(start..).is_some_and(|rest| rest.starts_with(&SNAP)) {
            let kind = word(frame, start + 6).ok_or(NoIp::Damaged)?;
            return Ok((at + start + 8, Next::Ether(kind)));
        }
    }
    Err(NoIp::Damaged)
}

/// The header of a data frame of IEEE 802.11.
struct Wireless {
    length: usize,
    /// Whether it has frames of Ethernet in it (A-MSDU).
    has_several: bool,
}

impl Wireless {
    fn parse(frame: &[u8]) -> Result<Self, NoIp> {
        const DATA: u8 = 2;
        let &[kind, flags, ..] = frame else { return Err(NoIp::Damaged) };
        let has_qos = kind & 0x80 != 0;
        // Data of the kinds without a body say nothing of IP, and nor do control and management.
        if kind >> 2 & 3 != DATA || kind & 0x40 != 0 {
            return Err(NoIp::Ether(0));
        }
        if flags & 0x40 != 0 {
            return Err(NoIp::Encrypted("Wi-Fi frames that are encrypted"));
        }
        let mut length = 24_usize;
        length += if flags & 3 == 3 { 6 } else { 0 };
        let has_several = has_qos && frame.get(length).copied().unwrap_or_default() & 0x80 != 0;
        length += if has_qos { 2 } else { 0 };
        length += if has_qos && flags & 0x80 != 0 { 4 } else { 0 };
        Ok(Self { length, has_several })
    }
}

/// The frames of Ethernet in a frame of Wi-Fi that has several, with LLC and SNAP. None of any
/// other.
pub fn subframes(link: u32, data: &[u8]) -> Vec<&[u8]> {
    const HEADER: usize = 14;
    let mut found = Vec::new();
    let Some(at) = wireless_at(link, data) else { return found };
    let frame = data.get(at..).unwrap_or_default();
    let Ok(Wireless { length, has_several: true }) = Wireless::parse(frame) else { return found };
    let mut rest = frame.get(length..).unwrap_or_default();
    while let Some(size) = word(rest, HEADER - 2) {
        let end = HEADER + usize::from(size);
        // What follows the last one is a check sum.
        if size == 0 || end > rest.len() && !found.is_empty() {
            break;
        }
        found.push(&rest[..end.min(rest.len())]);
        // All but the last one are padded.
        rest = rest.get(end.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// Where the frame of IEEE 802.11 begins behind what a driver says of it; `None` of other links.
fn wireless_at(link: u32, data: &[u8]) -> Option<usize> {
    match link {
        IEEE802_11 => Some(0),
        RADIOTAP => little(data, 2).map(usize::from),
        PRISM => Some(144),
        AVS => word(data, 6).map(usize::from),
        _ => None,
    }
}

/// Behind what an EtherType names. `at` is what follows the EtherType.
fn behind_ether(data: &[u8], at: usize, kind: u16) -> Result<(usize, Next), NoIp> {
    Ok(match kind {
        0x0800 | 0x86DD => (at, Next::Ip),
        // VLAN tags of IEEE 802.1Q and 802.1ad, and the older ones of switches.
        0x8100 | 0x88A8 | 0x9100 | 0x9200 => {
            (at + 4, Next::Ether(word(data, at + 2).ok_or(NoIp::Damaged)?))
        }
        // A session of PPPoE [RFC2516 §4].
        0x8864 => (at + 6, Next::Ppp),
        0x880B => (at, Next::Ppp),
        0x8847 | 0x8848 => (at, Next::Labels),
        0x6558 => (at, Next::Ethernet),
        0x894F => (at, Next::Service),
        // Whole frames behind a service's tag, as in IEEE 802.1ah.
        0x88E7 => (at + 4, Next::Ethernet),
        // Tags of ports: Cisco's VNTag, and IEEE 802.1BR.
        0x8926 => (at + 6, Next::Ether(word(data, at + 4).ok_or(NoIp::Damaged)?)),
        0x893F => (at + 8, Next::Ether(word(data, at + 6).ok_or(NoIp::Damaged)?)),
        0x88E5 => behind_macsec(data, at)?,
        // LLC and SNAP instead of a type: the word is a length.
        0..0x0600 if data.get(at..).is_some_and(|rest| rest.starts_with(&[0xAA, 0xAA, 3])) => {
            (at + 8, Next::Ether(word(data, at + 6).ok_or(NoIp::Damaged)?))
        }
        kind => return Err(NoIp::Ether(kind)),
    })
}

/// Behind a stack of MPLS labels [RFC3032 §2.1]. What follows, no header says: IP by its version,
/// or Ethernet behind a control word [RFC4448 §4.6].
fn behind_labels(data: &[u8], mut at: usize) -> Option<(usize, Next)> {
    const BOTTOM: u8 = 1;
    loop {
        let is_last = data.get(at + 2)? & BOTTOM != 0;
        at += 4;
        if is_last {
            break;
        }
    }
    Some(match data.get(at)? >> 4 {
        4 | 6 => (at, Next::Ip),
        0 if data.get(at..at + 4)? == [0; 4] => (at + 4, Next::Ethernet),
        _ => (at, Next::Ethernet),
    })
}

/// Behind the header of a service chain, which says its length in words and what follows
/// [RFC8300 §2.2].
fn behind_service(data: &[u8], at: usize) -> Option<(usize, Next)> {
    let behind = at + 4 * usize::from(data.get(at + 1)? & 0x3F);
    match data.get(at + 3)? {
        1 | 2 => Some((behind, Next::Ip)),
        3 => Some((behind, Next::Ethernet)),
        5 => Some((behind, Next::Labels)),
        _ => None,
    }
}

/// Behind the tag of IEEE 802.1AE, if it only authenticates the frame.
fn behind_macsec(data: &[u8], at: usize) -> Result<(usize, Next), NoIp> {
    const HAS_CHANNEL: u8 = 0x20;
    const IS_CHANGED: u8 = 0x0C;
    let flags = *data.get(at).ok_or(NoIp::Damaged)?;
    if flags & IS_CHANGED != 0 {
        return Err(NoIp::Encrypted("frames in MACsec, which are encrypted"));
    }
    let at = at + 6 + if flags & HAS_CHANNEL != 0 { 8 } else { 0 };
    Ok((at + 2, Next::Ether(word(data, at).ok_or(NoIp::Damaged)?)))
}

/// Behind the two bytes of an address and what says the protocol [RFC2427 §3, §4].
fn frame_relay(data: &[u8]) -> Result<(usize, Next), NoIp> {
    match data.get(2..).ok_or(NoIp::Damaged)? {
        [3, 0xCC | 0x8E, ..] => Ok((4, Next::Ip)),
        [3, 0, 0x80, _, _, _, a, b, ..] => Ok((10, Next::Ether(u16::from_be_bytes([*a, *b])))),
        _ => Err(NoIp::Ether(0)),
    }
}

/// Behind the protocol of PPP, which may be compressed to one byte [RFC1661 §2, §6.5].
fn behind_ppp(data: &[u8], mut at: usize) -> Result<(usize, Next), NoIp> {
    if data.get(at..).is_some_and(|rest| rest.starts_with(&[0xFF, 3])) {
        at += 2;
    }
    let first = *data.get(at).ok_or(NoIp::Damaged)?;
    let (protocol, length) = match first & 1 {
        1 => (u16::from(first), 1),
        _ => (word(data, at).ok_or(NoIp::Damaged)?, 2),
    };
    match protocol {
        0x0021 | 0x0057 => Ok((at + length, Next::Ip)),
        0x0281 => Ok((at + length, Next::Labels)),
        _ => Err(NoIp::Ether(protocol)),
    }
}

/// What a tunnel carries in this IP packet, and where; `None` if it is no tunnel.
fn behind_ip(header: &Header, packet: &[u8]) -> Result<Option<(usize, Next)>, NoIp> {
    if header.protocol == MORE_THAN_IP.ipsec {
        return Err(NoIp::Encrypted("packets in IPsec, which are encrypted"));
    }
    if !header.is_first {
        return Ok(None);
    }
    let found = tunnel::behind(header.protocol, &packet[header.size..]);
    Ok(found.map(|(length, next)| (header.size + length, next)))
}

/// A 32-bit number, the lower bytes first.
fn number(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?))
}

/// A 16-bit number, the lower byte first.
fn little(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*data.get(at..)?.first_chunk()?))
}
