//! Loss detection: a packet reported missing is lost once the reordering window has passed.
//!
//! Implements [SCREAM §4.1.2.4] and [SCREAMV2 §4.2.1.1]. The bounds of the window are SCREAM-D5 and
//! SCREAMV2-D3.

use alloc::collections::VecDeque;

use crate::feedback::FeedbackReport;
use crate::units::{TimeDelta, Timestamp};

/// Maximum number of missing packets remembered, to recognize late ones.
const MAX_MISSING: usize = 1024;
/// Number of losses in a row without a late packet after which the reordering window closes again:
/// `reo_wnd_persist` [RFC8985 §6.2].
const PERSIST: u32 = 16;

/// Distinguishes lost packets from late ones.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct LostPackets {
    missing: Missing,
    /// Missing packets not declared lost yet, ordered by that time.
    waiting: VecDeque<(Timestamp, i64)>,
    reordering_window: TimeDelta,
    /// Losses since a missing packet last arrived late.
    losses: u32,
}

impl LostPackets {
    /// Records the packets that a report declares missing, and missing packets that arrived late.
    pub fn on_report(&mut self, now: Timestamp, report: &FeedbackReport, rtt: TimeDelta) {
        for packet in &report.packets {
            if packet.arrival_time.is_none() {
                self.missing.insert(packet.sequence_number, now);
                self.waiting.push_back((now, packet.sequence_number));
            } else if packet.recovered
                && let Some(since) = self.missing.remove(packet.sequence_number)
            {
                // Reordering delay: time between the report that lacked the packet and the one that
                // contains it. SCREAM-D5: at most one round trip, as in [RFC8985 §6.2].
                self.reordering_window = self.reordering_window.max(now - since).min(rtt);
                self.losses = 0;
            }
        }
    }

    /// Number of packets whose reordering window has ended by `now`. Each is returned once.
    pub fn take_lost(&mut self, now: Timestamp) -> u64 {
        let mut lost = 0;
        while let Some(&(since, number)) = self.waiting.front()
            && (since + self.reordering_window <= now || self.waiting.len() > MAX_MISSING)
        {
            self.waiting.pop_front();
            if self.missing.since(number) == Some(since) {
                lost += 1;
                self.losses += 1;
            }
        }
        if self.losses >= PERSIST {
            // SCREAM-D5: the path no longer reorders packets.
            self.reordering_window = TimeDelta::ZERO;
            self.losses = 0;
        }
        lost
    }
}

/// Sequence number of each missing packet, in order, and when feedback last reported it missing.
/// New packets go to the end nearly always, and the memory stays when the queue is empty.
#[derive(Clone, Debug, Default)]
struct Missing(VecDeque<(i64, Timestamp)>);

impl Missing {
    /// The index of a packet, or where it belongs.
    fn find(&self, number: i64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&number, |(number, _)| *number)
    }

    fn since(&self, number: i64) -> Option<Timestamp> {
        self.find(number).ok().map(|index| self.0[index].1)
    }

    /// Adds a packet. Where there are too many, the one with the lowest number is forgotten.
    fn insert(&mut self, number: i64, since: Timestamp) {
        match self.find(number) {
            Ok(index) => self.0[index].1 = since,
            Err(index) if self.0.len() < MAX_MISSING => self.0.insert(index, (number, since)),
            Err(0) => {}
            Err(index) => {
                self.0.pop_front();
                self.0.insert(index - 1, (number, since));
            }
        }
    }

    fn remove(&mut self, number: i64) -> Option<Timestamp> {
        let index = self.find(number).ok()?;
        self.0.remove(index).map(|(_, since)| since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::{Ecn, PacketReport};
    use crate::units::DataSize;

    const RTT: TimeDelta = TimeDelta::from_millis(200);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn packet(sequence_number: i64, received: bool, recovered: bool) -> PacketReport {
        PacketReport {
            sequence_number,
            size: DataSize::from_bytes(1000),
            send_time: Timestamp::ZERO,
            arrival_time: received.then_some(Timestamp::ZERO),
            ecn: Ecn::NotEct,
            recovered,
            probe: None,
        }
    }

    fn report<const N: usize>(packets: [PacketReport; N]) -> FeedbackReport {
        FeedbackReport { packets: packets.into(), missing_feedback: 0, ..FeedbackReport::default() }
    }

    // [SCREAM §4.1.2.4]
    #[test]
    fn a_missing_packet_is_lost_at_once_while_nothing_was_reordered() {
        let mut lost = LostPackets::default();
        lost.on_report(at(0), &report([packet(1, false, false), packet(2, true, false)]), RTT);
        assert_eq!(lost.take_lost(at(0)), 1);
        assert_eq!(lost.take_lost(at(0)), 0);
    }

    // [SCREAM §4.1.2.4]
    #[test]
    fn the_window_opens_to_the_time_from_missing_to_received() {
        let mut lost = LostPackets::default();
        lost.on_report(at(0), &report([packet(1, false, false)]), RTT);
        lost.on_report(at(50), &report([packet(1, true, true)]), RTT);
        lost.on_report(at(100), &report([packet(3, false, false), packet(4, false, false)]), RTT);
        assert_eq!(lost.take_lost(at(149)), 0);
        lost.on_report(at(149), &report([packet(3, true, true)]), RTT);
        assert!(lost.take_lost(at(150)) == 1, "4 stayed away");
    }

    // SCREAM-D5
    #[test]
    fn the_window_is_at_most_one_round_trip() {
        let mut lost = LostPackets::default();
        lost.on_report(at(0), &report([packet(1, false, false)]), RTT);
        lost.on_report(at(9_000), &report([packet(1, true, true)]), RTT);
        assert_eq!(lost.reordering_window, RTT);
    }

    // SCREAM-D5
    #[test]
    fn the_window_closes_after_16_losses_without_a_late_packet() {
        let mut lost = LostPackets { reordering_window: RTT, ..LostPackets::default() };
        for number in 0..16 {
            assert_eq!(lost.reordering_window, RTT);
            lost.on_report(at(number * 1_000), &report([packet(number, false, false)]), RTT);
            assert_eq!(lost.take_lost(at(number * 1_000 + 200)), 1);
        }
        assert_eq!(lost.reordering_window, TimeDelta::ZERO);
    }

    #[test]
    fn memory_is_bounded_when_everything_is_lost() {
        let mut lost = LostPackets { reordering_window: RTT, ..LostPackets::default() };
        for number in 0..5_000 {
            lost.on_report(at(0), &report([packet(number, false, false)]), RTT);
            lost.take_lost(at(0));
        }
        assert!(lost.missing.0.len() <= MAX_MISSING && lost.waiting.len() <= MAX_MISSING);
    }
}
