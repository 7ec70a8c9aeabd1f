//! Loads of the cell: which packets they add to which bearer.

use std::fmt::Debug;

use weir::units::Timestamp;

use super::cell::Cell;
use super::config::Load;
use crate::load::Source;
use crate::path::Way;
use crate::seed::Seed;

/// A load with its state.
#[derive(Debug)]
pub(super) struct LoadSource {
    pub(super) terminal: usize,
    pub(super) bearer: usize,
    pub(super) way: Way,
    pub(super) source: Source,
}

impl LoadSource {
    pub(super) fn new(terminal: usize, name: &str, number: usize, load: &Load, seed: Seed) -> Self {
        let stream = seed.stream(&format!("cellular/{name}/load/{number}"));
        let Load { way, bearer, arrivals, size, start, stop } = *load;
        Self { terminal, bearer, way, source: Source::new(arrivals, size, (start, stop), stream) }
    }
}

impl<T: Debug + Send + 'static> Cell<T> {
    /// Packets of a load arrive.
    pub(super) fn on_arrival(&mut self, now: Timestamp, index: usize) {
        let LoadSource { terminal, bearer, way, source } = &mut self.sources[index];
        let (terminal, bearer, way) = (*terminal, *bearer, *way);
        let packets = source.arrive();
        let header = source.header();
        for _ in 0..packets {
            self.admit(now, (terminal, way), Some(bearer), header, None);
        }
        if self.sources[index].source.is_saturating(now) {
            self.wake(now);
        }
    }

    /// Refills the queues of a terminal that its saturating loads must keep from emptying. Each
    /// keeps enough for two of the largest blocks.
    pub(super) fn top_up(&mut self, now: Timestamp, terminal: usize, way: Way) {
        for index in 0..self.terminals[terminal].saturating.len() {
            let number = self.terminals[terminal].saturating[index];
            let load = &self.sources[number];
            if load.way != way || !load.source.is_saturating(now) {
                continue;
            }
            let (bearer, header) = (load.bearer, load.source.header());
            let enough = 2 * u64::from(*self.largest_block.of(way)) + header.size.as_bytes();
            let lacks = |cell: &Self| {
                let bearer = &cell.terminals[terminal].bearers[bearer];
                bearer.channels.of(way).holds_less_than(enough)
            };
            // A queue that is shorter than that drops packets; it is full then.
            let mut left = enough / header.size.as_bytes().max(1) + 1;
            while lacks(self) && left > 0 {
                self.admit(now, (terminal, way), Some(bearer), header, None);
                left -= 1;
            }
        }
    }
}
