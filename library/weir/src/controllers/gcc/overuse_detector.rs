//! Over-use detector: compares the trend of the delay with an adaptive threshold.
//!
//! Implements the second half of [LIBWEBRTC §TrendlineEstimator], which is the detector of
//! [GCC §5.4] with other gains and another measure of the time above the threshold.

use super::delay_signal::BandwidthUsage;
use crate::units::{TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §TrendlineEstimator].
/// Factor on the slope before it is compared with the threshold.
const THRESHOLD_GAIN: f64 = 4.0;
/// The slope is also multiplied by the number of groups seen, up to this number.
const MAX_GROUPS: u32 = 60;
/// Over-use is signalled after more than this time above the threshold.
const OVERUSE_TIME: TimeDelta = TimeDelta::from_millis(10);
/// Gains of the threshold in 1/ms, above and below it. In the draft, the gain above is the larger.
const GAIN_UP: f64 = 0.0087;
const GAIN_DOWN: f64 = 0.039;
/// `K_d` of the draft [GCC §5.4], GOOGCC-D7.
const GAIN_DOWN_AGAINST_TCP: f64 = 0.00018;
/// The threshold does not follow a trend that exceeds it by more than this.
const SPIKE_MS: f64 = 15.0;
const INITIAL_THRESHOLD_MS: f64 = 12.5;
const MIN_THRESHOLD_MS: f64 = 6.0;
const MAX_THRESHOLD_MS: f64 = 600.0;
/// Upper limit of the time between two updates of the threshold.
const MAX_STEP: TimeDelta = TimeDelta::from_millis(100);

/// Turns slopes into usage signals.
#[derive(Clone, Debug)]
pub(super) struct OveruseDetector {
    groups: u32,
    threshold_ms: f64,
    /// Gain of the threshold while the trend is below it.
    gain_down: f64,
    /// The trend last compared with the threshold.
    trend_ms: f64,
    last_slope: f64,
    /// Time and samples above the threshold since over-use was last signalled.
    above_for: Option<TimeDelta>,
    samples_above: u32,
    last_update: Option<Timestamp>,
    usage: BandwidthUsage,
}

impl OveruseDetector {
    pub(super) fn new(compete_with_tcp: bool) -> Self {
        Self {
            groups: 0,
            threshold_ms: INITIAL_THRESHOLD_MS,
            gain_down: if compete_with_tcp { GAIN_DOWN_AGAINST_TCP } else { GAIN_DOWN },
            trend_ms: 0.0,
            last_slope: 0.0,
            above_for: None,
            samples_above: 0,
            last_update: None,
            usage: BandwidthUsage::Normal,
        }
    }

    /// Takes the slope after a group that was sent `send_delta` after its predecessor.
    pub(super) fn on_slope(&mut self, slope: f64, send_delta: TimeDelta, arrival: Timestamp) {
        self.groups = (self.groups + 1).min(MAX_GROUPS);
        if self.groups < 2 {
            return;
        }
        self.trend_ms = f64::from(self.groups) * slope * THRESHOLD_GAIN;
        if self.trend_ms > self.threshold_ms {
            // The time of the crossing is unknown. Assume the middle of the interval since the last
            // group.
            let above_for = self.above_for.map_or(send_delta / 2, |time| time + send_delta);
            self.above_for = Some(above_for);
            self.samples_above += 1;
            let lasts = above_for > OVERUSE_TIME && self.samples_above > 1;
            if lasts && slope >= self.last_slope {
                self.above_for = Some(TimeDelta::ZERO);
                self.samples_above = 0;
                self.usage = BandwidthUsage::Overuse;
            }
        } else {
            self.above_for = None;
            self.samples_above = 0;
            let below = self.trend_ms < -self.threshold_ms;
            self.usage = if below { BandwidthUsage::Underuse } else { BandwidthUsage::Normal };
        }
        self.last_slope = slope;
        self.adapt_threshold(arrival);
    }

    fn adapt_threshold(&mut self, arrival: Timestamp) {
        let last = self.last_update.replace(arrival).unwrap_or(arrival);
        let beyond_ms = self.trend_ms.abs() - self.threshold_ms;
        if beyond_ms > SPIKE_MS {
            return;
        }
        let gain = if beyond_ms < 0.0 { self.gain_down } else { GAIN_UP };
        let elapsed = (arrival - last).clamp(TimeDelta::ZERO, MAX_STEP);
        self.threshold_ms = (self.threshold_ms + gain * beyond_ms * elapsed.as_millis_f64())
            .clamp(MIN_THRESHOLD_MS, MAX_THRESHOLD_MS);
    }

    /// Resets everything, including the threshold.
    pub(super) fn restart(&mut self) {
        *self = Self { gain_down: self.gain_down, ..Self::new(false) };
    }

    pub(super) fn usage(&self) -> BandwidthUsage {
        self.usage
    }

