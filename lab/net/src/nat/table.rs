//! The table of a NAT: which outside port stands for which inside endpoint.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use weir::units::{TimeDelta, Timestamp};

use super::packet::{self, End, Kind, Protocol, Said};
use super::{NatConfig, NatCounters, NatDrop};
use crate::seed::{Seed, Stream};

/// Idle time of a TCP mapping, that of an established connection [RFC5382 §5 REQ-5].
// NAT-D2: in every state of the connection.
const TCP_TIMEOUT: TimeDelta = TimeDelta::from_secs(2 * 3_600 + 4 * 60);
/// Ports below are mapped to ports below, the others to the others [RFC4787 §4.2.1 REQ-3].
const WELL_KNOWN_PORTS: u16 = 1_024;
/// Mappings, and remote endpoints of a mapping, of which a NAT remembers no more.
const MAPPINGS_MAX: usize = 4_096;
const REMOTES_MAX: usize = 1_024;

/// What makes a mapping: the inside endpoint, and the part of the remote endpoint on which the
/// mapping depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    protocol: Protocol,
    inside: SocketAddrV4,
    remote: SocketAddrV4,
}

#[derive(Clone, Debug)]
struct Mapping {
    port: u16,
    /// When the last packet went out.
    used: Timestamp,
    /// The part of the remote endpoints on which the filter depends, and when each was last sent
    /// to.
    remotes: BTreeMap<SocketAddrV4, Timestamp>,
}

/// A translator between inside hosts and one outside address.
#[derive(Clone, Debug)]
pub struct Nat {
    config: NatConfig,
    outside: Ipv4Addr,
    ports: Stream,
    mappings: BTreeMap<Key, Mapping>,
    /// The key of each outside port.
    by_port: BTreeMap<(Protocol, u16), Key>,
    counters: NatCounters,
}

impl Nat {
    /// A NAT with this outside address. Its ports are drawn from the seed.
    pub fn new(config: NatConfig, outside: Ipv4Addr, seed: Seed) -> Self {
        Self {
            config,
            outside,
            ports: seed.stream("nat/ports"),
            mappings: BTreeMap::new(),
            by_port: BTreeMap::new(),
            counters: NatCounters::default(),
        }
    }

    /// Its outside address.
    pub fn outside(&self) -> Ipv4Addr {
        self.outside
    }

    /// What it did so far.
    pub fn counters(&self) -> NatCounters {
        self.counters
    }

    /// Gives it another outside address. All mappings end, as when a router starts again or gets a
    /// new lease: what comes to the old endpoints is lost.
    pub fn rebind(&mut self, outside: Ipv4Addr) {
        self.outside = outside;
        self.mappings.clear();
        self.by_port.clear();
    }

    /// The inside address to which a packet from outside would go, by its port alone: the filter
    /// decides when it arrives. `None` without a mapping.
    pub fn inside_of(&self, packet: &[u8]) -> Option<Ipv4Addr> {
        let (protocol, port) = match packet::read(packet)? {
            Kind::Plain(said) => (said.protocol, said.destination.port()),
            Kind::Error { about, .. } => (about.protocol, about.source.port()),
        };
        self.by_port.get(&(protocol, port)).map(|key| *key.inside.ip())
    }

    /// Translates a packet from inside to outside.
    ///
    /// # Errors
    /// Why it is dropped. The packet is unchanged then.
    pub fn send(&mut self, now: Timestamp, packet: &mut [u8]) -> Result<(), NatDrop> {
        let sent = self.try_send(now, packet);
        self.count(sent)
    }

    /// Translates a packet from outside, or one of [`Nat::send`] to the own outside address, to
    /// inside.
    ///
    /// # Errors
    /// Why it is dropped. The packet is unchanged then.
    pub fn receive(&mut self, now: Timestamp, packet: &mut [u8]) -> Result<(), NatDrop> {
        let received = self.try_receive(now, packet);
        self.count(received)
    }

