//! Loss rate: decides which losses mean congestion on paths with random packet loss.
//!
//! Implements the conditional back-off of [SCREAMV2 §4.5.2] with wider bounds, SCREAMV2-D8. Losses
//! while there is a queue always mean congestion.

use crate::controllers::scream_common::MSS;
use crate::units::TimeDelta;

/// The bounds of the rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LossBounds {
    /// `LOSS_RATE_THRESHOLD`: up to this loss rate, losses without a queue do not mean congestion.
    threshold: f64,
    /// Minimum averaging window: this many packets divided by the threshold.
    packets: f64,
    /// Share of the delay target above which every loss means congestion.
    queue: f64,
}

impl LossBounds {
    /// The draft's bounds [SCREAMV2 §4.5.2].
    pub const DRAFT: Self = Self { threshold: 0.01, packets: 4.0, queue: 0.25 };
    /// SCREAMV2-D8: all three are wider.
    pub const TOLERANT: Self = Self { threshold: 0.10, packets: 16.0, queue: 0.75 };
}

/// Minimum averaging window, in round trips [SCREAMV2 §4.5.2].
const ROUND_TRIPS: f64 = 2.0;

/// Averaged loss rate, `loss_rate`.
#[derive(Clone, Debug)]
pub(super) struct LossRate {
    bounds: LossBounds,
    rate: f64,
}

impl LossRate {
    pub fn new(bounds: LossBounds) -> Self {
        Self { bounds, rate: 0.0 }
    }

    /// Takes the numbers of received and lost packets of a report.
    pub fn on_packets(&mut self, received: u64, lost: u64, ref_wnd: f64) {
        let LossBounds { threshold, packets, .. } = self.bounds;
        let gain = (threshold / packets).min(MSS / ref_wnd / ROUND_TRIPS);
        for _ in 0..received {
            self.rate -= gain * self.rate;
        }
        for _ in 0..lost {
            self.rate += gain * (1.0 - self.rate);
        }
    }

    /// Whether a loss means congestion at this averaged queuing delay.
    pub fn is_congestion(&self, delay: TimeDelta, target: TimeDelta) -> bool {
        self.rate > self.bounds.threshold || delay > target * self.bounds.queue
    }

    /// `loss_rate`, 0.0..=1.0.
    pub fn value(&self) -> f64 {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: TimeDelta = TimeDelta::from_millis(60);

    /// The state after `reports` reports, each with one loss in `one_in` packets.
    fn after(reports: u32, one_in: u64) -> LossRate {
        let mut rate = LossRate::new(LossBounds::TOLERANT);
        (0..reports).for_each(|_| rate.on_packets(one_in - 1, 1, 25_000.0));
        rate
    }

    // SCREAMV2-D8
    #[test]
    fn five_percent_without_a_queue_are_not_congestion_and_fifteen_are() {
        assert!(!after(500, 20).is_congestion(TimeDelta::ZERO, TARGET));
        assert!(after(500, 7).is_congestion(TimeDelta::ZERO, TARGET));
    }

    // SCREAMV2-D8
    #[test]
    fn any_loss_above_three_quarters_of_the_delay_target_is_congestion() {
        let rate = after(1, 1_000);
        assert!(!rate.is_congestion(TimeDelta::from_millis(45), TARGET));
        assert!(rate.is_congestion(TimeDelta::from_millis(46), TARGET));
    }

    // [SCREAMV2 §4.5.2]
    #[test]
    fn a_packet_weighs_a_160th_or_half_of_a_segment_in_the_window() {
        let weight = |ref_wnd| {
            let mut rate = LossRate::new(LossBounds::TOLERANT);
            rate.on_packets(0, 1, ref_wnd);
            rate.value()
        };
        assert_eq!(weight(25_000.0), 0.1 / 16.0);
        assert_eq!(weight(500_000.0), 0.001);
        let mut rate = LossRate::new(LossBounds::TOLERANT);
        rate.on_packets(0, 2, 500_000.0);
        rate.on_packets(1, 0, 500_000.0);
        assert!((rate.value() - (1.0 - 0.999 * 0.999) * 0.999).abs() < 1e-15);
    }
}
