//! The models of a [`Plan`] as one: packets go in at hosts, and come out at hosts, without a clock.
//!
//! Every packet has a path, which is what lies between two hosts in the order in which it crosses it:
//! links, and the Wi-Fi cell on the way to or from a station. What the links do is sampled each [`SAMPLE_INTERVAL`], by link and by path.

use std::net::Ipv4Addr;

use weir::feedback::Ecn;
use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::wifi::{AccessCategory, Association, Cell, CellLog, NodeId};
use weir_net::{Bottleneck, Delivery, DropCause, Dropped, Fate, LinkConfig, Seed};

use crate::handle::{Change, Property, Status, WayStatus, Ways};
use crate::ip;
use crate::plan::{CellPlan, Plan};
use crate::record::{
    CellRecord, DirectionRecord, FlowRecord, FlowSample, HopRecord, Passed, SAMPLE_INTERVAL, Sample,
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
    /// How many steps of the path it has crossed.
    crossed: usize,
    /// Its time in their queues.
    waited: TimeDelta,
    packet: Vec<u8>,
}

/// What a path leads over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Link(usize),
    Air { way: (NodeId, NodeId), category: AccessCategory },
}

/// What has a next event. At the same time links come before the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Link(usize),
    Cell,
}

/// The Wi-Fi cell with its log.
#[derive(Debug)]
struct LoggedCell {
    model: Cell<Traveller>,
    log: CellLog,
}

/// One direction of a hop, or a host's access.
#[derive(Debug)]
struct Link {
    model: Bottleneck<Traveller>,
    /// At the last sample.
    counted: Passed,
    samples: Vec<Sample>,
}

/// From one host to another.
#[derive(Debug)]
struct Path {
    from: usize,
    to: usize,
    steps: Vec<Step>,
    total: Passed,
    /// At the last sample.
    counted: Passed,
    samples: Vec<FlowSample>,
}

