//! The network of a [`Plan`], driven by its caller's clock. Packets enter and leave it at hosts.
//!
//! The [`Router`] moves the packets. This module sets up a route for every pair of hosts, counts
//! packets, and takes a sample of every hop and every pair once per [`SAMPLE_INTERVAL`].

use std::net::Ipv4Addr;

use weir::feedback::Ecn;
use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::path::{
    AccessChange, AccessLog, Carried, Direction, InFlight, NOTE_INTERVAL, NextHop, Placement,
    Routable, RouteId, Router,
};
use weir_net::{Bottleneck, DropCause, Header, LinkConfig, Outcome, Seed};

use crate::handle::{Change, DirectionStatus, Property, Status};
use crate::ip;
use crate::namespaces::in_network;
use crate::plan::{HostPlan, Plan};
use crate::record::{
    DirectionRecord, FlowRecord, FlowSample, HopRecord, SAMPLE_INTERVAL, Sample, TrafficTotals,
};

const SAMPLES_A_SECOND: usize = 20;
const _: () = assert!(SAMPLE_INTERVAL.as_nanos() * SAMPLES_A_SECOND as i64 == 1_000_000_000);
const _: () = assert!(SAMPLE_INTERVAL.as_nanos() == NOTE_INTERVAL.as_nanos());

/// A packet that has reached its host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Exact time of arrival in the model.
    pub(crate) due: Timestamp,
    /// The index of the host.
    pub(crate) host: usize,
    pub(crate) packet: Vec<u8>,
}

/// An IPv4 packet.
#[derive(Clone, Debug)]
struct IpPacket(Vec<u8>);

impl Routable for IpPacket {
    fn header(&self, route: RouteId) -> Header {
        ip::header(&self.0, route.0 as u64)
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        if ecn == Ecn::Ce {
            ip::mark(&mut self.0);
        }
    }
}

/// Samples of one direction of a hop.
#[derive(Clone, Debug, Default)]
struct Samples {
    /// Counts at the last sample.
    counted: TrafficTotals,
    samples: Vec<Sample>,
}

/// Traffic from one host to another.
#[derive(Debug)]
struct Pair {
    from: usize,
    to: usize,
    /// Whether there is a route.
    is_reachable: bool,
    total: TrafficTotals,
    /// Counts at the last sample.
    counted: TrafficTotals,
    samples: Vec<FlowSample>,
}

/// The network and its record.
#[derive(Debug)]
pub(crate) struct Network {
    hosts: Vec<Ipv4Addr>,
    /// Route numbers are the indices of `pairs`.
    router: Router<IpPacket>,
    /// Number of packets in the network.
    travelling: usize,
    /// Samples of both directions of each hop.
    links: Vec<[Samples; 2]>,
    /// Sorted by sender, then by receiver.
    pairs: Vec<Pair>,
    samples: usize,
    changes: Vec<(Timestamp, Change)>,
    /// Changes of the access network, as text.
    access_changes: Vec<(Timestamp, String)>,
    foreign_packets: u64,
    /// The host to other networks.
    border: Option<usize>,
}

impl Network {
    pub(crate) fn new(plan: &Plan, hosts: &[Ipv4Addr], seed: Seed) -> Self {
        let mut router = Router::new(&plan.hops, plan.access.as_ref(), seed);
        let sites: Vec<Placement> = plan.hosts[..hosts.len()]
            .iter()
            .enumerate()
            .map(|(index, host)| site(plan, host, &format!("host-{}", index + 1), &mut router))
            .collect();
        let at_once = LinkConfig::unlimited(TimeDelta::ZERO);
        let local = plan.local_traffic.then(|| router.add_link(&at_once, "local"));
        let mut pairs = Vec::new();
        for (from, a) in sites.iter().enumerate() {
            for (to, b) in sites.iter().enumerate() {
                let route = match (a.is_beside(b), local) {
                    _ if from == to => None,
                    (false, _) => Some(a.route_to(b)),
                    (true, local) => local.map(|link| a.route_beside(b, link)),
                };
                pairs.push(Pair::new(from, to, route.is_some()));
                router.add_route(route.unwrap_or_default());
            }
        }
        let addresses = pairs.iter().map(|pair: &Pair| (hosts[pair.from], hosts[pair.to]));
        let addresses: Vec<_> = addresses.collect();
        for access in router.all_access() {
            access.set_addresses(addresses.clone());
        }
        Self {
            hosts: hosts.to_vec(),
            links: vec![Default::default(); router.hops()],
            router,
            travelling: 0,
            pairs,
            samples: 0,
            changes: Vec::new(),
            access_changes: Vec::new(),
            foreign_packets: 0,
            border: plan.hosts.iter().position(|host| host.is_border),
        }
    }

