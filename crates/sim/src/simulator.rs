//! The simulation: one thread that always goes to the earliest deadline.

mod cell;

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::{Bottleneck, Delivery, Fate, FlowKey, Header, LinkConfig, Seed};

use crate::config::{Config, Direction, FlowConfig, FlowKind};
use crate::coupling::Coupling;
use crate::deadlines::Deadlines;
use crate::endpoint::MediaEnds;
use crate::flow::{End, Ends, Outbox, Packet};
use crate::tcp::TcpEnds;
use crate::trace::{ROW_INTERVAL, RateChange, Row, Trace, Video};
use crate::udp::UdpEnds;
use cell::TracedCell;

/// The number of [`Part::Rows`].
const ROWS: usize = 0;
/// Rows and changes in a part of a run that is handed over.
const PART: usize = 1_024;

/// Runs a configuration from time zero to its end.
pub fn run(config: &Config, seed: Seed) -> Trace {
    run_unless(config, seed, &AtomicBool::new(false)).expect("nobody stops it")
}

/// The same; `None` once somebody has set `stop`.
pub fn run_unless(config: &Config, seed: Seed, stop: &AtomicBool) -> Option<Trace> {
    let mut whole = Trace::default();
    let keep = |part: &mut Trace| {
        whole.append(part);
        Ok::<(), Infallible>(())
    };
    let Ok(is_whole) = run_in_parts(config, seed, stop, keep);
    is_whole.then_some(whole)
}

/// The same, handed over in parts by time, so that a run of any length takes little memory. An error of
/// whoever takes them ends the run; `false` once somebody has set `stop`.
pub fn run_in_parts<E>(
    config: &Config,
    seed: Seed,
    stop: &AtomicBool,
    mut take: impl FnMut(&mut Trace) -> Result<(), E>,
) -> Result<bool, E> {
    let mut simulator = Simulator::new(config, seed);
    while let Some((now, part)) = simulator.deadlines.next() {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if now > Timestamp::ZERO + config.duration {
            break;
        }
        simulator.on_deadline(now, part);
        if part == ROWS && simulator.trace.len() >= PART {
            take(simulator.trace())?;
            simulator.trace.clear();
        }
    }
    take(simulator.trace())?;
    Ok(true)
}

/// A packet on its way.
#[derive(Clone, Debug)]
struct Traveller {
    flow: usize,
    from: End,
    /// Legs of its route that lie behind it.
    passed: usize,
    /// Time it spent in their queues.
    waited: TimeDelta,
    packet: Packet,
}

impl Traveller {
    /// What a link sees. The two ways of a flow have addresses of their own: where they share a link
    /// they are two flows.
    fn header(&self) -> Header {
        let Packet { size, ecn, .. } = self.packet;
        Header { size, ecn, flow: FlowKey(2 * self.flow as u64 + self.from as u64) }
    }
}

/// A part of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leg {
    Link(usize),
    Cell,
}

struct FlowState {
    ends: Box<dyn Ends>,
    /// The way from the sender to the receiver, and back.
    routes: [Vec<Leg>; 2],
    /// The row that is being filled, and what its mean is made of.
    row: Row,
    feedback: DataSize,
    waited: TimeDelta,
    arrived: i64,
}

impl FlowState {
    fn route(&self, from: End) -> &[Leg] {
        &self.routes[from as usize]
    }

    /// The links that its data crosses.
    fn links(&self) -> impl Iterator<Item = usize> {
        self.route(End::Sender).iter().filter_map(|leg| match leg {
            Leg::Link(link) => Some(*link),
            Leg::Cell => None,
        })
    }
}

/// A part of the simulation that has a deadline.
#[derive(Clone, Copy)]
enum Part {
    Rows,
    Link(usize),
    End(usize, End),
    Cell,
}

struct Simulator<'a> {
    config: &'a Config,
    deadlines: Deadlines,
    links: Vec<Bottleneck<Traveller>>,
    cell: Option<TracedCell>,
    flows: Vec<FlowState>,
    coupling: Coupling,
    outbox: Outbox,
    trace: Trace,
}

