//! Which end of a call is the one at which it was captured.
//!
//! No sign is sure. Each gives points to one of two ends, and the end with more of them is this
//! one. Where nothing tells, the one that sent first is taken, and that is said.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::flows::Flows;
use super::handshakes::Handshakes;
use super::hosts::{Host, hosts};

/// An end of a call that someone names: all its ports, or one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalEnd {
    /// Its address.
    pub address: IpAddr,
    /// Its port, where both ends have one address.
    pub port: Option<u16>,
}

impl LocalEnd {
    /// Whether a socket is this end's.
    pub(crate) fn has(&self, socket: SocketAddr) -> bool {
        socket.ip() == self.address && self.port.is_none_or(|port| port == socket.port())
    }
}

impl From<IpAddr> for LocalEnd {
    fn from(address: IpAddr) -> Self {
        Self { address, port: None }
    }
}

impl std::str::FromStr for LocalEnd {
    type Err = String;

    /// An address, or one with a port: `192.0.2.7`, `127.0.0.1:5000`, `[::1]:5000`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(address.into());
        }
        let socket = text.parse::<SocketAddr>();
        let socket = socket.map_err(|_| "an address, or an address and a port".to_owned())?;
        Ok(Self { address: socket.ip(), port: Some(socket.port()) })
    }
}

impl fmt::Display for LocalEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Host { address: self.address, port: self.port }.fmt(f)
    }
}

/// Why an end is this one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sign {
    /// Someone said so.
    Named,
    /// The capture says which packets this host sent.
    Flagged,
    /// It answers so many ms after a question came by, and the other end after so many.
    AnswersAtOnce(f64, f64),
    /// The other end's answers come so many ms after a question passed by.
    FarAnswers(f64),
    /// It talks with so many others.
    Peers(usize),
    /// What it sent is whole in the capture, and what the other end sent is not.
    IsWhole,
    /// Its address is private, and the other end's is not.
    Private,
    /// No router has counted down its packets' time to live, and some have the other end's.
    Unrouted,
    /// Its hardware address is its own; that of the other end is a router's.
    Hardware,
}

impl Sign {
    fn points(self) -> u32 {
        match self {
            Self::Named | Self::Flagged => 100,
            Self::AnswersAtOnce(..) => 8,
            Self::Peers(_) => 6,
            Self::IsWhole => 5,
            Self::FarAnswers(_) | Self::Private => 4,
            Self::Unrouted => 3,
            Self::Hardware => 2,
        }
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named => f.write_str("it was named"),
            Self::Flagged => f.write_str("the capture says which packets it sent"),
            Self::AnswersAtOnce(own, other) => {
                write!(f, "it answers after {own:.1} ms, the other end after {other:.1} ms")
            }
            Self::FarAnswers(ms) => {
                write!(f, "the other end's answers come after {ms:.1} ms")
            }
            Self::Peers(count) => write!(f, "it talks with {count} others"),
            Self::IsWhole => {
                f.write_str("nothing that it sent is missing, and packets from the other end are")
            }
            Self::Private => f.write_str("its address is private"),
            Self::Unrouted => f.write_str("no router has passed its packets on"),
            Self::Hardware => f.write_str("the other end is behind a router"),
        }
    }
}

/// The two ends of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ends {
    pub local: Host,
    pub remote: Host,
    /// Why; empty where nothing tells.
    pub signs: Vec<Sign>,
}

impl Ends {
    /// Drops the addresses.
    pub fn forget_names(&mut self) {
        let none = Host { address: IpAddr::from([0, 0, 0, 0]), port: None };
        (self.local, self.remote) = (none, none);
    }

    /// Whether a server recorded a stream, and not which ends it had.
    pub fn is_recorded(&self) -> bool {
        self.local.address.is_unspecified() && self.local.port.is_some()
    }

    /// A line for people.
    pub fn words(&self) -> String {
        let Self { local, remote, signs } = self;
        if local.address.is_unspecified() {
            return "a recording of what a server received".into();
        }
        if signs.is_empty() {
            return format!(
                "nothing tells which end was captured: {local} is taken for it, which sent first; \
                 losses are looked for in both directions (--local {remote} turns them round)"
            );
        }
        let signs: Vec<String> = signs.iter().map(Sign::to_string).collect();
        format!("this end is {local}, the other one {remote}: {}", signs.join("; "))
    }
}

/// What is known of a host besides its answers.
#[derive(Clone, Debug, Default)]
pub(super) struct HostSigns {
    /// Packets from it, and to it, that the capture says were sent, and received.
    flagged: [(u64, u64); 2],
    peers: BTreeSet<Host>,
    /// Packets that are missing of its streams, and all of them.
    missing: (i64, u64),
    /// Packets whose time to live no router has lowered, and others.
    hops: (u64, u64),
    hardware: Option<[u8; 6]>,
}

