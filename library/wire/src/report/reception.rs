//! Counters with which a receiver fills a report block [RFC3550 §A.3, §A.8].

use super::{CumulativeLost, ReportBlock};

/// The gain of the jitter filter is 1/16. The jitter is kept in sixteenths, so the filter is exact.
const JITTER_GAIN_SHIFT: u32 = 4;

/// Loss and jitter of one stream since its first packet.
#[derive(Clone, Copy, Debug)]
pub struct ReceptionStats {
    base_sequence_number: i64,
    highest_sequence_number: i64,
    /// Packets received, including duplicates.
    received: i64,
    /// Packets expected up to the previous report.
    expected_before: i64,
    /// Packets received up to the previous report.
    received_before: i64,
    last_transit: u32,
    /// Jitter in 1/16 of the RTP clock's unit.
    jitter_sixteenths: u32,
}

impl ReceptionStats {
    /// Starts with the first packet. `rtp_arrival` is its arrival on the clock of the RTP
    /// timestamps; the sequence number is unwrapped.
    pub const fn new(sequence_number: i64, rtp_timestamp: u32, rtp_arrival: u32) -> Self {
        Self {
            base_sequence_number: sequence_number,
            highest_sequence_number: sequence_number,
            received: 1,
            expected_before: 0,
            received_before: 0,
            last_transit: rtp_arrival.wrapping_sub(rtp_timestamp),
            jitter_sixteenths: 0,
        }
    }

    /// Counts a later packet.
    pub fn on_packet(&mut self, sequence_number: i64, rtp_timestamp: u32, rtp_arrival: u32) {
        self.highest_sequence_number = self.highest_sequence_number.max(sequence_number);
        self.received += 1;
        let transit = rtp_arrival.wrapping_sub(rtp_timestamp);
        let deviation = transit.wrapping_sub(self.last_transit).cast_signed().unsigned_abs();
        self.last_transit = transit;
        // Wrong timestamps can drive the jitter to its maximum. It must not wrap there.
        let rounded = self.jitter_sixteenths.saturating_add(1 << JITTER_GAIN_SHIFT >> 1);
        let decay = rounded >> JITTER_GAIN_SHIFT;
        self.jitter_sixteenths = (self.jitter_sixteenths - decay).saturating_add(deviation);
    }

    /// The block for a report sent now. The fraction lost of the next report starts counting here.
    pub fn report(
        &mut self,
        ssrc: u32,
        last_sender_report: u32,
        delay_since_last_sender_report: u32,
    ) -> ReportBlock {
        let expected = self.highest_sequence_number - self.base_sequence_number + 1;
        let expected_since = expected - self.expected_before;
        let lost_since = expected_since - (self.received - self.received_before);
        self.expected_before = expected;
        self.received_before = self.received;
        let fraction_lost = if expected_since == 0 || lost_since <= 0 {
            0
        } else {
            // Below 256: `expected_since` is positive only if a packet has raised the highest
            // number.
            ((lost_since << 8) / expected_since) as u8
        };
        ReportBlock {
            ssrc,
            fraction_lost,
            cumulative_lost: CumulativeLost::clamped(expected - self.received),
            // The low 16 bits are the sequence number on the wire, the high 16 bits count its
            // cycles.
            extended_highest_sequence_number: self.highest_sequence_number as u32,
            jitter: self.jitter_sixteenths >> JITTER_GAIN_SHIFT,
            last_sender_report,
            delay_since_last_sender_report,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts a first packet 65530, then these packets, all with the same transit time.
    fn stats_after(sequence_numbers: impl IntoIterator<Item = i64>) -> ReceptionStats {
        let mut stats = ReceptionStats::new(65530, 0, 0);
        for sequence_number in sequence_numbers {
            stats.on_packet(sequence_number, 0, 0);
        }
        stats
    }

    // [RFC3550 §A.3]
    #[test]
    fn fraction_lost_counts_from_the_previous_report() {
        // Of the 11 packets from 65530 to 65540, two are missing: 2 * 256 / 11 = 46.5.
        let mut stats = stats_after((65531..65537).chain([65539]));
        stats.on_packet(65540, 0, 0);
        let block = stats.report(1, 0, 0);
        assert_eq!((block.fraction_lost, block.cumulative_lost.get()), (46, 2));
        assert_eq!(block.extended_highest_sequence_number, 65540);
        stats.on_packet(65541, 0, 0);
        let block = stats.report(1, 0, 0);
        assert_eq!((block.fraction_lost, block.cumulative_lost.get()), (0, 2));
    }

    // [RFC3550 §A.3]
    #[test]
    fn duplicates_make_the_loss_negative_and_the_fraction_zero() {
        let block = stats_after([65531, 65531, 65531]).report(1, 0, 0);
        assert_eq!((block.fraction_lost, block.cumulative_lost.get()), (0, -2));
    }

    #[test]
    fn a_report_without_new_packets_has_no_loss() {
        let mut stats = stats_after([65531]);
        stats.report(1, 0, 0);
        assert_eq!(stats.report(1, 0, 0).fraction_lost, 0);
    }

    // [RFC3550 §A.8]
    #[test]
    fn jitter_moves_a_sixteenth_toward_each_deviation() {
        let mut stats = ReceptionStats::new(0, 0, 0);
        stats.on_packet(1, 90, 90 + 160);
        assert_eq!(stats.report(1, 0, 0).jitter, 10);
        // 160 sixteenths decay by 10 to 150; the deviation of 160 back adds up to 310: 19.375.
        stats.on_packet(2, 180, 180);
        assert_eq!(stats.report(1, 0, 0).jitter, 19);
    }

    #[test]
    fn jitter_stays_at_its_top_while_timestamps_make_no_sense() {
        let mut stats = ReceptionStats::new(0, 0, 0);
        for number in 1..10_000 {
            stats.on_packet(number, if number % 2 == 0 { 0 } else { 1 << 31 }, 0);
        }
        assert_eq!(stats.report(1, 0, 0).jitter, u32::MAX >> 4);
    }

    #[test]
    fn jitter_holds_across_the_wrap_of_the_rtp_clock() {
        let mut stats = ReceptionStats::new(0, u32::MAX - 10, u32::MAX - 5);
        stats.on_packet(1, 80, 85);
        assert_eq!(stats.report(1, 0, 0).jitter, 0);
    }
}
