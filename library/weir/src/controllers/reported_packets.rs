//! What reports leave out because others before them got lost.
//!
//! A lost report says nothing of its packets, and no later one does. A rate of what arrived would
//! be too low by them, although they arrived. The numbers show how many they are.

use crate::feedback::PacketReport;
use crate::units::DataSize;

/// Share of a new packet in the mean size.
const SIZE_GAIN: f64 = 1.0 / 64.0;

/// The packets on which there has been a report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReportedPackets {
    /// The highest number reported on, and the one before this report.
    highest: Option<i64>,
    before: Option<i64>,
    mean_bytes: f64,
}

/// What a packet of a report adds to what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covered {
    /// The packet, and the ones before it on which no report came, of this size together.
    New { missing: DataSize },
    /// Nothing: it was counted when a later one was reported on.
    Counted,
}

impl ReportedPackets {
    /// A report begins.
    pub(crate) fn begin_report(&mut self) {
        self.before = self.highest;
    }

    /// The next packet of the report, by increasing number.
    #[inline]
    pub(crate) fn on_packet(&mut self, packet: &PacketReport) -> Covered {
        let (number, bytes) = (packet.sequence_number, packet.size.as_bytes() as f64);
        if !packet.recovered && self.highest.is_some_and(|it| it.checked_add(1) == Some(number)) {
            // Most packets.
            self.highest = Some(number);
            self.mean_bytes += SIZE_GAIN * (bytes - self.mean_bytes);
            return Covered::New { missing: DataSize::ZERO };
        }
        self.on_other(number, bytes, packet.recovered)
    }

    /// The number after the highest one reported on.
    pub(crate) fn next(&self) -> Option<i64> {
        self.highest?.checked_add(1)
    }

    /// Takes packets with the next numbers, none of them recovered, each below 4 GB, and moves
    /// another mean of sizes by the same share.
    pub(crate) fn on_next(&mut self, packets: &[PacketReport], other_mean: f64) -> f64 {
        let mut means = [self.mean_bytes, other_mean];
        for packet in packets {
            let bytes = f64::from(packet.size.as_bytes() as u32);
            means = means.map(|mean| mean + SIZE_GAIN * (bytes - mean));
        }
        self.mean_bytes = means[0];
        self.highest = packets.last().map(|packet| packet.sequence_number).or(self.highest);
        means[1]
    }

    /// A packet that does not follow the highest number.
    #[inline(never)]
    fn on_other(&mut self, number: i64, bytes: f64, is_recovered: bool) -> Covered {
        let Some(highest) = self.highest else {
            self.highest = Some(number);
            self.mean_bytes = bytes;
            return Covered::New { missing: DataSize::ZERO };
        };
        if is_recovered {
            return Covered::New { missing: DataSize::ZERO };
        }
        if number <= highest {
            let is_counted = self.before.is_some_and(|before| number <= before);
            return match is_counted {
                true => Covered::Counted,
                false => Covered::New { missing: DataSize::ZERO },
            };
        }
        self.mean_bytes += SIZE_GAIN * (bytes - self.mean_bytes);
        self.highest = Some(number);
        let missing = number.saturating_sub(highest).saturating_sub(1);
        let missing = if missing > 0 { missing as f64 * self.mean_bytes } else { 0.0 };
        Covered::New { missing: DataSize::from_bytes(missing as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Timestamp;

    fn on(coverage: &mut ReportedPackets, number: i64) -> Covered {
        let packet = PacketReport::new(number, DataSize::from_bytes(1_000), Timestamp::ZERO);
        coverage.on_packet(&packet)
    }

    #[test]
    fn packets_without_a_report_count_when_a_later_one_has_one() {
        let mut coverage = ReportedPackets::default();
        let missing = |bytes| Covered::New { missing: DataSize::from_bytes(bytes) };
        coverage.begin_report();
        assert_eq!([on(&mut coverage, 7), on(&mut coverage, 8)], [missing(0), missing(0)]);
        coverage.begin_report();
        assert_eq!([on(&mut coverage, 19), on(&mut coverage, 20)], [missing(10_000), missing(0)]);
        coverage.begin_report();
        assert_eq!(on(&mut coverage, 12), Covered::Counted, "its report overtook another");
    }
}
