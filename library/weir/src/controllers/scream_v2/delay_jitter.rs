//! Delay jitter: how much the queuing delay varies, and how much to damp the window's changes for
//! it.
//!
//! Implements the optional `REDUCE_JITTER` of [SCREAMV2 §4.2.1.4].

use crate::units::TimeDelta;

// Parameters [SCREAMV2 §4.2.1.4].
/// `QDELAY_MIN_MAX_AVG_G`: gain of the two envelopes.
const QDELAY_MIN_MAX_AVG_G: f64 = 1.0 / 16.0;
/// `QDELAY_DEV_AVG_G`: gain of the average distance between them.
const QDELAY_DEV_AVG_G: f64 = 1.0 / 32.0;
/// `QDELAY_DEV_THRESHOLD`: distance at which the scale reaches zero.
const QDELAY_DEV_THRESHOLD: TimeDelta = TimeDelta::from_millis(10);

/// `ref_wnd_delay_scale` and the averages it is computed from.
#[derive(Clone, Debug)]
pub(super) struct DelayJitter {
    /// `qdelay_max_avg`. It decays towards zero, so clock drift does not increase the distance.
    max: TimeDelta,
    /// `qdelay_min_avg`. It is pulled up by `max`.
    min: TimeDelta,
    /// Averaged distance of the envelopes, `qdelay_dev_avg`.
    deviation: TimeDelta,
}

impl DelayJitter {
    /// Initially the envelopes are as far apart as the delay target.
    pub const fn new(target: TimeDelta) -> Self {
        Self { max: target, min: TimeDelta::ZERO, deviation: TimeDelta::ZERO }
    }

    /// Takes the queuing delay of an acknowledgement.
    pub fn on_delay(&mut self, delay: TimeDelta, target: TimeDelta) {
        self.max = self.max.max(delay).min(target);
        self.min = self.min.min(delay);
    }

    /// Must be called with each update of `qdelay_avg`.
    pub fn update(&mut self) {
        self.max = self.max * (1.0 - QDELAY_MIN_MAX_AVG_G);
        self.min += (self.max - self.min) * QDELAY_MIN_MAX_AVG_G;
        self.deviation += (self.max - self.min - self.deviation) * QDELAY_DEV_AVG_G;
    }

    /// `ref_wnd_delay_scale`: 1.0 without jitter, 0.0 at the threshold and above.
    pub fn scale(&self) -> f64 {
        (1.0 - self.deviation / QDELAY_DEV_THRESHOLD).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: TimeDelta = TimeDelta::from_millis(60);

    fn after(delays: impl Iterator<Item = i64>) -> f64 {
        let mut jitter = DelayJitter::new(TARGET);
        for millis in delays {
            jitter.on_delay(TimeDelta::from_millis(millis), TARGET);
            jitter.update();
        }
        jitter.scale()
    }

    // [SCREAMV2 §4.2.1.4]
    #[test]
    fn a_delay_swinging_by_10_ms_takes_the_scale_to_zero_a_steady_one_to_one() {
        assert_eq!(after((0..400).map(|n| 40 * (n % 2))), 0.0);
        assert!(after((0..400).map(|_| 0)) > 0.99);
        let small = after((0..400).map(|n| 6 * (n % 2)));
        assert!((0.3..0.7).contains(&small), "{small}");
    }

    // [SCREAMV2 §4.2.1.4]
    #[test]
    fn one_update_moves_the_envelopes_by_a_16th_and_the_deviation_by_a_32nd() {
        let mut jitter = DelayJitter::new(TARGET);
        jitter.on_delay(TimeDelta::from_millis(90), TARGET);
        jitter.update();
        let us = [jitter.max, jitter.min, jitter.deviation].map(TimeDelta::as_micros);
        assert_eq!(us, [56_250, 3_515, 1_647]);
        jitter.update();
        let us = [jitter.max, jitter.min, jitter.deviation].map(TimeDelta::as_micros);
        assert_eq!(us, [52_734, 6_591, 3_038]);
    }
}