    pub(super) fn trend_ms(&self) -> f64 {
        self.trend_ms
    }

    pub(super) fn threshold_ms(&self) -> f64 {
        self.threshold_ms
    }
}

#[cfg(test)]
mod tests {
    use super::BandwidthUsage::{Normal, Overuse, Underuse};
    use super::*;

    const STEP_MS: i64 = 10;

    /// A detector after its first 60 groups, with the initial threshold; and its clock in ms.
    struct Bench(OveruseDetector, i64);

    impl Bench {
        fn warm() -> Self {
            Self(OveruseDetector { groups: MAX_GROUPS, ..OveruseDetector::new(false) }, 0)
        }
        /// Passes a group with this trend, 10 ms after the last group.
        fn trend(&mut self, trend_ms: f64) -> BandwidthUsage {
            self.1 += STEP_MS;
            let slope = trend_ms / (60.0 * 4.0);
            let step = TimeDelta::from_millis(STEP_MS);
            self.0.on_slope(slope, step, Timestamp::from_millis(self.1));
            self.0.usage()
        }
    }

    // [LIBWEBRTC §TrendlineEstimator]: 5 ms, then 15 ms.
    #[test]
    fn overuse_needs_more_than_10_ms_and_two_samples_above_the_threshold() {
        let mut bench = Bench::warm();
        assert_eq!([30.0, 30.0].map(|ms| bench.trend(ms)), [Normal, Overuse]);
        let mut detector = Bench::warm().0;
        detector.on_slope(1.0, TimeDelta::from_secs(1), Timestamp::ZERO);
        assert_eq!(detector.usage(), Normal, "one sample, however long");
    }

    // [LIBWEBRTC §TrendlineEstimator]: a signal lasts until the trend is below the threshold.
    #[test]
    fn a_falling_slope_neither_signals_overuse_nor_ends_it() {
        let mut bench = Bench::warm();
        assert_eq!([50.0, 40.0, 35.0].map(|ms| bench.trend(ms)), [Normal, Normal, Normal]);
        assert_eq!([35.0, 34.0, 33.0].map(|ms| bench.trend(ms)), [Overuse; 3]);
        assert_eq!(bench.trend(0.0), Normal);
    }

    // [LIBWEBRTC §TrendlineEstimator]
    #[test]
    fn underuse_is_signalled_at_once_below_the_negative_threshold() {
        let mut bench = Bench::warm();
        assert_eq!([-12.0, -30.0, -5.0].map(|ms| bench.trend(ms)), [Normal, Underuse, Normal]);
    }

    // [LIBWEBRTC §TrendlineEstimator]: 12.5 + 10 * 0.0087 * 10 and 12.5 - 10 * 0.039 * 10.
    #[test]
    fn the_threshold_grows_by_0_0087_and_shrinks_by_0_039_a_ms() {
        let mut bench = Bench::warm();
        bench.0.last_update = Some(Timestamp::ZERO);
        bench.trend(22.5);
        assert!((bench.0.threshold_ms() - 13.37).abs() < 1e-9);
        let mut bench = Bench::warm();
        bench.0.last_update = Some(Timestamp::ZERO);
        bench.trend(-2.5);
        assert!((bench.0.threshold_ms() - 8.6).abs() < 1e-9);
    }

    // [LIBWEBRTC §TrendlineEstimator]
    #[test]
    fn the_threshold_ignores_spikes_15_ms_beyond_and_stays_in_6_to_600_ms() {
        let mut bench = Bench::warm();
        bench.trend(27.6);
        bench.trend(-27.6);
        assert_eq!(bench.0.threshold_ms(), 12.5);
        (0..100).for_each(|_| {
            bench.trend(0.0);
        });
        assert_eq!(bench.0.threshold_ms(), 6.0);
        for _ in 0..2_000 {
            let beyond = bench.0.threshold_ms() + 14.9;
            bench.trend(beyond);
        }
        assert_eq!(bench.0.threshold_ms(), 600.0);
    }

    // [LIBWEBRTC §TrendlineEstimator]: 100 ms at 0.039 would overshoot otherwise.
    #[test]
    fn a_pause_counts_for_100_ms_of_the_threshold() {
        let mut bench = Bench::warm();
        bench.0.threshold_ms = 100.0;
        bench.0.last_update = Some(Timestamp::from_millis(-60_000));
        bench.trend(99.0);
        assert!((bench.0.threshold_ms() - 96.1).abs() < 1e-9);
    }

    // [LIBWEBRTC §TrendlineEstimator]
    #[test]
    fn the_slope_counts_by_the_groups_seen_times_4() {
        let mut detector = OveruseDetector::new(false);
        let trend = [0; 100].map(|_| {
            detector.on_slope(0.01, TimeDelta::from_millis(5), Timestamp::ZERO);
            detector.trend_ms()
        });
        assert_eq!((trend[0], trend[1], trend[99]), (0.0, 0.08, 2.4));
    }
}
