//! The cell: finds the next event and applies it to the node concerned.

use std::collections::VecDeque;
use std::fmt::Debug;

use weir::units::{DataSize, Timestamp};

use super::config::{AccessCategory, CellConfig, Link, Neighbour, NodeConfig, NodeId, Station};
use super::contention::Contention;
use super::link::LinkState;
use super::load::LoadSource;
use super::medium::Medium;
use super::node::{Action, Category, Node};
use super::phy::Band;
use super::record::{AirtimeRecord, Ledger, NodeCounters};
use super::retry::Congestion;
use super::send_queue::SendQueue;
use crate::packet::{Header, Outcome};
use crate::seed::Seed;

/// A Wi-Fi cell with the packets in it.
#[derive(Debug)]
pub struct Cell<T> {
    pub(super) band: Band,
    pub(super) medium: Medium,
    pub(super) nodes: Vec<Node<T>>,
    pub(super) sources: Vec<LoadSource>,
    /// When each node will send if the channel stays as it is; `MAX` for never.
    pub(super) accesses: Vec<Timestamp>,
    /// When each node's planned action after a frame is due; `MAX` for never.
    pub(super) actions: Vec<Timestamp>,
    /// Which nodes have something to contend for. Most have not, and others ask at each frame.
    pub(super) contenders: Vec<Contender>,
    /// Whether the answer to a frame begins before anybody who hears it may send.
    pub(super) answers_first: bool,
    pub(super) outcomes: VecDeque<Outcome<T>>,
    pub(super) airtime: Option<Vec<AirtimeRecord>>,
    /// The latest time that a caller has passed.
    now: Timestamp,
    /// Cached result of [`Cell::find_next`]; `None` if something has happened since.
    next: Option<NextStep>,
    /// Buffer for the nodes whose channel state has changed, kept for reuse.
    pub(super) changed: Vec<usize>,
}

/// What a node takes part in the contention with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contender {
    /// It has packets.
    pub(super) has_packets: bool,
    /// It has packets or a backoff.
    pub(super) is_counting: bool,
}

/// The next step and its time; `None` if no step is pending.
type NextStep = Option<(Timestamp, Step)>;

/// Kinds of events.
#[derive(Clone, Copy, Debug)]
enum Step {
    FrameEnds { from: usize },
    Action { node: usize },
    Arrival { source: usize },
    Access { node: usize },
}

