//! The uplink: how the base station learns what waits, and who may send.

use std::collections::VecDeque;
use std::fmt::Debug;

use weir::units::{TimeDelta, Timestamp};

use super::bearer::Bearer;
use super::block::{Block, Grant, Part, PendingGrant, PendingReport};
use super::carrier::Tti;
use super::cell::{AVERAGE_TTIS, Cell};
use super::config::{SchedulingRequest, UplinkAccess};
use super::rlc::PART_MIN;
use super::scheduler::{Candidate, order_rows};
use crate::path::Direction;

/// Bytes of headers in a block that a buffer report does not count.
const HEADERS: u64 = 2;
/// Bytes that a grant needs on top of the reported bytes: headers and the next report.
const MARGIN: u64 = 12;
/// Least resource blocks of an equal share.
const SHARE_MIN: u16 = 3;
/// After this time without a new report a terminal with data reports again.
const REPORT_INTERVAL: TimeDelta = TimeDelta::from_millis(10);

/// Levels of a buffer report in bytes (3GPP TS 36.321 Table 6.1.3.1-1).
const REPORT_LEVELS: [u64; 63] = [
    0, 10, 12, 14, 17, 19, 22, 26, 31, 36, 42, 49, 57, 67, 78, 91, 107, 125, 146, 171, 200, 234,
    274, 321, 376, 440, 515, 603, 706, 826, 967, 1_132, 1_326, 1_552, 1_817, 2_127, 2_490, 2_915,
    3_413, 3_995, 4_677, 5_476, 6_411, 7_505, 8_787, 10_287, 12_043, 14_099, 16_507, 19_325,
    22_624, 26_487, 31_009, 36_304, 42_502, 49_759, 58_255, 68_201, 79_846, 93_479, 109_439,
    128_125, 150_000,
];

/// TTIs after which no report can arrive any more that was made before a grant was read: more than
/// all transmissions of a block take.
const REPORT_AGE: Tti = 256;

/// The level that a buffer report gives for a number of bytes.
fn level(bytes: u64) -> u64 {
    let index = REPORT_LEVELS.partition_point(|level| *level < bytes);
    REPORT_LEVELS.get(index).copied().unwrap_or(REPORT_LEVELS[REPORT_LEVELS.len() - 1])
}

/// The sum of the levels of a terminal's two groups of bearers: those with a guarantee, and the
/// others.
fn by_group<T>(bearers: &[Bearer<T>], bytes: impl Fn(usize) -> u64) -> u64 {
    let mut groups = [0, 0];
    for (index, bearer) in bearers.iter().enumerate() {
        groups[usize::from(bearer.config.guarantee.is_some())] += bytes(index);
    }
    groups.into_iter().map(level).sum()
}

