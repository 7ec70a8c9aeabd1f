//! Pre-filter: joins packets into groups, so that a burst counts once.
//!
//! Implements [GCC §5.2] and the group times of [GCC §5.1]. Departs from them in GCC-D2 and GCC-D3.

use weir::units::{TimeDelta, Timestamp};

// Parameters [GCC §5.6]. Names in backticks are the draft's.
/// `burst_time`: packets sent, or delivered in a burst, within this time form a group.
pub(super) const BURST_TIME: TimeDelta = TimeDelta::from_millis(5);
/// Maximum duration of a group by arrival, GCC-D2.
const MAX_GROUP_DURATION: TimeDelta = TimeDelta::from_millis(100);
/// A larger step is a pause or a clock jump; no queue explains it: GCC-D3.
const MAX_GAP: TimeDelta = TimeDelta::from_secs(3);

/// Forms groups from packets in arrival order.
#[derive(Clone, Debug, Default)]
pub(super) struct PreFilter {
    /// Departure and arrival of the last complete group, `T(i-1)` and `t(i-1)`.
    previous: Option<GroupTimes>,
    current: Option<Group>,
}

/// Send and arrival time of a group's last packet, `T(i)` and `t(i)` [GCC §5.1].
#[derive(Clone, Copy, Debug)]
struct GroupTimes {
    departure: Timestamp,
    arrival: Timestamp,
}

/// The group that is being formed.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: GroupTimes,
    last: GroupTimes,
}

/// Effect of a packet on the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    /// The packet joined the current group, was ignored, or completed a group without predecessor.
    Pending,
    /// The packet started a new group, which completes the group before it.
    Complete(GroupDelta),
    /// There was a gap before the packet. What was learned before no longer applies.
    Restarted,
}

/// Differences between two consecutive groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupDelta {
    /// Inter-departure time, `T(i) - T(i-1)`.
    pub departure: TimeDelta,
    /// Inter-arrival time, `t(i) - t(i-1)`.
    pub arrival: TimeDelta,
}

impl GroupDelta {
    /// Inter-group delay variation, `d(i)` [GCC §5.1].
    pub(super) fn variation(&self) -> TimeDelta {
        self.arrival - self.departure
    }
}

impl PreFilter {
    /// Takes the next packet in arrival order.
    pub(super) fn on_packet(&mut self, departure: Timestamp, arrival: Timestamp) -> Grouping {
        let packet = GroupTimes { departure, arrival };
        let Some(group) = &mut self.current else {
            self.current = Some(Group { first: packet, last: packet });
            return Grouping::Pending;
        };
        let since = between(group.last, packet);
        if since.arrival.abs() > MAX_GAP || since.departure.abs() > MAX_GAP {
            // GCC-D3: a pause or a clock jump resets the groups.
            *self = Self { previous: None, current: Some(Group { first: packet, last: packet }) };
            return Grouping::Restarted;
        }
        // Packets that arrive out of order are ignored [GCC §5.1].
        if since.departure < TimeDelta::ZERO || since.arrival < TimeDelta::ZERO {
            return Grouping::Pending;
        }
        if group.includes(packet) {
            group.last = packet;
            return Grouping::Pending;
        }
        let complete = group.last;
        *group = Group { first: packet, last: packet };
        match self.previous.replace(complete) {
            Some(previous) => Grouping::Complete(between(previous, complete)),
            None => Grouping::Pending,
        }
    }
}

impl Group {
    /// The two conditions for a packet to join the group [GCC §5.2].
    fn includes(&self, packet: GroupTimes) -> bool {
        if packet.departure - self.first.departure <= BURST_TIME {
            return true;
        }
        let since = between(self.last, packet);
        since.arrival < BURST_TIME
            && since.variation() < TimeDelta::ZERO
            // GCC-D2: otherwise a queue that drains would be one endless group.
            && packet.arrival - self.first.arrival <= MAX_GROUP_DURATION
    }
}

