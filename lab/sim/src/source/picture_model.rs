//! How a coded picture looks beside the camera's: VMAF by a model.
//!
//! VMAF = c / (1 + (b50 / b)^k) with the bits a pixel b. b50, at which VMAF is half of c, depends
//! on content, codec, size and frame rate. The ceiling c is 100, but less for VP8, which removes
//! what it takes for a camera's noise before it codes a picture [LIBWEBRTC §LibvpxVp8Encoder].
//! Fitted to measured encodings; data, error and range are in docs/reference/quality.md.
//! `scripts/results/picture-model.py` prints the error of the film's constants, and
//! `scripts/results/picture-contents.py` that of the head's.

use std::collections::VecDeque;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::picture::BITS_PER_BYTE;
use crate::config::{Codec, Content, EncoderVideo};
use crate::media::Vmaf;

/// Bits a pixel of the film with VP8 at 360p and 30 frames a second for half of the ceiling.
const FILM_BITS: f64 = 0.01172;
/// `k`: steepness.
const STEEPNESS: f64 = 1.207;
/// VMAF of a perfect picture, and what VP8 does not exceed.
const CEILING: f64 = 100.0;
const VP8_CEILING: f64 = 92.2;
/// Factors of other codecs.
const VP9_BITS: f64 = 1.134;
const AV1_BITS: f64 = 0.875;
/// Exponents of the number of pixels and of the frame rate, with which the bits a pixel fall.
const PIXEL_EXPONENT: f64 = 0.250;
const RATE_EXPONENT: f64 = 0.388;
/// The same of the drawn head, which stands still but for a small part: one curve a codec.
const HEAD_VP8: Curve = Curve::new(0.00703, 2.384, 95.0);
const HEAD_VP9: Curve = Curve::new(0.00197, 1.505, 97.8);
const HEAD_AV1: Curve = Curve::new(0.00098, 1.168, 98.0);
const HEAD_PIXEL_EXPONENT: f64 = 0.197;
const HEAD_RATE_EXPONENT: f64 = 0.070;
/// A picture that was coded with fewer pixels than the camera's and enlarged takes more bits a
/// pixel, and does not reach 100: exponents of the share of the pixels.
const ENLARGED_BITS_EXPONENT: f64 = 0.614;
const ENLARGED_EXPONENT: f64 = 0.147;
/// Size and frame rate to which the constants belong.
const PIXELS: f64 = 640.0 * 360.0;
const FRAME_RATE: f64 = 30.0;
/// The bits of a picture are the mean over the pictures of this time, because a picture is made
/// from the one before.
const WINDOW: TimeDelta = TimeDelta::from_millis(500);
const HUNDREDTHS: f64 = 100.0;

/// VMAF by the bits a pixel, at the size and the frame rate of the constants.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve {
    /// Bits a pixel for half of the ceiling, `b50`.
    half: f64,
    /// `k`.
    steepness: f64,
    /// `c`.
    ceiling: f64,
}

impl Curve {
    const fn new(half: f64, steepness: f64, ceiling: f64) -> Self {
        Self { half, steepness, ceiling }
    }

    /// Of a codec that takes so many times the bits of VP8.
    const fn of_film(bits: f64, ceiling: f64) -> Self {
        Self::new(FILM_BITS * bits, STEEPNESS, ceiling)
    }

    fn vmaf(self, bits: f64) -> f64 {
        let over = libm::pow(self.half / bits.max(f64::MIN_POSITIVE), self.steepness);
        self.ceiling / (1.0 + over)
    }
}

/// What is shown, as far as the model knows it.
#[derive(Clone, Copy, Debug)]
struct Shown {
    curve: Curve,
    pixel_exponent: f64,
    rate_exponent: f64,
}

