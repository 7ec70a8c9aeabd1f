//! Quality scaler: makes the picture smaller, or the frame rate lower, while the encoder's
//! quantizer is high, and back while it is low.
//!
//! Rules and constants are those of libwebrtc [LIBWEBRTC §QualityScaler], [LIBWEBRTC
//! §VideoStreamAdapter]. It is off if the page asks to maintain the resolution.

use std::collections::VecDeque;

use weir::units::{Bitrate, TimeDelta, Timestamp};

use crate::config::{Codec, Degradation, EncoderVideo};

// Parameters [LIBWEBRTC §QualityScaler], with the settings of its default experiment.
/// Time between two checks: until the quantizer was high once; after too few frames; otherwise.
const FIRST_CHECKS: TimeDelta = TimeDelta::from_secs(2);
const CHECK_OF_FEW: TimeDelta = TimeDelta::from_secs(1);
const CHECKS: TimeDelta = TimeDelta::from_secs(5);
/// Frames, dropped ones included, that a check needs, and the most that it looks at.
const LEAST_FRAMES: usize = 60;
const MAX_FRAMES: usize = 150;
/// The quantizer counts as high if at least this share of the frames was dropped.
const HIGH_DROPS: f64 = 0.6;
/// What remains after one millisecond of the weight in the two averages of the quantizer: that
/// which is compared with the upper threshold, and that for the lower one.
const KEPT_HIGH: f64 = 0.9995;
const KEPT_LOW: f64 = 0.9999;

// Parameters of the steps [LIBWEBRTC §VideoStreamAdapter].
/// A smaller picture has at most this share of the pixels.
const SMALLER: f64 = 0.6;
/// No smaller picture has fewer pixels.
const LEAST_PIXELS: f64 = 320.0 * 180.0;
/// Sides of the pictures that a camera is scaled to, relative to the full size
/// [LIBWEBRTC §VideoAdapter].
const SIDES: [f64; 5] = [1.0, 0.75, 0.5, 0.375, 0.25];
/// Frame rates of balanced degradation by the number of pixels up to which they are a minimum
/// [LIBWEBRTC §BalancedDegradationSettings].
const BALANCED: [(f64, f64); 3] =
    [(320.0 * 240.0, 7.0), (480.0 * 360.0, 10.0), (640.0 * 480.0, 15.0)];
/// Pixels of the largest first picture by the bitrate below which it applies
/// [LIBWEBRTC §VideoStreamEncoder].
const FIRST_PICTURES: [(Bitrate, f64); 2] =
    [(Bitrate::from_kbps(250), 320.0 * 240.0), (Bitrate::from_kbps(500), 640.0 * 480.0)];
/// At most this many pictures are dropped because the first one is too large.
const FIRST_DROPS: u32 = 4;

/// The quantizers between which nothing changes, as getStats reports them.
fn thresholds(codec: Codec) -> (f64, f64) {
    match codec {
        Codec::Vp8 => (29.0, 95.0),
        Codec::Vp9 => (149.0, 205.0),
        Codec::H264 => (24.0, 37.0),
        // [LIBWEBRTC §LibaomAv1Encoder]
        Codec::Av1 => (145.0, 205.0),
    }
}

/// An average that forgets with time.
#[derive(Clone, Copy, Debug, Default)]
struct Average(Option<f64>);

impl Average {
    fn add(&mut self, sample: f64, elapsed: TimeDelta, kept: f64) {
        let weight = libm::pow(kept, elapsed.as_secs_f64() * 1e3);
        self.0 = Some(self.0.map_or(sample, |mean| weight * mean + (1.0 - weight) * sample));
    }
}

/// The scaler of one encoder.
#[derive(Clone, Debug)]
pub(super) struct Scaler {
    video: EncoderVideo,
    /// Index in [`SIDES`].
    size: usize,
    fps: Option<f64>,
    first_drops: u32,
    is_fast: bool,
    next_check: Option<Timestamp>,
    high: Average,
    low: Average,
    last_frame: Option<Timestamp>,
    /// Whether each recent frame was dropped.
    drops: VecDeque<bool>,
}

impl Scaler {
    pub(super) fn new(video: EncoderVideo) -> Self {
        Self {
            video,
            size: 0,
            fps: None,
            first_drops: 0,
            is_fast: true,
            next_check: None,
            high: Average::default(),
            low: Average::default(),
            last_frame: None,
            drops: VecDeque::new(),
        }
    }