impl<T: Debug + Send + 'static> Cell<T> {
    /// An idle cell.
    ///
    /// # Panics
    /// If two nodes have the same name, because they would share their random streams.
    pub fn new(config: &CellConfig, seed: Seed) -> Self {
        let builder = Builder { config, seed };
        let mut nodes: Vec<Node<T>> = Vec::new();
        let mut sources = Vec::new();
        let mut answers_first = true;
        for (index, (node, links)) in builder.nodes().into_iter().enumerate() {
            for parameters in node.edca.0 {
                answers_first &= parameters.aifsn > 0;
            }
            assert!(
                nodes.iter().all(|other| other.name != node.name),
                "two nodes of the cell are named {}",
                node.name
            );
            builder.sources(index, &links, &mut sources);
            nodes.push(builder.node(node, &links));
        }
        for (source, LoadSource { node, packets, .. }) in sources.iter().enumerate() {
            if packets.is_saturated() {
                nodes[*node].saturating.push(source);
            }
        }
        let count = nodes.len();
        let eifs_excess = config.band.eifs(0) - config.band.aifs(0);
        Self {
            band: config.band,
            medium: Medium::new(config.powers.matrix(count, seed), eifs_excess),
            nodes,
            sources,
            accesses: vec![Timestamp::MAX; count],
            actions: vec![Timestamp::MAX; count],
            contenders: vec![Contender::default(); count],
            answers_first,
            outcomes: VecDeque::new(),
            airtime: None,
            now: Timestamp::ZERO,
            next: None,
            changed: Vec::with_capacity(count),
        }
    }

    /// Starts to record frames for [`Cell::take_airtime`].
    pub fn record_airtime(&mut self) {
        self.airtime.get_or_insert_default();
    }

    /// Returns the frames that have ended since the last call, in the order of their ends.
    pub fn take_airtime(&mut self) -> Vec<AirtimeRecord> {
        self.airtime.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Enqueues a packet at one node for another. One of them must be the access point, the other
    /// one of its stations.
    ///
    /// # Panics
    /// If the nodes are not such a pair.
    pub fn enqueue(
        &mut self,
        now: Timestamp,
        (from, to): (NodeId, NodeId),
        category: AccessCategory,
        header: Header,
        payload: T,
    ) {
        // Other events at this same time come after the packet: two nodes that get a packet at the
        // same time do not know of each other yet.
        self.run_until(now, false);
        let receiver = self.receiver(from, to);
        self.admit(now, (from.0, receiver), category, (header, Some(payload)));
        // The caller asks for the next event after each packet.
        if self.next.is_none() {
            self.next = Some(self.find_next());
        }
    }

    /// Whether a node would accept a packet of this size without a drop.
    pub fn has_room(
        &self,
        (from, to): (NodeId, NodeId),
        category: AccessCategory,
        size: DataSize,
    ) -> bool {
        let receiver = self.receiver(from, to);
        self.nodes[from.0].categories[category.index()].queue.has_room(receiver, size)
    }

    /// The earliest time at which [`Cell::poll`] may return something; `None` if nothing is
    /// pending. It may be too early: poll, and ask again.
    pub fn next_event(&self) -> Option<Timestamp> {
        if !self.outcomes.is_empty() {
            return Some(self.now);
        }
        self.next.unwrap_or_else(|| self.find_next()).map(|(time, _)| time)
    }

    /// Returns the outcome of the next packet that was dropped or delivered by `now`, in the order
    /// of events. Call it until it returns `None`.
    pub fn poll(&mut self, now: Timestamp) -> Option<Outcome<T>> {
        self.run_until(now, true);
        self.outcomes.pop_front()
    }

    /// The same, but if there is none by `now`, runs on to the first one before `horizon`.
    pub(super) fn poll_ahead(
        &mut self,
        now: Timestamp,
        horizon: Timestamp,
    ) -> Option<(Timestamp, Outcome<T>)> {
        self.run_until(now, true);
        while self.outcomes.is_empty()
            && let Some(Some((next, _))) = self.next
            && next < horizon
        {
            self.run_until(next, true);
        }
        self.outcomes.pop_front().map(|outcome| (self.now, outcome))
    }

    /// Bytes queued at a node in all categories, including MPDUs in transmission.
    pub fn queued(&self, node: NodeId) -> DataSize {
        self.nodes[node.0].categories.iter().map(|category| category.queue.bytes()).sum()
    }

    /// Totals of a node as a sender, since the start.
    pub fn counters(&self, node: NodeId) -> NodeCounters {
        self.nodes[node.0].counters
    }

    /// The congestion that a node has measured with the packets of a category.
    pub fn congestion(
        &mut self,
        now: Timestamp,
        node: NodeId,
        category: AccessCategory,
    ) -> Congestion {
        self.nodes[node.0].categories[category.index()].queue.congestion(now)
    }

    /// Number of nodes, including the access point and the neighbours.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The index of `to` among the receivers of `from`.
    fn receiver(&self, from: NodeId, to: NodeId) -> usize {
        let link = self.nodes[from.0].links.get(link_to(from.0, to.0));
        assert!(
            link.is_some_and(|link| link.to == Some(to.0)),
            "packets go from a station to its access point or back, not from {from:?} to {to:?}"
        );
        link_to(from.0, to.0)
    }

    /// Runs the events that are due before `now`, and also those at `now` if `inclusive`.
    fn run_until(&mut self, now: Timestamp, inclusive: bool) {
        debug_assert!(now >= self.now, "time goes on");
        loop {
            let next = self.next.take().unwrap_or_else(|| self.find_next());
            let Some((time, step)) =
                next.filter(|(time, _)| *time < now || (inclusive && *time == now))
            else {
                self.next = Some(next);
                break;
            };
            match step {
                Step::FrameEnds { from } => self.on_frame_end(time, from),
                Step::Action { node } => self.on_action(time, node),
                Step::Arrival { source } => self.on_arrival(time, source),
                Step::Access { node } => self.on_access(time, node),
            }
        }
        self.now = now;
    }

    /// Finds the earliest event. Among events at the same time, frame ends come first and channel
    /// accesses last. So several nodes can begin to send at the same time and collide.
    fn find_next(&self) -> NextStep {
        let (mut earliest, mut next) = (Timestamp::MAX, None);
        if let Some((time, from)) = self.medium.next_end() {
            (earliest, next) = (time, Some(Step::FrameEnds { from }));
        }
        if let Some((time, node)) = first_before(earliest, self.actions.iter().copied()) {
            (earliest, next) = (time, Some(Step::Action { node }));
        }
        if let Some((time, source)) =
            first_before(earliest, self.sources.iter().map(|it| it.packets.next()))
        {
            (earliest, next) = (time, Some(Step::Arrival { source }));
        }
        if let Some((time, node)) = first_before(earliest, self.accesses.iter().copied()) {
            (earliest, next) = (time, Some(Step::Access { node }));
        }
        next.map(|step| (earliest, step))
    }

    /// Packets of a load arrive.
    fn on_arrival(&mut self, now: Timestamp, source: usize) {
        let source = &mut self.sources[source];
        let packets = source.packets.arrive();
        let (flow, category) = ((source.node, source.receiver), source.category);
        let header = source.packets.header();
        for _ in 0..packets {
            self.admit(now, flow, category, (header, None));
        }
        self.top_up(now, flow.0);
    }

    /// Refills the queues of a node that its saturating loads must keep from emptying.
    pub(super) fn top_up(&mut self, now: Timestamp, node: usize) {
        for index in 0..self.nodes[node].saturating.len() {
            let source = &self.sources[self.nodes[node].saturating[index]];
            if !source.packets.is_saturating(now) {
                continue;
            }
            let (receiver, category, header) =
                (source.receiver, source.category, source.packets.header());
            // Enough for one full frame, and for the next one.
            let enough = 2 * self.nodes[node].aggregation.mpdus.max(1);
            loop {
                let queue = &self.nodes[node].categories[category.index()].queue;
                if queue.packets_for(receiver) >= enough || !queue.has_room(receiver, header.size) {
                    break;
                }
                self.admit(now, (node, receiver), category, (header, None));
            }
        }
    }

    /// Enqueues a packet at a node for one of its receivers, and updates the contention.
    fn admit(
        &mut self,
        now: Timestamp,
        (node, receiver): (usize, usize),
        category: AccessCategory,
        packet: (Header, Option<T>),
    ) {
        let idle_from = self.idle_from(node);
        let Node { categories, counters, chance, .. } = &mut self.nodes[node];
        let Category { contention, queue } = &mut categories[category.index()];
        let had_packets = queue.has_packets();
        let mut ledger = Ledger { outcomes: &mut self.outcomes, counters };
        queue.enqueue(now, receiver, packet, &mut ledger);
        if !had_packets && queue.has_packets() {
            contention.on_packet(now, idle_from, chance);
        }
        self.note_contender(node);
        let queue = &self.nodes[node].categories[category.index()].queue;
        if had_packets != queue.has_packets() {
            self.refresh_access(node);
            self.next = None;
        }
    }

    /// The time from which AIFS is counted at a node; `None` if its channel is busy or it is in an
    /// exchange.
    pub(super) fn idle_from(&self, node: usize) -> Option<Timestamp> {
        let is_idle = self.medium.is_idle(node) && !self.nodes[node].is_engaged();
        if is_idle { Some(self.medium.idle_from(node)) } else { None }
    }

    /// Notes what a node takes part in the contention with, after a change.
    pub(super) fn note_contender(&mut self, node: usize) {
        let mut noted = Contender::default();
        for Category { contention, queue } in &self.nodes[node].categories {
            noted.has_packets |= queue.has_packets();
            noted.is_counting |= queue.has_packets() || contention.has_backoff();
        }
        self.contenders[node] = noted;
    }

    /// Computes again when a node will send. A node that has not noticed yet that the channel is
    /// busy keeps its planned time.
    pub(super) fn refresh_access(&mut self, node: usize) {
        if !self.contenders[node].has_packets && self.accesses[node] == Timestamp::MAX {
            return;
        }
        let Some(idle_from) = self.idle_from(node) else { return };
        let waiting = self.nodes[node].categories.iter().filter(|it| it.queue.has_packets());
        let access = waiting.map(|category| category.contention.access(idle_from)).min();
        self.accesses[node] = access.unwrap_or(Timestamp::MAX);
    }
}

