//! Loss rules: estimate from the loss ratio alone, for a receiver that reports no arrival times.
//!
//! Implements the fallback of [LIBWEBRTC §SendSideBandwidthEstimation], which applies the rules of
//! [GCC §6] to the rates of the last second. Departs from it in GOOGCC-D4.

use alloc::collections::VecDeque;

use crate::controller::Reason;
use crate::feedback::LossCounts;
use crate::units::{Bitrate, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §SendSideBandwidthEstimation].
/// The estimate grows at a loss ratio up to this.
const LOW_LOSS: f64 = 0.02;
/// The estimate is cut at a loss ratio above this.
const HIGH_LOSS: f64 = 0.10;
/// Growth: a factor on the lowest rate of this interval, plus a margin.
const INCREASE: f64 = 1.08;
const INCREASE_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const INCREASE_MARGIN: Bitrate = Bitrate::from_bps(1_000);
/// Cuts are at least this plus a round-trip time apart. A cut takes this share of the loss ratio.
const DECREASE_INTERVAL: TimeDelta = TimeDelta::from_millis(300);
const CUT: f64 = 0.5;
/// Minimum number of packets for a loss ratio.
const MIN_PACKETS: u64 = 20;

/// Turns loss ratios into the next rate.
#[derive(Clone, Debug, Default)]
pub(super) struct LossRules {
    lost: u64,
    judged: u64,
    loss_ratio: f64,
    /// Rates of the last second that are lower than all later ones.
    lowest: VecDeque<(Timestamp, Bitrate)>,
    last_decrease: Option<Timestamp>,
}

impl LossRules {
    /// Takes a report's counts. Returns the next rate and its reason if `target` changes.
    pub(super) fn on_counts(
        &mut self,
        now: Timestamp,
        counts: LossCounts,
        rtt: TimeDelta,
        target: Bitrate,
    ) -> Option<(Bitrate, Reason)> {
        self.remember(now, target);
        self.lost = (self.lost + counts.lost).saturating_sub(counts.recovered);
        self.judged += counts.lost + counts.received;
        if self.judged < MIN_PACKETS {
            return None;
        }
        self.loss_ratio = (self.lost as f64 / self.judged as f64).min(1.0);
        (self.lost, self.judged) = (0, 0);
        if self.loss_ratio <= LOW_LOSS {
            let lowest = self.lowest.front().map_or(target, |entry| entry.1);
            let grown = lowest * INCREASE + INCREASE_MARGIN;
            return (grown > target).then_some((grown, Reason::RampUp));
        }
        let waited = |last: Timestamp| now - last >= DECREASE_INTERVAL + rtt;
        if self.loss_ratio > HIGH_LOSS && self.last_decrease.is_none_or(waited) {
            self.last_decrease = Some(now);
            return Some((target * (1.0 - CUT * self.loss_ratio), Reason::Loss));
        }
        None
    }

    pub(super) fn loss_ratio(&self) -> f64 {
        self.loss_ratio
    }

    fn remember(&mut self, now: Timestamp, target: Bitrate) {
        while self.lowest.front().is_some_and(|entry| now - entry.0 >= INCREASE_INTERVAL) {
            self.lowest.pop_front();
        }
        while self.lowest.back().is_some_and(|entry| target <= entry.1) {
            self.lowest.pop_back();
        }
        self.lowest.push_back((now, target));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    fn rate(
        rules: &mut LossRules,
        ms: i64,
        (lost, received): (u64, u64),
        kbps: u64,
    ) -> Option<u64> {
        let counts = LossCounts { received, lost, recovered: 0 };
        let now = Timestamp::from_millis(ms);
        rules.on_counts(now, counts, RTT, Bitrate::from_kbps(kbps)).map(|(rate, _)| rate.as_bps())
    }

    // [LIBWEBRTC §SendSideBandwidthEstimation]: 1.08 * 1000 + 1, nothing, 1000 * (1 - 0.5 * 0.2).
    #[test]
    fn little_loss_grows_some_holds_and_much_cuts() {
        let after = |lost| rate(&mut LossRules::default(), 0, (lost, 100 - lost), 1_000);
        assert_eq!([0, 2].map(after), [Some(1_081_000); 2]);
        assert_eq!([3, 10].map(after), [None; 2]);
        assert_eq!(after(20), Some(900_000));
    }

    // [LIBWEBRTC §SendSideBandwidthEstimation]
    #[test]
    fn growth_is_from_the_lowest_rate_of_the_last_second() {
        let mut rules = LossRules::default();
        assert_eq!(rate(&mut rules, 0, (0, 50), 1_000), Some(1_081_000));
        assert_eq!(rate(&mut rules, 500, (0, 50), 1_081), None);
        assert_eq!(rate(&mut rules, 1_100, (0, 50), 1_081), Some(1_168_480));
    }

    // [LIBWEBRTC §SendSideBandwidthEstimation]
    #[test]
    fn cuts_are_300_ms_and_a_round_trip_apart() {
        let mut rules = LossRules::default();
        assert_eq!(rate(&mut rules, 0, (50, 50), 1_000), Some(750_000));
        assert_eq!(rate(&mut rules, 399, (50, 50), 750), None);
        assert_eq!(rate(&mut rules, 400, (50, 50), 750), Some(562_500));
    }

    // [LIBWEBRTC §SendSideBandwidthEstimation]
    #[test]
    fn a_loss_ratio_takes_20_packets() {
        let mut rules = LossRules::default();
        assert_eq!(rate(&mut rules, 0, (19, 0), 1_000), None);
        assert_eq!(rules.loss_ratio(), 0.0);
        assert_eq!(rate(&mut rules, 100, (0, 1), 1_000), Some(525_000));
        assert_eq!(rules.loss_ratio(), 0.95);
    }
}
