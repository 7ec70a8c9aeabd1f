//! Headers of IP.

use std::net::IpAddr;

use crate::stun;

pub(crate) const IP_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
pub(crate) const UDP_HEADER: usize = 8;
pub(crate) const UDP: u8 = 17;
pub(crate) const TCP: u8 = 6;
// Headers between IPv6 and what it carries [RFC8200 §4].
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
pub(crate) const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
/// Mask of the fragment offset. Later fragments of a datagram have no ports [RFC791 §3.1].
const FRAGMENT_OFFSET: u16 = 0x1FFF;
/// The flag that more follow.
const MORE: u16 = 0x2000;
/// The same of IPv6 [RFC8200 §4.5].
const FRAGMENT_OFFSET_V6: u16 = 0xFFF8;
const MORE_V6: u16 = 1;

/// Protocols that carry packets again.
pub(crate) struct Carriers {
    /// IPv4 and IPv6 in IP.
    pub ip_in_ip: [u8; 2],
    pub gre: u8,
    /// MPLS in IP [RFC4023 §3].
    pub mpls: u8,
    /// Ethernet frames: in EtherIP, and as in segment routing [RFC8986 §4.9].
    pub ether_ip: u8,
    pub ethernet: u8,
    /// Encrypted payload.
    pub ipsec: u8,
}

pub(crate) const MORE_THAN_IP: Carriers =
    Carriers { ip_in_ip: [4, 41], gre: 47, mpls: 137, ether_ip: 97, ethernet: 143, ipsec: 50 };

/// The header of IP, with those that IPv6 has behind it.
pub(crate) struct Header {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// In bytes, and no more than there are.
    pub size: usize,
    /// Bytes of the packet, as the header says; 0 where an adapter was to fill it in.
    pub length: usize,
    /// What follows.
    pub protocol: u8,
    /// Whether this is a whole packet, or its first fragment.
    pub is_first: bool,
    /// Whether more of the datagram follows in other packets.
    pub has_more: bool,
    /// The identification of IPv4; 0 in IPv6.
    pub id: u16,
    /// Time to live, or hop limit.
    pub hops_left: u8,
}

impl Header {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let header = match bytes.first()? >> 4 {
            4 => Self::v4(bytes),
            6 => Self::v6(bytes),
            _ => None,
        };
        header.filter(|it| it.size <= bytes.len())
    }

    /// [RFC791 §3.1]
    fn v4(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<IP_HEADER>()?;
        let mut size = usize::from(header[0] & 0xF) * 4;
        if size < IP_HEADER {
            return None;
        }
        let fragment = stun::u16_at(header, 6)?;
        let mut protocol = header[9];
        if protocol == AUTHENTICATION {
            protocol = *bytes.get(size)?;
            size += authentication(*bytes.get(size + 1)?);
        }
        Some(Self {
            source: address::<4>(header, 12)?,
            destination: address::<4>(header, 16)?,
            size,
            length: stun::u16_at(header, 2)?.into(),
            protocol,
            is_first: fragment & FRAGMENT_OFFSET == 0,
            has_more: fragment & MORE != 0,
            id: stun::u16_at(header, 4)?,
            hops_left: header[8],
        })
    }

    /// [RFC8200 §3]
    fn v6(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<IPV6_HEADER>()?;
        let (mut protocol, mut size, mut is_first) = (header[6], IPV6_HEADER, true);
        let mut has_more = false;
        loop {
            let length = match protocol {
                HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY => {
                    8 + 8 * usize::from(*bytes.get(size + 1)?)
                }
                AUTHENTICATION => authentication(*bytes.get(size + 1)?),
                FRAGMENT => {
                    let fragment = stun::u16_at(bytes, size + 2)?;
                    is_first = fragment & FRAGMENT_OFFSET_V6 == 0;
                    has_more = fragment & MORE_V6 != 0;
                    8
                }
                _ => break,
            };
            protocol = *bytes.get(size)?;
            size += length;
        }
        let length = match stun::u16_at(header, 4)? {
            0 => 0,
            payload => IPV6_HEADER + usize::from(payload),
        };
        Some(Self {
            source: address::<16>(header, 8)?,
            destination: address::<16>(header, 24)?,
            size,
            length,
            protocol,
            is_first,
            has_more,
            id: 0,
            hops_left: header[7],
        })
    }
}

/// Length of an authentication header from its own number [RFC4302 §2.2].
fn authentication(words: u8) -> usize {
    4 * (usize::from(words) + 2)
}

/// The address in the `N` bytes from an offset: 4 bytes are an IPv4 address, 16 an IPv6 address.
fn address<const N: usize>(header: &[u8], at: usize) -> Option<IpAddr>
where
    IpAddr: From<[u8; N]>,
{
    let bytes: &[u8; N] = header.get(at..)?.first_chunk()?;
    Some(IpAddr::from(*bytes))
}