    /// Takes a packet from a host. Call [`Network::poll`] until `None` before.
    pub(crate) fn enqueue(&mut self, now: Timestamp, from: usize, packet: &[u8]) {
        self.enqueue_on(now, self.pair_of(from, packet), packet);
    }

    /// The same for a packet that goes to this host, whatever its addresses are.
    pub(crate) fn enqueue_to(&mut self, now: Timestamp, from: usize, to: usize, packet: &[u8]) {
        let pair = Some(from * self.hosts.len() + to);
        self.enqueue_on(now, pair.filter(|pair| self.pairs[*pair].is_reachable), packet);
    }

    fn enqueue_on(&mut self, now: Timestamp, pair: Option<usize>, packet: &[u8]) {
        let Some(index) = pair else {
            self.foreign_packets += 1;
            return;
        };
        let total = &mut self.pairs[index].total;
        total.offered_packets += 1;
        total.offered += size(packet);
        self.travelling += 1;
        let next = self.router.enter(now, RouteId(index), IpPacket(packet.to_vec()));
        debug_assert!(matches!(next, NextHop::Entered(_)), "every route has a leg");
    }

    /// Whether any packet is in the network.
    pub(crate) fn is_crossed(&self) -> bool {
        self.travelling > 0
    }

    /// Changes a hop from now on. Call [`Network::poll`] until `None` before.
    pub(crate) fn set(&mut self, now: Timestamp, change: Change) {
        for &direction in Direction::BOTH {
            if change.direction.is_some_and(|only| only != direction) {
                continue;
            }
            let link = self.router.hop_mut(change.hop, direction);
            match change.property {
                Property::Capacity(rate) => link.set_capacity(now, rate),
                Property::Delay(delay) => link.set_delay(now, delay),
                Property::Jitter(jitter) => link.set_jitter(now, jitter),
                Property::Loss(loss) => link.set_loss(loss),
            }
        }
        self.changes.push((now, change));
    }

    /// Changes the access network from now on, if it supports this change. Call [`Network::poll`]
    /// until `None` before.
    pub(crate) fn set_access(&mut self, now: Timestamp, change: &AccessChange) {
        if self.router.access().is_some_and(|access| access.change(now, change)) {
            self.access_changes.push((now, change.to_string()));
        }
    }

    /// Status of the hops at the last sample.
    pub(crate) fn status(&self) -> Status {
        let time = Timestamp::ZERO + SAMPLE_INTERVAL * self.samples as i64;
        let mut hops = Vec::new();
        for (hop, samples) in self.links.iter().enumerate() {
            hops.push([Direction::Up, Direction::Down].map(|direction| {
                samples[direction as usize].status(self.router.hop(hop, direction))
            }));
        }
        Status { time, hops }
    }

    /// Index of the pair of a packet's sender and receiver; `None` if the packet is foreign.
    fn pair_of(&self, from: usize, packet: &[u8]) -> Option<usize> {
        let (source, destination) = ip::addresses(packet)?;
        let [sender, receiver] = [source, destination]
            .map(|address| self.hosts.iter().position(|host| *host == address));
        let border = self.border.filter(|_| is_elsewhere(destination));
        let to = receiver.or(border)?;
        let pair = from * self.hosts.len() + to;
        let is_own = match sender {
            Some(host) => host == from,
            None => self.border == Some(from) && is_elsewhere(source),
        };
        (is_own && self.pairs[pair].is_reachable).then_some(pair)
    }

    /// Time of the next event. [`Network::poll`] has nothing to do before.
    pub(crate) fn next_event(&self) -> Timestamp {
        let sample = self.next_sample();
        self.router.next().map_or(sample, |(at, _)| at.min(sample))
    }