/// The earliest of these times and the index of its first occurrence, if it is earlier than
/// `before`.
#[inline]
fn first_before(
    before: Timestamp,
    times: impl Iterator<Item = Timestamp>,
) -> Option<(Timestamp, usize)> {
    let (mut earliest, mut at) = (before, usize::MAX);
    for (index, time) in times.enumerate() {
        if time < earliest {
            (earliest, at) = (time, index);
        }
    }
    (at != usize::MAX).then_some((earliest, at))
}

/// Index of the link from one node to another. Stations have only one link.
pub(super) fn link_to(from: usize, to: usize) -> usize {
    if from == NodeId::ACCESS_POINT.0 { to.wrapping_sub(1) } else { 0 }
}

/// Builds the parts of a cell from its configuration.
struct Builder<'a> {
    config: &'a CellConfig,
    seed: Seed,
}

/// A link of a node, with the names of its random streams.
struct NamedLink<'a> {
    to: Option<usize>,
    link: &'a Link,
    name: String,
    /// Name shared by both directions.
    path: String,
}

impl<'a> NamedLink<'a> {
    fn new(to: Option<usize>, link: &'a Link, station: &NodeConfig, direction: &str) -> Self {
        let path = format!("wifi/{}", station.name);
        Self { to, link, name: format!("{path}/{direction}"), path }
    }
}

