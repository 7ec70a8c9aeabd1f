//! Bytes in flight: what was sent after the highest acknowledged sequence number.
//!
//! Implements the accounting of [SCREAM §4.1.2] and [SCREAMV2 §4.1]. Holes below the highest
//! acknowledged number do not count as in flight: a lost packet leaves the flight with the next
//! acknowledgement above it.

use alloc::collections::VecDeque;

use crate::feedback::{Ecn, FeedbackReport, PacketReport, SentPacket};
use crate::units::DataSize;

/// Packets remembered while nothing is acknowledged; older ones leave the flight unacknowledged.
const MAX_PACKETS: usize = 1 << 15;

/// What a report acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Acknowledgement {
    /// The received packet with the highest sequence number, if it is higher than all before it.
    pub newest: Option<PacketReport>,
    /// `bytes_newly_acked`: from the last highest sequence number to this one, lost ones included.
    pub newly_acked: DataSize,
    /// Bytes that the report says arrived.
    pub received: DataSize,
    /// Packets that the report says arrived: `data_units_acked`.
    pub received_packets: u64,
    /// Those of them that carry Congestion Experienced: `data_units_acked_ce`.
    pub marked_packets: u64,
    /// Their bytes: `bytes_newly_acked_ce`.
    pub marked: DataSize,
}

/// The bytes between the highest acknowledged and the last sent packet.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct BytesInFlight {
    /// Bytes sent up to and including the last packet.
    sent: u64,
    /// Bytes sent up to and including the highest acknowledged packet.
    acked: u64,
    highest_acked: Option<i64>,
    /// Sequence number of each packet in flight, and `sent` as it stood with it.
    packets: VecDeque<(i64, u64)>,
}

impl BytesInFlight {
    pub fn on_packet_sent(&mut self, packet: &SentPacket) {
        if self.packets.len() == MAX_PACKETS
            && let Some((_, sent)) = self.packets.pop_front()
        {
            self.acked = sent;
        }
        self.sent = self.sent.saturating_add(packet.size.as_bytes());
        self.packets.push_back((packet.sequence_number, self.sent));
    }

    pub fn on_report(&mut self, report: &FeedbackReport) -> Acknowledgement {
        let mut ack = Acknowledgement::default();
        let mut highest = self.highest_acked;
        for packet in report.received() {
            ack.received += packet.size;
            ack.received_packets += 1;
            if packet.ecn == Ecn::Ce {
                ack.marked_packets += 1;
                ack.marked += packet.size;
            }
            if highest.is_none_or(|highest| packet.sequence_number > highest) {
                highest = Some(packet.sequence_number);
                ack.newest = Some(*packet);
            }
        }
        if let Some(newest) = ack.newest {
            self.highest_acked = highest;
            ack.newly_acked = self.advance(newest.sequence_number);
        }
        ack
    }

    fn advance(&mut self, sequence_number: i64) -> DataSize {
        let before = self.acked;
        while let Some(&(number, sent)) = self.packets.front()
            && number <= sequence_number
        {
            self.acked = sent;
            self.packets.pop_front();
        }
        DataSize::from_bytes(self.acked - before)
    }

    /// `bytes_in_flight`.
    pub fn bytes(&self) -> DataSize {
        DataSize::from_bytes(self.sent - self.acked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Timestamp;
    use alloc::vec::Vec;

    fn flight_of(packets: i64) -> BytesInFlight {
        let mut flight = BytesInFlight::default();
        for sequence_number in 0..packets {
            let size = DataSize::from_bytes(1000);
            let packet = SentPacket {
                sequence_number,
                size,
                queued: DataSize::ZERO,
                probe: None,
                padding: false,
            };
            flight.on_packet_sent(&packet);
        }
        flight
    }

    fn report(numbers: &[(i64, bool)]) -> FeedbackReport {
        let packet = |&(sequence_number, received): &(i64, bool)| PacketReport {
            sequence_number,
            size: DataSize::from_bytes(1000),
            send_time: Timestamp::ZERO,
            arrival_time: received.then_some(Timestamp::from_millis(50)),
            ecn: Ecn::NotEct,
            recovered: false,
            probe: None,
        };
        FeedbackReport {
            packets: numbers.iter().map(packet).collect::<Vec<_>>(),
            missing_feedback: 0,
            ..FeedbackReport::default()
        }
    }

    // [SCREAM §4.1.2]: SN sent and SN-5 acknowledged leaves five packets, SN-3 lost or not.
    #[test]
    fn what_lies_above_the_highest_acknowledged_number_is_in_flight() {
        let mut flight = flight_of(10);
        flight.on_report(&report(&[(4, true)]));
        assert_eq!(flight.bytes(), DataSize::from_bytes(5000));
        flight.on_report(&report(&[(6, false)]));
        assert_eq!(flight.bytes(), DataSize::from_bytes(5000));
    }

    // [SCREAM §4.1.2]: N, then N+3 acknowledged is three packets, N+2 lost or not.
    #[test]
    fn newly_acknowledged_bytes_include_the_lost_ones_below() {
        let mut flight = flight_of(10);
        flight.on_report(&report(&[(2, true)]));
        let ack = flight.on_report(&report(&[(3, true), (4, false), (5, true)]));
        assert_eq!(ack.newly_acked, DataSize::from_bytes(3000));
        assert_eq!(ack.received, DataSize::from_bytes(2000));
    }

    #[test]
    fn a_late_packet_acknowledges_nothing_new() {
        let mut flight = flight_of(10);
        flight.on_report(&report(&[(5, true)]));
        let ack = flight.on_report(&report(&[(3, true)]));
        assert_eq!((ack.newest, ack.newly_acked), (None, DataSize::ZERO));
    }

    // [SCREAMV2 §4.1.2]
    #[test]
    fn marked_packets_are_counted_and_weighed() {
        let mut flight = flight_of(10);
        let mut marks = report(&[(0, true), (1, true), (2, true)]);
        marks.packets[1].ecn = Ecn::Ce;
        let ack = flight.on_report(&marks);
        assert_eq!((ack.received_packets, ack.marked_packets), (3, 1));
        assert_eq!(ack.marked, DataSize::from_bytes(1000));
    }

    #[test]
    fn memory_is_bounded_without_acknowledgements() {
        let flight = flight_of(100_000);
        assert_eq!(flight.packets.len(), MAX_PACKETS);
        assert_eq!(flight.bytes(), DataSize::from_bytes(MAX_PACKETS as u64 * 1000));
    }
}
