//! Detects freezes of the picture by the rule of [WEBRTC-STATS §8], as implemented in libwebrtc.

use std::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

/// Number of intervals between rendered frames in the mean.
const WINDOW: usize = 30;
/// Number of intervals before the first freeze can be detected (libwebrtc).
const MIN_INTERVALS: usize = 5;
/// Minimum duration of a freeze in mean intervals.
const MIN_FACTOR: i64 = 3;
/// Minimum excess of a freeze over the mean interval. Both minima apply.
const MIN_EXCESS: TimeDelta = TimeDelta::from_millis(150);

/// Checks the intervals between rendered frames.
#[derive(Clone, Debug, Default)]
pub struct Freezes {
    last: Option<Timestamp>,
    intervals: VecDeque<TimeDelta>,
}

impl Freezes {
    /// The source was paused. The time until the next frame is not an interval.
    pub fn on_pause(&mut self) {
        self.last = None;
    }

    /// The stream ends, and this is the time of its last frame. A gap that is still open counts as
    /// if it ended then, or when the last frame was rendered. (getStats would not report it.)
    pub fn finish(&mut self, last_frame: Timestamp) -> Option<TimeDelta> {
        self.on_frame(last_frame.max(self.last?))
    }

    /// A frame is rendered. Returns the duration of the interval that ends if
    /// it was a freeze.
    ///
    /// As in libwebrtc, the interval is part of the mean it is compared with, and the mean is cut
    /// to whole milliseconds. So a long gap raises its own threshold.
    pub fn on_frame(&mut self, now: Timestamp) -> Option<TimeDelta> {
        let interval = now - self.last.replace(now)?;
        if self.intervals.len() == WINDOW {
            self.intervals.pop_front();
        }
        self.intervals.push_back(interval);
        let count = self.intervals.len();
        if count < MIN_INTERVALS {
            return None;
        }
        let sum = self.intervals.iter().fold(TimeDelta::ZERO, |sum, &interval| sum + interval);
        let mean = TimeDelta::from_millis((sum / count as i64).as_millis());
        let threshold = (mean * MIN_FACTOR).max(mean + MIN_EXCESS);
        (interval >= threshold).then_some(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders 31 frames 33 ms apart, then one after `gap`.
    fn after_a_steady_second(gap: i64) -> Option<TimeDelta> {
        let mut freezes = Freezes::default();
        for frame in 0..31 {
            assert_eq!(freezes.on_frame(Timestamp::from_millis(frame * 33)), None);
        }
        freezes.on_frame(Timestamp::from_millis(30 * 33 + gap))
    }

    // [WEBRTC-STATS §8]
    #[test]
    fn a_gap_raises_its_own_threshold() {
        // 29 intervals of 33 ms and one of 189 ms: mean 38 ms, threshold 188 ms.
        assert_eq!(after_a_steady_second(187), None);
        assert_eq!(after_a_steady_second(189), Some(TimeDelta::from_millis(189)));
        assert_eq!(after_a_steady_second(250), Some(TimeDelta::from_millis(250)));
    }

    #[test]
    fn at_low_frame_rates_three_mean_intervals_decide() {
        let mut freezes = Freezes::default();
        for frame in 0..31 {
            freezes.on_frame(Timestamp::from_millis(frame * 200));
        }
        // 29 intervals of 200 ms and one of 640 ms: mean 214 ms, threshold 642 ms.
        let mut other = freezes.clone();
        assert_eq!(freezes.on_frame(Timestamp::from_millis(6_640)), None);
        assert!(other.on_frame(Timestamp::from_millis(6_650)).is_some());
    }

    #[test]
    fn there_is_no_verdict_before_the_fifth_interval_and_one_on_it() {
        let froze = |steady_frames: i64| {
            let mut freezes = Freezes::default();
            for frame in 0..steady_frames {
                assert_eq!(freezes.on_frame(Timestamp::from_millis(frame * 33)), None);
            }
            freezes.on_frame(Timestamp::from_secs(9)).is_some()
        };
        assert!(!froze(4));
        assert!(froze(5));
    }
}
