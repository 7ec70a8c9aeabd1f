//! Trendline: the slope of the one-way delay over the last groups.
//!
//! Implements [LIBWEBRTC §TrendlineEstimator], which replaced the draft's Kalman filter [GCC §5.3].

use super::arrival_groups::GroupDelta;
use crate::units::{TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §TrendlineEstimator].
/// Number of groups that the line is fitted to.
const WINDOW: usize = 20;
/// Weight of the previous smoothed delay at each group.
const SMOOTHING: f64 = 0.9;

/// Capacity of `points`. When it is full, the last points move to the front.
const STORED: usize = 4 * WINDOW;

/// Arrival since the first arrival, and smoothed delay, both in ms.
type Point = (f64, f64);

/// A difference between groups, and the arrival time at which it became known.
type Step = (GroupDelta, Timestamp);

/// Fits a line to the delay accumulated over groups.
#[derive(Clone, Debug)]
pub(super) struct Trendline {
    first_arrival: Option<Timestamp>,
    accumulated_ms: f64,
    smoothed_ms: f64,
    /// The last points. The newest one is just before `end`.
    points: [Point; STORED],
    end: usize,
    /// Partial sums of the windows that begin with each of the last points. Each new point is added
    /// to all of them side by side, which is faster than summing up a window at its end.
    sums: [Point; WINDOW],
    count: usize,
    /// Index of the sum of the oldest window, or of the next free place.
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
    /// Takes the next differences. Returns the slope after each of them in ms per ms. While a queue
    /// builds up, the slope is close to (send rate - capacity) / capacity.
    ///
    /// A slope needs two chains of dependent additions. Two slopes computed together take hardly
    /// longer than one.
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
            // If all arrival times are equal, the slope stays.
            if before + index + 1 >= WINDOW && denominator > 0.0 {
                self.slope = numerator / denominator;
            }
            self.slope
        })
    }

    /// Adds a point. Returns the mean of the window that ends with it.
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

    /// For each window that ends with one of the last points: the sum of the products of both
    /// distances from the mean, and the sum of the squared distances in time. Zero if the window is
    /// not full yet.
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

    /// Like `square_sums`, while some windows are not full yet.
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

    // [LIBWEBRTC §TrendlineEstimator]: 1 ms more delay every 11 ms. Smoothing only delays the line.
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
            // A single step in between shifts the pairs.
            if pair % 17 == 0 {
                assert_eq!(one.update([step(2 * pair + 1)]), two.update([step(2 * pair + 1)]));
            }
        }
    }
}