/// All links and the packets that are on them.
#[derive(Debug)]
pub(crate) struct Network {
    hosts: Vec<Ipv4Addr>,
    hops: usize,
    cell: Option<LoggedCell>,
    /// Packets that have entered and neither arrived nor gone lost.
    travelling: usize,
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
                let [a, b] = [&plan.hosts[from], &plan.hosts[to]];
                let is_beside = a.is_beside(b);
                let mut crossed = hops_between(plan, from, to);
                if is_beside {
                    crossed.extend(local);
                }
                let reachable = from != to && (!is_beside || local.is_some());
                let wired = out.iter().chain(&crossed).chain(into).map(|link| Step::Link(*link));
                let [up, down] = [a.station.map(Step::up), b.station.map(Step::down)];
                let [up, down] = if is_beside { [None; 2] } else { [up, down] };
                let steps = up.into_iter().chain(wired).chain(down).collect();
                paths.push(reachable.then(|| Path::new(from, to, steps)));
            }
        }
        let hops = plan.hops.len();
        Self {
            hosts: hosts.to_vec(),
            hops,
            cell: plan.cell.as_ref().map(|cell| LoggedCell::new(cell, seed)),
            travelling: 0,
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
        self.travelling += 1;
        self.forward(now, traveller);
    }

    /// Puts a packet onto the next step of its path; gives it back at the path's end.
    fn forward(&mut self, now: Timestamp, traveller: Traveller) -> Option<Traveller> {
        let path = self.paths[traveller.path].as_ref().expect("it takes the path");
        match path.steps.get(traveller.crossed) {
            None => return Some(traveller),
            Some(&Step::Link(link)) => self.links[link].enqueue(now, traveller),
            Some(&Step::Air { way, category }) => {
                let cell = self.cell.as_mut().expect("the plan of a station has a cell");
                let header = ip::header(&traveller.packet, traveller.path as u64);
                cell.model.enqueue(now, way, category, header, traveller);
            }
        }
        None
    }

    /// Whether any packet is on its way.
    pub(crate) fn is_crossed(&self) -> bool {
        self.travelling > 0
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
        self.next_part().map_or(sample, |(at, _)| at.min(sample))
    }

    fn next_sample(&self) -> Timestamp {
        Timestamp::ZERO + SAMPLE_INTERVAL * (self.samples as i64 + 1)
    }

    fn next_part(&self) -> Option<(Timestamp, Part)> {
        let links = self.links.iter().enumerate();
        let links =
            links.filter_map(|(index, link)| Some((link.model.next_event()?, Part::Link(index))));
        let cell = self.cell.as_ref().and_then(|cell| Some((cell.model.next_event()?, Part::Cell)));
        links.chain(cell).min()
    }

    /// Moves everything on until `now`; the next packet that has reached its host by then, by time of
    /// arrival. Call until `None`.
    pub(crate) fn poll(&mut self, now: Timestamp) -> Option<Arrival> {
        loop {
            let sample = self.next_sample();
            // What arrives at the moment of a sample belongs to the next one.
            let next = self.next_part().filter(|(at, _)| *at < sample);
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
            let fate = match part {
                Part::Link(link) => self.links[link].model.poll(at),
                Part::Cell => self.cell.as_mut().and_then(|cell| cell.model.poll(at)),
            };
            match fate {
                None => {}
                Some(Fate::Delivered(delivery)) => {
                    if let Some(arrival) = self.on_delivery(delivery) {
                        return Some(arrival);
                    }
                }
                Some(Fate::Dropped(Dropped { cause, payload: traveller, .. })) => {
                    self.travelling -= 1;
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

    /// A packet has crossed a step: it goes on, or has arrived.
    fn on_delivery(&mut self, delivery: Delivery<Traveller>) -> Option<Arrival> {
        let Delivery { due, queuing_delay, ecn, payload: mut traveller, .. } = delivery;
        if ecn == Ecn::Ce {
            ip::mark(&mut traveller.packet);
        }
        traveller.crossed += 1;
        traveller.waited += queuing_delay;
        let traveller = self.forward(due, traveller)?;
        self.travelling -= 1;
        let path = self.paths[traveller.path].as_mut().expect("it took the path");
        path.total.delivered_packets += 1;
        path.total.delivered += traveller.size();
        path.total.waited += traveller.waited;
        Some(Arrival { due, host: path.to, packet: traveller.packet })
    }

    fn take_samples(&mut self, time: Timestamp) {
        for link in &mut self.links[..2 * self.hops] {
            link.take_sample(time);
        }
        let Self { paths, links, cell, .. } = self;
        for path in paths.iter_mut().flatten().filter(|path| path.total.offered_packets > 0) {
            let waits = |step: &Step| match *step {
                Step::Link(link) => links[link].model.queued(time),
                Step::Air { way: (from, _), .. } => {
                    cell.as_ref().map_or(DataSize::ZERO, |cell| cell.model.queued(from))
                }
            };
            let queued = path.steps.iter().map(waits).sum();
            path.take_sample(self.samples, time, queued);
        }
        if let Some(cell) = &mut self.cell {
            cell.log.write(time, &mut cell.model);
        }
        self.samples += 1;
    }

    /// Samples what has happened since the last sample: the interval that the end of the run cuts short.
    pub(crate) fn finish(&mut self) {
        self.take_samples(self.next_sample());
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
            cell: self.cell.map(LoggedCell::into_record),
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
    pub(crate) cell: Option<CellRecord>,
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

impl Step {
    fn up(own: Association) -> Self {
        Self::Air { way: (own.station, NodeId::ACCESS_POINT), category: own.category }
    }

    fn down(own: Association) -> Self {
        Self::Air { way: (NodeId::ACCESS_POINT, own.station), category: own.category }
    }
}

impl LoggedCell {
    fn new(plan: &CellPlan, seed: Seed) -> Self {
        let mut model = Cell::new(&plan.config, seed);
        let log = CellLog::new(&mut model, plan.airtime.clone());
        Self { model, log }
    }

    fn into_record(self) -> CellRecord {
        CellRecord { rows: self.log.rows, frames: self.log.frames }
    }
}

impl Traveller {
    fn size(&self) -> DataSize {
        DataSize::from_bytes(self.packet.len() as u64)
    }
}

impl Link {
    fn new(config: &LinkConfig, seed: Seed, name: &str) -> Self {
        let model = Bottleneck::new(config, seed, name);
        Self { model, counted: Passed::default(), samples: Vec::new() }
    }

    fn enqueue(&mut self, now: Timestamp, traveller: Traveller) {
        let header = ip::header(&traveller.packet, traveller.path as u64);
        self.model.enqueue(now, header, traveller);
    }

    fn take_sample(&mut self, time: Timestamp) {
        let total = Passed::of(&self.model.counters());
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
        let sum = |of: fn(&Passed) -> u64| second.iter().map(|s| of(&s.traffic)).sum::<u64>();
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
    fn new(from: usize, to: usize, steps: Vec<Step>) -> Self {
        let (total, counted) = (Passed::default(), Passed::default());
        Self { from, to, steps, total, counted, samples: Vec::new() }
    }

    /// Also fills in what was before its first packet.
    fn take_sample(&mut self, index: usize, time: Timestamp, queued: DataSize) {
        for before in self.samples.len()..index {
            let time = Timestamp::ZERO + SAMPLE_INTERVAL * (before as i64 + 1);
            let (queued, traffic) = (DataSize::ZERO, Passed::default());
            self.samples.push(FlowSample { time, queued, traffic });
        }
        let traffic = self.total.since(&self.counted);
        self.samples.push(FlowSample { time, queued, traffic });
        self.counted = self.total;
    }

    fn into_record(self) -> FlowRecord {
        FlowRecord { from: self.from, to: self.to, samples: self.samples, total: self.total }
    }
}

#[cfg(test)]
mod tests;
