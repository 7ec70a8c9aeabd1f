//! Over-use detector: compares the delay gradient with an adaptive threshold.
//!
//! Implements [GCC §5.4]. Departs from it in GCC-D1 and GCC-D6.

use crate::delay_signal::BandwidthUsage;
use weir::units::TimeDelta;

// Parameters [GCC §5.6]. Names in backticks are the draft's.
/// `del_var_th(0)` in ms.
const INITIAL_THRESHOLD_MS: f64 = 12.5;
/// The range that the threshold is clamped to, in ms [GCC §5.4].
const MIN_THRESHOLD_MS: f64 = 6.0;
const MAX_THRESHOLD_MS: f64 = 600.0;
/// `overuse_time_th`: time for which the gradient must stay above the threshold.
const OVERUSE_TIME: TimeDelta = TimeDelta::from_millis(10);
/// `K_u`: gain of the threshold while the gradient is beyond it, per ms.
const GAIN_UP: f64 = 0.01;
/// `K_d`: gain of the threshold while the gradient is within it, per ms.
const GAIN_DOWN: f64 = 0.000_18;
/// A gradient that exceeds the threshold by more than this is a spike and does not move it, in ms
/// [GCC §5.4].
const SPIKE_MS: f64 = 15.0;
/// Upper limit of the time between groups when adapting the threshold, GCC-D6.
const MAX_STEP: TimeDelta = TimeDelta::from_millis(100);
/// The gradient per group is multiplied by the number of groups seen, up to this number: GCC-D1.
const MAX_GROUPS: u32 = 60;
const _: () = assert!(GAIN_UP > GAIN_DOWN, "the threshold must grow faster than it shrinks");

/// Turns the gradient into a usage signal.
#[derive(Clone, Debug)]
pub(super) struct OveruseDetector {
    /// `del_var_th(i)`.
    threshold_ms: f64,
    /// `m(i-1)`, not multiplied.
    last_gradient_ms: f64,
    /// The gradient last compared with the threshold.
    scaled_gradient_ms: f64,
    /// Time for which the gradient has been above the threshold; `None` while it is below.
    above_for: Option<TimeDelta>,
    /// Groups seen, counted up to `max_groups`.
    groups: u32,
    max_groups: u32,
}

impl OveruseDetector {
    pub(super) fn new() -> Self {
        Self {
            threshold_ms: INITIAL_THRESHOLD_MS,
            last_gradient_ms: 0.0,
            scaled_gradient_ms: 0.0,
            above_for: None,
            groups: 0,
            max_groups: MAX_GROUPS,
        }
    }

    /// The detector with the gradient not multiplied, as in the draft; for the evidence of GCC-D1.
    #[cfg(test)]
    pub(super) fn with_raw_gradient() -> Self {
        Self { max_groups: 1, ..Self::new() }
    }

    /// Resets all state. Keeps `max_groups`.
    pub(super) fn restart(&mut self) {
        *self = Self { max_groups: self.max_groups, ..Self::new() };
    }

    /// Takes `m(i)` in ms, and the time `t(i) - t(i-1)` since the previous group.
    pub(super) fn on_gradient(&mut self, gradient_ms: f64, elapsed: TimeDelta) -> BandwidthUsage {
        // GCC-D1: multiply the gradient per group by the number of groups.
        self.groups = (self.groups + 1).min(self.max_groups);
        self.scaled_gradient_ms = gradient_ms * f64::from(self.groups);
        let falling = gradient_ms < self.last_gradient_ms;
        self.last_gradient_ms = gradient_ms;
        let usage = self.compare(elapsed, falling);
        self.adapt_threshold(elapsed);
        usage
    }

    fn compare(&mut self, elapsed: TimeDelta, falling: bool) -> BandwidthUsage {
        if self.scaled_gradient_ms > self.threshold_ms {
            let above_for = self.above_for.map_or(TimeDelta::ZERO, |time| time + elapsed);
            self.above_for = Some(above_for);
            // Over-use must last, and the gradient must not be falling [GCC §5.4].
            return if above_for >= OVERUSE_TIME && !falling {
                BandwidthUsage::Overuse
            } else {
                BandwidthUsage::Normal
            };
        }
        self.above_for = None;
        if self.scaled_gradient_ms < -self.threshold_ms {
            BandwidthUsage::Underuse
        } else {
            BandwidthUsage::Normal
        }
    }

    /// `del_var_th(i)` from `del_var_th(i-1)` [GCC §5.4].
    fn adapt_threshold(&mut self, elapsed: TimeDelta) {
        let beyond_ms = self.scaled_gradient_ms.abs() - self.threshold_ms;
        if beyond_ms > SPIKE_MS {
            return;
        }
        let gain = if beyond_ms < 0.0 { GAIN_DOWN } else { GAIN_UP };
        // GCC-D6: a longer step would move the threshold past the gradient.
        let elapsed_ms = elapsed.min(MAX_STEP).as_millis_f64();
        self.threshold_ms = (self.threshold_ms + elapsed_ms * gain * beyond_ms)
            .clamp(MIN_THRESHOLD_MS, MAX_THRESHOLD_MS);
    }

    /// The gradient last compared with the threshold.
    pub(super) fn scaled_gradient_ms(&self) -> f64 {
        self.scaled_gradient_ms
    }

    pub(super) fn threshold_ms(&self) -> f64 {
        self.threshold_ms
    }
}

#[cfg(test)]
mod tests {
    use super::BandwidthUsage::{Normal, Overuse, Underuse};
    use super::*;