    fn next_sample(&self) -> Timestamp {
        Timestamp::ZERO + SAMPLE_INTERVAL * (self.samples as i64 + 1)
    }

    /// Advances the network to `now`. Returns the next packet that has reached its host, in order
    /// of arrival. Call until `None`.
    pub(crate) fn poll(&mut self, now: Timestamp) -> Option<Arrival> {
        loop {
            let sample = self.next_sample();
            // Packets that arrive at the time of a sample belong to the next sample.
            let next = self.router.next().filter(|(at, _)| *at < sample);
            let Some((at, part)) = next else {
                if sample > now {
                    return None;
                }
                self.take_samples(sample);
                continue;
            };
            if at > now {
                return None;
            }
            let Some(outcome) = self.router.poll(at, part) else { continue };
            if let Some(arrival) = self.go_on(outcome) {
                return Some(arrival);
            }
        }
    }

    /// Moves a packet to the next part of its route. Returns it at the end of the route.
    fn go_on(&mut self, outcome: Outcome<InFlight<IpPacket>>) -> Option<Arrival> {
        let due = match &outcome {
            Outcome::Delivered(delivery) => delivery.due,
            Outcome::Dropped(dropped) => dropped.at,
        };
        match self.router.go_on(outcome) {
            NextHop::Entered(_) => None,
            NextHop::Arrived(InFlight { route, waited, payload: IpPacket(packet), .. }) => {
                self.travelling -= 1;
                let pair = &mut self.pairs[route.0];
                pair.total.delivered_packets += 1;
                pair.total.delivered += size(&packet);
                pair.total.waited += waited;
                Some(Arrival { due, host: pair.to, packet })
            }
            NextHop::Dropped(dropped) => {
                self.travelling -= 1;
                let total = &mut self.pairs[dropped.payload.route.0].total;
                match dropped.cause {
                    DropCause::RandomLoss | DropCause::RetryLimit => total.lost_packets += 1,
                    DropCause::QueueFull | DropCause::Managed | DropCause::Policed => {
                        total.dropped_packets += 1;
                    }
                }
                None
            }
        }
    }

    fn take_samples(&mut self, time: Timestamp) {
        // Before anything asks for the state at `time`: what happens then belongs to the next
        // sample.
        for (index, pair) in self.pairs.iter_mut().enumerate() {
            if pair.total.offered_packets > 0 {
                let route = RouteId(index);
                let carried = self.router.take_carried(time - SAMPLE_INTERVAL, time, route);
                pair.take_sample(self.samples, time, carried);
            }
        }
        for (hop, ways) in self.links.iter_mut().enumerate() {
            for (samples, direction) in ways.iter_mut().zip(Direction::BOTH) {
                samples.take(time, self.router.hop_mut(hop, *direction));
            }
        }
        for (index, pair) in self.pairs.iter_mut().enumerate() {
            if let Some(last) = pair.samples.last_mut() {
                last.queued = self.router.queued(time, RouteId(index));
            }
        }
        if let Some(access) = self.router.access() {
            access.note(time);
        }
        self.samples += 1;
    }

    /// Takes the last sample, of the interval that the end of the run cuts short.
    pub(crate) fn finish(&mut self) {
        self.take_samples(self.next_sample());
    }

    /// Returns the record, by hop and by pair of hosts.
    pub(crate) fn into_record(mut self) -> NetworkRecord {
        let mut access = self.router.access_part().map(|_| AccessLog::default());
        if let Some(log) = &mut access {
            self.router.move_log(log);
        }
        let hops = self.links.into_iter().enumerate().map(|(hop, [up, down])| HopRecord {
            up: up.into_record(self.router.hop(hop, Direction::Up)),
            down: down.into_record(self.router.hop(hop, Direction::Down)),
        });
        let pairs = self.pairs.into_iter().filter(|pair| pair.total.offered_packets > 0);
        NetworkRecord {
            access,
            hops: hops.collect(),
            flows: pairs.map(Pair::into_record).collect(),
            changes: self.changes,
            access_changes: self.access_changes,
            foreign_packets: self.foreign_packets,
        }
    }
}

/// Whether an address is that of one host of another network.
fn is_elsewhere(address: Ipv4Addr) -> bool {
    let is_special = address.is_multicast() || address.is_broadcast() || address.is_unspecified();
    !is_special && !address.is_loopback() && !in_network(address)
}

