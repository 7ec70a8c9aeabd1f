//! The simulation loop: one thread that always handles the earliest deadline next.

mod possible;
mod shards;
mod share;

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use weir::feedback::Ecn;
use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::path::{Carried, InFlight, NextHop, Part, Placement, Routable, RouteId, Router};
use weir_net::{Dropped, FlowKey, Header, Outcome, Seed};

use crate::config::{Config, Direction, FlowConfig, FlowKind};
use crate::coupling::Coupling;
use crate::deadlines::{Deadlines, FIRST};
use crate::endpoint::MediaEnds;
use crate::flow::{End, Ends, Outbox, Packet};
use crate::quic::QuicEnds;
use crate::sfu::{Request, Server, SubscriberEnds};
use crate::tcp::TcpEnds;
use crate::trace::{Heard, ROW_INTERVAL, RateChange, Row, Seen, Trace, Video};
use crate::udp::UdpEnds;
use possible::PossibleRates;
use share::share;

/// Deadline number of [`Due::Rows`].
const ROWS: usize = FIRST;
/// Number of rows and rate changes after which a part of the trace is handed over. Few, because a
/// part that fills the processor's cache slows the simulation of many flows.
const PART: usize = 256;

/// Runs a configuration from time zero to its end.
pub fn run(config: &Config, seed: Seed) -> Trace {
    run_unless(config, seed, &AtomicBool::new(false)).expect("nobody stops it")
}

/// As [`run`], but ends early with `None` when `stop` is set.
pub fn run_unless(config: &Config, seed: Seed, stop: &AtomicBool) -> Option<Trace> {
    let mut whole = Trace::default();
    let keep = |part: &mut Trace| {
        whole.append(part);
        Ok::<(), Infallible>(())
    };
    let Ok(is_whole) = run_in_parts(config, seed, stop, keep);
    is_whole.then_some(whole)
}

