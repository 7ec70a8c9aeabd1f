//! The models of a [`Plan`] as one: packets go in at hosts, and come out at hosts, without a clock.
//!
//! Every packet has a path, which is the links between two hosts in the order in which it crosses
//! them. What the links do is sampled each [`SAMPLE_INTERVAL`], by link and by path.

use std::net::Ipv4Addr;

use weir::feedback::Ecn;
use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::{Bottleneck, Delivery, DropCause, Dropped, Fate, LinkConfig, Seed};

use crate::handle::{Change, Property, Status, WayStatus, Ways};
use crate::ip;
use crate::plan::Plan;
use crate::record::{
    DirectionRecord, FlowRecord, FlowSample, HopRecord, SAMPLE_INTERVAL, Sample, Traffic,
};

const SAMPLES_A_SECOND: usize = 20;
const _: () = assert!(SAMPLE_INTERVAL.as_nanos() * SAMPLES_A_SECOND as i64 == 1_000_000_000);

/// A packet that has reached its host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When, exactly.
    pub(crate) due: Timestamp,
    /// The index of the host.
    pub(crate) host: usize,
    pub(crate) packet: Vec<u8>,
}

/// A packet on its way.
#[derive(Clone, Debug)]
struct Traveller {
    path: usize,
    /// How many links of the path it has crossed.
    crossed: usize,
    /// Its time in their queues.
    waited: TimeDelta,
    packet: Vec<u8>,
}

/// One direction of a hop, or a host's access.
#[derive(Debug)]
struct Link {
    model: Bottleneck<Traveller>,
    /// At the last sample.
    counted: Traffic,
    samples: Vec<Sample>,
}

/// From one host to another.
#[derive(Debug)]
struct Path {
    from: usize,
    to: usize,
    links: Vec<usize>,
    total: Traffic,
    /// At the last sample.
    counted: Traffic,
    samples: Vec<FlowSample>,
}

/// All links and the packets that are on them.
#[derive(Debug)]
pub(crate) struct Network {
    hosts: Vec<Ipv4Addr>,
    hops: usize,
    /// Up and down of each hop, then the accesses.
    links: Vec<Link>,
    /// By sender, then by receiver; `None` where the receiver cannot be reached.
    paths: Vec<Option<Path>>,
    samples: usize,
    changes: Vec<(Timestamp, Change)>,
    foreign_packets: u64,
}

impl Network {
    pub(crate) fn new(plan: &Plan, hosts: &[Ipv4Addr], seed: Seed) -> Self {
        let mut links = Vec::new();
        let mut add = |config: &LinkConfig, name: String| {
            links.push(Link::new(config, seed, &name));
            links.len() - 1
        };
        for (index, hop) in plan.hops.iter().enumerate() {
            let prefix = if index == 0 { String::new() } else { format!("hop-{}/", index + 1) };
            add(&hop.up, format!("{prefix}up"));
            add(&hop.down, format!("{prefix}down"));
        }
        let mut access = |host: usize, way: &str| {
            let delay = plan.hosts[host].access_delay;
            let name = format!("host-{}/{way}", host + 1);
            (delay > TimeDelta::ZERO).then(|| add(&LinkConfig::unlimited(delay), name))
        };
        let accesses: Vec<[Option<usize>; 2]> =
            (0..hosts.len()).map(|host| [access(host, "out"), access(host, "in")]).collect();
        let local = plan
            .local_traffic
            .then(|| add(&LinkConfig::unlimited(TimeDelta::ZERO), "local".into()));
        let mut paths = Vec::new();
        for (from, [out, _]) in accesses.iter().enumerate() {
            for (to, [_, into]) in accesses.iter().enumerate() {
                let mut crossed = hops_between(plan, from, to);
                if crossed.is_empty() {
                    crossed.extend(local);
                }
                let reachable = from != to && !crossed.is_empty();
                let links = out.iter().chain(&crossed).chain(into).copied().collect();
                paths.push(reachable.then(|| Path::new(from, to, links)));
            }
        }
        let hops = plan.hops.len();
        Self {
            hosts: hosts.to_vec(),
            hops,
            links,
            paths,
            samples: 0,
            changes: Vec::new(),
            foreign_packets: 0,
        }
    }

    /// A packet that a host sent. Poll what is due before.
    pub(crate) fn enqueue(&mut self, now: Timestamp, from: usize, packet: &[u8]) {
        let Some(path) = self.path_of(from, packet) else {
            self.foreign_packets += 1;
            return;
        };
        let traveller =
            Traveller { path, crossed: 0, waited: TimeDelta::ZERO, packet: packet.to_vec() };
        let path = self.paths[path].as_mut().expect("the path of a packet exists");
        path.total.offered_packets += 1;
        path.total.offered += traveller.size();
        self.links[path.links[0]].enqueue(now, traveller);
    }

