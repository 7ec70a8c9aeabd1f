//! Traffic generated within the cell: which node sends it to which receiver.

use super::config::{AccessCategory, StationLoad};
use crate::load::Source;
use crate::seed::Stream;

/// A load with its state.
#[derive(Debug)]
pub(super) struct LoadSource {
    pub(super) node: usize,
    /// Index of the receiver among those of the node.
    pub(super) receiver: usize,
    pub(super) category: AccessCategory,
    pub(super) packets: Source,
}

impl LoadSource {
    pub(super) fn new((node, receiver): (usize, usize), load: StationLoad, chance: Stream) -> Self {
        let StationLoad { arrivals, size, category, start, stop } = load;
        Self {
            node,
            receiver,
            category,
            packets: Source::new(arrivals, size, (start, stop), chance),
        }
    }
}
