//! Blocks that go on the air, and whether their terminals hear of them.

use std::fmt::Debug;
use std::ops::Range;

use weir::units::Timestamp;

use super::block::{Block, BlockRecord};
use super::carrier::Tti;
use super::cell::Cell;
use crate::path::Direction;

impl<T: Debug + Send + 'static> Cell<T> {
    /// Puts a block on the air in a TTI: decides whether it will be decoded.
    pub(super) fn send(&mut self, mut block: Block, direction: Direction, at: Tti) {
        let start = self.carrier.start(at);
        let terminal = &mut self.terminals[block.terminal];
        let sinr = terminal.channels.of_mut(direction).at(start);
        let error = block.error(&self.carrier, &self.harq, direction, sinr);
        block.is_decoded = !terminal.chances.of_mut(direction).chance(error);
        block.decoded = at + Tti::from(*self.timing.decode.of(direction));
        block.is_decoded &= !block.is_missed;
        let totals = terminal.totals.of_mut(direction);
        if block.attempt == 1 {
            totals.blocks += 1;
            totals.mcs += u64::from(block.mcs);
            totals.failures += u64::from(!block.is_decoded);
        } else {
            totals.retransmissions += 1;
        }
        let prbs = f64::from(block.grant.prbs(&self.carrier));
        let carried: u64 = block.parts.iter().map(|part| part.span.to - part.span.from).sum();
        for part in &block.parts {
            let share = (part.span.to - part.span.from) as f64 / carried.max(1) as f64;
            terminal.bearers[part.bearer].totals.of_mut(direction).blocks += prbs * share;
        }
        terminal.active_at = start;
        self.record(&block, direction, start);
        self.air.of_mut(direction).push_back(block);
    }

    fn record(&mut self, block: &Block, direction: Direction, start: Timestamp) {
        let Some(blocks) = &mut self.blocks else { return };
        let mut prbs: Vec<Range<u16>> = Vec::new();
        for range in block.grant.ranges(&self.carrier) {
            match prbs.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => prbs.push(range),
            }
        }
        blocks.push(BlockRecord {
            start,
            direction,
            node: block.terminal + 1,
            prbs,
            mcs: block.mcs,
            bytes: block.bytes,
            attempt: block.attempt,
            is_decoded: block.is_decoded,
        });
    }

    /// Whether a terminal misses the control channel of a TTI.
    pub(super) fn misses_control(&mut self, terminal: usize, at: Tti) -> bool {
        if !self.control_errors {
            return false;
        }
        let start = self.carrier.start(at);
        let terminal = &mut self.terminals[terminal];
        let error = terminal.channels.down.at(start).control_error(self.carrier.prbs.down);
        error > 0.0 && terminal.chances.down.chance(error)
    }
}