/// Where a host is, with the links and the access network of its own, which this adds.
fn site(plan: &Plan, host: &HostPlan, name: &str, router: &mut Router<IpPacket>) -> Placement {
    let site = Placement::new(host.node).with_attachment(host.attachment);
    let Some(own) = host.own.map(|own| &plan.own[own]) else {
        let (out, into) = (format!("{name}/out"), format!("{name}/in"));
        let own = router.add_own_links(host.access_delay, &out, &into);
        return site.with_own(own);
    };
    let site = site.with_own(router.add_own_hops(&own.hops, name));
    let Some(access) = &own.access else { return site };
    site.with_access(router.add_access(access, name))
}

/// The record of a network.
#[derive(Debug, Default)]
pub(crate) struct NetworkRecord {
    pub(crate) access: Option<AccessLog>,
    pub(crate) hops: Vec<HopRecord>,
    pub(crate) flows: Vec<FlowRecord>,
    pub(crate) changes: Vec<(Timestamp, Change)>,
    pub(crate) access_changes: Vec<(Timestamp, String)>,
    pub(crate) foreign_packets: u64,
}

fn size(packet: &[u8]) -> DataSize {
    DataSize::from_bytes(packet.len() as u64)
}

impl Samples {
    fn take(&mut self, time: Timestamp, link: &mut Bottleneck<InFlight<IpPacket>>) {
        let total = TrafficTotals::of(&link.counters());
        let sample = Sample {
            time,
            capacity: link.capacity(time),
            mean_capacity: link.mean_capacity(time - SAMPLE_INTERVAL, time),
            queued: link.queued(time),
            queuing_delay: link.queuing_delay(time),
            traffic: total.since(&self.counted),
        };
        self.samples.push(sample);
        self.counted = total;
    }

    /// Status of a link over the last second.
    fn status(&self, link: &Bottleneck<InFlight<IpPacket>>) -> DirectionStatus {
        let second = &self.samples[self.samples.len().saturating_sub(SAMPLES_A_SECOND)..];
        let (mut delivered, mut gone, mut offered) = (DataSize::ZERO, 0, 0);
        for passed in second.iter().map(|sample| &sample.traffic) {
            delivered += passed.delivered;
            gone += passed.lost_packets + passed.dropped_packets;
            offered += passed.offered_packets;
        }
        let last = second.last();
        let time = last.map_or(Timestamp::ZERO, |sample| sample.time);
        let queue = last.map_or(TimeDelta::ZERO, |sample| sample.queuing_delay);
        DirectionStatus {
            capacity: link.capacity(time),
            rate: delivered / (SAMPLE_INTERVAL * second.len().max(1) as i64),
            loss_ratio: if offered == 0 { 0.0 } else { gone as f64 / offered as f64 },
            delay: link.delay(time) + queue,
            queuing_delay: queue,
        }
    }

    fn into_record(self, link: &Bottleneck<InFlight<IpPacket>>) -> DirectionRecord {
        DirectionRecord { counters: link.counters(), samples: self.samples }
    }
}

impl Pair {
    fn new(from: usize, to: usize, is_reachable: bool) -> Self {
        let (total, counted) = (TrafficTotals::default(), TrafficTotals::default());
        Self { from, to, is_reachable, total, counted, samples: Vec::new() }
    }

    /// Takes a sample, whose queue the caller adds. The first one also adds empty samples for the
    /// intervals before the pair's first packet.
    fn take_sample(&mut self, index: usize, time: Timestamp, carried: Option<Carried>) {
        let queued = DataSize::ZERO;
        for before in self.samples.len()..index {
            let time = Timestamp::ZERO + SAMPLE_INTERVAL * (before as i64 + 1);
            let (carried, traffic) = (None, TrafficTotals::default());
            self.samples.push(FlowSample { time, queued, carried, traffic });
        }
        let traffic = self.total.since(&self.counted);
        self.samples.push(FlowSample { time, queued, carried, traffic });
        self.counted = self.total;
    }

    fn into_record(self) -> FlowRecord {
        FlowRecord { from: self.from, to: self.to, samples: self.samples, total: self.total }
    }
}

#[cfg(test)]
mod impairments;
#[cfg(test)]
mod tests;