impl<'a> Simulator<'a> {
    fn new(config: &'a Config, seed: Seed) -> Self {
        let mut links = hop_links(config, seed);
        let flows: Vec<_> = config
            .flows
            .iter()
            .enumerate()
            .map(|(index, flow)| FlowState {
                ends: ends(flow, index, seed),
                routes: routes(flow, &mut links, seed),
                row: Row::default(),
                feedback: DataSize::ZERO,
                waited: TimeDelta::ZERO,
                arrived: 0,
            })
            .collect();
        let names = config.flows.iter().map(|flow| flow.name.clone()).collect();
        let parts = 1 + links.len() + 2 * flows.len() + usize::from(config.cell.is_some());
        let rows = Vec::with_capacity(PART + config.flows.len());
        let mut trace = Trace { flows: names, rows, ..Trace::default() };
        let mut simulator = Self {
            config,
            deadlines: Deadlines::new(parts),
            links,
            cell: TracedCell::new(config, seed, &mut trace),
            flows,
            coupling: Coupling::new(config),
            outbox: Outbox::default(),
            trace,
        };
        simulator.schedule_cell();
        simulator.schedule(Part::Rows, Some(Timestamp::ZERO + ROW_INTERVAL));
        for flow in 0..config.flows.len() {
            let start = config.flows[flow].start;
            End::BOTH.into_iter().for_each(|end| simulator.schedule_end(start, flow, end));
        }
        simulator
    }

    fn number(&self, part: Part) -> usize {
        match part {
            Part::Rows => ROWS,
            Part::Link(link) => 1 + link,
            Part::End(flow, end) => 1 + self.links.len() + 2 * flow + end as usize,
            Part::Cell => 1 + self.links.len() + 2 * self.flows.len(),
        }
    }

    fn part(&self, number: usize) -> Part {
        let links = self.links.len();
        match number {
            ROWS => Part::Rows,
            number if number <= links => Part::Link(number - 1),
            number => {
                let index = number - 1 - links;
                if index == 2 * self.flows.len() {
                    return Part::Cell;
                }
                Part::End(index / 2, End::BOTH[index % 2])
            }
        }
    }

    fn schedule(&mut self, part: Part, deadline: Option<Timestamp>) {
        self.deadlines.set(self.number(part), deadline);
    }

    fn schedule_end(&mut self, now: Timestamp, flow: usize, end: End) {
        let stop = self.config.flows[flow].stop;
        // A window that opens lets go what was due long ago.
        let deadline = self.flows[flow].ends.next_deadline(end).map(|deadline| deadline.max(now));
        self.schedule(Part::End(flow, end), deadline.filter(|&deadline| deadline < stop));
    }

    fn on_deadline(&mut self, now: Timestamp, number: usize) {
        match self.part(number) {
            Part::Rows => self.close_rows(now),
            Part::Link(link) => self.deliver(now, link),
            Part::Cell => self.deliver_cell(now),
            Part::End(flow, end) => {
                self.flows[flow].ends.on_deadline(now, end, &mut self.outbox);
                self.after_end(now, flow, end);
            }
        }
    }

    /// Does what an end of a flow wants after it was called, and tells the other flows of its sender.
    fn after_end(&mut self, now: Timestamp, flow: usize, end: End) {
        self.do_wishes(now, flow, end);
        if end == End::Receiver || !self.coupling.has(flow) {
            return;
        }
        let target = self.flows[flow].ends.state().target;
        for (other, share) in self.coupling.exchange(now, &self.config.flows, flow, target) {
            let ends = &mut self.flows[other].ends;
            ends.on_shared_rate(now, share, &mut self.outbox);
            self.coupling.on_told(other, ends.state().target);
            self.do_wishes(now, other, End::Sender);
        }
    }

    fn do_wishes(&mut self, now: Timestamp, flow: usize, end: End) {
        if !self.outbox.packets.is_empty() {
            self.send(now, flow, end);
        }
        if !self.outbox.changes.is_empty() {
            self.note_changes(now, flow);
        }
        if let Some(rtt) = self.outbox.rtt.take() {
            let least = &mut self.flows[flow].row.rtt;
            *least = Some(least.map_or(rtt, |least| least.min(rtt)));
        }
        self.schedule_end(now, flow, end);
    }