/// Signs of all hosts.
#[derive(Default)]
pub(super) struct Signs {
    by_host: BTreeMap<Host, HostSigns>,
    /// Hosts that were seen with a hardware address.
    by_hardware: BTreeMap<[u8; 6], BTreeSet<IpAddr>>,
    /// Of recent packets, since most are like the one before.
    recent: [Option<(IpAddr, [u8; 6])>; 2],
}

/// Hosts that are watched, and addresses behind one hardware address.
const HOSTS_MAX: usize = 16_384;
const BEHIND_MAX: usize = 16;
/// Times to live that systems begin with.
const INITIAL_HOPS: [u8; 4] = [32, 64, 128, 255];
/// The answers of the near end come in this share of the time of the far end's, and this much
/// sooner, in ms.
const NEAR: f64 = 0.33;
const NEARER_MS: f64 = 1.5;
/// An end whose answers take this long, in ms, is not where the capture was made.
const FAR_MS: f64 = 5.0;
/// A lead of so many points tells.
const LEAD: u32 = 2;

impl Signs {
    /// A packet's header says how far it came.
    pub fn packet(&mut self, from: Host, hops_left: u8, hardware: Option<([u8; 6], [u8; 6])>) {
        if self.by_host.len() >= HOSTS_MAX && !self.by_host.contains_key(&from) {
            return;
        }
        let signs = self.by_host.entry(from).or_default();
        if hops_left > 0 {
            let is_first = INITIAL_HOPS.contains(&hops_left);
            let (unrouted, routed) = &mut signs.hops;
            *(if is_first { unrouted } else { routed }) += 1;
        }
        if let Some((source, _)) = hardware
            && signs.hardware != Some(source)
        {
            signs.hardware = Some(source);
        }
    }

    /// Any packet shows which addresses are behind one hardware address: several are behind a
    /// router.
    pub fn hardware(&mut self, from: IpAddr, source: [u8; 6]) {
        let place = usize::from(source[5] & 1);
        if self.recent[place] == Some((from, source)) {
            return;
        }
        self.recent[place] = Some((from, source));
        if self.by_hardware.len() >= HOSTS_MAX && !self.by_hardware.contains_key(&source) {
            return;
        }
        let behind = self.by_hardware.entry(source).or_default();
        if behind.len() < BEHIND_MAX {
            behind.insert(from);
        }
    }

    /// Adds what the streams tell, when all have been seen.
    pub fn streams(&mut self, flows: &Flows) {
        let received: BTreeSet<(u32, Host)> = flows
            .streams
            .iter()
            .map(|it| (it.ssrc, hosts(flows.paths[it.path as usize].ends).1))
            .collect();
        for stream in flows.streams.iter().filter(|it| it.is_rtp()) {
            let path = &flows.paths[stream.path as usize];
            let (from, to) = hosts(path.ends);
            self.by_host.entry(to).or_default().peers.insert(from);
            let signs = self.by_host.entry(from).or_default();
            signs.peers.insert(to);
            // Of what a server forwards, packets are missing that were lost before it.
            if !received.contains(&(stream.ssrc, from)) {
                signs.missing.0 += stream.missing.max(0);
                signs.missing.1 += stream.packets;
            }
        }
        for path in &flows.paths {
            let (from, to) = hosts(path.ends);
            let (sent, received) = path.flagged;
            for (place, host) in [from, to].iter().enumerate() {
                if let Some(signs) = self.by_host.get_mut(host) {
                    signs.flagged[place].0 += sent;
                    signs.flagged[place].1 += received;
                }
            }
        }
    }

    /// Which of two hosts is this end: `first` is taken if nothing tells.
    pub fn decide(&self, first: Host, second: Host, handshakes: &Handshakes) -> Ends {
        let mut own = self.of(first, second, handshakes);
        let mut others = self.of(second, first, handshakes);
        // Where the capture says it, nothing else counts.
        if [&own, &others].iter().any(|signs| signs.contains(&Sign::Flagged)) {
            own.retain(|sign| *sign == Sign::Flagged);
            others.retain(|sign| *sign == Sign::Flagged);
        }
        let points = |signs: &[Sign]| signs.iter().map(|sign| sign.points()).sum::<u32>();
        let (a, b) = (points(&own), points(&others));
        if a >= b + LEAD {
            Ends { local: first, remote: second, signs: own }
        } else if b >= a + LEAD {
            Ends { local: second, remote: first, signs: others }
        } else {
            Ends { local: first, remote: second, signs: Vec::new() }
        }
    }

