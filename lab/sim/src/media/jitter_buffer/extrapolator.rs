//! When a frame would be complete at the receiver, from when it was captured and when those before
//! it were complete [LIBWEBRTC §TimestampExtrapolator].
//!
//! A line through the points (time of completion, time of capture), by recursive least squares
//! over all frames but outliers. Many outliers in a row, or a detector of lasting changes of the
//! delay, let its offset move.

use weir::units::{TimeDelta, Timestamp};

/// Number of frames before the line is used.
const STARTUP_FRAMES: u32 = 2;
/// Variances of slope and offset at the start, relative to that of a frame's error. After a change
/// of the delay, the offset has this one again.
const SLOPE_VARIANCE: f64 = 1.0;
const OFFSET_VARIANCE: f64 = 1e10;
/// libwebrtc's limits are in ticks of the video clock.
const TICKS_PER_MS: f64 = 90.0;
/// The detector adds up what an error exceeds `DRIFT`, with errors cut at `LARGEST`, up to `ALARM`.
const DRIFT: f64 = 6_600.0 / TICKS_PER_MS;
const LARGEST: f64 = 7_000.0 / TICKS_PER_MS;
const ALARM: f64 = 60_000.0 / TICKS_PER_MS;
/// After such a time without a frame, or without a capture, it starts anew.
const SILENCE: TimeDelta = TimeDelta::from_secs(10);
/// From this frame on, one whose error is off the mean by more standard deviations than the second
/// number is an outlier, and does not count.
const OUTLIERS_FROM: u32 = 300;
const OUTLIER_DEVIATIONS: f64 = 2.0;
/// Unless as many were outliers in a row.
const MOST_OUTLIERS: u32 = 150;
/// Standard deviation at the start, least variance, and what a frame leaves of mean and variance.
const START_DEVIATION: f64 = 3_000.0 / TICKS_PER_MS;
const LEAST_VARIANCE: f64 = 1.0 / (TICKS_PER_MS * TICKS_PER_MS);
const KEEP: f64 = 0.999;

/// The line and the detector. Times are in ms since the first frame.
#[derive(Clone, Debug)]
pub(super) struct Extrapolator {
    start: Timestamp,
    first_captured: Option<Timestamp>,
    last: Timestamp,
    last_captured: Timestamp,
    frames: u32,
    slope: f64,
    offset: f64,
    covariance: [[f64; 2]; 2],
    late: f64,
    early: f64,
    errors: Errors,
    outliers: u32,
}

/// Mean and variance of the errors that were none of outliers.
#[derive(Clone, Copy, Debug)]
struct Errors {
    mean: f64,
    variance: f64,
}

impl Errors {
    fn is_outlier(self, error: f64) -> bool {
        libm::fabs(error - self.mean) > OUTLIER_DEVIATIONS * libm::sqrt(self.variance)
    }

    fn push(&mut self, error: f64) {
        self.mean = KEEP * self.mean + (1.0 - KEEP) * error;
        let off = error - self.mean;
        let variance = KEEP * self.variance + (1.0 - KEEP) * off * off;
        self.variance = variance.max(LEAST_VARIANCE);
    }
}

impl Extrapolator {
    /// Without frames; the stream starts at `start`.
    pub(super) fn new(start: Timestamp) -> Self {
        Self {
            start,
            first_captured: None,
            last: start,
            last_captured: Timestamp::ZERO,
            frames: 0,
            slope: 1.0,
            offset: 0.0,
            covariance: [[SLOPE_VARIANCE, 0.0], [0.0, OFFSET_VARIANCE]],
            late: 0.0,
            early: 0.0,
            errors: Errors { mean: 0.0, variance: START_DEVIATION * START_DEVIATION },
            outliers: 0,
        }
    }

