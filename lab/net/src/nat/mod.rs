//! A network address translator (NAT) for IPv4, in the terms of RFC 4787.
//!
//! ```text
//!   inside: hosts with addresses of their own | outside: one address for all of them
//!
//!   packet out -> mapping: found, or made with a port of its own  -> source rewritten
//!   packet in  -> mapping of the port -> filter: who was sent to? -> destination rewritten
//! ```
//!
//! [`Nat`] rewrites packets in place: UDP, TCP, echo requests and replies of ICMP, and ICMP errors
//! about all of these. Everything else is dropped, fragments too (NAT-D1). Payload is never read or
//! changed, so there are no application gateways [RFC4787 §7 REQ-10]. It has neither clock nor
//! socket, and its ports follow from the seed.
//!
//! [RFC4787 §7 REQ-10]: https://www.rfc-editor.org/rfc/rfc4787#section-7

mod packet;
mod table;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddrV4};

use weir::units::TimeDelta;

pub use table::Nat;

/// On what, besides the inside endpoint, the mapping of a packet depends [RFC4787 §4.1], or which
/// packets from outside a mapping lets in [RFC4787 §5].
///
/// [RFC4787 §4.1]: https://www.rfc-editor.org/rfc/rfc4787#section-4.1
/// [RFC4787 §5]: https://www.rfc-editor.org/rfc/rfc4787#section-5
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// On nothing: one mapping for all destinations; a filter lets everybody in.
    #[default]
    EndpointIndependent,
    /// On the remote address.
    AddressDependent,
    /// On the remote address and port.
    AddressAndPortDependent,
}

impl Behaviour {
    /// All kinds with the names of RFC 4787.
    pub const NAMES: [(&str, Self); 3] = [
        ("endpoint-independent", Self::EndpointIndependent),
        ("address-dependent", Self::AddressDependent),
        ("address-and-port-dependent", Self::AddressAndPortDependent),
    ];

    /// The part of a remote endpoint on which it depends.
    const fn part(self, remote: SocketAddrV4) -> SocketAddrV4 {
        match self {
            Self::EndpointIndependent => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
            Self::AddressDependent => SocketAddrV4::new(*remote.ip(), 0),
            Self::AddressAndPortDependent => remote,
        }
    }
}

/// Configuration of a NAT. The default is the most open one that RFC 4787 recommends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatConfig {
    /// When two packets from one inside endpoint have the same outside port [RFC4787 §4.1 REQ-1].
    ///
    /// [RFC4787 §4.1 REQ-1]: https://www.rfc-editor.org/rfc/rfc4787#section-4.1
    pub mapping: Behaviour,
    /// Whose packets may come in [RFC4787 §5 REQ-8].
    ///
    /// [RFC4787 §5 REQ-8]: https://www.rfc-editor.org/rfc/rfc4787#section-5
    pub filtering: Behaviour,
    /// Whether inside hosts reach each other at their outside endpoints [RFC4787 §6 REQ-9].
    ///
    /// [RFC4787 §6 REQ-9]: https://www.rfc-editor.org/rfc/rfc4787#section-6
    pub hairpin: bool,
    /// Time without a packet out after which a mapping of UDP or ICMP ends [RFC4787 §4.3 REQ-5].
    ///
    /// [RFC4787 §4.3 REQ-5]: https://www.rfc-editor.org/rfc/rfc4787#section-4.3
    pub mapping_timeout: TimeDelta,
    /// Whether UDP is dropped in both directions, as at a firewall that lets only TCP through.
    pub blocks_udp: bool,
}

/// Mapping timeout that RFC 4787 recommends [RFC4787 §4.3 REQ-5c].
///
/// [RFC4787 §4.3 REQ-5c]: https://www.rfc-editor.org/rfc/rfc4787#section-4.3
pub const RECOMMENDED_TIMEOUT: TimeDelta = TimeDelta::from_secs(5 * 60);

impl Default for NatConfig {
    fn default() -> Self {
        Self {
            mapping: Behaviour::EndpointIndependent,
            filtering: Behaviour::EndpointIndependent,
            hairpin: true,
            mapping_timeout: RECOMMENDED_TIMEOUT,
            blocks_udp: false,
        }
    }
}

/// Why a NAT dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatDrop {
    /// UDP is blocked.
    Blocked,
    /// No mapping has this outside port, or it is that of an earlier outside address.
    NoMapping,
    /// The filter lets in only those to whom the inside endpoint has sent.
    Filtered,
    /// Hairpinning is off.
    Hairpin,
    /// Every port, or the table, is in use.
    Full,
    /// A fragment, another protocol, or bytes that are no such packet.
    Unknown,
}

/// What a NAT did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NatCounters {
    /// Mappings made.
    pub mappings: u64,
    /// Packets of UDP that the firewall dropped, in both directions.
    pub blocked_packets: u64,
    /// Packets from outside without a mapping.
    pub unmapped_packets: u64,
    /// Packets from outside that the filter dropped.
    pub filtered_packets: u64,
    /// Packets from inside to the NAT's own outside address, whether passed or dropped.
    pub hairpin_packets: u64,
    /// Packets that it cannot translate, and those for which it has no port.
    pub untranslated_packets: u64,
}