    /// What speaks for a host against another one.
    fn of(&self, host: Host, other: Host, handshakes: &Handshakes) -> Vec<Sign> {
        let unknown = HostSigns::default();
        let [own, others] = [host, other].map(|it| self.by_host.get(&it).unwrap_or(&unknown));
        let mut found = Vec::new();
        if is_flagged(own) {
            found.push(Sign::Flagged);
        }
        let answers = [host, other].map(|it| Some(handshakes.answers_after(it)? as f64 / 1e6));
        if let [Some(near), Some(far)] = answers
            && near < far * NEAR
            && far - near > NEARER_MS
        {
            found.push(Sign::AnswersAtOnce(near, far));
        }
        if let [None, Some(far)] = answers
            && far > FAR_MS
        {
            found.push(Sign::FarAnswers(far));
        }
        if own.peers.len() > 1 && others.peers.len() == 1 {
            found.push(Sign::Peers(own.peers.len()));
        }
        if is_whole(own, others) {
            found.push(Sign::IsWhole);
        }
        if is_private(host.address) && !is_private(other.address) {
            found.push(Sign::Private);
        }
        if is_unrouted(own) && others.hops.1 > others.hops.0 {
            found.push(Sign::Unrouted);
        }
        let behind = |signs: &HostSigns| {
            signs.hardware.and_then(|it| self.by_hardware.get(&it)).map(BTreeSet::len)
        };
        if behind(own) == Some(1) && behind(others).is_some_and(|count| count > 1) {
            found.push(Sign::Hardware);
        }
        found
    }
}

/// Whether what came from a host was sent, and what went to it was received. A mirror of a switch
/// has received all, and a router has received and sent all: neither says anything.
fn is_flagged(signs: &HostSigns) -> bool {
    let [(sent, other), (wrong, received)] = signs.flagged;
    (sent > other || received > wrong) && sent >= other && received >= wrong
}

fn is_unrouted(signs: &HostSigns) -> bool {
    signs.hops.0 > signs.hops.1
}

/// Whether packets of the other end alone are missing: none can be of what was captured where it
/// was sent.
fn is_whole(own: &HostSigns, others: &HostSigns) -> bool {
    const LEAST: i64 = 3;
    const SHARE: f64 = 0.001;
    let ratio = |(missing, packets): (i64, u64)| {
        missing as f64 / (missing as f64 + packets as f64).max(1.0)
    };
    let is_missing = others.missing.0 >= LEAST && ratio(others.missing) >= SHARE;
    let is_own = own.missing.0 >= LEAST && ratio(own.missing) >= SHARE;
    is_missing && !is_own
}

/// Addresses that only have a meaning in their own network [RFC1918 §3], [RFC6598 §7],
/// [RFC4193 §3].
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => {
            let [a, b, ..] = it.octets();
            let is_shared = a == 100 && b & 0xC0 == 64;
            it.is_private() || it.is_link_local() || it.is_loopback() || is_shared
        }
        IpAddr::V6(it) => it.is_loopback() || it.is_unique_local() || it.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host { address: text.parse().unwrap(), port: None }
    }

    #[test]
    fn a_named_end_is_an_address_with_or_without_a_port() {
        let end: LocalEnd = "127.0.0.1:5000".parse().unwrap();
        assert!(end.has("127.0.0.1:5000".parse().unwrap()));
        assert!(!end.has("127.0.0.1:5001".parse().unwrap()));
        let end: LocalEnd = "fd00::1".parse().unwrap();
        assert!(end.has("[fd00::1]:9".parse().unwrap()));
        assert!("here".parse::<LocalEnd>().is_err());
    }

    #[test]
    fn a_private_address_tells_and_two_do_not() {
        let (private, public, other) = (host("10.0.0.5"), host("198.51.100.9"), host("10.0.0.6"));
        let decide = |a, b| Signs::default().decide(a, b, &Handshakes::default());
        let found = decide(public, private);
        assert_eq!((found.local, &found.signs[..]), (private, &[Sign::Private][..]));
        let found = decide(other, private);
        assert_eq!((found.local, found.signs.len()), (other, 0));
        assert!(found.words().starts_with("nothing tells"), "{}", found.words());
    }

    #[test]
    fn a_time_to_live_that_no_router_lowered_tells() {
        let (near, far) = (host("192.0.2.7"), host("198.51.100.9"));
        let mut signs = Signs::default();
        for _ in 0..9 {
            signs.packet(far, 51, None);
            signs.packet(near, 64, None);
        }
        let found = signs.decide(far, near, &Handshakes::default());
        assert_eq!((found.local, &found.signs[..]), (near, &[Sign::Unrouted][..]));
    }
}
