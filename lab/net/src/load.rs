//! Traffic that an access network generates within itself.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use crate::packet::Header;
use crate::seed::Stream;

/// Arrival process of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// There is always one more packet: the load refills the queue without overflowing it.
    Saturated,
    /// Equal intervals, at this bitrate of IP packets. The first packet arrives at a random time
    /// within the first interval, so that the loads of several nodes are not synchronized.
    Constant(Bitrate),
    /// Exponentially distributed intervals, at this mean bitrate of IP packets.
    Poisson(Bitrate),
    /// A burst at the start and after each period.
    Bursts {
        /// Time from burst to burst.
        period: TimeDelta,
        /// Number of packets in a burst.
        packets: u32,
    },
}

/// When the packets of a load arrive.
#[derive(Debug)]
pub(crate) struct Source {
    arrivals: Arrivals,
    size: DataSize,
    start: Timestamp,
    stop: Timestamp,
    /// When the next packets arrive; `MAX` if none will.
    next: Timestamp,
    chance: Stream,
}

impl Source {
    pub(crate) fn new(
        arrivals: Arrivals,
        size: DataSize,
        (start, stop): (Timestamp, Timestamp),
        mut chance: Stream,
    ) -> Self {
        let first = match arrivals {
            Arrivals::Saturated | Arrivals::Bursts { .. } => start,
            Arrivals::Constant(rate) => start + size / rate * chance.uniform(),
            Arrivals::Poisson(rate) => start + exponential(size / rate, &mut chance),
        };
        Self { arrivals, size, start, stop, next: before(first, stop), chance }
    }

    pub(crate) fn next(&self) -> Timestamp {
        self.next
    }

    pub(crate) fn header(&self) -> Header {
        Header::new(self.size)
    }

    /// Whether it never runs out of packets.
    pub(crate) fn is_saturated(&self) -> bool {
        self.arrivals == Arrivals::Saturated
    }

    /// Whether it is a saturating load that is active at this time.
    pub(crate) fn is_saturating(&self, now: Timestamp) -> bool {
        self.is_saturated() && self.start <= now && now < self.stop
    }

    /// Advances to the next arrival. Returns the number of packets; zero for a saturating load,
    /// whose packets the network adds when there is room.
    pub(crate) fn arrive(&mut self) -> u32 {
        let (packets, interval) = match self.arrivals {
            Arrivals::Saturated => (0, TimeDelta::MAX),
            Arrivals::Constant(rate) => (1, self.size / rate),
            Arrivals::Poisson(rate) => (1, exponential(self.size / rate, &mut self.chance)),
            Arrivals::Bursts { period, packets } => (packets, period),
        };
        self.next = before(self.next + interval.max(TimeDelta::from_nanos(1)), self.stop);
        packets
    }
}

/// The given time, or `MAX` if it is not before `stop`.
fn before(time: Timestamp, stop: Timestamp) -> Timestamp {
    if time < stop { time } else { Timestamp::MAX }
}

/// Draws from the exponential distribution with this mean; at least a nanosecond.
pub(crate) fn exponential(mean: TimeDelta, chance: &mut Stream) -> TimeDelta {
    let duration = mean * -libm::log(1.0 - chance.uniform());
    duration.max(TimeDelta::from_nanos(1))
}