    const STEP: TimeDelta = TimeDelta::from_millis(5);

    /// A detector that has seen 60 groups and has its initial threshold.
    fn warm() -> OveruseDetector {
        OveruseDetector { groups: MAX_GROUPS, ..OveruseDetector::new() }
    }

    /// The gradient that gives `scaled_ms` when multiplied by 60.
    fn gradient(scaled_ms: f64) -> f64 {
        scaled_ms / 60.0
    }

    // [GCC §5.6]
    #[test]
    fn the_parameters_are_those_of_table_1() {
        assert_eq!(OveruseDetector::new().threshold_ms(), 12.5);
        assert_eq!((GAIN_UP, GAIN_DOWN), (0.01, 0.00018));
        assert_eq!(OVERUSE_TIME, TimeDelta::from_millis(10));
    }

    // [GCC §5.4]
    #[test]
    fn overuse_is_signalled_only_after_10_ms_above_the_threshold() {
        let mut detector = warm();
        assert_eq!(detector.on_gradient(gradient(30.0), STEP), Normal);
        assert_eq!(detector.on_gradient(gradient(30.0), STEP), Normal);
        assert_eq!(detector.on_gradient(gradient(30.0), STEP), Overuse);
    }

    // [GCC §5.4]
    #[test]
    fn a_gradient_back_below_the_threshold_restarts_the_10_ms() {
        let mut detector = warm();
        let usage =
            [30.0, 30.0, 0.0, 30.0, 30.0].map(|ms| detector.on_gradient(gradient(ms), STEP));
        assert_eq!(usage, [Normal; 5]);
        assert_eq!(detector.on_gradient(gradient(30.0), STEP), Overuse);
    }

    // [GCC §5.4]
    #[test]
    fn a_falling_gradient_is_not_signalled_as_overuse() {
        let mut detector = warm();
        let usage =
            [40.0, 40.0, 40.0, 39.0, 38.0, 38.0].map(|ms| detector.on_gradient(gradient(ms), STEP));
        assert_eq!(usage, [Normal, Normal, Overuse, Normal, Normal, Overuse]);
    }

    // [GCC §5.4]
    #[test]
    fn underuse_is_signalled_at_once_below_the_negative_threshold() {
        let mut detector = warm();
        assert_eq!(detector.on_gradient(gradient(-12.0), STEP), Normal);
        assert_eq!(detector.on_gradient(gradient(-13.0), STEP), Underuse);
        assert_eq!(detector.on_gradient(gradient(-12.0), STEP), Normal);
    }

    // [GCC §5.4]: 12.5 + 5 * 0.01 * (22.5 - 12.5) and 12.5 + 5 * 0.00018 * (2.5 - 12.5).
    #[test]
    fn the_threshold_grows_with_k_u_and_shrinks_with_k_d() {
        let mut detector = OveruseDetector::with_raw_gradient();
        detector.on_gradient(22.5, STEP);
        assert_eq!(detector.threshold_ms(), 13.0);
        let mut detector = OveruseDetector::with_raw_gradient();
        detector.on_gradient(-2.5, STEP);
        assert_eq!(detector.threshold_ms(), 12.5 - 5.0 * 0.00018 * 10.0);
    }

    // [GCC §5.4]
    #[test]
    fn the_threshold_ignores_a_spike_more_than_15_ms_beyond_it() {
        let mut detector = OveruseDetector::with_raw_gradient();
        detector.on_gradient(27.6, STEP);
        assert_eq!(detector.threshold_ms(), 12.5);
        detector.on_gradient(-27.5, STEP);
        assert_eq!(detector.threshold_ms(), 12.5 + 5.0 * 0.01 * 15.0);
    }

    // [GCC §5.4]
    #[test]
    fn the_threshold_stays_between_6_and_600_ms() {
        let mut detector = OveruseDetector::with_raw_gradient();
        for _ in 0..10_000 {
            detector.on_gradient(0.0, MAX_STEP);
        }
        assert_eq!(detector.threshold_ms(), 6.0);
        for _ in 0..10_000 {
            detector.on_gradient(detector.threshold_ms() + 15.0, MAX_STEP);
        }
        assert_eq!(detector.threshold_ms(), 600.0);
    }

    // GCC-D6: as written, 1 s between groups would move the threshold from 12.5 to 112.5 ms.
    #[test]
    fn the_threshold_never_steps_past_the_gradient() {
        let mut detector = OveruseDetector::with_raw_gradient();
        detector.on_gradient(22.5, TimeDelta::from_secs(1));
        assert_eq!(detector.threshold_ms(), 22.5);
    }

    // GCC-D1
    #[test]
    fn the_gradient_is_multiplied_by_the_groups_seen_up_to_60() {
        let mut detector = OveruseDetector::new();
        let scaled = [0; 100].map(|_| {
            detector.on_gradient(0.125, STEP);
            detector.scaled_gradient_ms()
        });
        assert_eq!(scaled[0], 0.125);
        assert_eq!(scaled[58], 0.125 * 59.0);
        assert_eq!(scaled[59], 7.5);
        assert_eq!(scaled[99], 7.5);
    }

    #[test]
    fn a_restart_forgets_the_gradient_and_the_threshold() {
        let mut detector = warm();
        detector.on_gradient(gradient(25.0), MAX_STEP);
        detector.restart();
        assert_eq!(detector.threshold_ms(), 12.5);
        assert_eq!((detector.groups, detector.above_for), (0, None));
    }
}