impl Shown {
    /// `None` if it was not measured.
    fn of(content: Content, codec: Codec) -> Option<Self> {
        let curve = match (content, codec) {
            (Content::Film, Codec::Vp8) => Curve::of_film(1.0, VP8_CEILING),
            (Content::Film, Codec::Vp9) => Curve::of_film(VP9_BITS, CEILING),
            (Content::Film, Codec::Av1) => Curve::of_film(AV1_BITS, CEILING),
            (Content::Head, Codec::Vp8) => HEAD_VP8,
            (Content::Head, Codec::Vp9) => HEAD_VP9,
            (Content::Head, Codec::Av1) => HEAD_AV1,
            _ => return None,
        };
        let (pixel_exponent, rate_exponent) = match content {
            Content::Head => (HEAD_PIXEL_EXPONENT, HEAD_RATE_EXPONENT),
            _ => (PIXEL_EXPONENT, RATE_EXPONENT),
        };
        Some(Self { curve, pixel_exponent, rate_exponent })
    }
}

/// A picture as it was coded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coded {
    pub payload: DataSize,
    pub pixels: f64,
}

/// The model for one camera.
#[derive(Clone, Debug)]
pub(super) struct PictureModel {
    shown: Shown,
    camera_pixels: f64,
    recent: VecDeque<(Timestamp, Coded)>,
}

impl PictureModel {
    /// `None` if the model was not fitted to what the camera shows, or to the codec.
    pub(super) fn new(video: EncoderVideo) -> Option<Self> {
        let EncoderVideo { width, height, codec, content, .. } = video;
        let shown = Shown::of(content, codec)?;
        let camera_pixels = f64::from(width) * f64::from(height);
        Some(Self { shown, camera_pixels, recent: VecDeque::new() })
    }

    /// VMAF of a picture that is coded now.
    pub(super) fn judge(&mut self, now: Timestamp, coded: Coded) -> Vmaf {
        if self.recent.back().is_some_and(|(_, last)| last.pixels != coded.pixels) {
            self.recent.clear();
        }
        self.recent.push_back((now, coded));
        while self.recent.front().is_some_and(|(at, _)| now - *at >= WINDOW) {
            self.recent.pop_front();
        }
        let bytes: u64 = self.recent.iter().map(|(_, coded)| coded.payload.as_bytes()).sum();
        let count = self.recent.len() as f64;
        let bits = bytes as f64 * BITS_PER_BYTE / count / coded.pixels;
        let vmaf = self.vmaf(bits, coded.pixels, self.frame_rate(now));
        Vmaf(libm::round(vmaf * HUNDREDTHS) as u64)
    }

    /// Pictures a second in the window; the nominal rate for the first.
    fn frame_rate(&self, now: Timestamp) -> f64 {
        match self.recent.front() {
            Some((first, _)) if *first < now => {
                (self.recent.len() - 1) as f64 / (now - *first).as_secs_f64()
            }
            _ => FRAME_RATE,
        }
    }

    /// VMAF at these bits a pixel, pixels and pictures a second.
    pub(super) fn vmaf(&self, bits: f64, pixels: f64, rate: f64) -> f64 {
        let Shown { curve, pixel_exponent, rate_exponent } = self.shown;
        let size = libm::pow(pixels / PIXELS, -pixel_exponent);
        let rate = libm::pow(rate / FRAME_RATE, -rate_exponent);
        let share = (pixels / self.camera_pixels).min(1.0);
        let enlarged = libm::pow(share, -ENLARGED_BITS_EXPONENT);
        let coded = Curve { half: curve.half * size * rate * enlarged, ..curve }.vmaf(bits);
        coded * libm::pow(share, ENLARGED_EXPONENT)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const VIDEO: EncoderVideo =
        EncoderVideo { width: 640, height: 360, content: Content::Film, ..EncoderVideo::DEFAULT };

    /// Differences between the model and the measured encodings of a content in a table.
    fn errors(table: &str, content: Content, name: &str) -> Vec<f64> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results").join(table);
        let text = fs::read_to_string(path).unwrap();
        let mut errors = Vec::new();
        for line in text.lines().filter(|line| line.split('\t').next() == Some(name)) {
            errors.push(error(content, line));
        }
        errors
    }

