//! Loads of the cell: which packets they add to which bearer.

use super::config::Load;
use crate::load::Source;
use crate::path::Direction;
use crate::seed::Seed;

/// A load with its state.
#[derive(Debug)]
pub(super) struct LoadSource {
    pub(super) terminal: usize,
    pub(super) bearer: usize,
    pub(super) direction: Direction,
    pub(super) source: Source,
}

impl LoadSource {
    pub(super) fn new(terminal: usize, name: &str, number: usize, load: &Load, seed: Seed) -> Self {
        let stream = seed.stream(&format!("cellular/{name}/load/{number}"));
        let Load { direction, bearer, arrivals, size, start, stop } = *load;
        Self {
            terminal,
            bearer,
            direction,
            source: Source::new(arrivals, size, (start, stop), stream),
        }
    }
}
