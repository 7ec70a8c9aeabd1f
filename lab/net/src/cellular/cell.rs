//! The cell: the step from one TTI to the next, and what both directions have in common.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::net::Ipv4Addr;

use weir::units::{DataSize, Timestamp};

use super::adaptation::Chooser;
use super::block::{Block, BlockRecord, PendingGrant, PendingReport};
use super::carrier::{Carrier, Tti};
use super::config::{Admission, CellularConfig, Harq, Scheduler, Sharing, Timing, UplinkAccess};
use super::directions::Directions;
use super::event::{BearerEvent, BearerEventKind};
use super::rlc::Fates;
use super::scheduler::Rotation;
use super::service::BearerChange;
use super::source::LoadSource;
use super::terminal::Terminal;
use crate::packet::{Delivery, DropCause, Dropped, Header, Outcome};
use crate::path::Direction;
use crate::seed::Seed;

/// TTIs after which a HARQ process is free again whose block the terminal never noticed.
const MISSED_BLOCK_TTIS: Tti = 11;
/// Average length of the proportional fair scheduler in TTIs, as in ns-3.
pub(super) const AVERAGE_TTIS: f64 = 99.0;

/// A cellular cell with the packets in it.
#[derive(Debug)]
pub struct Cell<T> {
    pub(super) carrier: Carrier,
    pub(super) timing: Timing,
    pub(super) harq: Harq,
    pub(super) scheduler: Scheduler,
    pub(super) stops_at_queue_end: bool,
    pub(super) sharing: Sharing,
    pub(super) uplink_access: UplinkAccess,
    pub(super) control_errors: bool,
    pub(super) admission: Admission,
    pub(super) seed: Seed,
    pub(super) choosers: Directions<Chooser>,
    /// Bytes of the largest block.
    pub(super) largest_block: Directions<u32>,
    /// Bytes of a block of one group, by MCS.
    pub(super) group_bytes: Vec<u32>,
    pub(super) terminals: Vec<Terminal<T>>,
    /// Source and destination of real packets, by [`FlowKey::pair`](crate::FlowKey).
    pub(super) addresses: Vec<(Ipv4Addr, Ipv4Addr)>,
    pub(super) sources: Vec<LoadSource>,
    changes: VecDeque<(Timestamp, BearerChange)>,
    /// Blocks on the air, in the order in which they are decoded.
    pub(super) air: Directions<VecDeque<Block>>,
    /// Blocks to be sent again, in the order in which they failed.
    pub(super) again: Directions<VecDeque<Block>>,
    /// When the processes of missed downlink blocks are free again, and their terminals.
    missed: VecDeque<(Tti, usize)>,
    pub(super) rotations: Directions<Rotation>,
    pub(super) grants: VecDeque<PendingGrant>,
    pub(super) reports: VecDeque<PendingReport>,
    pub(super) outcomes: Fates<T>,
    out: VecDeque<Outcome<T>>,
    pub(super) blocks: Option<Vec<BlockRecord>>,
    pub(super) events: Vec<BearerEvent>,
    /// The next TTI in which something may happen; `None` if nothing is pending.
    next_tti: Option<Tti>,
    /// The last TTI that was handled.
    last_tti: Option<Tti>,
    /// The latest time that a caller has passed.
    now: Timestamp,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug)]
enum Step {
    Change,
    Arrival {
        source: usize,
    },
    Tti(Tti),
    /// Terminals read their grants.
    Fill(Tti),
}

