//! Delivered rate by rounds: what arrived in a round-trip time, and at least in 100 ms.
//!
//! Video leaves frame by frame. A shorter time would measure the rate of one frame's burst, which
//! is the pacer's, in place of the rate of the flow.

use weir::feedback::FeedbackReport;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Minimum duration of a round: three frames at 30 frames a second.
const ROUND_MIN: TimeDelta = TimeDelta::from_millis(100);

/// A round that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Round {
    /// Rate at which packets arrived.
    pub rate: Bitrate,
    /// Rate at which packets left in the same time.
    pub sent: Bitrate,
    /// Lost packets over all packets reported.
    pub loss_ratio: f64,
    /// Number of lost packets.
    pub lost: u64,
    /// Highest number of bytes in flight.
    pub max_in_flight: DataSize,
}

/// Counts from round to round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivered {
    since: Option<Timestamp>,
    received: DataSize,
    sent: DataSize,
    packets: u64,
    lost: u64,
    max_in_flight: DataSize,
}

impl Delivered {
    pub(crate) fn on_packet_sent(&mut self, size: DataSize, in_flight: DataSize) {
        self.sent += size;
        self.max_in_flight = self.max_in_flight.max(in_flight);
    }

    /// Takes a report. Returns the round if it has ended.
    pub(crate) fn on_report(
        &mut self,
        now: Timestamp,
        rtt: TimeDelta,
        report: &FeedbackReport,
    ) -> Option<Round> {
        // The first report covers an unknown time.
        let Some(since) = self.since else {
            *self = Self { since: Some(now), ..Self::default() };
            return None;
        };
        for packet in report.received() {
            self.received += packet.size;
        }
        let counts = report.loss_counts();
        self.packets += counts.received + counts.lost;
        self.lost += counts.lost;
        let elapsed = now - since;
        if elapsed < rtt.max(ROUND_MIN) {
            return None;
        }
        let round = Round {
            rate: self.received / elapsed,
            sent: self.sent / elapsed,
            loss_ratio: self.lost as f64 / self.packets.max(1) as f64,
            lost: self.lost,
            max_in_flight: self.max_in_flight,
        };
        *self = Self { since: Some(now), ..Self::default() };
        Some(round)
    }

    /// Starts again after a time without reports.
    pub(crate) fn restart(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::feedback::PacketReport;

    #[test]
    fn a_round_lasts_a_round_trip_and_at_least_100_ms_and_counts_its_losses() {
        let size = DataSize::from_bytes(1_250);
        let packet = PacketReport::new(0, size, Timestamp::ZERO);
        let arrived = packet.with_arrival_time(Some(Timestamp::ZERO));
        let report = FeedbackReport::new(vec![arrived, arrived, arrived, packet]);
        let mut delivered = Delivered::default();
        let mut rounds = Vec::new();
        for at in [0, 50, 100, 150, 200] {
            delivered.on_packet_sent(size, size);
            let now = Timestamp::from_millis(1_000 + at);
            rounds.push(delivered.on_report(now, TimeDelta::from_millis(20), &report));
        }
        assert_eq!(rounds.iter().flatten().count(), 2);
        let round = rounds[2].expect("100 ms have passed");
        // Two reports of three packets, of 10 kbit each, in 100 ms.
        assert_eq!(round.rate, Bitrate::from_kbps(600));
        assert_eq!(round.sent, Bitrate::from_kbps(200));
        assert_eq!((round.loss_ratio, round.lost), (0.25, 2));
    }
}