    fn count(&mut self, result: Result<(), NatDrop>) -> Result<(), NatDrop> {
        let counters = &mut self.counters;
        match result {
            Ok(()) | Err(NatDrop::Hairpin) => {}
            Err(NatDrop::Blocked) => counters.blocked_packets += 1,
            Err(NatDrop::NoMapping) => counters.unmapped_packets += 1,
            Err(NatDrop::Filtered) => counters.filtered_packets += 1,
            Err(NatDrop::Full | NatDrop::Unknown) => counters.untranslated_packets += 1,
        }
        result
    }

    fn try_send(&mut self, now: Timestamp, packet: &mut [u8]) -> Result<(), NatDrop> {
        let said = match packet::read(packet).ok_or(NatDrop::Unknown)? {
            Kind::Plain(said) => said,
            Kind::Error { about, at } => return self.send_error(now, packet, about, at),
        };
        self.pass_protocol(said.protocol)?;
        if *said.destination.ip() == self.outside {
            self.counters.hairpin_packets += 1;
            if !self.config.hairpin {
                return Err(NatDrop::Hairpin);
            }
        }
        // The answer to an echo belongs to no mapping: nobody outside can ask.
        if said.protocol == Protocol::Echo && said.source.port() == 0 {
            return Err(NatDrop::NoMapping);
        }
        let port = self.map(now, said)?;
        let outside = SocketAddrV4::new(self.outside, port);
        packet::write(packet, said.protocol, End::Source, outside);
        Ok(())
    }

    /// The outside port of a packet from inside, whose mapping is refreshed or made.
    fn map(&mut self, now: Timestamp, said: Said) -> Result<u16, NatDrop> {
        let remote = self.config.mapping.part(said.destination);
        let key = Key { protocol: said.protocol, inside: said.source, remote };
        if self.mappings.get(&key).is_some_and(|mapping| self.is_over(now, key, mapping.used)) {
            self.remove(key);
        }
        if !self.mappings.contains_key(&key) {
            let port = self.free_port(now, key).ok_or(NatDrop::Full)?;
            self.counters.mappings += 1;
            self.by_port.insert((key.protocol, port), key);
            let remotes = BTreeMap::new();
            self.mappings.insert(key, Mapping { port, used: now, remotes });
        }
        let filtering = self.config.filtering;
        let mapping = self.mappings.get_mut(&key).expect("it was found or made");
        mapping.used = now;
        let allowed = filtering.part(said.destination);
        if mapping.remotes.len() < REMOTES_MAX || mapping.remotes.contains_key(&allowed) {
            mapping.remotes.insert(allowed, now);
        }
        Ok(mapping.port)
    }

    /// A port that no mapping has, so none is overloaded, in the same range and with the same
    /// parity as the inside port [RFC4787 §4.2 REQ-3, REQ-4].
    fn free_port(&mut self, now: Timestamp, key: Key) -> Option<u16> {
        if self.mappings.len() >= MAPPINGS_MAX {
            self.remove_those_that_are_over(now);
        }
        if self.mappings.len() >= MAPPINGS_MAX {
            return None;
        }
        let is_well_known = key.inside.port() < WELL_KNOWN_PORTS && key.protocol != Protocol::Echo;
        let (low, count) = match is_well_known {
            true => (0, u32::from(WELL_KNOWN_PORTS)),
            false => (WELL_KNOWN_PORTS, 0x1_0000 - u32::from(WELL_KNOWN_PORTS)),
        };
        let pairs = count / 2;
        let first = (self.ports.bits() % u64::from(pairs)) as u32;
        for step in 0..pairs {
            let pair = (first + step) % pairs;
            let port = low + (2 * pair) as u16 + key.inside.port() % 2;
            // Zero is no port.
            if port != 0 && !self.by_port.contains_key(&(key.protocol, port)) {
                return Some(port);
            }
        }
        None
    }