    /// Changes a hop from now on. Poll what is due before.
    pub(crate) fn set(&mut self, now: Timestamp, change: Change) {
        let ways = match change.ways {
            Ways::Up => 0..1,
            Ways::Down => 1..2,
            Ways::Both => 0..2,
        };
        for way in ways {
            let model = &mut self.links[2 * change.hop + way].model;
            match change.property {
                Property::Capacity(rate) => model.set_capacity(now, rate),
                Property::Delay(delay) => model.set_delay(now, delay),
                Property::Jitter(jitter) => model.set_jitter(now, jitter),
                Property::Loss(loss) => model.set_loss(loss),
            }
        }
        self.changes.push((now, change));
    }

    /// How the hops did until the last sample.
    pub(crate) fn status(&self) -> Status {
        let time = Timestamp::ZERO + SAMPLE_INTERVAL * self.samples as i64;
        let hops = self.links[..2 * self.hops].chunks_exact(2);
        Status { time, hops: hops.map(|hop| [hop[0].status(), hop[1].status()]).collect() }
    }

    /// The index of the path that a packet of a host takes.
    fn path_of(&self, from: usize, packet: &[u8]) -> Option<usize> {
        let (source, destination) = ip::addresses(packet)?;
        let to = self.hosts.iter().position(|host| *host == destination)?;
        let path = from * self.hosts.len() + to;
        (source == self.hosts[from] && self.paths[path].is_some()).then_some(path)
    }

    /// A time before which [`Network::poll`] has nothing to do.
    pub(crate) fn next_event(&self) -> Timestamp {
        let sample = self.next_sample();
        self.next_link().map_or(sample, |(at, _)| at.min(sample))
    }

    fn next_sample(&self) -> Timestamp {
        Timestamp::ZERO + SAMPLE_INTERVAL * (self.samples as i64 + 1)
    }

    fn next_link(&self) -> Option<(Timestamp, usize)> {
        let links = self.links.iter().enumerate();
        links.filter_map(|(index, link)| Some((link.model.next_event()?, index))).min()
    }

    /// Moves everything on until `now`; the next packet that has reached its host by then, by time of
    /// arrival. Call until `None`.
    pub(crate) fn poll(&mut self, now: Timestamp) -> Option<Arrival> {
        loop {
            let sample = self.next_sample();
            // What arrives at the moment of a sample belongs to the next one.
            let next = self.next_link().filter(|(at, _)| *at < sample);
            let Some((at, link)) = next else {
                if sample > now {
                    return None;
                }
                self.take_samples(sample);
                continue;
            };
            if at > now {
                return None;
            }
            match self.links[link].model.poll(at) {
                None => {}
                Some(Fate::Delivered(delivery)) => {
                    if let Some(arrival) = self.on_delivery(delivery) {
                        return Some(arrival);
                    }
                }
                Some(Fate::Dropped(Dropped { cause, payload: traveller, .. })) => {
                    let path = self.paths[traveller.path].as_mut().expect("it took the path");
                    match cause {
                        DropCause::RandomLoss | DropCause::RetryLimit => {
                            path.total.lost_packets += 1
                        }
                        DropCause::QueueFull | DropCause::Managed => {
                            path.total.dropped_packets += 1;
                        }
                    }
                }
            }
        }
    }

    /// A packet has crossed a link: it goes on, or has arrived.
    fn on_delivery(&mut self, delivery: Delivery<Traveller>) -> Option<Arrival> {
        let Delivery { due, queuing_delay, ecn, payload: mut traveller, .. } = delivery;
        if ecn == Ecn::Ce {
            ip::mark(&mut traveller.packet);
        }
        traveller.crossed += 1;
        traveller.waited += queuing_delay;
        let path = self.paths[traveller.path].as_mut().expect("it took the path");
        if let Some(&next) = path.links.get(traveller.crossed) {
            self.links[next].enqueue(due, traveller);
            return None;
        }
        path.total.delivered_packets += 1;
        path.total.delivered += traveller.size();
        path.total.waited += traveller.waited;
        Some(Arrival { due, host: path.to, packet: traveller.packet })
    }

    fn take_samples(&mut self, time: Timestamp) {
        for link in &mut self.links[..2 * self.hops] {
            link.take_sample(time);
        }
        for path in self.paths.iter_mut().flatten().filter(|path| path.total.offered_packets > 0) {
            path.take_sample(self.samples, time);
        }
        self.samples += 1;
    }

