//! The sender's history of media packets, from which it retransmits [RFC4588 §4].

use std::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

/// Minimum time for which a packet is kept after it was last sent [LIBWEBRTC §RtpPacketHistory].
const HISTORY: TimeDelta = TimeDelta::from_secs(1);
/// The same minimum in round-trip times. The longer of the two applies.
const HISTORY_ROUND_TRIPS: i64 = 3;
/// With fewer packets than this in the history, the minimum time is multiplied.
const FEW: usize = 600;
/// The factor for this case.
const KEPT_OF_FEW: i64 = 3;

/// Packets with consecutive sequence numbers.
#[derive(Clone, Debug)]
pub(super) struct RtxHistory<T> {
    first: i64,
    sent: VecDeque<Sent<T>>,
}

#[derive(Clone, Debug)]
struct Sent<T> {
    packet: T,
    last_sent: Timestamp,
    again: Again,
}

/// Whether a packet was retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Never,
    /// The retransmission waits in the send queue.
    Queued,
    Sent,
}

impl<T> RtxHistory<T> {
    /// An empty history whose first packet will be number `first`.
    pub(super) fn new(first: i64) -> Self {
        Self { first, sent: VecDeque::new() }
    }

    /// The next media packet left.
    pub(super) fn on_packet_sent(&mut self, now: Timestamp, rtt: TimeDelta, packet: T) {
        let least = HISTORY.max(rtt * HISTORY_ROUND_TRIPS);
        while let Some(oldest) = self.sent.front() {
            let kept = if self.sent.len() < FEW { least * KEPT_OF_FEW } else { least };
            if oldest.again == Again::Queued || now - oldest.last_sent <= kept {
                break;
            }
            self.sent.pop_front();
            self.first += 1;
        }
        self.sent.push_back(Sent { packet, last_sent: now, again: Again::Never });
    }

    /// Returns the packet to retransmit. Returns `None` if it is no longer kept, if its
    /// retransmission waits in the send queue, or if it was retransmitted less than a round-trip
    /// time ago. In the last case the request was sent before the retransmission could arrive.
    pub(super) fn on_request(&mut self, now: Timestamp, rtt: TimeDelta, number: i64) -> Option<&T> {
        let sent = self.get_mut(number)?;
        let is_wanted = match sent.again {
            Again::Never => true,
            Again::Queued => false,
            Again::Sent => now - sent.last_sent >= rtt,
        };
        is_wanted.then_some(&sent.packet)
    }

    /// The packet's retransmission was put into the send queue.
    pub(super) fn on_queued_again(&mut self, number: i64) {
        if let Some(sent) = self.get_mut(number) {
            sent.again = Again::Queued;
        }
    }

    /// The packet's retransmission left.
    pub(super) fn on_sent_again(&mut self, now: Timestamp, number: i64) {
        if let Some(sent) = self.get_mut(number) {
            (sent.again, sent.last_sent) = (Again::Sent, now);
        }
    }

    fn get_mut(&mut self, number: i64) -> Option<&mut Sent<T>> {
        self.sent.get_mut(usize::try_from(number - self.first).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(50);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Packets 7, 8, 9 .. with their number as content, sent `apart_ms` apart.
    fn history(count: i64, apart_ms: i64, rtt: TimeDelta) -> RtxHistory<i64> {
        let mut history = RtxHistory::new(7);
        for index in 0..count {
            history.on_packet_sent(at(index * apart_ms), rtt, 7 + index);
        }
        history
    }

    // [LIBWEBRTC §RtpPacketHistory]
    #[test]
    fn a_packet_is_sent_again_when_asked_for_but_once_a_round_trip() {
        let mut history = history(10, 10, RTT);
        assert_eq!(history.on_request(at(100), RTT, 9), Some(&9));
        history.on_queued_again(9);
        assert_eq!(history.on_request(at(400), RTT, 9), None, "it waits in the send queue");
        history.on_sent_again(at(400), 9);
        assert_eq!(history.on_request(at(449), RTT, 9), None);
        assert_eq!(history.on_request(at(450), RTT, 9), Some(&9));
        assert_eq!(history.on_request(at(450), RTT, 14), Some(&14));
    }

    #[test]
    fn what_was_never_sent_or_is_forgotten_is_not_sent_again() {
        let mut recent = history(2_000, 1, RTT);
        assert_eq!(recent.on_request(at(2_000), RTT, 6), None);
        assert_eq!(recent.on_request(at(2_000), RTT, 1_005), None, "sent at 998 ms");
        assert_eq!(recent.on_request(at(2_000), RTT, 1_006), Some(&1_006));
        assert_eq!(recent.on_request(at(2_000), RTT, 2_007), None);
    }

    // [LIBWEBRTC §RtpPacketHistory]
    #[test]
    fn few_packets_are_kept_three_times_as_long_as_many() {
        let mut few = history(500, 10, RTT);
        assert_eq!(few.on_request(at(5_000), RTT, 205), None, "sent at 1980 ms");
        assert_eq!(few.on_request(at(5_000), RTT, 206), Some(&206));
        let slow = TimeDelta::from_millis(500);
        assert_eq!(history(500, 10, slow).on_request(at(5_000), slow, 55), None);
        assert_eq!(history(500, 10, slow).on_request(at(5_000), slow, 56), Some(&56));
    }

    #[test]
    fn what_left_again_or_waits_to_is_kept_longer() {
        let mut history = history(1, 10, RTT);
        history.on_queued_again(7);
        history.on_packet_sent(at(9_000), RTT, 8);
        assert_eq!(history.sent.len(), 2);
        history.on_sent_again(at(9_000), 7);
        history.on_packet_sent(at(12_000), RTT, 9);
        assert_eq!(history.on_request(at(12_000), RTT, 7), Some(&7));
        history.on_packet_sent(at(12_001), RTT, 10);
        assert_eq!(history.on_request(at(12_001), RTT, 7), None);
    }
}
