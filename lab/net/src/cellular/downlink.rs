//! The downlink: what the base station sends in a TTI.

use std::fmt::Debug;

use weir::units::Timestamp;

use super::block::{Block, Grant, Part};
use super::carrier::Tti;
use super::cell::{AVERAGE_TTIS, Cell};
use super::config::{Scheduler, Sharing};
use super::rlc::PART_MIN;
use super::scheduler::{Candidate, groups, share_groups};
use crate::path::Direction;

/// Bytes of headers that a scheduler expects on top of what waits.
const HEADERS: u64 = 8;

impl<T: Debug + Send + 'static> Cell<T> {
    /// Decides on the downlink blocks of the TTI that is prepared now.
    pub(super) fn schedule_down(&mut self, tti: Tti, now: Timestamp) {
        let at = tti + Tti::from(self.timing.down_prepare);
        let symbols = self.carrier.symbols_in(at, Direction::Down);
        if symbols == 0 {
            return;
        }
        let all = (1_u64 << self.carrier.groups()) - 1;
        let (free, busy) = self.repeat_down(tti, at, all);
        if free == 0 {
            // As in ns-3: without a new block the averages stay.
            return;
        }
        let mut candidates = self.candidates_down(tti, now, &busy);
        share_groups(self.scheduler, &mut self.rotations.down, free, &mut candidates);
        let weight = 1.0 / AVERAGE_TTIS;
        for terminal in &mut self.terminals {
            terminal.averages.down =
                (terminal.averages.down * (1.0 - weight)).max(f64::MIN_POSITIVE);
        }
        for candidate in candidates.iter().filter(|candidate| candidate.groups != 0) {
            let index = candidate.terminal;
            let grant = Grant::Groups(candidate.groups);
            let known = &mut self.terminals[index].known.down;
            let mcs = match self.scheduler {
                // It does not look at single groups.
                Scheduler::RoundRobin => self.choosers.down.wide(&self.carrier, known),
                _ => self.choosers.down.for_grant(&self.carrier, known, grant),
            };
            let Some(mcs) = mcs else { continue };
            let bytes =
                self.carrier.block_bytes(Direction::Down, grant.prbs(&self.carrier), mcs, symbols);
            let rate = f64::from(bytes) / self.tti_seconds();
            self.terminals[index].averages.down += weight * rate;
            let mut block = Block::new(index, grant, (mcs, bytes), tti);
            self.top_up(now, index, Direction::Down);
            self.fill_block(now, &mut block, Direction::Down);
            self.terminals[index].processes.down += 1;
            block.is_missed = self.misses_control(index, at);
            self.send(block, Direction::Down, at);
        }
    }

    /// Sends failed blocks again: on their own groups if these are free, otherwise on others.
    /// Returns the groups that are left, and the terminals that have a block now.
    fn repeat_down(&mut self, tti: Tti, at: Tti, all: u64) -> (u64, Vec<usize>) {
        let (mut free, mut busy) = (all, Vec::new());
        let round = Tti::from(self.harq.round.down);
        let mut index = 0;
        while let Some(block) = self.again.down.get(index) {
            let Grant::Groups(own) = block.grant else { unreachable!("a downlink block") };
            let is_due = block.decided + round <= tti && !busy.contains(&block.terminal);
            let count = own.count_ones();
            let place = if own & free == own {
                Some(own)
            } else {
                if free.count_ones() >= count { Some(cyclic(free, own, count)) } else { None }
            };
            let Some(place) = place.filter(|_| is_due && !self.is_unreachable(block.terminal, at))
            else {
                index += 1;
                continue;
            };
            let mut block = self.again.down.remove(index).expect("the index is valid");
            block.grant = Grant::Groups(place);
            block.decided = tti;
            block.attempt += 1;
            free &= !place;
            busy.push(block.terminal);
            self.send(block, Direction::Down, at);
        }
        (free, busy)
    }

    fn is_unreachable(&self, terminal: usize, at: Tti) -> bool {
        let start = self.carrier.start(at);
        let terminal = &self.terminals[terminal];
        terminal.is_away(start) || !terminal.is_listening(start)
    }

    fn candidates_down(&mut self, tti: Tti, now: Timestamp, busy: &[usize]) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let at = tti + Tti::from(self.timing.down_prepare);
        for index in 0..self.terminals.len() {
            self.top_up(now, index, Direction::Down);
            let has_process = self.terminals[index].processes.down < self.harq.processes;
            let need = self.terminals[index].sendable(now, Direction::Down);
            if need == 0 || !has_process || busy.contains(&index) || self.is_unreachable(index, at)
            {
                continue;
            }
            self.learn(tti, index, Direction::Down);
            let terminal = &mut self.terminals[index];
            let owed = terminal.owed(now, Direction::Down);
            let known = &mut terminal.known.down;
            let count = if known.is_flat() { 1 } else { self.carrier.groups() };
            let group_bytes = &self.group_bytes;
            let rates = match self.scheduler {
                Scheduler::RoundRobin => {
                    let wide = self.choosers.down.wide(&self.carrier, known);
                    vec![bytes_with(wide, group_bytes)]
                }
                _ => (0..count).map(|group| bytes_with(known.of(group), group_bytes)).collect(),
            };
            candidates.push(Candidate {
                terminal: index,
                need: if self.stops_at_queue_end { need + HEADERS } else { u64::MAX },
                owed,
                urgency: terminal.urgency(now, Direction::Down),
                average: terminal.averages.down,
                rates,
                groups: 0,
            });
        }
        candidates
    }

    /// Takes the report of a terminal's signal that the scheduler knows in a TTI.
    pub(super) fn learn(&mut self, tti: Tti, terminal: usize, direction: Direction) {
        let chooser = self.choosers.of(direction);
        let measured = chooser.report_time(tti, terminal as Tti);
        let start = self.carrier.start(measured);
        let state = &mut self.terminals[terminal];
        let sinr = state.channels.of_mut(direction).at(start);
        chooser.learn(&self.carrier, measured, sinr, state.known.of_mut(direction));
    }

    /// Fills a block with what the bearers of its terminal have.
    pub(super) fn fill_block(&mut self, now: Timestamp, block: &mut Block, direction: Direction) {
        let room = u64::from(block.bytes);
        match self.sharing {
            Sharing::Equal => self.fill_equally(now, block, direction, room),
            Sharing::Priority => self.fill_by_priority(now, block, direction, room),
        }
    }

    fn fill_equally(&mut self, now: Timestamp, block: &mut Block, direction: Direction, room: u64) {
        let terminal = &mut self.terminals[block.terminal];
        let mut active: Vec<usize> = (0..terminal.bearers.len()).collect();
        active.retain(|index| terminal.has_data(*index, direction));
        let share = room / active.len().max(1) as u64;
        for index in active {
            if share >= PART_MIN {
                self.fill_part(now, block, (index, direction), share);
            }
        }
    }

    /// Guarantees first, then the rest, each by priority.
    fn fill_by_priority(
        &mut self,
        now: Timestamp,
        block: &mut Block,
        direction: Direction,
        mut room: u64,
    ) {
        let terminal = &mut self.terminals[block.terminal];
        let mut order: Vec<usize> = (0..terminal.bearers.len()).collect();
        order.sort_by(|a, b| {
            let [a, b] = [a, b].map(|index| terminal.bearers[*index].config.qci.priority);
            a.total_cmp(&b)
        });
        for is_guarantee in [true, false] {
            for &index in &order {
                let terminal = &mut self.terminals[block.terminal];
                let limit = terminal.ambr.of_mut(direction).left(now);
                let bearer = &mut terminal.bearers[index];
                if !bearer.is_active {
                    continue;
                }
                let has_guarantee = bearer.config.guarantee.is_some();
                let wanted = match (is_guarantee, has_guarantee) {
                    (true, true) => bearer.owed(now, direction),
                    (true, false) => 0,
                    (false, true) => bearer.sendable(now, direction),
                    (false, false) => {
                        bearer.sendable(now, direction).min(limit.unwrap_or(u64::MAX))
                    }
                };
                // A guarantee may need part of a packet only; its packet goes whole if there is
                // room.
                let part = room.min(wanted.saturating_add(2 * HEADERS));
                if wanted == 0 || part < PART_MIN {
                    continue;
                }
                let taken = self.fill_part(now, block, (index, direction), part);
                room -= taken;
                if !has_guarantee {
                    self.terminals[block.terminal].ambr.of_mut(direction).spend(now, taken);
                }
            }
        }
    }

    /// Fills a part of a block from one bearer. Returns the bytes that it takes.
    fn fill_part(
        &mut self,
        now: Timestamp,
        block: &mut Block,
        (index, direction): (usize, Direction),
        room: u64,
    ) -> u64 {
        let bearer = &mut self.terminals[block.terminal].bearers[index];
        let dropped = self.outcomes.dropped.dropped.len();
        let (span, taken) = bearer.channels.of_mut(direction).fill(now, room, &mut self.outcomes);
        let dropped = self.outcomes.dropped.dropped.len() - dropped;
        bearer.totals.of_mut(direction).dropped_packets += dropped as u64;
        if span.is_empty() {
            return 0;
        }
        bearer.spend(now, direction, span.to - span.from);
        block.parts.push(Part { bearer: index, span });
        taken
    }
}

/// As many free groups as `own` has, from the one behind its last one on, around the carrier.
fn cyclic(free: u64, own: u64, count: u32) -> u64 {
    let last = u64::BITS - 1 - own.leading_zeros();
    let behind = if last + 1 < u64::BITS { !0 << (last + 1) } else { 0 };
    let order = groups(free & behind).chain(groups(free & !behind));
    order.take(count as usize).fold(0, |mask, group| mask | 1 << group)
}

fn bytes_with(mcs: Option<u8>, group_bytes: &[u32]) -> u32 {
    mcs.map_or(0, |mcs| group_bytes[usize::from(mcs)])
}
