//! What the pictures of a camera cost an encoder: bytes at the coarsest quality, bytes at the best,
//! and the quantizer in between.
//!
//! Unless a value says otherwise, it was measured in calls of Chromium (docs/reference/video.md).

use crate::config::{Codec, Content, EncoderVideo};

pub(super) const BITS_PER_BYTE: f64 = 8.0;
/// Median bytes of a frame of noise at the coarsest quality.
const NOISE_BYTES: f64 = 920.0;
/// The same for AV1 while its references have noise.
const AV1_NOISE_BYTES: f64 = 2_200.0;
/// The same once they have none, and the frame with which the noise comes back. In a call of
/// `encoder/drop/av1` at 0.14 Mbit/s six such frames had 9.4 to 16.2 kB.
const AV1_SMOOTH_BYTES: f64 = 150.0;
const AV1_SHARPENING_BYTES: f64 = 12_000.0;
/// The same for much noise.
const HARD_BYTES: f64 = 12_500.0;
/// Mean bytes of a frame of the film at the coarsest and at a fine quality, 720p. These are of
/// libvpx alone (VP8, realtime, cpu-used 6, quantizers 56 and 4), not of a call.
const FILM_BYTES: f64 = 1_531.0;
const FILM_FINEST_BYTES: f64 = 44_900.0;
/// At 360p the coarsest frame had 549 bytes.
const FILM_PIXEL_EXPONENT: f64 = 0.74;
/// The bytes of a frame of the film grow with the time since the frame before, with this exponent:
/// at the coarsest quality libvpx made 546 bytes at 30 frames a second and 762 at 16.4.
const FILM_MOTION: f64 = 0.55;
/// The same of the drawn head: 149, 470 and 1676 bytes at 180p, 360p and 720p at the coarsest
/// quality, 6790 at 360p at the finest, and at 360p 432, 470 and 510 bytes at 60, 30 and 10 frames
/// a second (docs/results/picture-contents.tsv).
const HEAD_BYTES: f64 = 1_676.0;
const HEAD_FINEST_BYTES: f64 = 22_700.0;
const HEAD_PIXEL_EXPONENT: f64 = 0.87;
const HEAD_MOTION: f64 = 0.09;
/// Number of pixels of the pictures that were measured.
const PIXELS: f64 = 1280.0 * 720.0;

/// Beyond this logarithm of the size relative to the coarsest, the quantizer decreases by this
/// share of its step.
const FINE: f64 = 2.0;
const FINE_SHARE: f64 = 0.55;

/// What a picture costs in full size and as a smaller one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    /// Median bytes at the coarsest quality.
    pub coarsest: f64,
    /// Factor on the deviation of sizes from one frame to the next.
    pub unevenness: f64,
    /// Bytes at the best quality; infinite if no target of a call suffices.
    pub finest: f64,
    /// Bytes that a page takes after its jump, up to the best quality; 0 if the picture does not
    /// jump.
    pub jump: f64,
    /// Bytes of the first frame after a jump, at the coarsest quality.
    pub least_jump: f64,
    /// Bytes of a frame whose references have lost their noise, and of the one that shows it again;
    /// 0 if the codec keeps it.
    pub smooth: f64,
    pub sharpening: f64,
    /// Exponent of the number of pictures since the last frame in the size of a frame; 0 if the
    /// pictures do not move on.
    pub motion: f64,
    /// Coarsest quantizer, as getStats reports it; the bytes up to which it is used; and its
    /// decrease when a frame takes e times as many.
    pub max_qp: f64,
    pub max_qp_bytes: f64,
    pub qp_step: f64,
    /// Exponent of the number of pixels in the size of a frame of given quality. It exceeds one,
    /// because a smaller picture has less noise.
    pub pixel_exponent: f64,
}

