//! Loss-based control: the estimate `As_hat` from the loss ratio.
//!
//! Implements [GCC §6]. Departs from it in GCC-D14, GCC-D15 and GCC-D17.

use weir::controller::{RateLimits, Reason};
use weir::feedback::LossCounts;
use weir::units::{Bitrate, TimeDelta, Timestamp};

// Parameters [GCC §6].
/// The estimate is cut at a loss ratio above this.
const HIGH_LOSS: f64 = 0.10;
/// The estimate grows at a loss ratio below this.
const LOW_LOSS: f64 = 0.02;
/// A cut takes this share of the loss ratio.
const CUT: f64 = 0.5;
/// Growth factor per interval of low loss.
const INCREASE: f64 = 1.05;
/// Minimum time and number of packets for a loss ratio, GCC-D14.
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const MIN_PACKETS: u64 = 20;

/// Runs the loss-based control and stores `As_hat`.
#[derive(Clone, Debug)]
pub(super) struct LossBased {
    limits: RateLimits,
    /// `As_hat`, within the limits.
    estimate_bps: f64,
    /// `p` of the last interval.
    loss_ratio: f64,
    /// Start of the interval that is being counted.
    interval_start: Option<Timestamp>,
    counts: LossCounts,
    /// Number of the received packets that were marked.
    marked: u64,
    /// Reason of a cut: losses or marks, whichever were more in the last interval.
    cause: Reason,
}