impl<'a> Builder<'a> {
    /// The nodes in the order of their numbers, each with its links.
    fn nodes(&self) -> Vec<(&'a NodeConfig, Vec<NamedLink<'a>>)> {
        let CellConfig { access_point, stations, neighbours, .. } = self.config;
        let down = stations.iter().enumerate().map(|(index, Station { node, down, .. })| {
            NamedLink::new(Some(NodeId::station(index).0), down, node, "down")
        });
        let mut nodes = vec![(access_point, down.collect())];
        nodes.extend(stations.iter().map(|Station { node, up, .. }| {
            (node, vec![NamedLink::new(Some(NodeId::ACCESS_POINT.0), up, node, "up")])
        }));
        nodes.extend(
            neighbours.iter().map(|Neighbour { node, link }| {
                (node, vec![NamedLink::new(None, link, node, "up")])
            }),
        );
        nodes
    }

    fn sources(&self, node: usize, links: &[NamedLink<'_>], sources: &mut Vec<LoadSource>) {
        for (receiver, NamedLink { link, name, .. }) in links.iter().enumerate() {
            for (number, &load) in link.loads.iter().enumerate() {
                let chance = self.seed.stream(&format!("{name}/load/{number}"));
                sources.push(LoadSource::new((node, receiver), load, chance));
            }
        }
    }

    fn node<T: Debug + Send + 'static>(
        &self,
        config: &NodeConfig,
        links: &[NamedLink<'_>],
    ) -> Node<T> {
        let NodeConfig { name, edca, aggregation, queue, retry } = config;
        let band = &self.config.band;
        let categories = AccessCategory::EACH.map(|category| {
            let parameters = edca.of(category);
            let aifs = band.aifs(parameters.aifsn);
            let queue = SendQueue::new(*queue, *retry, links.len(), |receiver| {
                let category = category.index();
                self.seed.stream(&format!("wifi/{name}/queue/{category}/{receiver}"))
            });
            Category { contention: Contention::new(parameters, aifs, band.slot), queue }
        });
        let links =
            links.iter().map(|it| LinkState::new(it.to, it.link, self.seed, (&it.name, &it.path)));
        Node {
            name: name.clone(),
            aggregation: *aggregation,
            txops: edca.0.map(|parameters| parameters.txop),
            categories,
            links: links.collect(),
            saturating: Vec::new(),
            exchange: None,
            action: Action::None,
            counters: NodeCounters::default(),
            chance: self.seed.stream(&format!("wifi/{name}/backoff")),
        }
    }
}