impl Costs {
    /// The costs of the full-size picture of a source.
    pub(super) fn of(video: EncoderVideo) -> Self {
        let (max_qp, max_qp_bytes, qp_step) = match video.codec {
            Codec::Vp8 | Codec::H264 => (106.0, 1_300.0, 26.0),
            Codec::Vp9 => (208.0, 900.0, 15.0),
            Codec::Av1 => (208.0, 900.0, 30.0),
        };
        let noise = Self {
            coarsest: if video.codec == Codec::Av1 { AV1_NOISE_BYTES } else { NOISE_BYTES },
            unevenness: 1.0,
            finest: f64::INFINITY,
            jump: 0.0,
            least_jump: 0.0,
            smooth: if video.codec == Codec::Av1 { AV1_SMOOTH_BYTES } else { 0.0 },
            sharpening: AV1_SHARPENING_BYTES,
            motion: 0.0,
            max_qp,
            max_qp_bytes,
            qp_step,
            pixel_exponent: 1.8,
        };
        let with = |coarsest: f64| {
            let max_qp_bytes = max_qp_bytes * coarsest / NOISE_BYTES;
            Self { coarsest, max_qp_bytes, smooth: 0.0, ..noise }
        };
        match video.content {
            Content::Noise => noise,
            Content::Easy => with(30.0),
            Content::Hard => Self {
                coarsest: HARD_BYTES,
                // The means of 5 s differ by 2 %.
                unevenness: 0.15,
                max_qp_bytes: HARD_BYTES,
                qp_step: 1.4 * qp_step,
                smooth: 0.0,
                pixel_exponent: 1.12,
                ..noise
            },
            Content::Head => Self {
                coarsest: HEAD_BYTES,
                finest: HEAD_FINEST_BYTES,
                max_qp_bytes: max_qp_bytes * HEAD_BYTES / NOISE_BYTES,
                smooth: 0.0,
                motion: HEAD_MOTION,
                pixel_exponent: HEAD_PIXEL_EXPONENT,
                ..noise
            },
            // What slides take was not measured, and scenarios with them are refused.
            Content::Film | Content::Slides => Self {
                coarsest: FILM_BYTES,
                finest: FILM_FINEST_BYTES,
                max_qp_bytes: max_qp_bytes * FILM_BYTES / NOISE_BYTES,
                smooth: 0.0,
                motion: FILM_MOTION,
                pixel_exponent: FILM_PIXEL_EXPONENT,
                ..noise
            },
            Content::Screen => {
                Self { finest: 60.0, jump: 110_000.0, least_jump: 20_000.0, ..with(60.0) }
            }
        }
    }

    /// Factor on all sizes if the picture has `pixels` instead of the measured number.
    pub(super) fn factor(&self, pixels: f64) -> f64 {
        libm::pow(pixels / PIXELS, self.pixel_exponent)
    }

    /// The quantizer of a frame of this many bits at full size.
    pub(super) fn qp(&self, bits: f64) -> f64 {
        let steps = libm::log(bits / (self.max_qp_bytes * BITS_PER_BYTE)).max(0.0);
        let fine = (steps - FINE).max(0.0);
        let qp = self.max_qp - self.qp_step * (steps - fine + FINE_SHARE * fine);
        qp.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(codec: Codec, content: Content) -> Costs {
        Costs::of(EncoderVideo { codec, content, ..EncoderVideo::DEFAULT })
    }

    // Calls with and without `maintain-framerate`: docs/reference/video.md.
    #[test]
    fn the_quantizer_of_noise_is_that_of_calls_in_both_sizes() {
        let noise = costs(Codec::Vp8, Content::Noise);
        let full =
            [(1_440.0, 106.0), (2_000.0, 94.0), (3_480.0, 78.0), (5_640.0, 71.0), (10_480.0, 51.0)];
        for (bytes, measured) in full {
            let qp = noise.qp(bytes * BITS_PER_BYTE);
            assert!((qp - measured).abs() < 7.0, "{bytes} B: {qp} for {measured}");
        }
        let quarter = [(1_000.0, 42.0), (2_000.0, 38.0), (3_900.0, 29.0), (8_000.0, 17.0)];
        for (bytes, measured) in quarter {
            let qp = noise.qp(bytes * BITS_PER_BYTE / noise.factor(PIXELS / 4.0));
            assert!((qp - measured).abs() < 12.0, "{bytes} B: {qp} for {measured}");
        }
    }

    // Calls of `encoder/drop/hard-framerate` and `hard-balanced`.
    #[test]
    fn the_quantizer_of_hard_content_is_that_of_calls_in_three_sizes() {
        let hard = costs(Codec::Vp8, Content::Hard);
        for (side, bytes, measured) in [
            (0.5, 4_401.0, 102.0),
            (0.5, 6_232.0, 85.0),
            (0.5, 10_507.0, 63.0),
            (0.375, 3_640.0, 74.0),
            (0.375, 7_904.0, 52.0),
            (0.25, 2_015.0, 48.0),
            (0.25, 4_252.0, 22.0),
            (0.25, 10_371.0, 16.0),
        ] {
            let qp = hard.qp(bytes * BITS_PER_BYTE / hard.factor(PIXELS * side * side));
            assert!((qp - measured).abs() < 16.0, "{side}, {bytes} B: {qp} for {measured}");
        }
    }

    #[test]
    fn the_quantizer_of_other_codecs_is_that_of_calls() {
        let vp9 = [(900.0, 207.0), (2_100.0, 197.0), (3_188.0, 196.0), (9_900.0, 170.0)];
        let av1 = [(2_177.0, 178.0), (3_600.0, 170.0), (5_600.0, 148.0), (7_865.0, 143.0)];
        for (codec, frames) in [(Codec::Vp9, vp9), (Codec::Av1, av1)] {
            for (bytes, measured) in frames {
                let qp = costs(codec, Content::Noise).qp(bytes * BITS_PER_BYTE);
                assert!((qp - measured).abs() < 8.0, "{codec:?}, {bytes} B: {qp} for {measured}");
            }
        }
    }
}