fn between(earlier: GroupTimes, later: GroupTimes) -> GroupDelta {
    GroupDelta {
        departure: later.departure - earlier.departure,
        arrival: later.arrival - earlier.arrival,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The differences of groups made from packets given as (departure, arrival) in ms.
    fn deltas(packets: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut filter = PreFilter::default();
        let mut deltas = Vec::new();
        for &(departure, arrival) in packets {
            let (departure, arrival) =
                (Timestamp::from_millis(departure), Timestamp::from_millis(arrival));
            if let Grouping::Complete(delta) = filter.on_packet(departure, arrival) {
                deltas.push((delta.departure.as_millis(), delta.arrival.as_millis()));
            }
        }
        deltas
    }

    // [GCC §5.2]
    #[test]
    fn packets_sent_within_5_ms_of_the_first_are_one_group() {
        // Groups: {0, 3, 5}, {6, 11}, {20}, and the open one.
        let packets = [(0, 50), (3, 58), (5, 66), (6, 74), (11, 82), (20, 90), (30, 98)];
        assert_eq!(deltas(&packets), [(6, 16), (9, 8)]);
    }

    // [GCC §5.2]
    #[test]
    fn a_burst_after_an_outage_is_one_group() {
        // Sent every 10 ms, held back until 100, then delivered 1 ms apart.
        let packets = [(0, 20), (10, 30), (20, 100), (30, 101), (40, 102), (50, 103), (60, 110)];
        assert_eq!(deltas(&packets), [(10, 10), (40, 73)]);
    }

    // [GCC §5.2]: both an inter-arrival time below 5 ms and a negative variation are needed.
    #[test]
    fn a_packet_that_comes_5_ms_later_or_not_earlier_than_sent_begins_a_group() {
        assert_eq!(deltas(&[(0, 50), (6, 55), (12, 60), (18, 65)]), [(6, 5), (6, 5)]);
        let fine = |us: i64| Timestamp::from_micros(us);
        let mut filter = PreFilter::default();
        // 6 ms apart at sending and at arrival: the arrival gap is too long, the variation not
        // negative.
        filter.on_packet(fine(0), fine(50_000));
        filter.on_packet(fine(6_000), fine(56_000));
        let grouping = filter.on_packet(fine(12_000), fine(62_000));
        let six = TimeDelta::from_millis(6);
        assert_eq!(grouping, Grouping::Complete(GroupDelta { departure: six, arrival: six }));
    }

    // [GCC §5.1]
    #[test]
    fn packets_received_out_of_order_are_ignored() {
        let in_order = [(0, 50), (10, 60), (20, 70), (30, 80), (40, 90)];
        let late = [(0, 50), (10, 60), (20, 70), (15, 71), (30, 80), (12, 83), (40, 90)];
        assert_eq!(deltas(&late), deltas(&in_order));
        // If feedback packets overtake each other, arrivals come out of order.
        let stale = [(0, 50), (10, 60), (20, 70), (25, 65), (30, 80), (40, 90)];
        assert_eq!(deltas(&stale), deltas(&in_order));
    }

    // GCC-D2: a queue of 500 ms drains one packet per ms; the packets were sent every 2 ms.
    #[test]
    fn a_draining_queue_yields_a_group_every_100_ms() {
        let packets: Vec<_> = (0..500).map(|i| (2 * i, 500 + i)).collect();
        let groups = deltas(&packets);
        assert_eq!(groups, [(202, 101), (202, 101), (202, 101)]);
    }

    // GCC-D3
    #[test]
    fn a_gap_of_more_than_3_s_restarts_the_groups() {
        let at = Timestamp::from_millis;
        for (departure, arrival) in [(3_030, 3_081), (40, -3_600_000), (40, 3_600_000)] {
            let mut filter = PreFilter::default();
            for i in 0..4 {
                filter.on_packet(at(10 * i), at(50 + 10 * i));
            }
            assert_eq!(filter.on_packet(at(departure), at(arrival)), Grouping::Restarted);
            let next = filter.on_packet(at(departure + 10), at(arrival + 10));
            assert_eq!(next, Grouping::Pending, "nothing to compare with yet");
        }
    }

    #[test]
    fn a_gap_of_3_s_is_still_a_pause_of_the_source() {
        let packets = [(0, 50), (10, 60), (3_010, 3_060), (3_020, 3_070)];
        assert_eq!(deltas(&packets), [(10, 10), (3_000, 3_000)]);
    }
}
