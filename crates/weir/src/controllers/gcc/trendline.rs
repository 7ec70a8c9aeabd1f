//! Trendline: the slope of the one-way delay over the last groups.
//!
//! Implements [LIBWEBRTC §TrendlineEstimator], which took the place of the draft's Kalman filter
//! [GCC §5.3].

use super::arrival_groups::GroupDelta;
use crate::units::{TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §TrendlineEstimator].
/// Groups that the line is fitted to.
const WINDOW: usize = 20;
/// What the smoothed delay keeps of its last value at each group.
const SMOOTHING: f64 = 0.9;

/// Points that are stored until the last ones move to the front.
const STORED: usize = 4 * WINDOW;

/// Arrival since the first one, and smoothed delay, both in ms.
type Point = (f64, f64);

/// A difference between groups, and the arrival with which it became known.
type Step = (GroupDelta, Timestamp);

/// Fits a line to the delay accumulated over groups.
#[derive(Clone, Debug)]
pub(super) struct Trendline {
    first_arrival: Option<Timestamp>,
    accumulated_ms: f64,
    smoothed_ms: f64,
    /// The last points, the newest one before `end`.
    points: [Point; STORED],
    end: usize,
    /// Sums of the windows that begin with each of the last points, as far as their points have come: one
    /// addition each with a new point, side by side, in place of a row of them at the end.
    sums: [Point; WINDOW],
    count: usize,
    /// Index of the sum of the oldest window, or of the place of the next one.
    oldest: usize,
    slope: f64,
}

impl Default for Trendline {
    fn default() -> Self {
        Self {
            first_arrival: None,
            accumulated_ms: 0.0,
            smoothed_ms: 0.0,
            points: [(0.0, 0.0); STORED],
            end: 0,
            sums: [(0.0, 0.0); WINDOW],
            count: 0,
            oldest: 0,
            slope: 0.0,
        }
    }
}

impl Trendline {
    /// Takes the next differences; returns the slope after each, in ms a ms: near
    /// (send rate - capacity) / capacity while a queue builds up.
    ///
    /// A slope is two rows of additions, each of which waits for the one before. Two slopes that are
    /// reckoned together take hardly longer than one.
    pub(super) fn update<const STEPS: usize>(&mut self, steps: [Step; STEPS]) -> [f64; STEPS] {
        const { assert!(STEPS <= WINDOW, "a window has to stand before the steps") };
        if self.end + STEPS > STORED {
            self.points.copy_within(self.end - WINDOW..self.end, 0);
            self.end = WINDOW;
        }
        let means = steps.map(|step| self.push(step));
        let sums = self.square_sums(means);
        let before = self.count.saturating_sub(STEPS);
        core::array::from_fn(|index| {
            let (numerator, denominator) = sums[index];
            // Where all arrivals are at one time the slope stays.
            if before + index + 1 >= WINDOW && denominator > 0.0 {
                self.slope = numerator / denominator;
            }
            self.slope
        })
    }

    /// Adds a point; returns the mean of the window that ends with it.
    fn push(&mut self, (delta, arrival_time): Step) -> Point {
        let first = *self.first_arrival.get_or_insert(arrival_time);
        self.accumulated_ms += (delta.arrival - delta.send).as_millis_f64();
        self.smoothed_ms = SMOOTHING * self.smoothed_ms + (1.0 - SMOOTHING) * self.accumulated_ms;
        let since: TimeDelta = arrival_time - first;
        let point = (since.as_millis_f64(), self.smoothed_ms);
        self.points[self.end] = point;
        self.end += 1;
        self.sums[self.oldest] = (0.0, 0.0);
        for sum in &mut self.sums {
            *sum = (sum.0 + point.0, sum.1 + point.1);
        }
        self.oldest = if self.oldest + 1 == WINDOW { 0 } else { self.oldest + 1 };
        self.count += 1;
        let sum = self.sums[self.oldest];
        (sum.0 / WINDOW as f64, sum.1 / WINDOW as f64)
    }

    /// For the windows that end with the last points: the sums of the products of both distances from
    /// the mean, and of the squares of those in time. Zero where there is no whole window yet.
    fn square_sums<const STEPS: usize>(&self, means: [Point; STEPS]) -> [(f64, f64); STEPS] {
        let mut sums = [(0.0, 0.0); STEPS];
        let Some(begin) = self.end.checked_sub(WINDOW + STEPS - 1) else {
            return self.square_sums_of_the_first(means);
        };
        let points = &self.points[begin..self.end];
        for at in 0..WINDOW {
            for (index, sum) in sums.iter_mut().enumerate() {
                let (x, y) = points[at + index];
                let (mean_x, mean_y) = means[index];
                sum.0 += (x - mean_x) * (y - mean_y);
                sum.1 += (x - mean_x) * (x - mean_x);
            }
        }
        sums
    }