/// As [`run_unless`], but passes the trace to `take` in parts, in order of time, so that a run of
/// any length needs little memory. An error from `take` ends the run. Returns `false` if `stop`
/// ended the run.
pub fn run_in_parts<E>(
    config: &Config,
    seed: Seed,
    stop: &AtomicBool,
    mut take: impl FnMut(&mut Trace) -> Result<(), E>,
) -> Result<bool, E> {
    let shards = shards::shards(config);
    let [flows] = shards.as_slice() else {
        return shards::run(config, &shards, seed, stop, take);
    };
    let mut simulator = Simulator::new(config, flows, seed);
    simulator.possible = PossibleRates::measure(config, seed, stop);
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

/// As [`run`], but all flows in one simulation, whatever they share.
#[cfg(test)]
pub(crate) fn run_as_one(config: &Config, seed: Seed) -> Trace {
    let all: Vec<usize> = (0..config.flows.len()).collect();
    let mut simulator = Simulator::new(config, &all, seed);
    simulator.possible = PossibleRates::measure(config, seed, &AtomicBool::new(false));
    simulator.run_until(Timestamp::ZERO + config.duration);
    std::mem::take(simulator.trace())
}

impl Routable for Packet {
    /// The two directions of a flow have different addresses, so a link that both cross sees two
    /// flows.
    fn header(&self, route: RouteId) -> Header {
        let Self { size, ecn, .. } = *self;
        Header::new(size).with_ecn(ecn).with_flow(FlowKey(route.0 as u64))
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
}

/// Route of the packets that an end of a flow sends.
const fn route(flow: usize, from: End) -> RouteId {
    RouteId(2 * flow + from as usize)
}

/// Flow and end that send over a route.
const fn sender(RouteId(route): RouteId) -> (usize, End) {
    (route / 2, End::BOTH[route % 2])
}

struct FlowState {
    ends: Box<dyn Ends>,
    /// The row of the current interval. The sums after it give its remaining fields.
    row: Row,
    feedback: DataSize,
    waited: TimeDelta,
    arrived: i64,
}

/// Parts of the simulation that have a deadline.
#[derive(Clone, Copy)]
enum Due {
    /// The rows of the trace.
    Rows,
    /// A part of the network.
    Network(Part),
    /// An end of a flow.
    End(usize, End),
    /// The forwarding server.
    Server,
}

struct Simulator<'a> {
    config: &'a Config,
    /// The flows that are simulated, by index.
    own: Vec<usize>,
    deadlines: Deadlines,
    router: Router<Packet>,
    flows: Vec<FlowState>,
    coupling: Coupling,
    /// The forwarding server without its subscribers, which are flows.
    server: Option<Server>,
    /// The subscribers of each publisher, by index.
    audiences: Vec<Vec<usize>>,
    /// What subscribers, by flow, need from it.
    requests: Vec<(usize, Request)>,
    /// What an access network could have carried to them.
    possible: Option<PossibleRates>,
    outbox: Outbox,
    trace: Trace,
}

impl<'a> Simulator<'a> {
    /// A simulation of some flows, by index, and of the publishers that they watch.
    fn new(config: &'a Config, own: &[usize], seed: Seed) -> Self {
        let mut router = Router::new(&config.hops, config.access.as_ref(), seed);
        let flows: Vec<_> = config
            .flows
            .iter()
            .enumerate()
            .map(|(index, flow)| {
                add_routes(&mut router, flow);
                FlowState {
                    ends: ends(config, index, seed),
                    row: Row::default(),
                    feedback: DataSize::ZERO,
                    waited: TimeDelta::ZERO,
                    arrived: 0,
                }
            })
            .collect();
        let names = config.flows.iter().map(|flow| flow.name.clone()).collect();
        let nodes = config.access.as_ref().map_or_else(Vec::new, |plan| plan.config.names());
        let rows = Vec::with_capacity(PART + config.flows.len());
        // An access network has an event for each frame and each backoff.
        let busiest = router.access_part().map(|Part(part)| 1 + part);
        let mut simulator = Self {
            config,
            own: own.to_vec(),
            deadlines: Deadlines::new(2 + router.parts() + 2 * flows.len(), busiest),
            router,
            flows,
            coupling: Coupling::new(config),
            server: server(config, own, seed),
            audiences: audiences(config),
            requests: Vec::new(),
            possible: None,
            outbox: Outbox::default(),
            trace: Trace { flows: names, nodes, rows, ..Trace::default() },
        };
        if let Some(access) = simulator.router.access_part() {
            simulator.schedule_part(access);
        }
        simulator.schedule(Due::Rows, Some(Timestamp::ZERO + ROW_INTERVAL));
        for &flow in own {
            let start = config.flows[flow].start;
            for end in End::BOTH {
                simulator.schedule_end(start, flow, end);
            }
        }
        simulator.schedule_server(Timestamp::ZERO);
        simulator
    }

    /// Handles all deadlines up to a time, which is not after the end.
    fn run_until(&mut self, until: Timestamp) {
        while let Some((now, part)) = self.deadlines.next().filter(|&(now, _)| now <= until) {
            self.on_deadline(now, part);
        }
    }

    fn number(&self, due: Due) -> usize {
        match due {
            Due::Rows => ROWS,
            Due::Network(Part(part)) => 1 + part,
            Due::End(flow, end) => 1 + self.router.parts() + 2 * flow + end as usize,
            Due::Server => 1 + self.router.parts() + 2 * self.flows.len(),
        }
    }

    fn due(&self, number: usize) -> Due {
        let parts = self.router.parts();
        match number {
            ROWS => Due::Rows,
            number if number <= parts => Due::Network(Part(number - 1)),
            number => {
                let index = number - 1 - parts;
                if index == 2 * self.flows.len() {
                    return Due::Server;
                }
                Due::End(index / 2, End::BOTH[index % 2])
            }
        }
    }

    fn schedule(&mut self, due: Due, deadline: Option<Timestamp>) {
        self.deadlines.set(self.number(due), deadline);
    }

    fn schedule_part(&mut self, part: Part) {
        let next = self.router.next_event(part);
        self.schedule(Due::Network(part), next);
    }

    fn schedule_end(&mut self, now: Timestamp, flow: usize, end: End) {
        let stop = self.config.flows[flow].stop;
        // A deadline can be in the past, for example when a congestion window opens.
        let deadline = self.flows[flow].ends.next_deadline(end).map(|deadline| deadline.max(now));
        self.schedule(Due::End(flow, end), deadline.filter(|&deadline| deadline < stop));
    }

    fn on_deadline(&mut self, now: Timestamp, number: usize) {
        match self.due(number) {
            Due::Rows => self.close_rows(now),
            Due::Network(part) => self.deliver(now, part),
            Due::Server => self.on_server(now),
            Due::End(flow, end) => {
                self.flows[flow].ends.on_deadline(now, end, &mut self.outbox);
                self.after_end(now, flow, end);
            }
        }
    }

    fn schedule_server(&mut self, now: Timestamp) {
        if let Some(server) = &self.server {
            let next = server.next_deadline().map(|next| next.max(now));
            self.schedule(Due::Server, next);
        }
    }

    /// Passes what happens at the forwarding server to its subscribers.
    fn on_server(&mut self, now: Timestamp) {
        let Some(mut server) = self.server.take() else { return };
        while let Some(news) = server.next(now) {
            let Some(news) = news else { continue };
            for place in 0..self.audiences[news.track()].len() {
                let flow = self.audiences[news.track()][place];
                let config = &self.config.flows[flow];
                let is_changed = now < config.stop
                    && self.flows[flow].ends.on_news(now, &news, &mut self.outbox);
                if is_changed {
                    self.after_end(now, flow, End::Sender);
                }
            }
        }
        self.server = Some(server);
        self.pass_on_requests(now);
        self.schedule_server(now);
    }

    /// Passes what subscribers need to the forwarding server.
    fn pass_on_requests(&mut self, now: Timestamp) {
        let Some(server) = &mut self.server else { return };
        for (flow, request) in self.requests.drain(..) {
            server.on_request(now, flow, request);
        }
    }

    /// Carries out the requests of an end after a call, and passes new shares to the coupled flows.
    fn after_end(&mut self, now: Timestamp, flow: usize, end: End) {
        self.process_outbox(now, flow, end);
        if end == End::Receiver || !self.coupling.has(flow) {
            return;
        }
        let target = self.flows[flow].ends.state().target;
        for (other, share) in self.coupling.exchange(now, &self.config.flows, flow, target) {
            let ends = &mut self.flows[other].ends;
            ends.on_shared_rate(now, share, &mut self.outbox);
            self.coupling.on_share_applied(other, ends.state().target);
            self.process_outbox(now, other, End::Sender);
        }
    }

    fn process_outbox(&mut self, now: Timestamp, flow: usize, end: End) {
        if !self.outbox.packets.is_empty() {
            self.send(now, flow, end);
        }
        if !self.outbox.changes.is_empty() {
            self.note_changes(now, flow);
        }
        if !self.outbox.requests.is_empty() {
            let requests = self.outbox.requests.drain(..);
            self.requests.extend(requests.map(|request| (flow, request)));
            if self.server.is_some() {
                self.pass_on_requests(now);
                self.schedule_server(now);
            }
        }
        self.trace.decisions.append(&mut self.outbox.decisions);
        if let Some(rtt) = self.outbox.rtt.take() {
            let least = &mut self.flows[flow].row.rtt;
            *least = Some(least.map_or(rtt, |least| least.min(rtt)));
        }
        self.schedule_end(now, flow, end);
    }

    fn send(&mut self, now: Timestamp, flow: usize, end: End) {
        // The vector is put back when empty, to reuse its allocation.
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
            let next = self.router.enter(now, route(flow, end), packet);
            self.after_move(now, next);
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

    /// Moves on the packets that have left a part of the network.
    fn deliver(&mut self, mut now: Timestamp, part: Part) {
        let is_access = self.router.access_part() == Some(part);
        loop {
            let horizon = if is_access { self.horizon(now) } else { now };
            let outcome = self.router.poll_ahead(now, part, horizon);
            let is_last = outcome.is_none();
            if let Some((at, outcome)) = outcome {
                now = at;
                if is_access {
                    self.on_left_access(now, &outcome);
                }
                let next = self.router.go_on(outcome);
                self.after_move(now, next);
            }
            // Most events move one packet, so a second poll would rarely return one.
            let next = self.router.next_event(part);
            if is_last || next.is_none_or(|next| next > now) {
                return self.schedule(Due::Network(part), next);
            }
        }
    }

    /// The time before which nothing happens but in the access network that all share. In between
    /// it has many events that move no packet: backoffs, frames, transmission time intervals.
    fn horizon(&self, now: Timestamp) -> Timestamp {
        let end = Timestamp::ZERO + self.config.duration + TimeDelta::from_nanos(1);
        self.deadlines.next_of_others().map_or(now, |next| next.min(end))
    }

    /// Notifies a sender on a terminal of the access network that its packet has left the
    /// terminal's queue.
    fn on_left_access(&mut self, now: Timestamp, outcome: &Outcome<InFlight<Packet>>) {
        let packet = match outcome {
            Outcome::Delivered(delivery) => &delivery.payload,
            Outcome::Dropped(dropped) => &dropped.payload,
        };
        let (flow, from) = sender(packet.route);
        let config = &self.config.flows[flow];
        if from == End::Sender && config.sends_from_terminal() && now < config.stop {
            let ends = &mut self.flows[flow].ends;
            ends.on_left_host(now, &packet.payload, &mut self.outbox);
            self.process_outbox(now, flow, End::Sender);
        }
    }

    /// Handles the result of a packet's move.
    #[inline]
    fn after_move(&mut self, now: Timestamp, next: NextHop<Packet>) {
        match next {
            NextHop::Entered(part) => self.schedule_part(part),
            NextHop::Arrived(packet) => self.arrive(now, packet),
            NextHop::Dropped(Dropped { payload: packet, .. }) => {
                // Lost feedback is not counted: only the flow's data is.
                if let (flow, End::Sender) = sender(packet.route) {
                    self.flows[flow].row.lost_packets += 1;
                }
            }
        }
    }

    fn arrive(&mut self, now: Timestamp, packet: InFlight<Packet>) {
        let InFlight { route, waited, payload: packet, .. } = packet;
        let (flow, from) = sender(route);
        let state = &mut self.flows[flow];
        if from == End::Sender {
            state.row.received += packet.size;
            if packet.ecn == Ecn::Ce {
                *state.row.marked_packets.get_or_insert(0) += 1;
            }
            state.waited += waited;
            state.arrived += 1;
        }
        // Packets that arrive after the end of the flow are discarded.
        if now < self.config.flows[flow].stop {
            state.ends.on_packet(now, from.other(), &packet, &mut self.outbox);
            self.after_end(now, flow, from.other());
        }
    }

    fn close_rows(&mut self, now: Timestamp) {
        for place in 0..self.own.len() {
            let index = self.own[place];
            let flow = &self.config.flows[index];
            if now <= flow.start || now > flow.stop {
                continue;
            }
            let state = &mut self.flows[index];
            let there = route(index, End::Sender);
            let before = now - ROW_INTERVAL;
            let capacity = self.router.capacity(before, there);
            // Before anything asks for `now`: what happens then belongs to the next row.
            let carried = self.router.take_carried(before, now, there);
            let (mean_capacity, bits) = match carried {
                Some(Carried { mean_capacity, bits, .. }) => (Some(mean_capacity), Some(bits)),
                None => (None, None),
            };
            let queue = self.router.queued(now, there);
            let sender = state.ends.state();
            let share = match &self.possible {
                Some(possible) if flow.attachment.is_some() => possible.rate(index, before),
                _ => share(self.config, index, before, capacity),
            };
            let end = flow.stop.min(Timestamp::ZERO + self.config.duration);
            let video = state.ends.take_video(now, now + ROW_INTERVAL > end);
            let forwarded = self
                .server
                .as_ref()
                .and_then(|server| state.ends.take_forwarded(share, &mut server.tracks()));
            self.trace.rows.push(Row {
                time: now,
                flow: index,
                target: sender.target,
                pacing_rate: sender.pacing_rate,
                congestion_window: sender.congestion_window,
                send_queue: sender.send_queue,
                rtt: state.row.rtt.map(whole_micros),
                queuing_delay: (state.arrived > 0)
                    .then(|| whole_micros(state.waited / state.arrived)),
                queue,
                video: video.map(|video| Video {
                    frozen: whole_micros(video.frozen),
                    frame_delay: video.frame_delay.map(whole_micros),
                    ..video
                }),
                seen: state.ends.take_seen().map(|seen| Seen {
                    jitter_buffer: seen.jitter_buffer.map(whole_micros),
                    ..seen
                }),
                heard: state.ends.take_heard().map(|heard| Heard {
                    delay: heard.delay.map(whole_micros),
                    target: heard.target.map(whole_micros),
                    ..heard
                }),
                transfer: state.ends.take_transfer(),
                feedback: flow.has_feedback().then_some(state.feedback),
                forwarded,
                ..state.row.with_link(capacity, mean_capacity, bits)
            });
            state.row = Row::default();
            state.feedback = DataSize::ZERO;
            state.waited = TimeDelta::ZERO;
            state.arrived = 0;
        }
        if let Some(access) = self.router.access() {
            access.note(now);
        }
        self.schedule(Due::Rows, Some(now + ROW_INTERVAL));
    }

    /// The part of the trace that was not handed over yet.
    fn trace(&mut self) -> &mut Trace {
        self.router.move_log(&mut self.trace.access);
        &mut self.trace
    }
}

/// Adds the flow's own access links and its two routes: from its sender, then from its receiver.
fn add_routes(router: &mut Router<Packet>, flow: &FlowConfig) {
    let name = format!("{}/access", flow.name);
    // The flow's own access delay is at its sender, on either side.
    let own = router.add_own_links(flow.access_delay, &name, &name);
    let near = Placement::new(flow.hops.start).with_attachment(flow.attachment);
    let far = Placement::new(flow.hops.end);
    let [sender, receiver] = match flow.direction {
        Direction::Up => [near.with_own(own), far],
        Direction::Down => [far.with_own(own), near],
    };
    router.add_route(sender.route_to(&receiver));
    router.add_route(receiver.route_to(&sender));
}

fn ends(config: &Config, index: usize, seed: Seed) -> Box<dyn Ends> {
    let flow = &config.flows[index];
    match &flow.traffic {
        FlowKind::Media(media) => Box::new(MediaEnds::new(flow, media, index, seed)),
        FlowKind::Subscriber(watching) => {
            Box::new(SubscriberEnds::new(flow, watching, &config.publishers, seed))
        }
        FlowKind::Tcp(tcp) => Box::new(TcpEnds::new(flow, tcp, seed)),
        FlowKind::Quic(quic) => Box::new(QuicEnds::new(flow, quic, seed)),
        FlowKind::Udp(udp) => Box::new(UdpEnds::new(flow, udp)),
    }
}

/// The forwarding server, if anybody publishes. Only those publish whom one of these flows watches,
/// or nobody at all.
fn server(config: &Config, own: &[usize], seed: Seed) -> Option<Server> {
    let mut stops = Vec::new();
    let mut is_foreign = vec![false; config.publishers.len()];
    for (index, flow) in config.flows.iter().enumerate() {
        let FlowKind::Subscriber(watching) = &flow.traffic else { continue };
        let is_own = own.contains(&index);
        if is_own {
            stops.push((index, flow.stop));
        }
        for &publisher in &watching.publishers {
            is_foreign[publisher] = !is_own;
        }
    }
    let is_there = !config.publishers.is_empty();
    is_there.then(|| Server::new(&config.publishers, &is_foreign, stops.into_iter(), seed))
}

/// The flows that watch each publisher.
fn audiences(config: &Config) -> Vec<Vec<usize>> {
    let mut audiences = vec![Vec::new(); config.publishers.len()];
    for (index, flow) in config.flows.iter().enumerate() {
        if let FlowKind::Subscriber(watching) = &flow.traffic {
            for &publisher in &watching.publishers {
                audiences[publisher].push(index);
            }
        }
    }
    audiences
}

/// Cuts a time to whole microseconds, as stored in a record. So a run gives the same results before
/// and after it is written.
fn whole_micros(time: TimeDelta) -> TimeDelta {
    TimeDelta::from_micros(time.as_micros())
}

#[cfg(test)]
mod tests;
