//! How much later than expected frames may come: the estimate from which a browser's receiver takes
//! its delay [LIBWEBRTC §JitterEstimator].
//!
//! ```text
//! frame -> size filters -> Kalman line -> deviations -> noise -> estimate
//! ```

use std::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

use super::kalman::Kalman;
use super::rtt_filter::RttFilter;

/// Frames before the estimate is kept as its own lower bound, and in which the scale of the frame
/// rate grows.
const STARTUP_FRAMES: u32 = 30;
/// Frames whose mean size starts the filter of sizes.
const SIZE_FRAMES: u32 = 5;
/// Mean and largest size before the first frame, in bytes, and variance of sizes.
const START_SIZE: f64 = 500.0;
const START_SIZE_VARIANCE: f64 = 100.0;
/// `phi`, `psi`: what is kept of mean and largest size.
const KEEP_MEAN: f64 = 0.97;
const KEEP_LARGEST: f64 = 0.9999;
/// A frame larger than the mean by so many standard deviations does not change the mean.
const KEY_DEVIATIONS: f64 = 2.0;
/// A delay counts for at most this many standard deviations of the noise.
const CLAMP_DEVIATIONS: f64 = 3.5;
/// Delays beyond are outliers, unless the frame is larger than the mean by the second number.
const DELAY_OUTLIER: f64 = 15.0;
const SIZE_OUTLIER: f64 = 3.0;
/// A frame that is smaller than the one before by this share of the largest waited for that one.
const CONGESTED: f64 = -0.25;
/// Variance of the noise at the start, and its minimum, in ms².
const START_NOISE: f64 = 4.0;
const LEAST_NOISE: f64 = 1.0;
/// Frames over which noise is averaged, at most.
const NOISE_FRAMES: u32 = 400;
/// The estimate covers this many standard deviations of the noise, less 30 ms.
const NOISE_DEVIATIONS: f64 = 2.33;
const NOISE_OFFSET: f64 = 30.0;
/// Bounds of the estimate in ms.
const LEAST: f64 = 1.0;
const MOST: f64 = 10_000.0;
/// What is added for the receiver's own jitter, in ms.
const SYSTEM_JITTER: f64 = 10.0;
/// Frames with a retransmission after which a share of the round-trip time is added, up to a limit
/// in ms, and the time after which they are forgotten.
const REPEATED_FRAMES: u32 = 3;
const ROUND_TRIPS: f64 = 0.9;
const MOST_FOR_REPAIR: f64 = 200.0;
const FORGET_REPAIR: TimeDelta = TimeDelta::from_secs(60);
/// Frames whose intervals give the frame rate. Below the second rate the estimate shrinks; below
/// the first it is zero. In frames a second.
const RATE_FRAMES: usize = 30;
const LOW_RATES: (f64, f64) = (5.0, 10.0);
const NOMINAL_RATE: f64 = 30.0;
const LARGEST_RATE: f64 = 200.0;

/// The estimator.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    kalman: Kalman,
    mean_size: f64,
    largest_size: f64,
    size_variance: f64,
    first_sizes: (f64, u32),
    last_size: Option<f64>,
    noise_mean: f64,
    noise_variance: f64,
    noise_count: u32,
    last_update: Option<Timestamp>,
    intervals: VecDeque<TimeDelta>,
    last_estimate: Option<f64>,
    filtered: f64,
    frames: u32,
    repeated: u32,
    last_repeated: Timestamp,
    rtt: RttFilter,
}

impl Default for Jitter {
    fn default() -> Self {
        Self {
            kalman: Kalman::default(),
            mean_size: START_SIZE,
            largest_size: START_SIZE,
            size_variance: START_SIZE_VARIANCE,
            first_sizes: (0.0, 0),
            last_size: None,
            noise_mean: 0.0,
            noise_variance: START_NOISE,
            noise_count: 1,
            last_update: None,
            intervals: VecDeque::new(),
            last_estimate: None,
            filtered: 0.0,
            frames: 0,
            repeated: 0,
            last_repeated: Timestamp::ZERO,
            rtt: RttFilter::default(),
        }
    }
}

