//! Bytes in flight: what was sent after the newest packet that was acknowledged.

use alloc::collections::VecDeque;

use weir::feedback::{FeedbackReport, SentPacket};
use weir::units::DataSize;

/// Maximum number of packets in flight. Older packets leave the flight without acknowledgement.
const MAX_PACKETS: usize = 1 << 15;

/// Counts the bytes between the newest acknowledged packet and the last one sent. A lost packet
/// leaves the flight when a later one is acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    /// Sequence number and size of each packet in flight.
    packets: VecDeque<(i64, DataSize)>,
    bytes: DataSize,
}

impl Flight {
    pub(crate) fn on_packet_sent(&mut self, packet: &SentPacket) {
        if self.packets.len() == MAX_PACKETS {
            self.leave();
        }
        self.packets.push_back((packet.sequence_number, packet.size));
        self.bytes += packet.size;
    }

    pub(crate) fn on_report(&mut self, report: &FeedbackReport) {
        let Some(newest) = report.received().map(|packet| packet.sequence_number).max() else {
            return;
        };
        while self.packets.front().is_some_and(|&(number, _)| number <= newest) {
            self.leave();
        }
    }

    fn leave(&mut self) {
        if let Some((_, size)) = self.packets.pop_front() {
            self.bytes = self.bytes.saturating_sub(size);
        }
    }

    /// Nothing is known about what was sent: it no longer counts.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn bytes(&self) -> DataSize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::feedback::PacketReport;
    use weir::units::Timestamp;

    #[test]
    fn packets_leave_the_flight_with_the_newest_one_that_arrived() {
        let size = DataSize::from_bytes(1_000);
        let mut flight = Flight::default();
        for number in 0..5 {
            flight.on_packet_sent(&SentPacket::new(number, size));
        }
        let [first, second, third] =
            [1, 2, 3].map(|number| PacketReport::new(number, size, Timestamp::ZERO));
        let arrived = second.with_arrival_time(Some(Timestamp::ZERO));
        flight.on_report(&FeedbackReport::new(vec![first, arrived, third]));
        assert_eq!(flight.bytes(), size + size);
    }

    #[test]
    fn memory_is_bounded_without_acknowledgements() {
        let size = DataSize::from_bytes(10);
        let mut flight = Flight::default();
        for number in 0..100_000 {
            flight.on_packet_sent(&SentPacket::new(number, size));
        }
        assert_eq!(flight.bytes().as_bytes(), 10 * MAX_PACKETS as u64);
    }
}
