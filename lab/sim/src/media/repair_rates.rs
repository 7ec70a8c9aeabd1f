//! Rates of media and repair, and the media rate that the target allows.
//!
//! The controller's target `A` includes everything that is sent: the encoder gets
//! `v = A - r_FEC - r_RTX` (bari). Parity is at most half of the data sent (bari), and
//! retransmissions are at most half of the target, so that neither displaces the media.

use std::collections::VecDeque;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::{Kind, Split};

/// Window for the rates.
const WINDOW: TimeDelta = TimeDelta::from_secs(1);
/// Maximum share of retransmissions in the target.
const MAX_RTX_SHARE: f64 = 0.5;
/// Minimum share of the encoder in the target. After a cut of the target, the repair of the last
/// second still belongs to the old, higher rate.
const MIN_MEDIA_SHARE: f64 = 0.5;

/// Data that was put into the send queue in the last second.
#[derive(Clone, Debug, Default)]
pub(super) struct RepairRates {
    recent: VecDeque<(Timestamp, Kind, DataSize)>,
    sums: Split,
}

impl RepairRates {
    /// A packet was put into the send queue.
    pub(super) fn on_packet(&mut self, now: Timestamp, kind: Kind, size: DataSize) {
        self.forget(now);
        self.recent.push_back((now, kind, size));
        self.sums.add(kind, size);
    }

    /// `v`: the rate that the encoder may produce.
    pub(super) fn media_rate(&mut self, now: Timestamp, target: Bitrate) -> Bitrate {
        self.forget(now);
        let repair = (self.sums.fec + self.sums.rtx) / WINDOW;
        target.saturating_sub(repair).max(target * MIN_MEDIA_SHARE)
    }

    /// Whether a parity packet of this size may be sent.
    pub(super) fn allows_fec(&mut self, now: Timestamp, size: DataSize) -> bool {
        self.forget(now);
        // "At most half of the data" means "at most as much as the rest".
        self.sums.fec + size <= self.sums.media + self.sums.rtx
    }

    /// Whether a retransmission of this size may be sent.
    pub(super) fn allows_rtx(&mut self, now: Timestamp, size: DataSize, target: Bitrate) -> bool {
        self.forget(now);
        (self.sums.rtx + size) / WINDOW <= target * MAX_RTX_SHARE
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some(&(time, kind, size)) = self.recent.front()
            && time + WINDOW <= now
        {
            self.recent.pop_front();
            let sum = match kind {
                Kind::Media => &mut self.sums.media,
                Kind::Rtx => &mut self.sums.rtx,
                Kind::Fec => &mut self.sums.fec,
            };
            *sum = sum.saturating_sub(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Bitrate = Bitrate::from_kbps(800);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn bytes(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }

    #[test]
    fn the_encoder_gets_the_target_less_the_repair_of_the_last_second() {
        let mut rates = RepairRates::default();
        assert_eq!(rates.media_rate(at(0), TARGET), TARGET);
        rates.on_packet(at(0), Kind::Fec, bytes(12_500)); // 100 kbit/s
        rates.on_packet(at(500), Kind::Rtx, bytes(6_250));
        rates.on_packet(at(500), Kind::Media, bytes(50_000));
        assert_eq!(rates.media_rate(at(999), TARGET), Bitrate::from_kbps(650));
        assert_eq!(rates.media_rate(at(1_000), TARGET), Bitrate::from_kbps(750));
        assert_eq!(rates.media_rate(at(1_500), TARGET), TARGET);
    }

    #[test]
    fn after_a_cut_the_repair_of_the_old_rate_leaves_the_media_half() {
        let mut rates = RepairRates::default();
        rates.on_packet(at(0), Kind::Fec, bytes(50_000));
        let target = Bitrate::from_kbps(300);
        assert_eq!(rates.media_rate(at(1), target), Bitrate::from_kbps(150));
    }

    #[test]
    fn parity_is_at_most_half_of_what_is_sent() {
        let mut rates = RepairRates::default();
        assert!(!rates.allows_fec(at(0), bytes(1)));
        rates.on_packet(at(0), Kind::Media, bytes(1_000));
        assert!(rates.allows_fec(at(0), bytes(1_000)));
        assert!(!rates.allows_fec(at(0), bytes(1_001)));
        rates.on_packet(at(0), Kind::Fec, bytes(1_000));
        assert!(!rates.allows_fec(at(0), bytes(1)));
    }

    #[test]
    fn retransmissions_are_at_most_half_of_the_target() {
        let mut rates = RepairRates::default();
        rates.on_packet(at(0), Kind::Rtx, bytes(49_000));
        assert!(rates.allows_rtx(at(0), bytes(1_000), TARGET));
        assert!(!rates.allows_rtx(at(0), bytes(1_001), TARGET));
        assert!(rates.allows_rtx(at(1_000), bytes(1_001), TARGET));
    }
}