impl Jitter {
    /// Sets the round-trip time.
    pub(super) fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.rtt.on_round_trip_time(now, rtt);
    }

    /// A frame had to be completed by a retransmission. Its delay says nothing about the network.
    pub(super) fn on_repeated(&mut self, now: Timestamp) {
        self.repeated = (self.repeated + 1).min(REPEATED_FRAMES);
        self.last_repeated = now;
    }

    /// A frame of `size` bytes took `delay` ms longer than the one before.
    pub(super) fn on_frame(&mut self, now: Timestamp, delay: f64, size: f64) {
        if size == 0.0 {
            return;
        }
        let larger_by = size - self.last_size.unwrap_or(0.0);
        self.filter_size(size);
        if self.last_size.replace(size).is_none() {
            return;
        }
        let noise = libm::sqrt(self.noise_variance);
        let bound = CLAMP_DEVIATIONS * noise + 0.5;
        let delay = delay.clamp(-bound, bound);
        let deviation = delay - self.kalman.total(larger_by);
        let is_large = size > self.mean_size + SIZE_OUTLIER * libm::sqrt(self.size_variance);
        if libm::fabs(deviation) < DELAY_OUTLIER * noise || is_large {
            // The noise counts those that waited as well.
            self.on_noise(now, deviation);
            if larger_by > CONGESTED * self.largest_size {
                self.kalman.on_frame(delay, larger_by, self.largest_size, self.noise_variance);
            }
        } else {
            self.on_noise(now, libm::copysign(DELAY_OUTLIER * noise, deviation));
        }
        if self.frames >= STARTUP_FRAMES {
            self.filtered = self.calculate();
        } else {
            self.frames += 1;
        }
    }

    fn filter_size(&mut self, size: f64) {
        let (sum, count) = &mut self.first_sizes;
        if *count < SIZE_FRAMES {
            *sum += size;
            *count += 1;
        } else if *count == SIZE_FRAMES {
            self.mean_size = *sum / f64::from(*count);
            *count += 1;
        }
        let mean = KEEP_MEAN * self.mean_size + (1.0 - KEEP_MEAN) * size;
        if size < self.mean_size + KEY_DEVIATIONS * libm::sqrt(self.size_variance) {
            self.mean_size = mean;
        }
        let off = size - mean;
        let variance = KEEP_MEAN * self.size_variance + (1.0 - KEEP_MEAN) * off * off;
        self.size_variance = variance.max(1.0);
        self.largest_size = (KEEP_LARGEST * self.largest_size).max(size);
    }

    /// A frame lay this many ms off the line.
    fn on_noise(&mut self, now: Timestamp, deviation: f64) {
        if let Some(last) = self.last_update.replace(now) {
            if self.intervals.len() == RATE_FRAMES {
                self.intervals.pop_front();
            }
            self.intervals.push_back(now - last);
        }
        let keep = f64::from(self.noise_count - 1) / f64::from(self.noise_count);
        self.noise_count = (self.noise_count + 1).min(NOISE_FRAMES);
        let keep = libm::pow(keep, self.scale());
        let off = deviation - self.noise_mean;
        self.noise_mean = keep * self.noise_mean + (1.0 - keep) * deviation;
        let variance = keep * self.noise_variance + (1.0 - keep) * off * off;
        self.noise_variance = variance.max(LEAST_NOISE);
    }

    /// How many frames of a stream with 30 frames a second one frame counts for.
    fn scale(&self) -> f64 {
        let rate = self.frame_rate();
        if rate <= 0.0 {
            return 1.0;
        }
        let scale = NOMINAL_RATE / rate;
        let (count, all) = (f64::from(self.noise_count), f64::from(STARTUP_FRAMES));
        if count < all { (count * scale + (all - count)) / all } else { scale }
    }

    /// Frames a second; 0 if unknown.
    fn frame_rate(&self) -> f64 {
        let sum = self.intervals.iter().fold(TimeDelta::ZERO, |sum, &interval| sum + interval);
        if sum <= TimeDelta::ZERO {
            return 0.0;
        }
        (self.intervals.len() as f64 / sum.as_secs_f64()).min(LARGEST_RATE)
    }

    fn calculate(&mut self) -> f64 {
        let noise = NOISE_DEVIATIONS * libm::sqrt(self.noise_variance) - NOISE_OFFSET;
        let large = self.kalman.of_size(self.largest_size - self.mean_size);
        let estimate = large + noise.max(1.0);
        let estimate =
            if estimate < LEAST { self.last_estimate.unwrap_or(LEAST) } else { estimate.min(MOST) };
        self.last_estimate = Some(estimate);
        estimate
    }

    /// The delay that the jitter needs.
    pub(super) fn estimate(&mut self, now: Timestamp) -> TimeDelta {
        let mut jitter = (self.calculate() + SYSTEM_JITTER).max(self.filtered);
        if now - self.last_repeated > FORGET_REPAIR {
            self.repeated = 0;
        }
        if self.repeated >= REPEATED_FRAMES {
            jitter += (self.rtt.longest(now) * ROUND_TRIPS).min(MOST_FOR_REPAIR);
        }
        let (low, high) = LOW_RATES;
        let rate = self.frame_rate();
        let share = if rate > 0.0 { ((rate - low) / (high - low)).clamp(0.0, 1.0) } else { 1.0 };
        TimeDelta::from_secs_f64((jitter * share).max(0.0) / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Estimate in ms after frames at this rate with these delays relative to the first and these
    /// sizes.
    fn after(fps: f64, frames: impl IntoIterator<Item = (f64, f64)>) -> (Jitter, Timestamp) {
        let mut jitter = Jitter::default();
        let (mut now, mut last) = (Timestamp::ZERO, 0.0);
        for (delay, size) in frames {
            now += TimeDelta::from_secs_f64(1.0 / fps);
            jitter.on_frame(now, delay - last, size);
            last = delay;
        }
        (jitter, now)
    }

    fn millis(mut of: (Jitter, Timestamp)) -> f64 {
        of.0.estimate(of.1).as_millis_f64()
    }

    #[test]
    fn without_jitter_it_is_the_systems_and_one_ms() {
        let ms = millis(after(30.0, [(0.0, 4_000.0); 300]));
        assert!((11.0..12.0).contains(&ms), "{ms}");
    }

    #[test]
    fn a_key_frame_makes_room_for_what_it_takes_on_the_bottleneck() {
        // 8 ms for 1,000 bytes: the delay of a frame grows with its size.
        let sizes = (0..600).map(|frame| match frame % 60 {
            0 => 12_000.0,
            odd if odd % 2 == 1 => 3_000.0,
            _ => 5_000.0,
        });
        let ms = millis(after(30.0, sizes.map(|size| (size * 0.008, size))));
        assert!((50.0..90.0).contains(&ms), "{ms}");
    }

    // [LIBWEBRTC §VideoStreamBufferController]
    #[test]
    fn repaired_frames_add_most_of_a_round_trip_and_are_forgotten_in_a_minute() {
        let (mut jitter, now) = after(30.0, [(0.0, 4_000.0); 300]);
        jitter.on_round_trip_time(now, TimeDelta::from_millis(100));
        let before = millis((jitter.clone(), now));
        for _ in 0..2 {
            jitter.on_repeated(now);
        }
        assert_eq!(millis((jitter.clone(), now)), before);
        jitter.on_repeated(now);
        assert!((millis((jitter.clone(), now)) - before - 90.0).abs() < 1e-6);
        jitter.on_round_trip_time(now + TimeDelta::from_secs(1), TimeDelta::from_secs(1));
        assert!((millis((jitter.clone(), now)) - before - 200.0).abs() < 1e-6);
        let later = now + TimeDelta::from_secs(61);
        assert!((millis((jitter, later)) - before).abs() < 1e-6);
    }

    #[test]
    fn below_five_frames_a_second_there_is_no_delay_below_ten_a_part_of_it() {
        let noisy = |frame: u32| (f64::from(frame % 7) * 20.0, 4_000.0 + f64::from(frame % 3));
        let at = |fps| millis(after(fps, (0..300).map(noisy)));
        assert_eq!(at(4.0), 0.0);
        assert!(at(7.5) > 0.0 && at(7.5) < 0.6 * at(30.0), "{} of {}", at(7.5), at(30.0));
    }

    #[test]
    fn it_is_never_below_zero_and_never_above_ten_seconds_and_what_is_added() {
        let wild = |frame: u32| {
            let size = f64::from(frame * 7_919 % 50_000);
            (f64::from(frame * 104_729 % 5_000), size)
        };
        for frames in [0, 1, 2, 40, 2_000] {
            let ms = millis(after(30.0, (0..frames).map(wild)));
            assert!((0.0..=10_210.0).contains(&ms), "{ms} after {frames}");
        }
    }
}
