//! Bytes in flight: bytes sent after the highest acknowledged sequence number.
//!
//! Implements the accounting of [SCREAM §4.1.2] and [SCREAMV2 §4.1]. Missing packets below the
//! highest acknowledged number do not count as in flight: a lost packet leaves the flight when a
//! later packet is acknowledged.

use alloc::collections::VecDeque;

use crate::feedback::{Ecn, FeedbackReport, PacketReport, SentPacket};
use crate::units::DataSize;

/// Maximum number of packets in flight. Older packets leave the flight without acknowledgement.
const MAX_PACKETS: usize = 1 << 15;

/// The acknowledgements of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Acknowledgement {
    /// The received packet with the highest sequence number, if that is higher than in earlier
    /// reports.
    pub newest: Option<PacketReport>,
    /// `bytes_newly_acked`: bytes from the previous highest sequence number to this one, including
    /// lost packets.
    pub newly_acked: DataSize,
    /// Bytes reported as received.
    pub received: DataSize,
    /// Packets reported as received: `data_units_acked`.
    pub received_packets: u64,
    /// Received packets marked Congestion Experienced: `data_units_acked_ce`.
    pub marked_packets: u64,
    /// Bytes of the marked packets: `bytes_newly_acked_ce`.
    pub marked: DataSize,
}

/// Counts the bytes between the highest acknowledged packet and the last sent packet.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct BytesInFlight {
    /// Bytes sent up to and including the last packet.
    sent: u64,
    /// Bytes sent up to and including the highest acknowledged packet.
    acked: u64,
    highest_acked: Option<i64>,
    /// Sequence number of each packet in flight, and the value of `sent` after it.
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

    /// Bytes in flight, `bytes_in_flight`.
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

    // [SCREAM §4.1.2]: if SN was sent and SN-5 acknowledged, five packets are in flight, even if
    // SN-3 was lost.
    #[test]
    fn what_lies_above_the_highest_acknowledged_number_is_in_flight() {
        let mut flight = flight_of(10);
        flight.on_report(&report(&[(4, true)]));
        assert_eq!(flight.bytes(), DataSize::from_bytes(5000));
        flight.on_report(&report(&[(6, false)]));
        assert_eq!(flight.bytes(), DataSize::from_bytes(5000));
    }

    // [SCREAM §4.1.2]: acknowledging N and then N+3 acknowledges three packets, even if N+2 was
    // lost.
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
