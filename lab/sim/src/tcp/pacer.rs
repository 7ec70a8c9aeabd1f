//! Pacer: releases segments in bursts, for congestion controls that pace. Bursts are complete if
//! possible.

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::congestion::Pacing;
use super::segment::MSS;

/// Number of segments at the start that are not paced (Linux: `tcp_update_skb_after_send`).
const UNPACED: u64 = 10;
/// Number of segments in one kernel buffer of 64 KiB, which includes headers. No burst crosses the
/// end of a buffer.
const BUFFER: u64 = 45;
/// A burst waits for the window only during this time after it could have left, and only if an
/// acknowledgement is due within this time (Linux: `tcp_tso_should_defer`).
const PATIENCE: TimeDelta = TimeDelta::from_millis(1);
/// A burst does not wait if this fraction of the window is free (Linux: `tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;

/// State of the connection that the pacer needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    /// Segments of new data sent so far.
    pub(super) sent: u64,
    /// The congestion window, and the free part of it.
    pub(super) window: u64,
    pub(super) room: u64,
    /// When the oldest segment in flight was sent.
    pub(super) oldest_sent_at: Option<Timestamp>,
    pub(super) smoothed_rtt: TimeDelta,
    /// Whether this is a retransmission or a probe, which must not be deferred.
    pub(super) is_urgent: bool,
}

/// The pacer's state.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    /// When the next burst may leave.
    next_departure: Timestamp,
    /// Segments left in the current burst.
    burst_left: u64,
    /// Whether the next burst waits for an acknowledgement that makes room for all of it.
    is_deferred: bool,
}

impl Pacer {
    /// Time at which the next segment may leave. `None` if it waits for an event.
    pub(super) fn next_departure(&self) -> Option<Timestamp> {
        (!self.is_deferred).then_some(self.next_departure)
    }

    /// Minimum time until the next burst.
    pub(super) fn wait(&self, now: Timestamp) -> TimeDelta {
        (self.next_departure - now).max(TimeDelta::ZERO)
    }

    pub(super) fn is_deferred(&self) -> bool {
        self.is_deferred
    }

    /// An event happened after which a deferred burst may leave.
    pub(super) fn reconsider(&mut self) {
        self.is_deferred = false;
    }

    /// Lets the next burst leave now.
    pub(super) fn end_wait(&mut self, now: Timestamp) {
        self.next_departure = now;
    }

    /// Whether a segment leaves now. A burst occupies its time at the pacing rate, which counts
    /// payload as the delivery rate does. If a burst is late, the time to the next one is shortened
    /// by the delay, at most by half.
    pub(super) fn may_send(&mut self, now: Timestamp, pacing: Pacing, of: &Connection) -> bool {
        if self.burst_left == 0 {
            if now < self.next_departure {
                return false;
            }
            let buffer_left = BUFFER - of.sent % BUFFER;
            self.is_deferred = self.defers(now, pacing.burst.min(buffer_left), of);
            if self.is_deferred {
                return false;
            }
            self.burst_left = pacing.burst.min(buffer_left).min(of.room.max(1));
            let time = DataSize::from_bytes(MSS * self.burst_left) / pacing.rate;
            let late = (now - self.next_departure).min(time * 0.5);
            self.next_departure = if of.sent < UNPACED { now } else { now + time - late };
        }
        self.burst_left -= 1;
        true
    }

    /// Whether an incomplete burst waits for the acknowledgement that makes room for all of it.
    fn defers(&self, now: Timestamp, burst: u64, of: &Connection) -> bool {
        if of.is_urgent || of.room >= burst || of.room >= of.window / WINDOW_DIVISOR {
            return false;
        }
        let is_due_soon =
            |sent_at| sent_at + of.smoothed_rtt - now <= PATIENCE.min(of.smoothed_rtt * 0.5);
        now - self.next_departure <= PATIENCE && of.oldest_sent_at.is_some_and(is_due_soon)
    }
}

#[cfg(test)]
mod tests {
    use weir::units::Bitrate;

    use super::*;

    /// Bursts of two segments, 2 ms apart.
    const PAIRS: Pacing = Pacing { rate: Bitrate::from_bps(MSS * 8 * 1_000), burst: 2 };