impl LossBased {
    /// Starts without a bound, which applies until there is loss: GCC-D15.
    pub(super) fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            estimate_bps: limits.max().as_bps_f64(),
            loss_ratio: 0.0,
            interval_start: None,
            counts: LossCounts::default(),
            marked: 0,
            cause: Reason::Loss,
        }
    }

    /// Raises the estimate to a share of a coupled rate, so that it does not limit the share.
    pub(super) fn rise_to(&mut self, share: Bitrate) {
        self.estimate_bps = self.estimate_bps.max(share.as_bps_f64());
    }

    /// Lowers the estimate to `A_hat` before it takes over, GCC-D18.
    pub(super) fn start_from(&mut self, delay_based: Bitrate) {
        self.estimate_bps = self.estimate_bps.min(delay_based.as_bps_f64());
    }

    /// Takes the counts of a report. `marked` of the received packets were marked. `delay_based` is
    /// `A_hat`.
    pub(super) fn on_counts(
        &mut self,
        now: Timestamp,
        counts: LossCounts,
        marked: u64,
        delay_based: Bitrate,
    ) {
        self.marked += marked;
        self.counts.received += counts.received;
        self.counts.lost += counts.lost;
        self.counts.recovered += counts.recovered;
        let start = *self.interval_start.get_or_insert(now);
        let expected = self.counts.received + self.counts.lost;
        // GCC-D14: the few packets of one feedback packet are not enough for a loss ratio.
        if now - start < INTERVAL || expected < MIN_PACKETS {
            return;
        }
        // Like the fraction lost of a receiver report: late arrivals offset missing packets, and
        // the difference is never negative [RFC3550 §6.4.1].
        let lost = self.counts.lost.saturating_sub(self.counts.recovered);
        // GCC-D17: a marked packet counts as lost; without ECN the queue would have dropped it
        // [RFC3168 §5].
        self.loss_ratio = (lost + self.marked) as f64 / expected as f64;
        self.cause = if self.marked > lost { Reason::Ecn } else { Reason::Loss };
        (self.counts, self.marked) = (LossCounts::default(), 0);
        self.interval_start = Some(now);
        self.update(delay_based);
    }

    /// The three rules of [GCC §6].
    fn update(&mut self, delay_based: Bitrate) {
        let estimate = if self.loss_ratio > HIGH_LOSS {
            // GCC-D15: the cut starts from the bitrate in use.
            let in_use = self.estimate_bps.min(delay_based.as_bps_f64());
            in_use * (1.0 - CUT * self.loss_ratio)
        } else if self.loss_ratio < LOW_LOSS {
            INCREASE * self.estimate_bps
        } else {
            self.estimate_bps
        };
        let (min, max) = (self.limits.min().as_bps_f64(), self.limits.max().as_bps_f64());
        self.estimate_bps = estimate.clamp(min, max);
    }

    /// Moves the estimate only as far as the new limits demand. At the maximum, losses do not bound
    /// the bitrate, and so it stays.
    pub(super) fn set_limits(&mut self, limits: RateLimits) {
        if self.estimate() == self.limits.max() {
            self.estimate_bps = limits.max().as_bps_f64();
        }
        self.limits = limits;
        self.estimate_bps = self.estimate().as_bps_f64();
    }

    /// `As_hat`.
    pub(super) fn estimate(&self) -> Bitrate {
        self.limits.clamp(Bitrate::from_bps_f64(self.estimate_bps))
    }

    /// Reason of a cut: losses or marks, whichever were more in the last interval.
    pub(super) fn cause(&self) -> Reason {
        self.cause
    }

    /// `p`, including marks.
    pub(super) fn loss_ratio(&self) -> f64 {
        self.loss_ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    fn counts(received: u64, lost: u64, recovered: u64) -> LossCounts {
        LossCounts::default().with_received(received).with_lost(lost).with_recovered(recovered)
    }

    /// The estimate after whole intervals with these counts, if 1 Mbit/s is in use.
    fn after(intervals: &[LossCounts]) -> Bitrate {
        let limits = RateLimits::new(kbps(50), kbps(300), kbps(10_000)).unwrap();
        let mut control = LossBased::new(limits);
        control.on_counts(Timestamp::ZERO, counts(0, 0, 0), 0, kbps(1_000));
        for (second, &counts) in (1..).zip(intervals) {
            control.on_counts(Timestamp::from_secs(second), counts, 0, kbps(1_000));
        }
        control.estimate()
    }

    // [GCC §6]
    #[test]
    fn more_than_10_percent_cut_the_estimate_by_half_the_loss_ratio() {
        assert_eq!(after(&[counts(80, 20, 0)]), kbps(900));
        assert_eq!(after(&[counts(0, 100, 0)]), kbps(500));
        assert_eq!(after(&[counts(80, 20, 0), counts(80, 20, 0)]), kbps(810));
    }

    // [GCC §6]
    #[test]
    fn between_2_and_10_percent_the_estimate_stays() {
        for stays in [counts(98, 2, 0), counts(95, 5, 0), counts(90, 10, 0)] {
            assert_eq!(after(&[counts(80, 20, 0), stays]), kbps(900));
        }
    }

    // [GCC §6]
    #[test]
    fn below_2_percent_the_estimate_grows_by_5_percent() {
        assert_eq!(after(&[counts(80, 20, 0), counts(99, 1, 0)]), kbps(945));
        assert_eq!(after(&[counts(80, 20, 0), counts(100, 0, 0)]), kbps(945));
    }

    // [RFC3550 §6.4.1]
    #[test]
    fn packets_that_arrive_late_are_not_lost() {
        assert_eq!(after(&[counts(80, 20, 20)]), kbps(10_000));
        assert_eq!(after(&[counts(80, 20, 10)]), kbps(10_000), "10 % is not more than 10 %");
        assert_eq!(after(&[counts(80, 20, 0), counts(80, 20, 40)]), kbps(945), "never negative");
    }

    // GCC-D17
    #[test]
    fn marks_count_as_losses_and_are_told_apart_as_the_cause() {
        let after = |lost, marked| {
            let limits = RateLimits::new(kbps(50), kbps(300), kbps(10_000)).unwrap();
            let mut control = LossBased::new(limits);
            control.on_counts(Timestamp::ZERO, counts(0, 0, 0), 0, kbps(1_000));
            control.on_counts(
                Timestamp::from_secs(1),
                counts(100 - lost, lost, 0),
                marked,
                kbps(1_000),
            );
            (control.estimate(), control.cause())
        };
        assert_eq!(after(0, 20), (kbps(900), Reason::Ecn));
        assert_eq!(after(12, 8), (kbps(900), Reason::Loss));
        assert_eq!(after(0, 10).0, kbps(10_000), "10 % is not more than 10 %");
    }

    // GCC-D14
    #[test]
    fn a_loss_ratio_is_taken_over_a_second_and_20_packets() {
        let limits = RateLimits::new(kbps(50), kbps(300), kbps(10_000)).unwrap();
        let mut control = LossBased::new(limits);
        let mut at = |ms, counts| {
            control.on_counts(Timestamp::from_millis(ms), counts, 0, kbps(1_000));
            control.estimate()
        };
        assert_eq!(at(0, counts(5, 5, 0)), kbps(10_000));
        assert_eq!(at(999, counts(8, 0, 0)), kbps(10_000), "too early");
        assert_eq!(at(1_500, counts(1, 0, 0)), kbps(10_000), "too few");
        assert_eq!(at(1_550, counts(1, 0, 0)), kbps(875), "5 of 20 in one interval");
    }

    // GCC-D14: as written, at 20 feedback packets a second.
    #[test]
    fn rules_run_on_each_feedback_packet_would_grow_165_percent_a_second() {
        let limits = RateLimits::new(kbps(50), kbps(300), kbps(100_000)).unwrap();
        let mut control = LossBased { estimate_bps: 1e6, ..LossBased::new(limits) };
        let mut reports = |lost_of_five: &[u32]| {
            for lost in lost_of_five {
                control.loss_ratio = f64::from(*lost) / 5.0;
                control.update(kbps(100_000));
            }
            control.estimate().as_bps()
        };
        assert_eq!(reports(&[0; 20]), 2_653_298);
        // 5 % loss, one packet in 20: three of four reports see no loss, the fourth sees 20 %.
        assert_eq!(reports(&[0, 0, 0, 1]), 2_764_371);
    }

    // GCC-D15: as written, 20 % loss must last 22 s until a bound of 10 Mbit/s falls to 1 Mbit/s.
    #[test]
    fn a_cut_of_a_bound_far_above_the_bitrate_in_use_would_change_nothing() {
        let limits = RateLimits::new(kbps(50), kbps(300), kbps(10_000)).unwrap();
        let cuts_to_1_mbps = |delay_based| {
            let mut control = LossBased { loss_ratio: 0.2, ..LossBased::new(limits) };
            let estimates = core::iter::repeat_with(|| {
                control.update(delay_based);
                control.estimate()
            });
            1 + estimates.take_while(|estimate| *estimate >= kbps(1_000)).count()
        };
        assert_eq!(cuts_to_1_mbps(Bitrate::MAX), 22);
        assert_eq!(cuts_to_1_mbps(kbps(1_000)), 1);
    }

    #[test]
    fn the_estimate_stays_within_the_limits() {
        assert_eq!(after(&[counts(0, 100, 0); 50]), kbps(50));
        let all: alloc::vec::Vec<_> = core::iter::once(counts(0, 100, 0))
            .chain(core::iter::repeat_n(counts(100, 0, 0), 200))
            .collect();
        assert_eq!(after(&all), kbps(10_000));
    }
}