    /// Whether quantizers change anything.
    pub(super) fn is_on(&self) -> bool {
        self.video.degradation != Degradation::MaintainResolution
    }

    /// Number of pixels of the picture that is encoded.
    pub(super) fn pixels(&self) -> f64 {
        self.pixels_at(self.size)
    }

    /// Frame rate at which pictures are encoded if the camera delivers `fps`.
    pub(super) fn fps(&self, fps: f64) -> f64 {
        self.fps.map_or(fps, |limit| fps.min(limit))
    }

    /// Whether a picture before the first frame is dropped, because it is too large for the rate.
    /// The next one is smaller.
    pub(super) fn drops_first(&mut self, target: Bitrate) -> bool {
        let limit = FIRST_PICTURES.iter().find(|entry| target < entry.0);
        let is_too_large = limit.is_some_and(|entry| self.pixels() > entry.1);
        if !self.is_on() || !is_too_large || self.first_drops == FIRST_DROPS {
            return false;
        }
        self.first_drops += 1;
        self.shrink();
        true
    }

    pub(super) fn on_drop(&mut self) {
        self.count(true);
    }

    /// Takes the quantizer of a frame.
    pub(super) fn on_frame(&mut self, now: Timestamp, qp: f64) {
        self.count(false);
        let elapsed = self.last_frame.replace(now).map_or(TimeDelta::ZERO, |last| now - last);
        self.high.add(qp, elapsed, KEPT_HIGH);
        self.low.add(qp, elapsed, KEPT_LOW);
    }

    fn count(&mut self, is_dropped: bool) {
        self.drops.push_back(is_dropped);
        if self.drops.len() > MAX_FRAMES {
            self.drops.pop_front();
        }
    }

    /// Checks the quantizer if that is due. Returns whether the size of the picture changes, which
    /// begins a new encoder.
    pub(super) fn check(&mut self, now: Timestamp) -> bool {
        if !self.is_on() {
            return false;
        }
        let due = *self.next_check.get_or_insert(now + FIRST_CHECKS);
        if now < due {
            return false;
        }
        let size = self.size;
        let (low, high) = thresholds(self.video.codec);
        let dropped = self.drops.iter().filter(|dropped| **dropped).count();
        let has_enough = self.drops.len() >= LEAST_FRAMES;
        let is_starved = dropped as f64 >= HIGH_DROPS * self.drops.len() as f64;
        // libwebrtc rounds the averages down.
        let high_qp = self.high.0.map(libm::floor);
        if has_enough && (is_starved || high_qp.is_some_and(|qp| qp > high)) {
            self.is_fast = false;
            self.reduce();
            self.forget();
        } else if has_enough && self.low.0.map(libm::floor).is_some_and(|qp| qp <= low) {
            self.restore();
            self.forget();
        }
        let pause = match (self.is_fast, has_enough) {
            (true, _) => FIRST_CHECKS,
            (false, false) => CHECK_OF_FEW,
            (false, true) => CHECKS,
        };
        self.next_check = Some(now + pause);
        self.size != size
    }

    fn forget(&mut self) {
        self.drops.clear();
        (self.high, self.low) = (Average::default(), Average::default());
        self.last_frame = None;
    }

    fn pixels_at(&self, size: usize) -> f64 {
        f64::from(self.video.width) * f64::from(self.video.height) * SIDES[size] * SIDES[size]
    }

    /// Takes the largest picture with at most three fifths of the pixels.
    fn shrink(&mut self) {
        let most = self.pixels() * SMALLER;
        let smaller = (self.size + 1..SIDES.len()).find(|&size| self.pixels_at(size) <= most);
        if most >= LEAST_PIXELS
            && let Some(size) = smaller
        {
            self.size = size;
        }
    }

    fn reduce(&mut self) {
        let least = BALANCED.iter().find(|entry| self.pixels() <= entry.0).map(|entry| entry.1);
        if self.video.degradation == Degradation::Balanced
            && let Some(least) = least
            && self.fps.is_none_or(|fps| least < fps)
        {
            self.fps = Some(least);
            return;
        }
        self.shrink();
    }

