//! The queue as Copa sees it: the standing delay over the lowest delay [COPA §2.1].

use crate::measure::{Extreme, RecentExtreme};
use weir::feedback::FeedbackReport;
use weir::units::{TimeDelta, Timestamp};

// Parameters [COPA §2.1], [COPA §2.2].
/// Window of `RTTmin`.
pub(super) const BASE_WINDOW: TimeDelta = TimeDelta::from_secs(10);
/// Window of `RTTstanding`, as a share of the smoothed round-trip time.
const STANDING_SHARE: f64 = 0.5;
/// Window of `RTTmax`, in round trips.
const MAX_ROUND_TRIPS: f64 = 4.0;

/// Delays of the newest reports. COPA-D1: one-way delays, which need no symmetric path and do not
/// contain the wait for feedback.
#[derive(Clone, Debug)]
pub(super) struct StandingQueue {
    base: RecentExtreme,
    standing: RecentExtreme,
    highest: RecentExtreme,
}

impl StandingQueue {
    pub(super) fn new() -> Self {
        Self {
            base: RecentExtreme::new(Extreme::Lowest),
            standing: RecentExtreme::new(Extreme::Lowest),
            highest: RecentExtreme::new(Extreme::Highest),
        }
    }

    /// Takes the lowest delay of a report.
    pub(super) fn on_report(&mut self, now: Timestamp, rtt: TimeDelta, report: &FeedbackReport) {
        if report.new_clock {
            *self = Self::new();
        }
        let delays = report.received().filter_map(|packet| packet.one_way_delay());
        let Some(delay) = delays.min() else { return };
        self.base.push(now, BASE_WINDOW, delay);
        self.standing.push(now, rtt * STANDING_SHARE, delay);
        self.highest.push(now, rtt * MAX_ROUND_TRIPS, delay);
    }

    /// `dq`: the standing delay minus the lowest.
    pub(super) fn delay(&self) -> Option<TimeDelta> {
        Some((self.standing.value()? - self.base.value()?).max(TimeDelta::ZERO))
    }

    /// `RTTmax - RTTmin`.
    pub(super) fn swing(&self) -> TimeDelta {
        match (self.highest.value(), self.base.value()) {
            (Some(highest), Some(base)) => highest - base,
            _ => TimeDelta::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::feedback::PacketReport;
    use weir::units::DataSize;

    /// Reports a packet with this delay. Returns the queue's delay and its swing in ms.
    fn feed(queue: &mut StandingQueue, at: i64, delay_ms: i64) -> (i64, i64) {
        let sent = Timestamp::from_millis(at);
        let arrival = sent + TimeDelta::from_millis(delay_ms);
        let packet =
            PacketReport::new(0, DataSize::from_bytes(100), sent).with_arrival_time(Some(arrival));
        let rtt = TimeDelta::from_millis(100);
        queue.on_report(sent, rtt, &FeedbackReport::new(vec![packet]));
        (queue.delay().unwrap().as_millis(), queue.swing().as_millis())
    }

    // [COPA §2.1]
    #[test]
    fn the_queue_is_the_lowest_delay_of_half_a_round_trip_over_ten_seconds() {
        let mut queue = StandingQueue::new();
        assert_eq!(feed(&mut queue, 0, 30), (0, 0));
        // 30 ms was measured within half a round trip.
        assert_eq!(feed(&mut queue, 40, 70), (0, 40));
        assert_eq!(feed(&mut queue, 80, 60), (30, 40));
        assert_eq!(feed(&mut queue, 500, 50), (20, 20));
    }
}