    /// A frame was complete at `received`.
    pub(super) fn on_frame(&mut self, received: Timestamp, captured: Timestamp) {
        let has_jumped =
            self.first_captured.is_some() && (captured - self.last_captured).abs() > SILENCE;
        if received - self.last > SILENCE || has_jumped {
            *self = Self::new(received);
        }
        self.last = received;
        let time = (received - self.start).as_millis_f64();
        let Some(first) = self.first_captured else {
            self.first_captured = Some(captured);
            self.last_captured = captured;
            self.offset = -self.slope * time;
            self.errors.push(0.0);
            self.update(time, 0.0);
            return;
        };
        let residual = (captured - first).as_millis_f64() - time * self.slope - self.offset;
        if self.frames >= OUTLIERS_FROM && self.errors.is_outlier(residual) {
            self.outliers += 1;
            if self.outliers <= MOST_OUTLIERS {
                return;
            }
            self.covariance[1][1] = OFFSET_VARIANCE;
        } else {
            self.errors.push(residual);
        }
        self.outliers = 0;
        if self.has_changed(residual) && self.frames >= STARTUP_FRAMES {
            self.covariance[1][1] = OFFSET_VARIANCE;
        }
        self.last_captured = captured;
        self.update(time, residual);
    }

    fn update(&mut self, time: f64, residual: f64) {
        let [[p00, p01], [p10, p11]] = self.covariance;
        let (mut gain_slope, mut gain_offset) = (p00 * time + p01, p10 * time + p11);
        let total = 1.0 + time * gain_slope + gain_offset;
        gain_slope /= total;
        gain_offset /= total;
        self.slope += gain_slope * residual;
        self.offset += gain_offset * residual;
        self.covariance = [
            [p00 - gain_slope * (time * p00 + p10), p01 - gain_slope * (time * p01 + p11)],
            [p10 - gain_offset * (time * p00 + p10), p11 - gain_offset * (time * p01 + p11)],
        ];
        self.frames = self.frames.saturating_add(1);
    }

    /// When a frame with this capture time would be complete; `None` without any frame before.
    pub(super) fn completion(&self, captured: Timestamp) -> Option<Timestamp> {
        let first = self.first_captured?;
        if self.frames < STARTUP_FRAMES {
            return Some(self.last + (captured - self.last_captured));
        }
        if self.slope < 1e-3 / TICKS_PER_MS {
            return Some(self.start);
        }
        let ms = ((captured - first).as_millis_f64() - self.offset) / self.slope;
        Some(self.start + TimeDelta::from_secs_f64(ms / 1e3))
    }

    /// Whether errors of one sign have lasted. An error is a frame that is earlier (above zero) or
    /// later than the line says.
    fn has_changed(&mut self, error: f64) -> bool {
        let error = error.clamp(-LARGEST, LARGEST);
        self.early = (self.early + error - DRIFT).max(0.0);
        self.late = (self.late + error + DRIFT).min(0.0);
        let has_changed = self.early > ALARM || self.late < -ALARM;
        if has_changed {
            (self.early, self.late) = (0.0, 0.0);
        }
        has_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// What the line says of the next frame after frames at 30 a second with these delays in ms,
    /// as a delay.
    fn after(delays: impl IntoIterator<Item = i64>) -> f64 {
        let mut line = Extrapolator::new(ms(0));
        let mut captured = 0;
        for delay in delays {
            line.on_frame(ms(captured + delay), ms(captured));
            captured += 33;
        }
        (line.completion(ms(captured)).unwrap() - ms(captured)).as_millis_f64()
    }

    // [LIBWEBRTC §TimestampExtrapolator]
    #[test]
    fn with_a_constant_delay_the_next_frame_is_expected_after_it() {
        assert!((after([40; 100]) - 40.0).abs() < 0.5, "{}", after([40; 100]));
    }

    #[test]
    fn with_a_varying_delay_it_is_expected_after_the_mean() {
        let delays = (0..600).map(|frame| if frame % 2 == 0 { 30 } else { 50 });
        assert!((after(delays) - 40.0).abs() < 2.0);
    }

    #[test]
    fn a_single_late_frame_does_not_move_the_line() {
        let delays = (0..2_000).map(|frame| if frame >= 400 && frame % 50 == 0 { 400 } else { 40 });
        // Their mean is 46 ms.
        assert!((after(delays) - 40.0).abs() < 0.5);
    }

    // Errors are cut at 7,000 ticks. What they exceed 6,600 by passes 60,000 after 150 frames.
    #[test]
    fn a_lasting_change_of_the_delay_moves_the_line_after_150_frames() {
        let delays = |more| (0..9_000 + more).map(|frame| if frame < 9_000 { 40 } else { 140 });
        assert!(after(delays(145)) < 60.0, "{}", after(delays(145)));
        assert!((after(delays(180)) - 140.0).abs() < 6.0, "{}", after(delays(180)));
    }
}