impl<T: Debug + Send + 'static> Cell<T> {
    /// Terminals read the grants that reach them in this TTI, and fill their blocks. They have sent
    /// their reports of the TTI before.
    pub(super) fn fill_grants(&mut self, tti: Tti, now: Timestamp) {
        while let Some(grant) = self.grants.front().copied().filter(|grant| grant.fill <= tti) {
            self.grants.pop_front();
            let index = grant.terminal;
            if self.misses_control(index, tti) {
                // Nothing tells the base station; the terminal asks again.
                let granted = &mut self.terminals[index].uplink.granted;
                if let Some(missed) = granted.iter().position(|(fill, _)| *fill == grant.fill) {
                    granted.remove(missed);
                }
                continue;
            }
            self.top_up(now, index, Direction::Up);
            let mut block = Block::new(index, grant.grant, (grant.mcs, grant.bytes), grant.decided);
            if self.uplink_access == UplinkAccess::Ideal {
                self.fill_by_claims(now, tti, &mut block);
                if block.parts.is_empty() {
                    continue;
                }
            } else {
                self.fill_block(now, &mut block, Direction::Up);
                block.report = Some((tti, self.waiting(index)));
            }
            self.terminals[index].processes.up += 1;
            self.send(block, Direction::Up, grant.decided + Tti::from(self.timing.up_prepare));
        }
    }

    /// Bytes that a terminal reports to wait.
    fn waiting(&self, terminal: usize) -> u64 {
        let bearers = &self.terminals[terminal].bearers;
        by_group(bearers, |index| bearers[index].channels.up.reported())
    }

    /// As in ns-3: the terminal shares a block among the bearers that have something by its own
    /// count, which the block reduces, and not by what their queues hold.
    fn fill_by_claims(&mut self, now: Timestamp, tti: Tti, block: &mut Block) {
        let interval = self.carrier.ttis(REPORT_INTERVAL);
        let terminal = &mut self.terminals[block.terminal];
        let active = terminal.uplink.claims.iter().filter(|claim| **claim > 0).count();
        let share = u64::from(block.bytes) / active.max(1) as u64;
        for index in 0..terminal.bearers.len() {
            if terminal.uplink.claims[index] == 0 {
                continue;
            }
            if share < PART_MIN {
                terminal.uplink.is_fresh = true;
                continue;
            }
            let bearer = &mut terminal.bearers[index];
            let dropped = self.outcomes.dropped.dropped.len();
            let (span, _) = bearer.channels.up.fill(now, share, &mut self.outcomes);
            bearer.totals.up.dropped_packets +=
                (self.outcomes.dropped.dropped.len() - dropped) as u64;
            let claim = &mut terminal.uplink.claims[index];
            *claim = claim.saturating_sub(share - HEADERS);
            if !span.is_empty() {
                block.parts.push(Part { bearer: index, span });
            }
            if bearer.channels.up.backlog() > 0 {
                terminal.uplink.report_at = Some(tti + interval);
            }
        }
    }

    /// Reports arrive and leave; then the scheduler decides who sends in the TTI that is prepared
    /// now.
    pub(super) fn schedule_up(&mut self, tti: Tti, now: Timestamp) {
        while let Some(report) = self.reports.front().filter(|report| report.arrives <= tti) {
            let uplink = &mut self.terminals[report.terminal].uplink;
            uplink.has_requested = false;
            uplink.believed = report.bytes;
            self.reports.pop_front();
        }
        for index in 0..self.terminals.len() {
            if !self.terminals[index].is_away(now) {
                self.top_up(now, index, Direction::Up);
                self.report(tti, index);
            }
        }
        let at = tti + Tti::from(self.timing.up_prepare);
        let symbols = self.carrier.symbols_in(at, Direction::Up);
        if symbols == 0 {
            return;
        }
        let mut free = Row::new(self.carrier.prbs.up);
        let busy = self.repeat_up(tti, at, &mut free);
        if self.stops_at_queue_end {
            self.grant_needs(tti, now, symbols, &mut free, &busy);
        } else {
            self.grant_shares(tti, symbols, &mut free, &busy);
        }
    }

    /// A terminal tells the base station what waits, if it has an occasion.
    fn report(&mut self, tti: Tti, index: usize) {
        let uplink = &mut self.terminals[index].uplink;
        let delay = Tti::from(self.timing.report);
        match self.uplink_access {
            UplinkAccess::Ideal => {
                if uplink.report_at.is_some_and(|at| at <= tti) {
                    uplink.report_at = None;
                    uplink.is_fresh = true;
                    let bearers = self.terminals[index].bearers.iter();
                    self.terminals[index].uplink.claims =
                        bearers.map(|bearer| bearer.channels.up.claimed()).collect();
                }
                let terminal = &mut self.terminals[index];
                let uplink = &mut terminal.uplink;
                if uplink.is_fresh {
                    uplink.is_fresh = false;
                    let bytes = by_group(&terminal.bearers, |index| uplink.claims[index]);
                    self.reports.push_back(PendingReport {
                        arrives: tti + delay,
                        terminal: index,
                        bytes,
                    });
                }
            }
            UplinkAccess::Requested(SchedulingRequest { period, grant }) => {
                let period = self.carrier.ttis(period);
                // The occasions of the terminals are spread over the period.
                if tti % period != (index as Tti * 3) % period {
                    return;
                }
                let has_grant = uplink.believed > 0
                    || uplink.has_requested
                    || uplink.granted.iter().any(|(fill, _)| *fill >= tti)
                    || self.terminals[index].processes.up > 0;
                if !has_grant && self.terminals[index].has_backlog(Direction::Up) {
                    self.terminals[index].uplink.has_requested = true;
                    let bytes = grant.as_bytes();
                    let arrives = tti + delay;
                    self.reports.push_back(PendingReport { arrives, terminal: index, bytes });
                }
            }
            UplinkAccess::Configured { period, size } => {
                let period = self.carrier.ttis(period);
                let is_occasion = tti % period == (index as Tti * 3) % period;
                // Without data the terminal leaves the grant unused; it is not modelled then.
                if is_occasion && self.terminals[index].has_backlog(Direction::Up) {
                    let uplink = &mut self.terminals[index].uplink;
                    uplink.believed = uplink.believed.max(size.as_bytes());
                }
            }
        }
    }

    /// Grants failed blocks again, on their own resource blocks if these are free. Returns the
    /// terminals concerned.
    fn repeat_up(&mut self, tti: Tti, at: Tti, free: &mut Row) -> Vec<usize> {
        let mut busy = Vec::new();
        let round = Tti::from(self.harq.round.up);
        let mut index = 0;
        while let Some(block) = self.again.up.get(index) {
            let Grant::Row { first, count } = block.grant else { unreachable!("an uplink block") };
            let is_due = block.decided + round <= tti && !busy.contains(&block.terminal);
            let place = if free.is_free(first, count) { Some(first) } else { free.find(count) };
            let Some(first) = place.filter(|_| is_due) else {
                index += 1;
                continue;
            };
            let mut block = self.again.up.remove(index).expect("the index is valid");
            block.grant = Grant::Row { first, count };
            block.decided = tti;
            block.attempt += 1;
            free.take(first, count);
            busy.push(block.terminal);
            self.send(block, Direction::Up, at);
        }
        busy
    }

    /// As in ns-3: equal shares in turn for all that are believed to have data.
    fn wants(&self, terminal: usize, busy: &[usize]) -> bool {
        self.terminals[terminal].uplink.believed > 0 && !busy.contains(&terminal)
    }

    fn grant_shares(&mut self, tti: Tti, symbols: u8, free: &mut Row, busy: &[usize]) {
        let count = self.terminals.len();
        let wanting = (0..count).filter(|index| self.wants(*index, busy)).count();
        if wanting == 0 {
            return;
        }
        let prbs = self.carrier.prbs.up;
        let mut share = (prbs / (wanting + busy.len()) as u16).max(SHARE_MIN);
        let mut end = 0;
        let first = self.rotations.up.next % count;
        for step in 0..count {
            let index = (first + step) % count;
            if !self.wants(index, busy) {
                continue;
            }
            let Some(place) = free.place(end, &mut share) else {
                self.rotations.up.next = index;
                break;
            };
            free.take(place, share);
            end = place + share;
            let grant = Grant::Row { first: place, count: share };
            self.learn(tti, index, Direction::Up);
            let known = &self.terminals[index].known.up;
            if let Some(mcs) = self.choosers.up.for_grant(&self.carrier, known, grant) {
                self.grant(tti, index, grant, (mcs, symbols));
            }
            if end == prbs {
                self.rotations.up.next = index + 1;
                break;
            }
        }
        self.update_averages_up();
    }

    /// Grants what terminals need, in the order of the scheduler.
    fn grant_needs(
        &mut self,
        tti: Tti,
        now: Timestamp,
        symbols: u8,
        free: &mut Row,
        busy: &[usize],
    ) {
        let mut candidates = Vec::new();
        for index in 0..self.terminals.len() {
            let has_process = self.terminals[index].processes.up < self.harq.processes;
            let believed = self.terminals[index].uplink.believed;
            if believed == 0 || !has_process || busy.contains(&index) {
                continue;
            }
            self.learn(tti, index, Direction::Up);
            let terminal = &mut self.terminals[index];
            let wide = self.choosers.up.wide(&self.carrier, &mut terminal.known.up);
            let Some(mcs) = wide else { continue };
            let owed = terminal.owed(now, Direction::Up);
            candidates.push(Candidate {
                terminal: index,
                need: believed + MARGIN,
                owed,
                urgency: terminal.urgency(now, Direction::Up),
                average: terminal.averages.up,
                rates: vec![self.carrier.block_bytes(
                    Direction::Up,
                    self.carrier.prbs.up,
                    mcs,
                    symbols,
                )],
                groups: 0,
            });
        }
        order_rows(self.scheduler, self.rotations.up, &mut candidates);
        for candidate in candidates {
            let index = candidate.terminal;
            let Some((first, room)) = free.longest() else {
                self.rotations.up.next = index;
                break;
            };
            let known = &self.terminals[index].known.up;
            let Some((count, mcs)) = self.fitting_row(known, first, room, candidate.need, symbols)
            else {
                continue;
            };
            free.take(first, count);
            self.grant(tti, index, Grant::Row { first, count }, (mcs, symbols));
        }
        self.update_averages_up();
    }

    /// The least resource blocks from `first` on that carry this many bytes, at most `room`, and
    /// the scheme for them. On fewer resource blocks the terminal's power gives a faster scheme.
    fn fitting_row(
        &self,
        known: &super::adaptation::Known,
        first: u16,
        room: u16,
        need: u64,
        symbols: u8,
    ) -> Option<(u16, u8)> {
        let chooser = &self.choosers.up;
        let mut count = room;
        // The scheme depends on the number and the number on the scheme; two rounds settle it.
        for _ in 0..2 {
            let mcs = chooser.for_grant(&self.carrier, known, Grant::Row { first, count })?;
            let (mut low, mut high) = (1, count);
            while low < high {
                let middle = u16::midpoint(low, high);
                let bytes = self.carrier.block_bytes(Direction::Up, middle, mcs, symbols);
                if u64::from(bytes) >= need {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            count = low;
        }
        let mcs = chooser.for_grant(&self.carrier, known, Grant::Row { first, count })?;
        Some((count, mcs))
    }

    fn grant(&mut self, tti: Tti, index: usize, grant: Grant, (mcs, symbols): (u8, u8)) {
        let prbs = grant.prbs(&self.carrier);
        let bytes = self.carrier.block_bytes(Direction::Up, prbs, mcs, symbols);
        let fill = tti + Tti::from(self.timing.up_fill);
        let rate = f64::from(bytes) / self.tti_seconds();
        let terminal = &mut self.terminals[index];
        let carried = u64::from(bytes).saturating_sub(HEADERS);
        terminal.uplink.believed = terminal.uplink.believed.saturating_sub(carried);
        let granted = &mut terminal.uplink.granted;
        granted.push_back((fill, carried));
        while granted.front().is_some_and(|(fill, _)| fill + REPORT_AGE < tti) {
            granted.pop_front();
        }
        terminal.uplink.granted_rate += rate;
        let decided = tti;
        self.grants.push_back(PendingGrant { fill, decided, terminal: index, grant, mcs, bytes });
    }

    fn update_averages_up(&mut self) {
        let weight = 1.0 / AVERAGE_TTIS;
        for terminal in &mut self.terminals {
            let rate = std::mem::take(&mut terminal.uplink.granted_rate);
            let average = terminal.averages.up * (1.0 - weight) + weight * rate;
            terminal.averages.up = average.max(f64::MIN_POSITIVE);
        }
    }

    /// The base station takes the report within a block.
    pub(super) fn take_report(&mut self, block: &Block) {
        let Some((filled, bytes)) = block.report else { return };
        let uplink = &mut self.terminals[block.terminal].uplink;
        let granted: &mut VecDeque<(Tti, u64)> = &mut uplink.granted;
        while granted.front().is_some_and(|(fill, _)| *fill <= filled) {
            granted.pop_front();
        }
        // Grants that the terminal had not read when it made the report serve a part of it.
        let served: u64 = granted.iter().map(|(_, bytes)| *bytes).sum();
        uplink.believed = bytes.saturating_sub(served);
    }
}

/// The resource blocks of an uplink TTI.
#[derive(Debug)]
struct Row {
    taken: Vec<bool>,
}

impl Row {
    fn new(prbs: u16) -> Self {
        Self { taken: vec![false; usize::from(prbs)] }
    }

    fn is_free(&self, first: u16, count: u16) -> bool {
        let range = usize::from(first)..usize::from(first) + usize::from(count);
        self.taken.get(range).is_some_and(|taken| taken.iter().all(|taken| !taken))
    }

    fn take(&mut self, first: u16, count: u16) {
        self.taken[usize::from(first)..usize::from(first + count)].fill(true);
    }

    /// The first place for this many in a row.
    fn find(&self, count: u16) -> Option<u16> {
        let prbs = self.taken.len() as u16;
        (0..=prbs.checked_sub(count)?).find(|first| self.is_free(*first, count))
    }

    /// The longest free row: its start and its length.
    fn longest(&self) -> Option<(u16, u16)> {
        let (mut best, mut run) = (None, 0_u16);
        for (prb, taken) in self.taken.iter().enumerate() {
            run = if *taken { 0 } else { run + 1 };
            if run > best.map_or(0, |(_, length)| length) {
                best = Some((prb as u16 + 1 - run, run));
            }
        }
        best
    }

    /// The place of a share of ns-3: the first free row of this length. A share that would end two
    /// or more beyond the carrier shrinks to what is left, unless that is too little; one that
    /// would end one beyond finds no place. `end` is where the share before ended.
    fn place(&self, end: u16, share: &mut u16) -> Option<u16> {
        let prbs = self.taken.len() as u16;
        shrink(end, share, prbs);
        let mut first = 0;
        while *share > 0 && first + *share <= prbs {
            if self.is_free(first, *share) {
                return Some(first);
            }
            first += 1;
            shrink(first, share, prbs);
        }
        None
    }
}

/// Makes a share fit between its first resource block and the end of the carrier.
fn shrink(first: u16, share: &mut u16, prbs: u16) {
    if first + *share > prbs + 1 {
        *share = prbs.saturating_sub(first);
        if *share < SHARE_MIN {
            *share = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_rounds_up_to_a_level() {
        assert_eq!(
            [0, 1, 10, 11, 1_232, 150_000, 1 << 40].map(level),
            [0, 10, 10, 12, 1_326, 150_000, 150_000]
        );
    }

    #[test]
    fn shares_of_ns3_fill_the_carrier_as_its_rules_say() {
        let placed = |prbs: u16, terminals: u16| {
            let mut row = Row::new(prbs);
            let (mut share, mut end) = ((prbs / terminals).max(SHARE_MIN), 0);
            let mut shares = Vec::new();
            while shares.len() < usize::from(terminals)
                && let Some(first) = row.place(end, &mut share)
            {
                row.take(first, share);
                end = first + share;
                shares.push(share);
            }
            shares
        };
        assert_eq!(placed(25, 1), [25]);
        assert_eq!(placed(25, 2), [12, 12]);
        assert_eq!(placed(25, 3), [8, 8, 8]);
        assert_eq!(placed(25, 8), [3; 8]);
        // Nine want three each: eight get them, and one is left over.
        assert_eq!(placed(25, 9), [3; 8]);
    }

    #[test]
    fn the_longest_row_is_found() {
        let mut row = Row::new(10);
        row.take(3, 2);
        assert_eq!(row.longest(), Some((5, 5)));
        row.take(5, 5);
        assert_eq!(row.longest(), Some((0, 3)));
        row.take(0, 3);
        assert_eq!(row.longest(), None);
    }
}