    /// A connection past its start, with room for one segment in a large window, and an
    /// acknowledgement due at `at(50_500)`.
    const TIGHT: Connection = Connection {
        sent: 46,
        window: 30,
        room: 1,
        oldest_sent_at: Some(at(500)),
        smoothed_rtt: TimeDelta::from_millis(50),
        is_urgent: false,
    };

    const fn at(us: i64) -> Timestamp {
        Timestamp::from_micros(us)
    }

    /// A pacer whose next burst may leave at 50 ms.
    fn ready() -> Pacer {
        Pacer { next_departure: at(50_000), ..Pacer::default() }
    }

    /// Number of segments that leave now.
    fn leave(pacer: &mut Pacer, now: Timestamp, of: &Connection) -> u64 {
        let mut of = *of;
        let mut count = 0;
        while of.room > 0 && pacer.may_send(now, PAIRS, &of) {
            (of.sent, of.room, count) = (of.sent + 1, of.room - 1, count + 1);
        }
        count
    }

    #[test]
    fn a_burst_leaves_whole_and_the_next_one_when_its_time_has_passed() {
        let mut pacer = ready();
        let wide = Connection { room: 9, ..TIGHT };
        assert_eq!(leave(&mut pacer, at(49_999), &wide), 0);
        assert_eq!(leave(&mut pacer, at(50_000), &wide), 2);
        assert_eq!(pacer.next_departure(), Some(at(52_000)));
    }

    #[test]
    fn a_late_burst_leaves_the_next_one_at_least_half_its_time_to_wait() {
        let wide = Connection { room: 9, ..TIGHT };
        for (now, next) in [(50_400, 52_000), (51_000, 52_000), (54_000, 55_000)] {
            let mut pacer = ready();
            assert_eq!(leave(&mut pacer, at(now), &wide), 2);
            assert_eq!(pacer.next_departure(), Some(at(next)), "late at {now}");
        }
    }

    #[test]
    fn half_a_burst_waits_for_the_acknowledgement_that_lets_all_of_it_leave() {
        let mut pacer = ready();
        assert_eq!(leave(&mut pacer, at(50_000), &TIGHT), 0);
        assert!(pacer.is_deferred());
        assert_eq!(pacer.next_departure(), None);
        pacer.reconsider();
        assert_eq!(leave(&mut pacer, at(50_500), &Connection { room: 3, ..TIGHT }), 2);
    }

    #[test]
    fn half_a_burst_does_not_wait_where_linux_sees_no_use_in_it() {
        let leaves = |now, of| leave(&mut ready(), at(now), &of);
        assert_eq!(leaves(50_000, Connection { is_urgent: true, ..TIGHT }), 1);
        // The acknowledgement is due in 1.001 ms.
        assert_eq!(leaves(50_000, Connection { oldest_sent_at: Some(at(1_001)), ..TIGHT }), 1);
        assert_eq!(leaves(50_000, Connection { oldest_sent_at: None, ..TIGHT }), 1);
        // The burst could have left 1.001 ms ago.
        assert_eq!(leaves(51_001, TIGHT), 1);
        assert_eq!(leaves(51_000, TIGHT), 0);
        // The room is a third of the window.
        assert_eq!(leaves(50_000, Connection { window: 5, ..TIGHT }), 1);
        assert_eq!(leaves(50_000, Connection { window: 6, ..TIGHT }), 0);
    }

    #[test]
    fn no_burst_crosses_the_end_of_a_buffer() {
        let wide = Connection { room: 9, ..TIGHT };
        assert_eq!(leave(&mut ready(), at(50_000), &Connection { sent: 88, ..wide }), 2);
        let mut pacer = ready();
        assert_eq!(leave(&mut pacer, at(50_000), &Connection { sent: 89, ..wide }), 1);
        assert_eq!(pacer.next_departure(), Some(at(51_000)));
        // The last segment of a buffer is a complete burst.
        assert_eq!(leave(&mut ready(), at(50_000), &Connection { sent: 89, ..TIGHT }), 1);
    }

    #[test]
    fn the_first_ten_segments_are_not_paced() {
        let first = Connection { sent: 0, room: 10, window: 10, ..TIGHT };
        assert_eq!(leave(&mut ready(), at(50_000), &first), 10);
        let tenth = Connection { sent: 10, room: 10, ..TIGHT };
        assert_eq!(leave(&mut ready(), at(50_000), &tenth), 2);
    }
}
