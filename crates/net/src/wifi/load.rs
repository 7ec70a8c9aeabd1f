//! Traffic generated within the cell.

use weir::units::{TimeDelta, Timestamp};

use super::config::{Arrivals, StationLoad};
use super::link::exponential;
use crate::packet::Header;
use crate::seed::Stream;

/// A load with its state.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) node: usize,
    /// Index of the receiver among those of the node.
    pub(super) receiver: usize,
    pub(super) load: StationLoad,
    /// When the next packets arrive; `MAX` if none will.
    next: Timestamp,
    chance: Stream,
}

impl Source {
    pub(super) fn new(
        (node, receiver): (usize, usize),
        load: StationLoad,
        mut chance: Stream,
    ) -> Self {
        let first = match load.arrivals {
            Arrivals::Saturated | Arrivals::Bursts { .. } => load.start,
            Arrivals::Constant(rate) => load.start + load.size / rate * chance.uniform(),
            Arrivals::Poisson(rate) => load.start + exponential(load.size / rate, &mut chance),
        };
        Self { node, receiver, load, next: before(first, load.stop), chance }
    }

    pub(super) fn next(&self) -> Timestamp {
        self.next
    }

    pub(super) fn header(&self) -> Header {
        Header::new(self.load.size)
    }

    /// Whether it is a saturating load that is active at this time.
    pub(super) fn is_saturating(&self, now: Timestamp) -> bool {
        let StationLoad { arrivals, start, stop, .. } = self.load;
        arrivals == Arrivals::Saturated && start <= now && now < stop
    }

    /// Advances to the next arrival. Returns the number of packets; zero for a saturating load,
    /// whose packets `Cell::top_up` adds.
    pub(super) fn arrive(&mut self) -> u32 {
        let StationLoad { arrivals, size, stop, .. } = self.load;
        let (packets, interval) = match arrivals {
            Arrivals::Saturated => (0, TimeDelta::MAX),
            Arrivals::Constant(rate) => (1, size / rate),
            Arrivals::Poisson(rate) => (1, exponential(size / rate, &mut self.chance)),
            Arrivals::Bursts { period, packets } => (packets, period),
        };
        self.next = before(self.next + interval.max(TimeDelta::from_nanos(1)), stop);
        packets
    }
}

/// The given time, or `MAX` if it is not before `stop`.
fn before(time: Timestamp, stop: Timestamp) -> Timestamp {
    if time < stop { time } else { Timestamp::MAX }
}