    fn send(&mut self, now: Timestamp, flow: usize, end: End) {
        // The list comes back empty, for its allocation.
        let mut packets = std::mem::take(&mut self.outbox.packets);
        for packet in packets.drain(..) {
            let state = &mut self.flows[flow];
            match end {
                End::Sender => {
                    state.row.sent += packet.size;
                    state.row.sent_packets += 1;
                }
                End::Receiver => state.feedback += packet.size,
            }
            let waited = TimeDelta::ZERO;
            self.forward(now, Traveller { flow, from: end, passed: 0, waited, packet });
        }
        self.outbox.packets = packets;
    }

    fn note_changes(&mut self, now: Timestamp, flow: usize) {
        self.trace.events.extend(self.outbox.changes.drain(..).map(|change| RateChange {
            time: now,
            flow,
            from: change.from,
            to: change.to,
            reason: change.reason.into(),
            state: change.state.into(),
            signals: change.signals,
        }));
    }

    /// Puts a packet onto the next leg of its route, or hands it over at the route's end.
    fn forward(&mut self, now: Timestamp, traveller: Traveller) {
        let Traveller { flow, from, passed, .. } = traveller;
        match self.flows[flow].route(from).get(passed) {
            None => self.arrive(now, traveller),
            Some(&Leg::Link(link)) => {
                self.links[link].enqueue(now, traveller.header(), traveller);
                self.schedule_link(link);
            }
            Some(Leg::Cell) => {
                let cell = self.cell.as_mut().expect("a route leads through a cell that is there");
                cell.enqueue(now, &self.config.flows[flow], traveller);
                self.schedule_cell();
            }
        }
    }

    fn schedule_link(&mut self, link: usize) {
        let next = self.links[link].next_event();
        self.schedule(Part::Link(link), next);
    }

    fn schedule_cell(&mut self) {
        if let Some(cell) = &self.cell {
            let next = cell.next_event();
            self.schedule(Part::Cell, next);
        }
    }

    fn deliver(&mut self, now: Timestamp, link: usize) {
        while let Some(fate) = self.links[link].poll(now) {
            self.go_on(now, fate);
        }
        self.schedule_link(link);
    }

    fn deliver_cell(&mut self, now: Timestamp) {
        while let Some(fate) = self.cell.as_mut().and_then(|cell| cell.poll(now)) {
            let traveller = match &fate {
                Fate::Delivered(delivery) => &delivery.payload,
                Fate::Dropped(dropped) => &dropped.payload,
            };
            let Traveller { flow, from, .. } = *traveller;
            let config = &self.config.flows[flow];
            if from == End::Sender && config.sends_from_station() && now < config.stop {
                let ends = &mut self.flows[flow].ends;
                ends.on_left_host(now, &traveller.packet, &mut self.outbox);
                self.do_wishes(now, flow, End::Sender);
            }
            self.go_on(now, fate);
        }
        self.schedule_cell();
    }

    /// A packet is through a leg of its route, or gone.
    fn go_on(&mut self, now: Timestamp, fate: Fate<Traveller>) {
        match fate {
            Fate::Delivered(Delivery { queuing_delay, ecn, mut payload, .. }) => {
                payload.passed += 1;
                payload.waited += queuing_delay;
                payload.packet.ecn = ecn;
                self.forward(now, payload);
            }
            // Lost feedback is part of the experiment; the controllers have to live with it.
            Fate::Dropped(dropped) if dropped.payload.from == End::Receiver => {}
            Fate::Dropped(dropped) => {
                self.flows[dropped.payload.flow].row.lost_packets += 1;
            }
        }
    }

    fn arrive(&mut self, now: Timestamp, traveller: Traveller) {
        let Traveller { flow, from, waited, packet, .. } = traveller;
        let state = &mut self.flows[flow];
        if from == End::Sender {
            state.row.received += packet.size;
            state.waited += waited;
            state.arrived += 1;
        }
        // What arrives after the flow's end has nobody to go to.
        if now < self.config.flows[flow].stop {
            state.ends.on_packet(now, from.other(), &packet, &mut self.outbox);
            self.after_end(now, flow, from.other());
        }
    }

