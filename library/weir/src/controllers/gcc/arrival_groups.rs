//! Arrival groups: packets sent in one burst form a group; two groups give one delay difference.
//!
//! Implements [LIBWEBRTC §InterArrivalDelta].

use crate::units::{TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §InterArrivalDelta].
/// Packets sent within this time of a group's first one belong to it.
const GROUP_LENGTH: TimeDelta = TimeDelta::from_millis(5);
/// Packets that arrive at most this far apart, and closer together than they were sent, are a
/// burst.
const BURST_GAP: TimeDelta = TimeDelta::from_millis(5);
/// Maximum duration of a burst.
const MAX_BURST: TimeDelta = TimeDelta::from_millis(100);
/// If arrivals run ahead of the local clock by this much, the receiver's clock jumped.
const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(3);
/// Resolution of send times: libwebrtc's sockets report whole ms. Packets of one pacer burst
/// therefore have equal send times, and bursts that wait in a queue together become one group.
const SEND_TIME_STEP_NS: i64 = 1_000_000;
/// If this many consecutive groups end before their predecessor, all state is reset.
const MAX_REORDERED: u32 = 3;

/// The times of one packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    pub send_time: Timestamp,
    pub arrival_time: Timestamp,
    /// Arrival of its feedback at the sender.
    pub feedback_time: Timestamp,
}

/// Difference between two consecutive groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupDelta {
    pub send: TimeDelta,
    pub arrival: TimeDelta,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first_send: Timestamp,
    first_arrival: Timestamp,
    /// Latest send time; arrival time and feedback time of the last packet.
    last: Passage,
}

/// Forms groups from packets in arrival order.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrivalGroups {
    current: Option<Group>,
    previous: Option<Passage>,
    reordered: u32,
}

impl ArrivalGroups {
    /// Takes the next packet. If it completes a group that has a predecessor, returns their
    /// difference.
    #[inline]
    pub(super) fn on_packet(&mut self, packet: Passage) -> Option<GroupDelta> {
        if let Some(Group { last, .. }) = &mut self.current {
            // What is before the step of the last packet wraps to a long time.
            let into = packet.send_time.as_nanos().wrapping_sub(last.send_time.as_nanos());
            if (into as u64) < SEND_TIME_STEP_NS as u64 {
                // Most packets at high rates.
                *last = Passage { send_time: last.send_time, ..packet };
                return None;
            }
        }
        self.on_next_step(packet)
    }

    /// The same for a packet that was not sent in the same step as the last one.
    fn on_next_step(&mut self, packet: Passage) -> Option<GroupDelta> {
        let steps = packet.send_time.as_nanos().div_euclid(SEND_TIME_STEP_NS);
        // The first step of all begins before the first time.
        let send_time = Timestamp::from_nanos(steps.saturating_mul(SEND_TIME_STEP_NS));
        let packet = Passage { send_time, ..packet };
        let Some(current) = self.current.as_mut() else {
            self.current = Some(Group::of(packet));
            return None;
        };
        if packet.send_time < current.first_send {
            return None;
        }
        if current.includes(packet) {
            let send_time = current.last.send_time.max(packet.send_time);
            current.last = Passage { send_time, ..packet };
            return None;
        }
        let complete = current.last;
        let delta = match self.previous {
            None => None,
            Some(previous) => Some(self.compare(previous, complete)?),
        };
        self.previous = Some(complete);
        self.current = Some(Group::of(packet));
        delta
    }

    /// The difference of two groups. `None` if they do not follow each other; then the packet that
    /// completed the second one is dropped.
    fn compare(&mut self, previous: Passage, complete: Passage) -> Option<GroupDelta> {
        let arrival = complete.arrival_time - previous.arrival_time;
        if arrival - (complete.feedback_time - previous.feedback_time) >= CLOCK_JUMP {
            *self = Self::default();
            return None;
        }
        if arrival < TimeDelta::ZERO {
            self.reordered += 1;
            if self.reordered >= MAX_REORDERED {
                *self = Self::default();
            }
            return None;
        }
        self.reordered = 0;
        Some(GroupDelta { send: complete.send_time - previous.send_time, arrival })
    }
}

impl Group {
    fn of(packet: Passage) -> Self {
        Self { first_send: packet.send_time, first_arrival: packet.arrival_time, last: packet }
    }

    fn includes(&self, packet: Passage) -> bool {
        self.is_burst_with(packet) || packet.send_time - self.first_send <= GROUP_LENGTH
    }

