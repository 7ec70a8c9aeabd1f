//! Over-use detector: compares the offset with a fixed threshold [BARI §over-use detector].
//!
//! Constants are those of [LW2013 §overuse_detector], except BARI-D8. The adaptive threshold came
//! later [GCC §5.4].

use super::arrival_time_filter::ArrivalTimeFilter;
use crate::delay_signal::BandwidthUsage;
use weir::units::TimeDelta;

// Parameters [LW2013 §overuse_detector].
/// Threshold of the scaled offset in ms. It is constant: BARI-D8.
pub(super) const THRESHOLD_MS: f64 = 25.0;
/// Time for which the offset must stay above the threshold.
const OVERUSE_TIME: TimeDelta = TimeDelta::from_millis(100);
/// Number of frames with the offset above the threshold.
const OVERUSE_FRAMES: u32 = 2;

/// Turns the offset into a usage signal.
#[derive(Clone, Debug)]
pub(super) struct OveruseDetector {
    usage: BandwidthUsage,
    /// Time above the threshold, or since the last signal; `None` while the offset is not above it.
    above_for: Option<TimeDelta>,
    above_frames: u32,
}

impl OveruseDetector {
    pub(super) const fn new() -> Self {
        Self { usage: BandwidthUsage::Normal, above_for: None, above_frames: 0 }
    }

    /// Reads the filter after a frame that was sent `elapsed` after the previous one. Returns true
    /// if this frame signals over-use, for the first time or again.
    pub(super) fn on_frame(&mut self, filter: &ArrivalTimeFilter, elapsed: TimeDelta) -> bool {
        let offset_ms = filter.scaled_offset_ms();
        if !filter.has_samples() || is_within_threshold(offset_ms) || offset_ms < 0.0 {
            let below = filter.has_samples() && !is_within_threshold(offset_ms);
            self.usage = if below { BandwidthUsage::Underuse } else { BandwidthUsage::Normal };
            (self.above_for, self.above_frames) = (None, 0);
            return false;
        }
        // The offset crossed the threshold at an unknown time between the two frames. Assume the
        // middle.
        let above_for = self.above_for.map_or(elapsed / 2, |time| time + elapsed);
        (self.above_for, self.above_frames) = (Some(above_for), self.above_frames + 1);
        let lasted = above_for > OVERUSE_TIME && self.above_frames >= OVERUSE_FRAMES;
        // A queue that begins to drain needs no cut.
        if !lasted || !filter.is_rising() {
            return false;
        }
        (self.above_for, self.above_frames) = (Some(TimeDelta::ZERO), 0);
        self.usage = BandwidthUsage::Overuse;
        true
    }

    pub(super) fn usage(&self) -> BandwidthUsage {
        self.usage
    }
}

/// True if the offset is within the threshold.
pub(super) fn is_within_threshold(scaled_offset_ms: f64) -> bool {
    scaled_offset_ms.abs() <= THRESHOLD_MS
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::super::frames::FrameDelta;
    use super::*;

    const PERIOD: TimeDelta = TimeDelta::from_millis(33);

    /// The signals after frames, each of which arrives this many ms later than the one before.
    fn signals(detector: &mut OveruseDetector, late_ms: &[i64]) -> Vec<(BandwidthUsage, bool)> {
        let mut filter = ArrivalTimeFilter::new();
        let frame = |&ms: &i64| {
            let arrival = PERIOD + TimeDelta::from_millis(ms);
            let delta = FrameDelta { departure: PERIOD, arrival, size_bytes: 0.0 };
            filter.update(&delta, detector.usage(), true);
            let signalled = detector.on_frame(&filter, PERIOD);
            (detector.usage(), signalled)
        };
        late_ms.iter().map(frame).collect()
    }

    // [LW2013 §overuse_detector]: 33/2 + 3 * 33 ms are more than 100.
    #[test]
    fn over_use_is_signalled_after_more_than_100_ms_above_the_threshold() {
        let signals = signals(&mut OveruseDetector::new(), &[1_000; 12]);
        let first = signals.iter().position(|&(_, signalled)| signalled).unwrap();
        assert_eq!(signals[first].0, BandwidthUsage::Overuse);
        assert_eq!(first, 6, "the fourth difference is the first beyond 25 ms, three follow");
        let again = signals[first + 1..].iter().position(|&(_, signalled)| signalled);
        assert_eq!(again, Some(3), "and again after the same time");
        assert!(signals[first..].iter().all(|&(usage, _)| usage == BandwidthUsage::Overuse));
    }

    // [LW2013 §overuse_detector]
    #[test]
    fn one_frame_beyond_the_threshold_is_no_over_use_however_long_it_took() {
        let mut filter = ArrivalTimeFilter::new();
        for late_ms in [0, 40_000] {
            let arrival = PERIOD + TimeDelta::from_millis(late_ms);
            let delta = FrameDelta { departure: PERIOD, arrival, size_bytes: 0.0 };
            filter.update(&delta, BandwidthUsage::Normal, false);
        }
        assert!(!is_within_threshold(filter.scaled_offset_ms()) && filter.is_rising());
        let mut detector = OveruseDetector::new();
        let second = TimeDelta::from_secs(1);
        let signalled = [0; 2].map(|_| detector.on_frame(&filter, second));
        assert_eq!(signalled, [false, true]);
    }

    // [BARI §over-use detector]
    #[test]
    fn under_use_is_an_offset_below_the_negative_threshold() {
        let signals = signals(&mut OveruseDetector::new(), &[-1_000; 6]);
        assert_eq!(signals[0].0, BandwidthUsage::Normal, "one difference says nothing");
        assert_eq!(signals[5], (BandwidthUsage::Underuse, false));
    }

    // [BARI §over-use detector]
    #[test]
    fn an_offset_within_the_threshold_is_normal_and_so_is_the_first() {
        let normal = (BandwidthUsage::Normal, false);
        assert_eq!(signals(&mut OveruseDetector::new(), &[-1; 6]), [normal; 6]);
        let first = signals(&mut OveruseDetector::new(), &[-20_000]);
        assert_eq!(first, [normal]);
    }

    #[test]
    fn an_offset_that_falls_is_not_signalled() {
        let falling: Vec<i64> = (0..20).map(|frame| 4_000 >> frame.min(11)).collect();
        let signals = signals(&mut OveruseDetector::new(), &falling);
        assert!(signals[6..].iter().all(|&(_, signalled)| !signalled), "{signals:?}");
    }

    // [LW2013 §overuse_detector], BARI-D8
    #[test]
    fn the_threshold_is_25_ms() {
        assert!(
            is_within_threshold(25.0)
                && is_within_threshold(-25.0)
                && !is_within_threshold(25.1)
                && !is_within_threshold(-25.1)
        );
    }
}
