//! The receive window: dynamic right-sizing, as in Linux's tuning of the receive buffer.
//!
//! The application reads at once, so the only purpose of the window is to limit the data in flight.
//! It grows with the data that arrives in a round trip, faster than a sender in slow start, up to a
//! limit.

use weir::units::{TimeDelta, Timestamp};

use super::segment::{Data, MSS};

/// The window before the first measurement (Linux: half of `tcp_rmem`'s default, in whole
/// segments).
pub(super) const INITIAL_WINDOW: u64 = 45 * MSS;
/// Data per round trip assumed before the first measurement: an initial congestion window.
const FIRST_ROUND: u64 = 10 * MSS;
/// Size of the window in round trips of data. It is two because the measurement is one round trip
/// old.
const ROUNDS: u64 = 2;
/// Maximum growth of the offered window in segments for each segment that arrives (Linux:
/// `tcp_grow_window`).
const GROWTH_PER_SEGMENT: u64 = 2;
/// Smoothing gain of the receiver's round-trip time, as a divisor.
const SMOOTHING: i64 = 8;

/// Sizes in bytes.
#[derive(Clone, Debug)]
pub(super) struct ReceiveWindow {
    limit: u64,
    /// The window that right-sizing allows, and the currently offered window, which grows towards
    /// it.
    allowed: u64,
    offered: u64,
    /// The advertised right edge, which never moves back [RFC9293 §3.8.6].
    edge: u64,
    /// Smoothed time from an acknowledgement to the data that it released.
    rtt: Option<TimeDelta>,
    /// Start time of the round, data received in order at that time, and amount of data in the last
    /// round.
    round_since: Timestamp,
    round_start: u64,
    last_round: u64,
}

impl ReceiveWindow {
    pub(super) fn new(limit: u64) -> Self {
        let initial = INITIAL_WINDOW.min(limit);
        Self {
            limit,
            allowed: initial,
            offered: initial,
            edge: initial,
            rtt: None,
            round_since: Timestamp::ZERO,
            round_start: 0,
            last_round: FIRST_ROUND,
        }
    }

    /// Data arrived. All data below `next` is complete, and the highest received byte is before
    /// `highest`. Returns whether the offered window has grown.
    pub(super) fn on_data(&mut self, now: Timestamp, data: &Data, next: u64, highest: u64) -> bool {
        let before = self.offered;
        let segments = (data.part.end - data.part.start).div_ceil(MSS);
        let grown = self.offered + GROWTH_PER_SEGMENT * MSS * segments;
        self.offered = self.offered.max(grown.min(self.allowed));
        if data.echo > Timestamp::ZERO {
            let sample = now - data.echo;
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt + (sample - rtt) / SMOOTHING));
        }
        if self.rtt.is_some_and(|rtt| now - self.round_since >= rtt) {
            self.end_round(now, next, highest);
        }
        self.offered > before
    }

    fn end_round(&mut self, now: Timestamp, next: u64, highest: u64) {
        let arrived = next - self.round_start;
        if arrived > self.last_round {
            let growth = ROUNDS * arrived * (arrived - self.last_round) / self.last_round;
            let wanted = ROUNDS * (arrived + growth) + (highest - next);
            self.allowed = self.allowed.max(wanted.min(self.limit));
            self.last_round = arrived;
        }
        (self.round_since, self.round_start) = (now, next);
    }

    /// Returns the window for an acknowledgement.
    pub(super) fn advertise(&mut self, next: u64) -> u64 {
        self.edge = self.edge.max(next + self.offered);
        self.edge - next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates rounds of 100 ms. The first has ten segments, and each has twice as many as the
    /// one before. Returns the window after each round, in segments.
    fn windows(limit: u64, rounds: u32) -> Vec<u64> {
        let mut window = ReceiveWindow::new(limit);
        let mut next = 0;
        (1..=rounds)
            .map(|round| {
                let now = Timestamp::from_millis(i64::from(round) * 100);
                let echo = now - TimeDelta::from_millis(100);
                for _ in 0..10 << (round - 1) {
                    let part = next..next + MSS;
                    next += MSS;
                    window.on_data(now, &Data { part, sent_at: now, echo, cwr: false }, next, next);
                }
                window.advertise(next) / MSS
            })
            .collect()
    }

    #[test]
    fn the_window_keeps_ahead_of_a_sender_that_doubles() {
        let windows = windows(u64::MAX, 7);
        assert_eq!(windows[0], 45);
        for (round, window) in windows.iter().enumerate() {
            let next_flight = 10 << (round + 1);
            assert!(*window >= next_flight.min(45), "round {round}: {windows:?}");
        }
        assert!(windows[6] > 2 * 640, "{windows:?}");
    }

    #[test]
    fn the_window_ends_at_its_limit_and_its_edge_never_goes_back() {
        assert_eq!(windows(100 * MSS, 8)[7], 100);
        let mut window = ReceiveWindow::new(100 * MSS);
        assert_eq!(window.advertise(0), 45 * MSS);
        window.offered = 10 * MSS;
        assert_eq!(window.advertise(5 * MSS), 40 * MSS);
    }
}