    fn close_rows(&mut self, now: Timestamp) {
        for (index, flow) in self.config.flows.iter().enumerate() {
            if now <= flow.start || now > flow.stop {
                continue;
            }
            let state = &mut self.flows[index];
            let capacities =
                state.links().filter_map(|link| self.links[link].capacity(now - ROW_INTERVAL));
            let capacity = capacities.min();
            let wired: DataSize = state.links().map(|link| self.links[link].queued(now)).sum();
            let cell = self.cell.as_ref().filter(|_| flow.station.is_some());
            let queue = wired + cell.map_or(DataSize::ZERO, |cell| cell.queued(flow));
            let sender = state.ends.state();
            let end = flow.stop.min(Timestamp::ZERO + self.config.duration);
            let video = state.ends.take_video(now + ROW_INTERVAL > end);
            self.trace.rows.push(Row {
                time: now,
                flow: index,
                capacity,
                target: sender.target,
                pacing_rate: sender.pacing_rate,
                congestion_window: sender.congestion_window,
                rtt: state.row.rtt.map(whole_micros),
                queuing_delay: (state.arrived > 0)
                    .then(|| whole_micros(state.waited / state.arrived)),
                queue,
                video: video.map(|video| Video {
                    frozen: whole_micros(video.frozen),
                    frame_delay: video.frame_delay.map(whole_micros),
                    ..video
                }),
                transfer: state.ends.take_transfer(),
                feedback: matches!(flow.traffic, FlowKind::Media(_)).then_some(state.feedback),
                ..state.row
            });
            state.row = Row::default();
            state.feedback = DataSize::ZERO;
            state.waited = TimeDelta::ZERO;
            state.arrived = 0;
        }
        if let Some(cell) = &mut self.cell {
            cell.write_rows(now);
        }
        self.schedule(Part::Rows, Some(now + ROW_INTERVAL));
    }

    /// What was noted and not handed over yet.
    fn trace(&mut self) -> &mut Trace {
        if let Some(cell) = &mut self.cell {
            cell.move_log(&mut self.trace);
        }
        &mut self.trace
    }
}

/// The links of the hops: for each hop the one up, then the one down.
fn hop_links(config: &Config, seed: Seed) -> Vec<Bottleneck<Traveller>> {
    let mut links = Vec::with_capacity(2 * config.hops.len());
    for (index, hop) in config.hops.iter().enumerate() {
        let prefix = if index == 0 { String::new() } else { format!("hop-{}/", index + 1) };
        links.push(Bottleneck::new(&hop.up, seed, &format!("{prefix}up")));
        links.push(Bottleneck::new(&hop.down, seed, &format!("{prefix}down")));
    }
    links
}

/// Makes the links of a flow's own access, and lists what its packets cross each way.
fn routes(flow: &FlowConfig, links: &mut Vec<Bottleneck<Traveller>>, seed: Seed) -> [Vec<Leg>; 2] {
    let up = flow.hops.clone().map(|hop| Leg::Link(2 * hop));
    let down = flow.hops.clone().rev().map(|hop| Leg::Link(2 * hop + 1));
    let [mut there, mut back]: [Vec<Leg>; 2] = match flow.direction {
        Direction::Up => [up.collect(), down.collect()],
        Direction::Down => [down.collect(), up.collect()],
    };
    if flow.access_delay > TimeDelta::ZERO {
        let access = LinkConfig::unlimited(flow.access_delay);
        for (way, at) in [(&mut there, 0), (&mut back, flow.hops.len())] {
            way.insert(at, Leg::Link(links.len()));
            links.push(Bottleneck::new(&access, seed, &format!("{}/access", flow.name)));
        }
    }
    if flow.station.is_some() {
        let (up, down) = match flow.direction {
            Direction::Up => (&mut there, &mut back),
            Direction::Down => (&mut back, &mut there),
        };
        up.insert(0, Leg::Cell);
        down.push(Leg::Cell);
    }
    [there, back]
}

fn ends(flow: &FlowConfig, index: usize, seed: Seed) -> Box<dyn Ends> {
    match &flow.traffic {
        FlowKind::Media(media) => Box::new(MediaEnds::new(flow, media, index, seed)),
        FlowKind::Tcp(tcp) => Box::new(TcpEnds::new(flow, tcp, seed)),
        FlowKind::Udp(udp) => Box::new(UdpEnds::new(flow, udp)),
    }
}

/// As a record holds it, so that a run measures the same before and after it was written.
fn whole_micros(time: TimeDelta) -> TimeDelta {
    TimeDelta::from_micros(time.as_micros())
}

#[cfg(test)]
mod tests;
