//! The NATs of a plan: which host is behind which one, where packets to outside addresses go, and
//! when a NAT gets a new address.
//!
//! ```text
//!   host -> NAT: source rewritten -> access, hops, access ->
//!        -> NAT: filter, destination rewritten -> host
//! ```
//!
//! A packet is translated when its host has sent it and when it has arrived, so a packet that is on
//! its way meets the filter as it is at its arrival. The tables outlive the start of the run, since
//! calls are set up before it.

use std::net::Ipv4Addr;
use std::time::Instant;

use weir::units::{TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::nat::{Nat, NatConfig, NatCounters};

use crate::ip;
use crate::namespaces::outside_address;

/// A NAT between hosts and the network.
#[derive(Clone, Debug, PartialEq)]
pub struct NatPlan {
    /// How it behaves.
    pub config: NatConfig,
    /// The hosts behind it, by index, at least one. They reach each other only through it.
    pub hosts: Vec<usize>,
    /// When it gets a new outside address and forgets all mappings, since the start of the run; in
    /// order, at most [`NatPlan::REBINDS_MAX`].
    pub rebinds: Vec<TimeDelta>,
}

impl NatPlan {
    /// How often a NAT may get a new address: each address is used once.
    pub const REBINDS_MAX: usize = 200;
}

/// The outside addresses that the NAT of a host has in the course of a run; none without a NAT.
pub fn outside_addresses(nats: &[NatPlan], host: usize) -> Vec<Ipv4Addr> {
    let Some(index) = nats.iter().position(|nat| nat.hosts.contains(&host)) else {
        return Vec::new();
    };
    let last = nats[index].rebinds.len().min(NatPlan::REBINDS_MAX);
    (0..=last).map(|before| outside_address(index, before)).collect()
}

/// What a NAT did, also before the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatRecord {
    /// The hosts behind it, by index.
    pub hosts: Vec<usize>,
    /// Its outside addresses, in order.
    pub addresses: Vec<Ipv4Addr>,
    /// What it counted.
    pub counters: NatCounters,
    /// Packets to an inside address from elsewhere: no network has a route for those.
    pub unroutable_packets: u64,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// No NAT has a say.
    Open,
    /// To this host.
    To(usize),
    /// It is dropped, and counted by its NAT.
    Nowhere,
}

#[derive(Debug)]
struct Placed {
    plan: NatPlan,
    nat: Nat,
    /// Addresses so far.
    addresses: Vec<Ipv4Addr>,
    unroutable_packets: u64,
}

/// The NATs of a network.
#[derive(Debug)]
pub(crate) struct Nats {
    hosts: Vec<Ipv4Addr>,
    /// The NAT of each host.
    of_host: Vec<Option<usize>>,
    nats: Vec<Placed>,
    /// Time zero of the tables.
    made: Instant,
    /// Time zero of the run.
    zero: Option<Instant>,
}

impl Nats {
    pub(crate) fn new(plans: &[NatPlan], hosts: &[Ipv4Addr], seed: Seed, made: Instant) -> Self {
        let mut of_host = vec![None; hosts.len()];
        let mut nats = Vec::new();
        for (index, plan) in plans.iter().enumerate() {
            for &host in &plan.hosts {
                of_host[host] = Some(index);
            }
            let address = outside_address(index, 0);
            let nat = Nat::new(plan.config, address, seed.of_part(&format!("nat-{}", index + 1)));
            let addresses = vec![address];
            nats.push(Placed { plan: plan.clone(), nat, addresses, unroutable_packets: 0 });
        }
        Self { hosts: hosts.to_vec(), of_host, nats, made, zero: None }
    }

    pub(crate) fn start(&mut self, zero: Instant) {
        self.zero = Some(zero);
    }

    /// Translates a packet that a host sends, and says where it goes.
    pub(crate) fn send(&mut self, now: Instant, from: usize, packet: &mut [u8]) -> Route {
        if self.nats.is_empty() {
            return Route::Open;
        }
        let Some((source, destination)) = ip::addresses(packet) else { return Route::Open };
        self.rebind(now);
        let at = self.time(now);
        let inside = self.hosts.iter().position(|host| *host == destination);
        if let Some(nat) = inside.and_then(|host| self.of_host[host]) {
            self.nats[nat].unroutable_packets += 1;
            return Route::Nowhere;
        }
        if source == self.hosts[from]
            && let Some(nat) = self.of_host[from]
            && self.nats[nat].nat.send(at, packet).is_err()
        {
            return Route::Nowhere;
        }
        match self.nats.iter().position(|one| one.addresses.contains(&destination)) {
            // The address alone leads to the NAT. What it drops, it drops there.
            Some(nat) => Route::To(self.inside(nat, packet)),
            None => inside.map_or(Route::Open, Route::To),
        }
    }

    /// The host behind a NAT to which a packet would go.
    fn inside(&self, nat: usize, packet: &[u8]) -> usize {
        let Placed { plan, nat, .. } = &self.nats[nat];
        let address = nat.inside_of(packet);
        let found = plan.hosts.iter().find(|host| Some(self.hosts[**host]) == address);
        *found.unwrap_or(&plan.hosts[0])
    }

    /// Translates a packet that has arrived at a host. Whether the host gets it.
    pub(crate) fn receive(&mut self, now: Instant, host: usize, packet: &mut [u8]) -> bool {
        let Some(nat) = self.of_host.get(host).copied().flatten() else { return true };
        self.rebind(now);
        let at = self.time(now);
        let received = self.nats[nat].nat.receive(at, packet);
        // Ports may have changed hands while it was on its way.
        let address = ip::addresses(packet).map(|(_, destination)| destination);
        received.is_ok() && address == Some(self.hosts[host])
    }

    /// Gives each NAT whose time has come its next address.
    fn rebind(&mut self, now: Instant) {
        let Some(zero) = self.zero else { return };
        let since = now.saturating_duration_since(zero).as_nanos();
        for (index, one) in self.nats.iter_mut().enumerate() {
            let since = TimeDelta::from_nanos(i64::try_from(since).unwrap_or(i64::MAX));
            let due = one.plan.rebinds.iter().filter(|rebind| since >= **rebind).count();
            while one.addresses.len() <= due.min(NatPlan::REBINDS_MAX) {
                let address = outside_address(index, one.addresses.len());
                one.nat.rebind(address);
                one.addresses.push(address);
            }
        }
    }

    fn time(&self, now: Instant) -> Timestamp {
        let nanos = now.saturating_duration_since(self.made).as_nanos();
        Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    pub(crate) fn into_records(self) -> Vec<NatRecord> {
        let mut records = Vec::new();
        for Placed { plan, nat, addresses, unroutable_packets } in self.nats {
            let counters = nat.counters();
            records.push(NatRecord { hosts: plan.hosts, addresses, counters, unroutable_packets });
        }
        records
    }
}