    fn is_burst_with(&self, packet: Passage) -> bool {
        let arrival = packet.arrival_time - self.last.arrival_time;
        let send = packet.send_time - self.last.send_time;
        send == TimeDelta::ZERO
            || (arrival < send
                && arrival <= BURST_GAP
                && packet.arrival_time - self.first_arrival < MAX_BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The differences (send, arrival) made by packets given as (send, arrival, feedback) in ms.
    fn deltas(groups: &mut ArrivalGroups, packets: &[(i64, i64, i64)]) -> Vec<(i64, i64)> {
        let at = Timestamp::from_millis;
        let delta = |&(send, arrival, feedback): &(i64, i64, i64)| {
            let (send_time, arrival_time) = (at(send), at(arrival));
            groups.on_packet(Passage { send_time, arrival_time, feedback_time: at(feedback) })
        };
        let deltas = packets.iter().filter_map(delta);
        deltas.map(|delta| (delta.send.as_millis(), delta.arrival.as_millis())).collect()
    }

    fn fresh(packets: &[(i64, i64, i64)]) -> Vec<(i64, i64)> {
        deltas(&mut ArrivalGroups::default(), packets)
    }

    // [LIBWEBRTC §InterArrivalDelta]: groups {0, 5}, {6}, {20}, and the open one.
    #[test]
    fn packets_sent_within_5_ms_of_the_first_are_one_group() {
        let packets = [(0, 50, 99), (5, 66, 99), (6, 74, 99), (20, 90, 99), (40, 110, 99)];
        assert_eq!(fresh(&packets), [(1, 8), (14, 16)]);
    }

    // [LIBWEBRTC §InterArrivalDelta]: sent every 10 ms, held until 100, delivered 1 ms apart.
    #[test]
    fn a_burst_is_one_group_and_ends_after_100_ms() {
        let held = [(0, 20, 99), (10, 100, 99), (20, 101, 99), (30, 102, 99), (60, 120, 99)];
        assert_eq!(fresh(&held), [(30, 82)]);
        let long: Vec<_> = (0..300).map(|i| (6 * i, 1_000 + i, 2_000)).collect();
        assert_eq!(fresh(&long), [(600, 100)]);
    }

    // [LIBWEBRTC §InterArrivalDelta]
    #[test]
    fn packets_sent_together_are_one_group_however_late_they_come() {
        let packets = [(0, 0, 0), (10, 10, 10), (10, 300, 300), (30, 320, 320)];
        assert_eq!(fresh(&packets), [(10, 300)]);
    }

    // [LIBWEBRTC §InterArrivalDelta]: three frames of three packets, sent 400 us apart, arrive 4 ms
    // apart.
    #[test]
    fn frames_that_wait_in_a_queue_are_one_burst_as_sending_has_whole_ms() {
        let mut groups = ArrivalGroups::default();
        let mut pass = |send_us: i64, arrival_ms: i64| {
            let send_time = Timestamp::from_nanos(send_us * 1_000);
            let arrival_time = Timestamp::from_millis(arrival_ms);
            groups.on_packet(Passage { send_time, arrival_time, feedback_time: arrival_time })
        };
        for packet in 0..9 {
            let (frame, place) = (packet / 3, packet % 3);
            assert_eq!(pass(33_000 * frame + 400 * place, 200 + 4 * packet), None);
        }
        assert_eq!(pass(300_000, 400), None);
        let delta = pass(400_000, 500).unwrap();
        assert_eq!((delta.send.as_millis(), delta.arrival.as_millis()), (234, 168));
    }

    // [LIBWEBRTC §InterArrivalDelta]
    #[test]
    fn packets_sent_before_the_groups_first_one_are_dropped() {
        let packets = [(0, 50, 99), (10, 60, 99), (4, 61, 99), (20, 70, 99), (30, 80, 99)];
        assert_eq!(fresh(&packets), [(10, 10), (10, 10)]);
    }

    // [LIBWEBRTC §InterArrivalDelta]
    #[test]
    fn a_jump_of_the_receivers_clock_by_3_s_starts_afresh() {
        for (jump, expect) in [(2_999, 2), (3_000, 0)] {
            let packets =
                [(0, 50, 100), (10, 60 + jump, 110), (20, 70 + jump, 120), (30, 80 + jump, 130)];
            assert_eq!(fresh(&packets).len(), expect, "{jump} ms");
        }
    }

    // [LIBWEBRTC §InterArrivalDelta]
    #[test]
    fn three_groups_in_a_row_that_end_before_their_predecessor_start_afresh() {
        let mut groups = ArrivalGroups::default();
        deltas(&mut groups, &[(0, 9_000, 0), (10, 9_010, 0), (20, 10, 0)]);
        assert_eq!(deltas(&mut groups, &[(30, 20, 0), (40, 30, 0)]), []);
        assert!(groups.previous.is_some());
        deltas(&mut groups, &[(50, 40, 0)]);
        assert!(groups.previous.is_none() && groups.current.is_none());
    }
}