    fn restore(&mut self) {
        // The frame rate that the next larger picture has as its minimum.
        let place = BALANCED[..2].iter().position(|entry| self.pixels() <= entry.0);
        let next = place.map(|index| BALANCED[index + 1].1);
        if let Some(fps) = self.fps
            && next.is_none_or(|next| next > fps)
        {
            self.fps = next;
            return;
        }
        self.size = self.size.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaler(degradation: Degradation) -> Scaler {
        Scaler::new(EncoderVideo { degradation, ..EncoderVideo::DEFAULT })
    }

    /// Feeds frames of this quantizer, 30 a second. Returns the pixels and the frame rate after
    /// each second.
    fn run(scaler: &mut Scaler, from: i64, seconds: i64, qp: f64) -> Vec<(f64, f64)> {
        let second = |second: i64| {
            for frame in 0..30 {
                let now = Timestamp::from_millis(1000 * (from + second) + 33 * frame);
                scaler.on_frame(now, qp);
                scaler.check(now);
            }
            (scaler.pixels(), scaler.fps(30.0))
        };
        (0..seconds).map(second).collect()
    }

    // [LIBWEBRTC §QualityScaler]
    #[test]
    fn a_high_quantizer_shrinks_the_picture_each_five_seconds_to_180_lines() {
        let mut scaler = scaler(Degradation::MaintainFramerate);
        let seen = run(&mut scaler, 0, 30, 106.0);
        let mut pixels: Vec<f64> = seen.iter().map(|entry| entry.0).collect();
        pixels.dedup();
        assert_eq!(pixels, [921_600.0, 518_400.0, 230_400.0, 129_600.0, 57_600.0]);
        assert!(seen.iter().all(|entry| entry.1 == 30.0));
    }

    #[test]
    fn a_low_quantizer_returns_to_the_full_size() {
        let mut scaler = scaler(Degradation::MaintainFramerate);
        assert!(scaler.drops_first(Bitrate::from_kbps(300)));
        assert!(scaler.drops_first(Bitrate::from_kbps(300)));
        assert!(!scaler.drops_first(Bitrate::from_kbps(300)));
        assert_eq!(scaler.pixels(), 230_400.0);
        assert_eq!(run(&mut scaler, 0, 8, 29.9).last(), Some(&(921_600.0, 30.0)));
    }

    // [LIBWEBRTC §QualityScaler]: of a high first quantizer a seventh remains after 20 s.
    #[test]
    fn a_bad_start_is_remembered_for_many_seconds() {
        let mut scaler = scaler(Degradation::MaintainFramerate);
        scaler.drops_first(Bitrate::from_kbps(300));
        run(&mut scaler, 0, 1, 90.0);
        let seen = run(&mut scaler, 1, 25, 18.0);
        let grown = seen.iter().position(|entry| entry.0 > 518_400.0);
        assert!((10..22).contains(&grown.unwrap()), "{grown:?}");
    }

    // [LIBWEBRTC §BalancedDegradationSettings]
    #[test]
    fn balanced_lowers_the_frame_rate_before_a_small_picture_shrinks_further() {
        let mut scaler = scaler(Degradation::Balanced);
        let mut seen = run(&mut scaler, 0, 50, 106.0);
        seen.dedup();
        let expected = [
            (921_600.0, 30.0),
            (518_400.0, 30.0),
            (230_400.0, 30.0),
            (230_400.0, 15.0),
            (129_600.0, 15.0),
            (129_600.0, 10.0),
            (57_600.0, 10.0),
            (57_600.0, 7.0),
        ];
        assert_eq!(seen, expected);
        let mut back = run(&mut scaler, 60, 60, 20.0);
        back.dedup();
        assert_eq!(back.last(), Some(&(921_600.0, 30.0)));
    }

    // [LIBWEBRTC §QualityScaler]
    #[test]
    fn frames_dropped_by_the_encoder_count_like_a_high_quantizer() {
        let mut scaler = scaler(Degradation::MaintainFramerate);
        for frame in 0..90 {
            let now = Timestamp::from_millis(33 * frame);
            if frame % 3 == 0 {
                scaler.on_frame(now, 60.0)
            } else {
                scaler.on_drop()
            }
            scaler.check(now);
        }
        assert!(scaler.pixels() < 921_600.0);
    }

    #[test]
    fn the_resolution_is_maintained_if_the_page_asks_for_it() {
        let mut scaler = scaler(Degradation::MaintainResolution);
        assert!(!scaler.drops_first(Bitrate::from_kbps(100)));
        assert!(run(&mut scaler, 0, 20, 106.0).iter().all(|entry| *entry == (921_600.0, 30.0)));
    }
}