    /// What has happened, by hop and by pair of hosts.
    pub(crate) fn into_record(self) -> NetworkRecord {
        let directions: Vec<DirectionRecord> =
            self.links.into_iter().take(2 * self.hops).map(Link::into_record).collect();
        let pairs = directions.chunks_exact(2);
        let hops = pairs.map(|pair| HopRecord { up: pair[0].clone(), down: pair[1].clone() });
        let used = |path: &Path| path.total.offered_packets > 0;
        let paths = self.paths.into_iter().flatten().filter(used);
        NetworkRecord {
            hops: hops.collect(),
            flows: paths.map(Path::into_record).collect(),
            changes: self.changes,
            foreign_packets: self.foreign_packets,
        }
    }
}

/// What a network leaves behind.
#[derive(Debug, Default)]
pub(crate) struct NetworkRecord {
    pub(crate) hops: Vec<HopRecord>,
    pub(crate) flows: Vec<FlowRecord>,
    pub(crate) changes: Vec<(Timestamp, Change)>,
    pub(crate) foreign_packets: u64,
}

/// The links of the hops from the one host's node to the other's.
fn hops_between(plan: &Plan, from: usize, to: usize) -> Vec<usize> {
    let (from, to) = (plan.hosts[from].node, plan.hosts[to].node);
    let up = (from..to).map(|hop| 2 * hop);
    let down = (to..from).rev().map(|hop| 2 * hop + 1);
    up.chain(down).collect()
}

impl Traveller {
    fn size(&self) -> DataSize {
        DataSize::from_bytes(self.packet.len() as u64)
    }
}

impl Link {
    fn new(config: &LinkConfig, seed: Seed, name: &str) -> Self {
        let model = Bottleneck::new(config, seed, name);
        Self { model, counted: Traffic::default(), samples: Vec::new() }
    }

    fn enqueue(&mut self, now: Timestamp, traveller: Traveller) {
        let header = ip::header(&traveller.packet, traveller.path as u64);
        self.model.enqueue(now, header, traveller);
    }

    fn take_sample(&mut self, time: Timestamp) {
        let total = Traffic::of(&self.model.counters());
        let sample = Sample {
            time,
            capacity: self.model.capacity(time),
            queued: self.model.queued(time),
            queuing_delay: self.model.queuing_delay(time),
            traffic: total.since(&self.counted),
        };
        self.samples.push(sample);
        self.counted = total;
    }

    fn status(&self) -> WayStatus {
        let second = &self.samples[self.samples.len().saturating_sub(SAMPLES_A_SECOND)..];
        let sum = |of: fn(&Traffic) -> u64| second.iter().map(|s| of(&s.traffic)).sum::<u64>();
        let delivered = DataSize::from_bytes(sum(|passed| passed.delivered.as_bytes()));
        let gone = sum(|passed| passed.lost_packets + passed.dropped_packets);
        let offered = sum(|passed| passed.offered_packets);
        let last = second.last();
        let time = last.map_or(Timestamp::ZERO, |sample| sample.time);
        let queue = last.map_or(TimeDelta::ZERO, |sample| sample.queuing_delay);
        WayStatus {
            capacity: self.model.capacity(time),
            rate: delivered / (SAMPLE_INTERVAL * second.len().max(1) as i64),
            loss_ratio: if offered == 0 { 0.0 } else { gone as f64 / offered as f64 },
            delay: self.model.delay(time) + queue,
        }
    }

    fn into_record(self) -> DirectionRecord {
        DirectionRecord { counters: self.model.counters(), samples: self.samples }
    }
}

impl Path {
    fn new(from: usize, to: usize, links: Vec<usize>) -> Self {
        let (total, counted) = (Traffic::default(), Traffic::default());
        Self { from, to, links, total, counted, samples: Vec::new() }
    }

    /// Also fills in what was before its first packet.
    fn take_sample(&mut self, index: usize, time: Timestamp) {
        for before in self.samples.len()..index {
            let time = Timestamp::ZERO + SAMPLE_INTERVAL * (before as i64 + 1);
            self.samples.push(FlowSample { time, traffic: Traffic::default() });
        }
        let traffic = self.total.since(&self.counted);
        self.samples.push(FlowSample { time, traffic });
        self.counted = self.total;
    }

    fn into_record(self) -> FlowRecord {
        FlowRecord { from: self.from, to: self.to, samples: self.samples, total: self.total }
    }
}

#[cfg(test)]
mod tests;