    fn try_receive(&mut self, now: Timestamp, packet: &mut [u8]) -> Result<(), NatDrop> {
        let said = match packet::read(packet).ok_or(NatDrop::Unknown)? {
            Kind::Plain(said) => said,
            Kind::Error { about, at } => return self.receive_error(now, packet, about, at),
        };
        self.pass_protocol(said.protocol)?;
        let is_ours = *said.destination.ip() == self.outside;
        let key = self.mapped(now, said.protocol, said.destination.port());
        let key = key.filter(|_| is_ours).ok_or(NatDrop::NoMapping)?;
        let allowed = self.config.filtering.part(said.source);
        // An echo's answer has no port of its own to compare.
        let sent = self.mappings[&key].remotes.get(&allowed).copied();
        if sent.is_none_or(|sent| self.is_over(now, key, sent)) {
            return Err(NatDrop::Filtered);
        }
        packet::write(packet, said.protocol, End::Destination, key.inside);
        Ok(())
    }

    /// The living mapping of an outside port.
    fn mapped(&mut self, now: Timestamp, protocol: Protocol, port: u16) -> Option<Key> {
        let key = *self.by_port.get(&(protocol, port))?;
        if self.is_over(now, key, self.mappings[&key].used) {
            self.remove(key);
            return None;
        }
        Some(key)
    }

    /// An error from outside about a packet that went out. It ends no mapping
    /// [RFC4787 §9 REQ-12].
    fn receive_error(
        &mut self,
        now: Timestamp,
        packet: &mut [u8],
        about: Said,
        at: usize,
    ) -> Result<(), NatDrop> {
        let is_ours = *about.source.ip() == self.outside
            && packet::address(packet, End::Destination) == self.outside;
        let key = self.mapped(now, about.protocol, about.source.port());
        let key = key.filter(|_| is_ours).ok_or(NatDrop::NoMapping)?;
        let inner = (at, about.protocol, End::Source);
        packet::write_error(packet, inner, End::Destination, [key.inside; 2]);
        Ok(())
    }

    /// An error from inside about a packet that came in.
    fn send_error(
        &mut self,
        now: Timestamp,
        packet: &mut [u8],
        about: Said,
        at: usize,
    ) -> Result<(), NatDrop> {
        let remote = self.config.mapping.part(about.source);
        let key = Key { protocol: about.protocol, inside: about.destination, remote };
        let mapping = self.mappings.get(&key).ok_or(NatDrop::NoMapping)?;
        if self.is_over(now, key, mapping.used) {
            return Err(NatDrop::NoMapping);
        }
        let outside = SocketAddrV4::new(self.outside, mapping.port);
        let inner = (at, about.protocol, End::Destination);
        packet::write_error(packet, inner, End::Source, [outside; 2]);
        Ok(())
    }

    fn pass_protocol(&self, protocol: Protocol) -> Result<(), NatDrop> {
        match self.config.blocks_udp && protocol == Protocol::Udp {
            true => Err(NatDrop::Blocked),
            false => Ok(()),
        }
    }

    fn is_over(&self, now: Timestamp, key: Key, used: Timestamp) -> bool {
        let timeout = match key.protocol {
            Protocol::Tcp => TCP_TIMEOUT,
            Protocol::Udp | Protocol::Echo => self.config.mapping_timeout,
        };
        now - used > timeout
    }

    fn remove(&mut self, key: Key) {
        if let Some(mapping) = self.mappings.remove(&key) {
            self.by_port.remove(&(key.protocol, mapping.port));
        }
    }

    fn remove_those_that_are_over(&mut self, now: Timestamp) {
        let mut over = Vec::new();
        for (key, mapping) in &self.mappings {
            if self.is_over(now, *key, mapping.used) {
                over.push(*key);
            }
        }
        for key in over {
            self.remove(key);
        }
    }
}
