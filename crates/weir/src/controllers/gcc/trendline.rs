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

/// Arrival since the first one, and smoothed delay, both in ms.
type Point = (f64, f64);

/// Fits a line to the delay accumulated over groups.
#[derive(Clone, Debug)]
pub(super) struct Trendline {
    first_arrival: Option<Timestamp>,
    accumulated_ms: f64,
    smoothed_ms: f64,
    /// The last points, twice in a row, so that from `oldest` on they lie in one piece.
    points: [Point; 2 * WINDOW],
    /// Sums of the windows that begin with each of these points, as far as their points have come: one
    /// addition each with a new point, side by side, in place of a row of them at the end.
    sums: [Point; WINDOW],
    count: usize,
    /// Index of the oldest point, or of the place of the next one.
    oldest: usize,
    slope: f64,
}

impl Default for Trendline {
    fn default() -> Self {
        Self {
            first_arrival: None,
            accumulated_ms: 0.0,
            smoothed_ms: 0.0,
            points: [(0.0, 0.0); 2 * WINDOW],
            sums: [(0.0, 0.0); WINDOW],
            count: 0,
            oldest: 0,
            slope: 0.0,
        }
    }
}

impl Trendline {
    /// Takes the next difference, which became known when a packet arrived; returns the slope in ms
    /// a ms: near (send rate - capacity) / capacity while a queue builds up.
    pub(super) fn update(&mut self, delta: GroupDelta, arrival_time: Timestamp) -> f64 {
        let first = *self.first_arrival.get_or_insert(arrival_time);
        self.accumulated_ms += (delta.arrival - delta.send).as_millis_f64();
        self.smoothed_ms = SMOOTHING * self.smoothed_ms + (1.0 - SMOOTHING) * self.accumulated_ms;
        let since: TimeDelta = arrival_time - first;
        self.push((since.as_millis_f64(), self.smoothed_ms));
        if self.count == WINDOW {
            let window =
                self.points[self.oldest..].first_chunk().expect("points stand there twice");
            let sum = self.sums[self.oldest];
            self.slope = least_squares_slope(window, sum).unwrap_or(self.slope);
        }
        self.slope
    }

    fn push(&mut self, point: Point) {
        self.points[self.oldest] = point;
        self.points[self.oldest + WINDOW] = point;
        self.sums[self.oldest] = (0.0, 0.0);
        for sum in &mut self.sums {
            *sum = (sum.0 + point.0, sum.1 + point.1);
        }
        self.oldest = (self.oldest + 1) % WINDOW;
        self.count = WINDOW.min(self.count + 1);
    }
}

/// `sum` is that of the points, oldest first. `None` where all arrivals are at one time.
fn least_squares_slope(points: &[Point; WINDOW], sum: Point) -> Option<f64> {
    let count = WINDOW as f64;
    let (mean_x, mean_y) = (sum.0 / count, sum.1 / count);
    let (mut numerator, mut denominator) = (0.0, 0.0);
    for (x, y) in points {
        numerator += (x - mean_x) * (y - mean_y);
        denominator += (x - mean_x) * (x - mean_x);
    }
    (denominator > 0.0).then(|| numerator / denominator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(trendline: &mut Trendline, groups: i64, send_ms: i64, arrival_ms: i64) -> f64 {
        let delta = GroupDelta {
            send: TimeDelta::from_millis(send_ms),
            arrival: TimeDelta::from_millis(arrival_ms),
        };
        let last = trendline.points[(trendline.oldest + WINDOW - 1) % WINDOW].0 as i64;
        (1..=groups).fold(0.0, |_, i| {
            trendline.update(delta, Timestamp::from_millis(last + i * arrival_ms))
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
        let at = Timestamp::from_millis(440);
        let slopes: alloc::vec::Vec<f64> = (0..60).map(|_| trendline.update(delta, at)).collect();
        assert_ne!(slopes[0], before);
        assert_eq!(slopes[59], slopes[20]);
        assert!(slopes.iter().all(|slope| slope.is_finite()));
    }
}
