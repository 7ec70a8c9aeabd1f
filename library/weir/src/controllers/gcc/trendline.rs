//! Trendline: the slope of the one-way delay over the last groups.
//!
//! Implements [LIBWEBRTC §TrendlineEstimator], which replaced the draft's Kalman filter [GCC §5.3].

use core::ops::Add;

use super::arrival_groups::GroupDelta;
use crate::units::{TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §TrendlineEstimator].
/// Number of groups that the line is fitted to.
const WINDOW: usize = 20;
/// Weight of the previous smoothed delay at each group.
const SMOOTHING: f64 = 0.9;

/// Capacity of `points`. When it is full, the last points move to the front.
const STORED: usize = 4 * WINDOW;

/// Arrival since the first arrival, and smoothed delay, both in ms; also sums of both. The
/// alignment keeps each point within one cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(16))]
struct Point(f64, f64);

impl Point {
    const ZERO: Self = Self(0.0, 0.0);

    /// The product of both distances from the mean, and the squared distance in time.
    fn square_about(self, mean: Self) -> Self {
        let (x, y) = (self.0 - mean.0, self.1 - mean.1);
        Self(x * y, x * x)
    }
}

impl Add for Point {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0, self.1 + other.1)
    }
}

/// A difference between groups, and the arrival time at which it became known.
pub(super) type Step = (GroupDelta, Timestamp);

/// Fits a line to the delay accumulated over groups.
#[derive(Clone, Debug)]
pub(super) struct Trendline {
    first_arrival: Option<Timestamp>,
    accumulated_ms: f64,
    smoothed_ms: f64,
    /// The last points. The newest one is just before `end`.
    points: [Point; STORED],
    end: usize,
    /// Partial sums of the windows that begin with each of the last points. New points are added to
    /// all of them side by side, which is faster than summing up a window at its end.
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
            points: [Point::ZERO; STORED],
            end: 0,
            sums: [Point::ZERO; WINDOW],
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
    /// A slope needs two chains of dependent additions. Several slopes computed together take
    /// hardly longer than one.
    pub(super) fn update<const STEPS: usize>(&mut self, steps: [Step; STEPS]) -> [f64; STEPS] {
        const { assert!(STEPS < WINDOW, "each window has to end before it begins anew") };
        if self.end + STEPS > STORED {
            self.points.copy_within(self.end - WINDOW..self.end, 0);
            self.end = WINDOW;
        }
        let new = steps.map(|step| self.smooth(step));
        self.points[self.end..self.end + STEPS].copy_from_slice(&new);
        self.end += STEPS;
        let means = self.means(new);
        let sums = self.square_sums(means);
        let before = self.count;
        self.count += STEPS;
        core::array::from_fn(|index| {
            let Point(numerator, denominator) = sums[index];
            // If all arrival times are equal, the slope stays.
            if before + index + 1 >= WINDOW && denominator > 0.0 {
                self.slope = numerator / denominator;
            }
            self.slope
        })
    }

    /// Accumulates and smooths the delay of a group.
    fn smooth(&mut self, (delta, arrival_time): Step) -> Point {
        let first = *self.first_arrival.get_or_insert(arrival_time);
        self.accumulated_ms += (delta.arrival - delta.send).as_millis_f64();
        self.smoothed_ms = SMOOTHING * self.smoothed_ms + (1.0 - SMOOTHING) * self.accumulated_ms;
        let since: TimeDelta = arrival_time - first;
        Point(since.as_millis_f64(), self.smoothed_ms)
    }

    /// The means of the windows that end with each of the new points.
    fn means<const STEPS: usize>(&mut self, new: [Point; STEPS]) -> [Point; STEPS] {
        let windows: [usize; STEPS] = core::array::from_fn(|index| (self.oldest + index) % WINDOW);
        self.oldest = (self.oldest + STEPS) % WINDOW;
        // A window that ends with a point has the slot of the one that begins with the next.
        let means = core::array::from_fn(|index| {
            let window = windows.get(index + 1).copied().unwrap_or(self.oldest);
            let sum = new[..=index].iter().fold(self.sums[window], |sum, point| sum + *point);
            Point(sum.0 / WINDOW as f64, sum.1 / WINDOW as f64)
        });
        for sum in &mut self.sums {
            *sum = new.iter().fold(*sum, |sum, point| sum + *point);
        }
        // A window begins with each of the new points.
        for (index, &window) in windows.iter().enumerate() {
            self.sums[window] = new[index..].iter().fold(Point::ZERO, |sum, point| sum + *point);
        }
        means
    }

