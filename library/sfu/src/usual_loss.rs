//! How much a path loses at any rate.
//!
//! A radio link loses some packets whatever is sent. A probe that loses as many shows nothing
//! about its rate.

use weir::feedback::FeedbackReport;
use weir::units::{TimeDelta, Timestamp};

/// Number of packets over which the ratio is taken, or a time if it has more.
const WINDOW: f64 = 200.0;
const TIME: TimeDelta = TimeDelta::from_secs(1);
/// Packets that must have been seen before it counts.
const ENOUGH: f64 = 40.0;
/// More is congestion, whatever else it is: GCC draws the line there, too.
pub(crate) const MOST: f64 = 0.1;

/// Standard deviations of the number of losses that are chance.
const CHANCE: f64 = 3.0;

/// Losses of media since the path was last full, with a memory that fades.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsualLoss {
    lost: f64,
    all: f64,
    /// When the newest of them left.
    newest: Option<Timestamp>,
}

impl UsualLoss {
    /// Counts the packets that were sent for media.
    pub fn on_feedback(&mut self, report: &FeedbackReport) {
        let (mut lost, mut all) = (0.0, 0.0);
        for packet in &report.packets {
            if packet.probe.is_none() && !packet.recovered {
                lost += if packet.arrival_time.is_none() { 1.0 } else { 0.0 };
                all += 1.0;
            }
        }
        let Some(sent) = report.packets.last().map(|packet| packet.send_time) else { return };
        let before = self.newest.replace(sent).unwrap_or(sent);
        let passed = (sent - before).max(TimeDelta::ZERO);
        let keep = (WINDOW / (WINDOW + all)).max(TIME / (TIME + passed));
        self.lost = self.lost * keep + lost;
        self.all = self.all * keep + all;
    }

    /// The path is full: what was lost lately was the queue's.
    pub fn on_full(&mut self) {
        *self = Self::default();
    }

    /// The share of packets lost, 0 while too few are known.
    pub fn ratio(&self) -> f64 {
        if self.all < ENOUGH { 0.0 } else { (self.lost / self.all).clamp(0.0, MOST) }
    }

    /// Whether too little media was sent to tell what is usual.
    pub fn is_unknown(&self) -> bool {
        self.all < ENOUGH
    }

    /// Whether so much is lost, not by chance, that it is congestion.
    pub fn is_congestion(&self) -> bool {
        let most = self.all * MOST;
        self.all >= ENOUGH && self.lost > most + CHANCE * libm::sqrt(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use weir::feedback::{PacketReport, ProbeId};
    use weir::units::{DataSize, Timestamp};

    /// Packets of which every twentieth is lost.
    fn report(count: i64, probe: Option<ProbeId>) -> FeedbackReport {
        let mut packets = Vec::new();
        for number in 0..count {
            let at = Timestamp::from_millis(number);
            let arrival = (number % 20 != 0).then_some(at);
            packets.push(
                PacketReport::new(number, DataSize::from_bytes(1_000), at)
                    .with_arrival_time(arrival)
                    .with_probe(probe),
            );
        }
        FeedbackReport::new(packets)
    }

    #[test]
    fn it_is_known_after_forty_packets_of_media() {
        let mut loss = UsualLoss::default();
        loss.on_feedback(&report(39, None));
        loss.on_feedback(&report(60, Some(ProbeId(1))));
        assert_eq!(loss.ratio(), 0.0);
        loss.on_feedback(&report(21, None));
        assert!((loss.ratio() - 0.06).abs() < 0.02, "{}", loss.ratio());
        assert!(!loss.is_congestion());
        loss.on_full();
        assert_eq!(loss.ratio(), 0.0);
    }

    // At 100 Mbit/s 200 packets take 20 ms: the ratio of so few is a matter of chance.
    #[test]
    fn at_a_high_rate_it_is_taken_over_a_second() {
        let mut loss = UsualLoss::default();
        let size = DataSize::from_bytes(1_000);
        for step in 0..400 {
            let mut packets = Vec::new();
            for number in 0..100 {
                let sent = Timestamp::from_micros(10_000 * step + 100 * number);
                // All losses come in one of ten reports.
                let is_lost = step % 10 == 0 && number < 20;
                let arrival = if is_lost { None } else { Some(sent) };
                packets.push(
                    PacketReport::new(step * 100 + number, size, sent).with_arrival_time(arrival),
                );
            }
            loss.on_feedback(&FeedbackReport::new(packets));
            if step > 200 {
                assert!((loss.ratio() - 0.02).abs() < 0.004, "{} at {step}", loss.ratio());
            }
        }
    }
}
