//! What a layer is worth to the person who watches.

use weir::units::Bitrate;

use crate::track::{Kind, Layer, TrackConfig};

/// Bits per pixel at which the model gives VMAF 50, between the two clips on which it was fitted.
const HALF_BITS_PER_PIXEL: f64 = 0.0166;
/// Exponent of the model. Fitted with VP8 at 640x360 and 30 frames per second, 40 points, rms 2.6.
const STEEPNESS: f64 = 1.43;
/// Frames per second at which the worth of motion is half of what it could be.
const HALF_MOTION_CAMERA: f64 = 5.0;
const HALF_MOTION_SCREEN: f64 = 1.0;
/// Pixels of the size at which a track has the weight 1: 640x360.
const UNIT_PIXELS: f64 = 640.0 * 360.0;

/// The worth of a layer as this track is shown, without a unit: 100 is a perfect picture of
/// 640x360.
///
/// It is a product: VMAF by the logistic model `100 / (1 + (b50 / bpp)^1.43)`, the smoothness of
/// motion, the square root of the area on the screen (attention grows slower than area), and the
/// priority. The bits per pixel are those of the size *shown*. Of a picture that is larger, only
/// the part counts that is left when it is scaled down.
///
/// Temporal layers of a stream are coded alike, so a picture is as good without those between. Its
/// bits per pixel are those of the whole stream: without that, a coarse stream would seem to lose
/// by more frames.
pub(crate) fn utility(track: &TrackConfig, layer: &Layer) -> f64 {
    let shown = track.shown_pixels();
    let frame_rate = layer.frame_rate.max(1.0);
    let coded = layer.pixels().max(1.0);
    if !(shown > 0.0 && track.priority > 0.0) {
        return 0.0;
    }
    let seen = (shown / coded).min(1.0);
    if layer.bitrate <= Bitrate::ZERO {
        return 0.0;
    }
    let whole = whole_stream(track, layer);
    let bits_per_frame = whole.bitrate.as_bps_f64() / whole.frame_rate.max(1.0);
    let bits_per_pixel = bits_per_frame * seen / shown;
    let vmaf = 100.0 / (1.0 + libm::pow(HALF_BITS_PER_PIXEL / bits_per_pixel, STEEPNESS));
    let half = match track.kind {
        Kind::Screen => HALF_MOTION_SCREEN,
        _ => HALF_MOTION_CAMERA,
    };
    let motion = frame_rate / (frame_rate + half);
    vmaf * motion * libm::sqrt(shown / UNIT_PIXELS) * track.priority
}

/// The layer of the same stream that has all of its frames, of those that are sent.
fn whole_stream<'a>(track: &'a TrackConfig, layer: &'a Layer) -> &'a Layer {
    let mut whole = layer;
    for other in &track.layers {
        let is_same = other.stream == layer.stream && other.bitrate > Bitrate::ZERO;
        if is_same && other.frame_rate > whole.frame_rate {
            whole = other;
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn layer(stream: u8, width: u16, height: u16, kbps: u64) -> Layer {
        Layer::new(stream, width, height, Bitrate::from_kbps(kbps))
    }

    #[test]
    fn more_bits_are_worth_more_and_each_further_bit_less() {
        let track = TrackConfig::camera(Vec::new());
        let [low, mid, high] =
            [300, 600, 900].map(|kbps| utility(&track, &layer(0, 640, 360, kbps)));
        assert!(low < mid && mid < high && high - mid < mid - low, "{low} {mid} {high}");
    }

    // Found in simulation: a coarse picture stayed at a quarter of its frames over a free link.
    #[test]
    fn more_frames_of_a_stream_are_worth_more_however_coarse_it_is() {
        let quarter = layer(0, 320, 180, 60).with_frame_rate(7.5);
        let half = layer(0, 320, 180, 90).with_frame_rate(15.0);
        let all = layer(0, 320, 180, 150);
        let track = TrackConfig::camera(vec![quarter, half, all]).with_shown(1280, 720);
        let [quarter, half, all] = [quarter, half, all].map(|layer| utility(&track, &layer));
        assert!(quarter < half && half < all, "{quarter} {half} {all}");
    }

    #[test]
    fn a_thumbnail_gains_little_from_a_large_picture() {
        let track = TrackConfig::camera(Vec::new()).with_shown(160, 90);
        let small = utility(&track, &layer(0, 320, 180, 150));
        let large = utility(&track, &layer(2, 1280, 720, 1_500));
        assert!(large < 1.1 * small, "{small} {large}");
    }

    #[test]
    fn text_loses_less_than_a_face_when_frames_are_left_out() {
        let share = |track: TrackConfig| {
            let track = track.with_shown(1280, 720);
            let all = utility(&track, &layer(0, 1280, 720, 1_500));
            let half = layer(0, 1280, 720, 750).with_frame_rate(15.0);
            utility(&track, &half) / all
        };
        assert!(share(TrackConfig::screen(Vec::new())) > share(TrackConfig::camera(Vec::new())));
    }

    #[test]
    fn nothing_shown_or_sent_is_worth_nothing() {
        let hidden = TrackConfig::camera(Vec::new()).with_shown(0, 0);
        assert_eq!(utility(&hidden, &layer(0, 640, 360, 300)), 0.0);
        let shown = TrackConfig::camera(Vec::new());
        assert_eq!(utility(&shown, &layer(0, 640, 360, 0)), 0.0);
        assert_eq!(utility(&shown.with_priority(f64::NAN), &layer(0, 640, 360, 300)), 0.0);
    }
}