impl<T: Debug + Send + 'static> Cell<T> {
    /// An idle cell.
    ///
    /// # Panics
    /// If two terminals have the same name, because they would share their random streams.
    pub fn new(config: &CellularConfig, seed: Seed) -> Self {
        let carrier = config.carrier.clone();
        let mut terminals: Vec<Terminal<T>> = Vec::new();
        let mut sources = Vec::new();
        for (index, terminal) in config.terminals.iter().enumerate() {
            let is_new = terminals.iter().all(|other| other.name != terminal.name);
            assert!(is_new, "two terminals are named {}", terminal.name);
            let mut state = Terminal::new(terminal, &carrier, seed);
            for (number, load) in terminal.loads.iter().enumerate() {
                let source = LoadSource::new(index, &terminal.name, number, load, seed);
                if source.source.is_saturated() {
                    state.saturating.push(sources.len());
                }
                sources.push(source);
            }
            terminals.push(state);
        }
        let choosers = Directions::from_fn(|side| {
            Chooser::new(&carrier, *config.adaptation.of(side), side, config.timing.report)
        });
        let largest_block = Directions::from_fn(|direction| {
            let fastest = carrier.schemes(direction).len() as u8 - 1;
            carrier.block_bytes(direction, *carrier.prbs.of(direction), fastest, carrier.symbols)
        });
        let schemes = 0..carrier.schemes(Direction::Down).len() as u8;
        let group_bytes = schemes.map(|mcs| {
            carrier.block_bytes(Direction::Down, carrier.group_size(), mcs, carrier.symbols)
        });
        let mut cell = Self {
            timing: config.timing,
            harq: config.harq,
            scheduler: config.scheduler,
            stops_at_queue_end: config.stops_at_queue_end,
            sharing: config.sharing,
            uplink_access: config.uplink_access,
            control_errors: config.control_errors,
            admission: config.admission,
            seed,
            choosers,
            largest_block,
            group_bytes: group_bytes.collect(),
            terminals,
            addresses: Vec::new(),
            sources,
            changes: config.changes.iter().cloned().collect(),
            air: Directions::default(),
            again: Directions::default(),
            missed: VecDeque::new(),
            rotations: Directions::default(),
            grants: VecDeque::new(),
            reports: VecDeque::new(),
            outcomes: Fates::new(),
            out: VecDeque::new(),
            blocks: None,
            events: Vec::new(),
            next_tti: None,
            last_tti: None,
            now: Timestamp::ZERO,
            carrier,
        };
        cell.admit_configured();
        cell
    }

    /// Enqueues a packet at a terminal (up) or at the base station for it (down). `bearer` is the
    /// number of a bearer of the terminal; without one, the packet filters decide.
    ///
    /// # Panics
    /// If there is no such terminal.
    pub fn enqueue(
        &mut self,
        now: Timestamp,
        (terminal, direction): (usize, Direction),
        bearer: Option<usize>,
        header: Header,
        payload: T,
    ) {
        // Events at this same time come after the packet.
        self.run_until(now, false);
        self.admit(now, (terminal, direction), bearer, header, Some(payload));
        self.collect();
    }

    /// The earliest time at which [`Cell::poll`] may return something; `None` if nothing is
    /// pending. It may be too early: poll, and ask again.
    pub fn next_event(&self) -> Option<Timestamp> {
        if !self.out.is_empty() {
            return Some(self.now);
        }
        self.find_next().map(|(time, _)| time)
    }

    /// Returns the outcome of the next packet that was dropped or delivered by `now`, in the order
    /// of events. Call it until it returns `None`.
    pub fn poll(&mut self, now: Timestamp) -> Option<Outcome<T>> {
        self.run_until(now, true);
        self.out.pop_front()
    }

    /// The same, but if there is none by `now`, runs on to the first one before `horizon`.
    pub(super) fn poll_ahead(
        &mut self,
        now: Timestamp,
        horizon: Timestamp,
    ) -> Option<(Timestamp, Outcome<T>)> {
        self.run_until(now, true);
        while self.out.is_empty()
            && let Some((time, step)) = self.find_next()
            && time < horizon
        {
            self.step(time, step);
            if !self.out.is_empty() {
                // What else happens at this time comes before its packets leave.
                self.run_until(time, true);
            }
            self.now = time;
        }
        self.out.pop_front().map(|outcome| (self.now, outcome))
    }

    /// Changes the bearers, from now on. Returns what became of it; `None` without such a terminal.
    pub fn change(&mut self, now: Timestamp, change: &BearerChange) -> Option<BearerEventKind> {
        self.run_until(now, false);
        let kind = self.apply(now, change);
        self.collect();
        kind
    }

    /// Bytes that wait in one direction of a bearer.
    pub fn queued(&self, terminal: usize, bearer: usize, direction: Direction) -> DataSize {
        // A bearer that is not there yet has an empty queue.
        let bearer = self.terminals[terminal].bearers.get(bearer);
        bearer.map_or(DataSize::ZERO, |bearer| bearer.channels.of(direction).bytes())
    }

    /// The mean SINR of a terminal at a time, without fading, in decibels.
    pub fn sinr_db(&self, at: Timestamp, terminal: usize, direction: Direction) -> f64 {
        self.terminals[terminal].channels.of(direction).mean_db(at)
    }

    /// Starts to record blocks for [`Cell::take_blocks`].
    pub fn record_blocks(&mut self) {
        self.blocks.get_or_insert_default();
    }

    /// Returns the blocks that were decoded or failed since the last call.
    pub fn take_blocks(&mut self) -> Vec<BlockRecord> {
        self.blocks.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Runs the events that are due before `now`, and also those at `now` if `inclusive`.
    fn run_until(&mut self, now: Timestamp, inclusive: bool) {
        debug_assert!(now >= self.now, "time goes on");
        while let Some((time, step)) = self.find_next() {
            if !(time < now || (inclusive && time == now)) {
                break;
            }
            self.step(time, step);
        }
        self.now = now;
    }

    fn step(&mut self, time: Timestamp, step: Step) {
        match step {
            Step::Change => {
                let (_, change) = self.changes.pop_front().expect("it was the next step");
                self.apply(time, &change);
            }
            Step::Arrival { source } => self.on_arrival(time, source),
            Step::Tti(tti) => self.on_tti(tti, time),
            Step::Fill(tti) => self.fill_grants(tti, time),
        }
        self.collect();
    }

    fn find_next(&self) -> Option<(Timestamp, Step)> {
        let (mut earliest, mut next) = (Timestamp::MAX, None);
        if let Some((time, _)) = self.changes.front() {
            (earliest, next) = (*time, Some(Step::Change));
        }
        for (source, load) in self.sources.iter().enumerate() {
            if load.source.next() < earliest {
                (earliest, next) = (load.source.next(), Some(Step::Arrival { source }));
            }
        }
        if let Some(tti) = self.next_tti
            && self.carrier.start(tti) < earliest
        {
            (earliest, next) = (self.carrier.start(tti), Some(Step::Tti(tti)));
        }
        // A TTI comes before the grants that are read within it, also if this takes no time.
        if let Some((tti, time)) = self.next_fill()
            && time < earliest
        {
            (earliest, next) = (time, Some(Step::Fill(tti)));
        }
        next.map(|step| (earliest, step))
    }

    /// When the next grant is read. Until its TTI has been handled, the TTI comes first.
    fn next_fill(&self) -> Option<(Tti, Timestamp)> {
        let tti = self.grants.front()?.fill;
        let is_begun = self.last_tti.is_some_and(|last| last >= tti);
        is_begun.then(|| {
            let delay = self.carrier.symbols_time(self.timing.control_symbols);
            (tti, self.carrier.start(tti) + delay)
        })
    }

    /// Enqueues a packet, of a load if it has no payload.
    pub(super) fn admit(
        &mut self,
        now: Timestamp,
        (terminal, direction): (usize, Direction),
        bearer: Option<usize>,
        header: Header,
        payload: Option<T>,
    ) {
        let state = &mut self.terminals[terminal];
        let index = state.bearer_of(bearer, direction, header.flow, &self.addresses);
        let bearer = &mut state.bearers[index];
        bearer.totals.of_mut(direction).offered += header.size;
        let before = self.outcomes.dropped.dropped.len();
        bearer.channels.of_mut(direction).enqueue(now, header, payload, &mut self.outcomes);
        bearer.totals.of_mut(direction).dropped_packets +=
            (self.outcomes.dropped.dropped.len() - before) as u64;
        if direction == Direction::Up {
            // The terminal's report of its queue follows with the next TTI.
            state.uplink.claims[index] = bearer.channels.up.claimed();
            state.uplink.is_fresh = true;
            state.uplink.report_at = None;
            state.active_at = now;
        }
        self.wake(now);
    }

    /// Packets of a load arrive.
    pub(super) fn on_arrival(&mut self, now: Timestamp, index: usize) {
        let LoadSource { terminal, bearer, direction, source } = &mut self.sources[index];
        let (terminal, bearer, direction) = (*terminal, *bearer, *direction);
        let packets = source.arrive();
        let header = source.header();
        for _ in 0..packets {
            self.admit(now, (terminal, direction), Some(bearer), header, None);
        }
        if self.sources[index].source.is_saturating(now) {
            self.wake(now);
        }
    }

    /// Refills the queues of a terminal that its saturating loads must keep from emptying. Each
    /// keeps enough for two of the largest blocks.
    pub(super) fn top_up(&mut self, now: Timestamp, terminal: usize, direction: Direction) {
        for index in 0..self.terminals[terminal].saturating.len() {
            let number = self.terminals[terminal].saturating[index];
            let load = &self.sources[number];
            if load.direction != direction || !load.source.is_saturating(now) {
                continue;
            }
            let (bearer, header) = (load.bearer, load.source.header());
            let enough = 2 * u64::from(*self.largest_block.of(direction)) + header.size.as_bytes();
            // A queue that is shorter than that drops packets; it is full then.
            for _ in 0..=enough / header.size.as_bytes().max(1) {
                let queue = self.terminals[terminal].bearers[bearer].channels.of(direction);
                if !queue.holds_less_than(enough) {
                    break;
                }
                self.admit(now, (terminal, direction), Some(bearer), header, None);
            }
        }
    }

    /// Makes sure that the next TTI is handled.
    pub(super) fn wake(&mut self, now: Timestamp) {
        let next = self.carrier.after(now);
        self.next_tti = Some(self.next_tti.map_or(next, |tti| tti.min(next)));
    }

    /// One TTI of both directions.
    fn on_tti(&mut self, tti: Tti, now: Timestamp) {
        self.begin_handovers(now);
        for direction in [Direction::Up, Direction::Down] {
            self.age_averages(tti, direction);
            self.decode(tti, now, direction);
        }
        self.free_missed(tti);
        self.run_timers(now);
        self.schedule_down(tti, now);
        self.schedule_up(tti, now);
        self.last_tti = Some(tti);
        self.next_tti = self.next_pending(tti, now);
    }

    /// Moves the averages over the TTIs in which nothing happened.
    fn age_averages(&mut self, tti: Tti, direction: Direction) {
        let Some(last) = self.last_tti else { return };
        let skipped = tti - last - 1;
        if skipped > 0 {
            let factor = libm::pow(1.0 - 1.0 / AVERAGE_TTIS, skipped as f64);
            for terminal in &mut self.terminals {
                let average = terminal.averages.of_mut(direction);
                *average = (*average * factor).max(f64::MIN_POSITIVE);
            }
        }
    }

    /// Blocks whose transmission is over are decoded, or their retransmission is planned.
    fn decode(&mut self, tti: Tti, now: Timestamp, direction: Direction) {
        while let Some(block) = self.air.of(direction).front()
            && block.decoded <= tti
        {
            let block = self.air.of_mut(direction).pop_front().expect("it is the front");
            let terminal = &mut self.terminals[block.terminal];
            let known = terminal.known.of_mut(direction);
            if block.attempt == 1 && !block.is_missed {
                self.choosers.of(direction).correct(&self.carrier, known, block.is_decoded);
            }
            let is_last = block.attempt >= self.harq.transmissions;
            if !block.is_decoded && !block.is_missed && !is_last {
                self.again.of_mut(direction).push_back(block);
                continue;
            }
            if block.is_missed {
                let free = tti + MISSED_BLOCK_TTIS;
                self.missed.push_back((free, block.terminal));
            } else {
                let processes = terminal.processes.of_mut(direction);
                *processes = processes.saturating_sub(1);
            }
            if block.is_decoded {
                let decoded = DataSize::from_bytes(u64::from(block.bytes));
                terminal.totals.of_mut(direction).decoded += decoded;
            } else {
                terminal.totals.of_mut(direction).abandoned += 1;
            }
            if block.is_decoded {
                self.take_report(&block);
            }
            for part in &block.parts {
                let bearer = &mut self.terminals[block.terminal].bearers[part.bearer];
                let channel = bearer.channels.of_mut(direction);
                if block.is_decoded {
                    channel.receive(now, part.span, &mut self.outcomes);
                } else {
                    channel.lose(now, part.span);
                }
                self.count_fates((block.terminal, part.bearer), direction);
            }
        }
    }

    /// Frees the HARQ processes of downlink blocks that their terminals have missed.
    fn free_missed(&mut self, tti: Tti) {
        while let Some((_, terminal)) = self.missed.front().filter(|(free, _)| *free <= tti) {
            let processes = &mut self.terminals[*terminal].processes.down;
            *processes = processes.saturating_sub(1);
            self.missed.pop_front();
        }
    }

    /// Counts what was delivered and lost for a bearer, before the outcomes leave.
    fn count_fates(&mut self, (terminal, bearer): (usize, usize), direction: Direction) {
        if self.outcomes.delivered.is_empty() && self.outcomes.dropped.dropped.is_empty() {
            return;
        }
        let totals = self.terminals[terminal].bearers[bearer].totals.of_mut(direction);
        for delivery in &self.outcomes.delivered {
            totals.delivered += delivery.size;
            totals.delivered_packets += 1;
        }
        let lost = self.outcomes.dropped.dropped.iter();
        totals.lost_packets += lost.filter(|it| it.cause == DropCause::RetryLimit).count() as u64;
        self.collect();
    }

    /// Passes on the outcomes of packets; those of loads end here.
    pub(super) fn collect(&mut self) {
        if self.outcomes.delivered.is_empty() && self.outcomes.dropped.dropped.is_empty() {
            return;
        }
        for Delivery { due, queuing_delay, size, ecn, payload } in self.outcomes.delivered.drain(..)
        {
            if let Some(payload) = payload {
                let delivery = Delivery { due, queuing_delay, size, ecn, payload };
                self.out.push_back(Outcome::Delivered(delivery));
            }
        }
        for Dropped { at, cause, size, payload } in self.outcomes.dropped.dropped.drain(..) {
            if let Some(payload) = payload {
                self.out.push_back(Outcome::Dropped(Dropped { at, cause, size, payload }));
            }
        }
    }

    /// The timers of RLC.
    fn run_timers(&mut self, now: Timestamp) {
        let tti = self.carrier.tti();
        // A status goes with the next block of the other direction.
        let delays = Directions {
            up: tti * i64::from(self.timing.down_prepare + self.timing.decode.down),
            down: tti * i64::from(self.timing.report + self.timing.up_prepare),
        };
        for index in 0..self.terminals.len() {
            for bearer in 0..self.terminals[index].bearers.len() {
                for direction in [Direction::Up, Direction::Down] {
                    let state = &mut self.terminals[index].bearers[bearer];
                    let channel = state.channels.of_mut(direction);
                    if channel.next_timer() > now {
                        continue;
                    }
                    let before = channel.backlog();
                    channel.on_time(now, *delays.of(direction), &mut self.outcomes);
                    let repeated = channel.backlog().saturating_sub(before);
                    state.totals.of_mut(direction).repeated += DataSize::from_bytes(repeated);
                    if direction == Direction::Up && repeated > 0 {
                        let claim = state.channels.up.claimed();
                        self.terminals[index].uplink.claims[bearer] = claim;
                        self.terminals[index].uplink.is_fresh = true;
                    }
                    self.count_fates((index, bearer), direction);
                }
            }
        }
    }

    /// Interrupts the terminals whose handover begins.
    fn begin_handovers(&mut self, now: Timestamp) {
        for index in 0..self.terminals.len() {
            while self.terminals[index].next_handover() <= now {
                let terminal = &mut self.terminals[index];
                terminal.handovers_begun += 1;
                terminal.processes = Directions::default();
                terminal.uplink.believed = 0;
                terminal.uplink.granted.clear();
                terminal.uplink.has_requested = false;
                terminal.uplink.is_fresh = true;
                for bearer in &mut terminal.bearers {
                    bearer.channels.up.interrupt(now, &mut self.outcomes);
                    bearer.channels.down.interrupt(now, &mut self.outcomes);
                }
                for direction in [Direction::Up, Direction::Down] {
                    self.air.of_mut(direction).retain(|block| block.terminal != index);
                    self.again.of_mut(direction).retain(|block| block.terminal != index);
                }
                self.missed.retain(|(_, terminal)| *terminal != index);
                self.grants.retain(|grant| grant.terminal != index);
                self.reports.retain(|report| report.terminal != index);
            }
        }
    }

    /// The TTI after this one in which something may happen.
    fn next_pending(&self, tti: Tti, now: Timestamp) -> Option<Tti> {
        if self.is_busy(now) {
            return Some(tti + 1);
        }
        let channels = self.terminals.iter().flat_map(|terminal| &terminal.bearers);
        let timer = channels
            .flat_map(|bearer| [&bearer.channels.up, &bearer.channels.down])
            .map(super::rlc::Channel::next_timer)
            .min()
            .unwrap_or(Timestamp::MAX);
        (timer < Timestamp::MAX).then(|| self.carrier.after(timer.max(now)).max(tti + 1))
    }

    /// Whether something happens in the next TTI.
    fn is_busy(&self, now: Timestamp) -> bool {
        // What is on the air is the usual reason, so it is asked first.
        !self.air.up.is_empty()
            || !self.air.down.is_empty()
            || !self.grants.is_empty()
            || !self.again.up.is_empty()
            || !self.again.down.is_empty()
            || !self.missed.is_empty()
            || !self.reports.is_empty()
            || self.sources.iter().any(|load| load.source.is_saturating(now))
            || self.terminals.iter().any(Terminal::has_work)
    }

    /// Time of the carrier's TTI, as a number of seconds for rates.
    pub(super) fn tti_seconds(&self) -> f64 {
        self.carrier.tti().as_secs_f64()
    }
}