    fn rms(errors: &[f64]) -> f64 {
        let squares: f64 = errors.iter().map(|error| error * error).sum();
        (squares / errors.len() as f64).sqrt()
    }

    fn error(content: Content, line: &str) -> f64 {
        let cells: Vec<&str> = line.split('\t').collect();
        let number = |index: usize| cells[index].parse::<f64>().unwrap();
        let codec = match cells[5] {
            "vp8" => Codec::Vp8,
            "vp9" => Codec::Vp9,
            _ => Codec::Av1,
        };
        let (width, height) = (number(1) as u32, number(2) as u32);
        let model =
            PictureModel::new(EncoderVideo { width, height, codec, content, ..VIDEO }).unwrap();
        let pixels = number(1) / number(2) * number(3) * number(3);
        model.vmaf(number(6), pixels, number(4)) - number(7)
    }

    #[test]
    fn the_model_is_as_near_to_the_measured_encodings_as_its_page_says() {
        let film = errors("picture-model.tsv", Content::Film, "film");
        assert_eq!(film.len(), 120);
        let worst = film.iter().fold(0.0_f64, |worst, error| worst.max(error.abs()));
        assert!(rms(&film) < 2.6, "{}", rms(&film));
        assert!(worst < 10.6, "{worst}");
    }

    #[test]
    fn the_head_is_met_in_all_sizes_and_rates_though_most_were_not_fitted() {
        let head = errors("picture-contents.tsv", Content::Head, "head");
        assert!(head.len() >= 30, "{}", head.len());
        let worst = head.iter().fold(0.0_f64, |worst, error| worst.max(error.abs()));
        assert!(rms(&head) < 1.0, "{}", rms(&head));
        assert!(worst < 4.0, "{worst}");
    }

    #[test]
    fn more_bits_never_look_worse_and_the_scale_is_0_to_100() {
        let model = PictureModel::new(VIDEO).unwrap();
        let mut last = 0.0;
        for step in 0..200 {
            let vmaf = model.vmaf(0.0005 * 1.05_f64.powi(step), PIXELS, FRAME_RATE);
            assert!(vmaf >= last && vmaf <= 100.0, "{vmaf} after {last}");
            last = vmaf;
        }
        assert!(last > 0.99 * VP8_CEILING, "{last}");
        assert_eq!(model.vmaf(0.0, PIXELS, FRAME_RATE), 0.0);
    }

    #[test]
    fn a_picture_is_judged_by_the_bits_of_half_a_second() {
        let mut model = PictureModel::new(VIDEO).unwrap();
        let mut judge = |frame: i64, bytes: u64| {
            let now = Timestamp::from_nanos(frame * 1_000_000_000 / 30);
            let payload = DataSize::from_bytes(bytes);
            model.judge(now, Coded { payload, pixels: PIXELS }).0
        };
        let steady: Vec<u64> = (0..60).map(|frame| judge(frame, 4_000)).collect();
        assert_eq!(steady[30], steady[59]);
        let fallen: Vec<u64> = (60..90).map(|frame| judge(frame, 1_000)).collect();
        assert!(fallen.is_sorted_by(|a, b| a >= b), "{fallen:?}");
        assert!(fallen[14] + 1_000 < steady[59] && fallen[14] == fallen[29], "{fallen:?}");
    }

    #[test]
    fn what_it_was_not_fitted_to_is_not_judged() {
        for content in
            [Content::Noise, Content::Easy, Content::Hard, Content::Screen, Content::Slides]
        {
            assert!(PictureModel::new(EncoderVideo { content, ..VIDEO }).is_none());
        }
        assert!(PictureModel::new(EncoderVideo { codec: Codec::H264, ..VIDEO }).is_none());
    }
}