    /// The same while only some of the windows are whole.
    #[cold]
    fn square_sums_of_the_first<const STEPS: usize>(
        &self,
        means: [Point; STEPS],
    ) -> [(f64, f64); STEPS] {
        core::array::from_fn(|index| {
            let end = self.end + index + 1 - STEPS;
            let Some(begin) = end.checked_sub(WINDOW) else { return (0.0, 0.0) };
            let (mean_x, mean_y) = means[index];
            self.points[begin..end].iter().fold((0.0, 0.0), |sum, (x, y)| {
                let (x, y) = (x - mean_x, y - mean_y);
                (sum.0 + x * y, sum.1 + x * x)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn feed(trendline: &mut Trendline, groups: i64, send_ms: i64, arrival_ms: i64) -> f64 {
        let delta = GroupDelta {
            send: TimeDelta::from_millis(send_ms),
            arrival: TimeDelta::from_millis(arrival_ms),
        };
        let last =
            trendline.end.checked_sub(1).map_or(0, |newest| trendline.points[newest].0 as i64);
        (1..=groups).fold(0.0, |_, i| {
            let [slope] = trendline.update([(delta, at(last + i * arrival_ms))]);
            slope
        })
    }

    // [LIBWEBRTC §TrendlineEstimator]
    #[test]
    fn there_is_no_slope_before_the_window_of_20_groups_is_full() {
        let mut trendline = Trendline::default();
        assert_eq!(feed(&mut trendline, 19, 10, 11), 0.0);
        assert!(feed(&mut trendline, 1, 10, 11) > 0.0);
        assert_eq!(trendline.count, 20);
    }

    // [LIBWEBRTC §TrendlineEstimator]: 1 ms later each 11 ms; smoothing delays the line only.
    #[test]
    fn a_queue_that_grows_steadily_has_the_slope_of_its_growth() {
        let mut trendline = Trendline::default();
        let slope = feed(&mut trendline, 200, 10, 11);
        assert!((slope - 1.0 / 11.0).abs() < 1e-6, "{slope}");
        let slope = feed(&mut trendline, 200, 10, 8);
        assert!((slope + 2.0 / 8.0).abs() < 1e-6, "{slope}");
    }

    // [LIBWEBRTC §TrendlineEstimator]
    #[test]
    fn the_delay_is_smoothed_with_factor_0_9() {
        let mut trendline = Trendline::default();
        feed(&mut trendline, 1, 10, 20);
        assert!((trendline.smoothed_ms - 1.0).abs() < 1e-12);
        feed(&mut trendline, 1, 10, 20);
        assert!((trendline.smoothed_ms - 2.9).abs() < 1e-12);
    }

    #[test]
    fn arrivals_all_at_one_time_keep_the_slope() {
        let mut trendline = Trendline::default();
        let before = feed(&mut trendline, 40, 10, 11);
        let delta = GroupDelta { send: TimeDelta::from_millis(6), arrival: TimeDelta::ZERO };
        let slopes: alloc::vec::Vec<f64> =
            (0..60).flat_map(|_| trendline.update([(delta, at(440))])).collect();
        assert_ne!(slopes[0], before);
        assert_eq!(slopes[59], slopes[20]);
        assert!(slopes.iter().all(|slope| slope.is_finite()));
    }

    #[test]
    fn two_steps_together_give_the_slopes_of_one_after_the_other() {
        let (mut one, mut two) = (Trendline::default(), Trendline::default());
        for pair in 0..300_i64 {
            let step = |number: i64| {
                let arrival = TimeDelta::from_micros(10_000 + 250 * (number * 7 % 11));
                (GroupDelta { send: TimeDelta::from_millis(10), arrival }, at(13 * number))
            };
            let steps = [step(2 * pair), step(2 * pair + 1)];
            let [first] = one.update([steps[0]]);
            let [second] = one.update([steps[1]]);
            assert_eq!(two.update(steps), [first, second], "{pair}");
            // An odd one in between moves the pairs.
            if pair % 17 == 0 {
                assert_eq!(one.update([step(2 * pair + 1)]), two.update([step(2 * pair + 1)]));
            }
        }
    }
}