    /// For each window that ends with one of the last points: the sum of the products of both
    /// distances from the mean, and the sum of the squared distances in time. Zero if the window is
    /// not full yet.
    fn square_sums<const STEPS: usize>(&self, means: [Point; STEPS]) -> [Point; STEPS] {
        let mut sums = [Point::ZERO; STEPS];
        let Some(begin) = self.end.checked_sub(WINDOW + STEPS - 1) else {
            return self.square_sums_of_the_first(means);
        };
        let points = &self.points[begin..self.end];
        for at in 0..WINDOW {
            for (index, sum) in sums.iter_mut().enumerate() {
                let (point, mean) = (points[at + index], means[index]);
                *sum = *sum + point.square_about(mean);
            }
        }
        sums
    }

    /// Like `square_sums`, while some windows are not full yet.
    #[cold]
    fn square_sums_of_the_first<const STEPS: usize>(
        &self,
        means: [Point; STEPS],
    ) -> [Point; STEPS] {
        core::array::from_fn(|index| {
            let end = self.end + index + 1 - STEPS;
            let Some(begin) = end.checked_sub(WINDOW) else { return Point::ZERO };
            let square = |point: &Point| point.square_about(means[index]);
            self.points[begin..end].iter().map(square).fold(Point::ZERO, Add::add)
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

    /// The trendline as [LIBWEBRTC §TrendlineEstimator] writes it, step by step: what the partial
    /// sums and the steps taken together must equal to the bit.
    #[derive(Default)]
    struct Plain {
        first_arrival: Option<Timestamp>,
        accumulated_ms: f64,
        smoothed_ms: f64,
        window: alloc::collections::VecDeque<(f64, f64)>,
        slope: f64,
    }

    impl Plain {
        fn update(&mut self, (delta, arrival): Step) -> f64 {
            let first = *self.first_arrival.get_or_insert(arrival);
            self.accumulated_ms += (delta.arrival - delta.send).as_millis_f64();
            self.smoothed_ms =
                SMOOTHING * self.smoothed_ms + (1.0 - SMOOTHING) * self.accumulated_ms;
            self.window.push_back(((arrival - first).as_millis_f64(), self.smoothed_ms));
            if self.window.len() > WINDOW {
                self.window.pop_front();
            }
            if self.window.len() == WINDOW {
                self.fit();
            }
            self.slope
        }

        /// Ordinary least squares.
        fn fit(&mut self) {
            let (mut sum_x, mut sum_y) = (0.0, 0.0);
            for (x, y) in &self.window {
                sum_x += x;
                sum_y += y;
            }
            let (mean_x, mean_y) = (sum_x / WINDOW as f64, sum_y / WINDOW as f64);
            let (mut numerator, mut denominator) = (0.0, 0.0);
            for (x, y) in &self.window {
                numerator += (x - mean_x) * (y - mean_y);
                denominator += (x - mean_x) * (x - mean_x);
            }
            if denominator > 0.0 {
                self.slope = numerator / denominator;
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn the_fast_trendline_equals_the_plain_one(
            steps in proptest::collection::vec((0_i64..40_000, -5_000_i64..60_000), 1..120),
            sizes in proptest::collection::vec(1_usize..=4, 120),
        ) {
            let (mut plain, mut fast) = (Plain::default(), Trendline::default());
            let mut arrival = Timestamp::from_millis(100_000);
            let mut given = alloc::vec::Vec::new();
            for (send_us, arrival_us) in steps {
                arrival += TimeDelta::from_micros(arrival_us.max(0));
                let (send, step) =
                    (TimeDelta::from_micros(send_us), TimeDelta::from_micros(arrival_us));
                given.push((GroupDelta { send, arrival: step }, arrival));
            }
            let mut rest = given.as_slice();
            for size in sizes {
                let (now, later) = rest.split_at(size.min(rest.len()));
                rest = later;
                let slopes = match *now {
                    [] => break,
                    [a] => fast.update([a]).to_vec(),
                    [a, b] => fast.update([a, b]).to_vec(),
                    [a, b, c] => fast.update([a, b, c]).to_vec(),
                    [a, b, c, d] => fast.update([a, b, c, d]).to_vec(),
                    _ => unreachable!("at most four"),
                };
                for (step, slope) in now.iter().zip(slopes) {
                    proptest::prop_assert_eq!(plain.update(*step), slope);
                }
            }
        }
    }
}
