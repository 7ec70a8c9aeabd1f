//! The sender's memory of media packets, from which it sends them again [RFC4588 §4].

use std::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

/// How long a packet may be asked for (libwebrtc) ..
const HISTORY: TimeDelta = TimeDelta::from_secs(1);
/// .. or this many round-trip times, where they are long.
const HISTORY_ROUND_TRIPS: i64 = 3;

/// Packets by rising sequence number without a gap.
#[derive(Clone, Debug)]
pub(super) struct RtxHistory<T> {
    first: i64,
    sent: VecDeque<Sent<T>>,
}

#[derive(Clone, Debug)]
struct Sent<T> {
    packet: T,
    first_sent: Timestamp,
    sent_again: Option<Timestamp>,
}

impl<T> RtxHistory<T> {
    /// An empty history whose first packet will be number `first`.
    pub(super) fn new(first: i64) -> Self {
        Self { first, sent: VecDeque::new() }
    }

    /// The next media packet left.
    pub(super) fn on_packet_sent(&mut self, now: Timestamp, rtt: TimeDelta, packet: T) {
        let horizon = now - HISTORY.max(rtt * HISTORY_ROUND_TRIPS);
        while self.sent.front().is_some_and(|sent| sent.first_sent < horizon) {
            self.sent.pop_front();
            self.first += 1;
        }
        self.sent.push_back(Sent { packet, first_sent: now, sent_again: None });
    }

    /// The packet to send again, unless it is forgotten, or was sent again less than a round-trip time
    /// ago: then the request was made before that could have arrived.
    pub(super) fn on_request(&mut self, now: Timestamp, rtt: TimeDelta, number: i64) -> Option<&T> {
        let index = usize::try_from(number - self.first).ok()?;
        let sent = self.sent.get_mut(index)?;
        if sent.sent_again.is_some_and(|time| now - time < rtt) {
            return None;
        }
        sent.sent_again = Some(now);
        Some(&sent.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(50);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Packets 7, 8, 9 .. with their number as content, 10 ms apart.
    fn history(count: i64, rtt: TimeDelta) -> RtxHistory<i64> {
        let mut history = RtxHistory::new(7);
        for index in 0..count {
            history.on_packet_sent(at(index * 10), rtt, 7 + index);
        }
        history
    }

    #[test]
    fn a_packet_is_sent_again_when_asked_for_but_once_a_round_trip_time() {
        let mut history = history(10, RTT);
        assert_eq!(history.on_request(at(100), RTT, 9), Some(&9));
        assert_eq!(history.on_request(at(149), RTT, 9), None);
        assert_eq!(history.on_request(at(150), RTT, 9), Some(&9));
        assert_eq!(history.on_request(at(150), RTT, 14), Some(&14));
    }

    #[test]
    fn what_was_never_sent_or_is_forgotten_is_not_sent_again() {
        let mut recent = history(200, RTT);
        assert_eq!(recent.on_request(at(2_000), RTT, 6), None);
        assert_eq!(recent.on_request(at(2_000), RTT, 105), None, "sent at 980 ms");
        assert_eq!(recent.on_request(at(2_000), RTT, 106), Some(&106));
        assert_eq!(recent.on_request(at(2_000), RTT, 207), None);
        let slow = TimeDelta::from_millis(500);
        assert_eq!(history(200, slow).on_request(at(2_000), slow, 57), Some(&57));
    }
}
