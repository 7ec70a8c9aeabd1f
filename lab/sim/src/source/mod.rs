//! Media sources: time and size of each frame.

mod encoder;
mod overshoot;
mod picture;
mod picture_model;
mod pipeline;
mod push_back;
mod scaler;
mod simulcast;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::seed::Stream;

pub(crate) use self::encoder::media_rate;
use self::encoder::{Camera, Encoder};
use self::picture_model::{Coded, PictureModel};
use self::pipeline::PipelineEncoder;
pub(crate) use self::pipeline::{MAX_QUEUE, rate_beside};
use self::simulcast::Simulcast;
pub(crate) use self::simulcast::padding;
use crate::config::{Content, EncoderDriver, EncoderVideo, Source};
use crate::media::Vmaf;

// Parameters of the statistical model [RFC8593 §5].
/// `K_d`: length of a transient, in frames.
const TRANSIENT_FRAMES: u32 = 8;
/// `K_B`: size of the first frame of a transient.
const BURST_FRAME: DataSize = DataSize::from_bytes(13_500);
/// `SCALE_t`, `SCALE_B`: scales of the Laplace distributions of frame interval and frame size.
const INTERVAL_SCALE: f64 = 0.15;
const SIZE_SCALE: f64 = 0.15;
/// A relative rate change above this value starts a transient [RFC8593 §5.2].
const TRANSIENT_CHANGE: f64 = 0.1;
/// Minimum of frame interval and frame size relative to their nominal values. The Laplace
/// distribution itself has no bound.
const LEAST_FACTOR: f64 = 0.1;

/// VMAF by the model of VP8's pictures with these bits a pixel, of `pixels` and so many a second,
/// shown with `shown` pixels. `None` if there is no model of the content.
pub(crate) fn picture_vmaf(
    content: Content,
    shown: f64,
    bits: f64,
    pixels: f64,
    rate: f64,
) -> Option<f64> {
    // The model knows sizes by their product only.
    let width = libm::round(shown) as u32;
    let video = EncoderVideo { width, height: 1, content, ..EncoderVideo::DEFAULT };
    Some(PictureModel::new(video)?.vmaf(bits, pixels, rate))
}

/// State of a media source. Frame sizes are sizes on the wire, headers included. So a source that
/// meets its target fills exactly that share of a link.
#[derive(Clone, Debug)]
pub(crate) struct MediaSource {
    kind: Source,
    /// Fraction of a byte left from the rounding of earlier frames.
    carry: f64,
    model: Rfc8593,
    encoder: Encoder,
    /// In place of the encoder if the source makes several layers.
    simulcast: Option<Simulcast>,
    /// In place of the encoder if a pipeline drives it.
    pipeline: Option<PipelineEncoder>,
    /// `None` if there is no model of what the camera shows.
    picture: Option<PictureModel>,
}

/// How the pictures of a source look; `None` if what the camera shows has no model, or if there are
/// several layers.
fn picture_model(source: Source) -> Option<PictureModel> {
    match source {
        Source::Encoder { video, .. } if video.layers == 1 => PictureModel::new(video),
        _ => None,
    }
}

/// Whether there is a model of how the pictures of a source look, without which a simulation has
/// neither VMAF nor good time.
pub fn has_picture_model(source: Source) -> bool {
    picture_model(source).is_some()
}

impl MediaSource {
    pub(crate) fn new(kind: Source, stream: Stream) -> Self {
        let video = match kind {
            Source::Encoder { video, .. } => video,
            _ => EncoderVideo::DEFAULT,
        };
        let is_pipeline = video.driver == EncoderDriver::Pipeline;
        let pipeline = is_pipeline.then(|| PipelineEncoder::new(stream.clone(), video));
        let simulcast = if video.layers > 1 { Some(Simulcast::new(&stream, video)) } else { None };
        let (model, encoder) = (Rfc8593::new(stream.clone()), Encoder::new(stream, video));
        let picture = picture_model(kind);
        Self { kind, carry: 0.0, model, encoder, simulcast, pipeline, picture }
    }

    /// How the picture looks that was made now, with this payload; `None` without a model of what
    /// the camera shows.
    pub(crate) fn judge(&mut self, now: Timestamp, payload: DataSize) -> Option<Vmaf> {
        let pixels = self.encoder.pixels();
        Some(self.picture.as_mut()?.judge(now, Coded { payload, pixels }))
    }

    /// Makes the next frame a key frame. For the filler, key frames are as large as others, because
    /// noise cannot be predicted. The statistical model begins a transient [RFC8593 §5.2].
    pub(crate) fn begin_key_frame(&mut self) {
        self.model.transient = TRANSIENT_FRAMES;
        self.encoder.begin_key_frame();
        if let Some(simulcast) = &mut self.simulcast {
            simulcast.begin_key_frame();
        }
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.begin_key_frame();
        }
    }

    /// Leaves the picture out that is due now. Returns the time until the next one; `None` if this
    /// source is not a pipeline's and takes each picture.
    pub(crate) fn skip(&mut self) -> Option<TimeDelta> {
        let Source::Encoder { fps, .. } = self.kind else { return None };
        self.pipeline.as_mut()?.skip();
        Some(self.encoder.interval(fps))
    }

    /// Returns the size of the frame that is due now (`None` if the encoder drops it) and the time
    /// until the next one. `share` is the fraction of the target that remains after the
    /// controller's push-back.
    pub(crate) fn frame(
        &mut self,
        now: Timestamp,
        target: Bitrate,
        share: f64,
    ) -> (Option<DataSize>, TimeDelta) {
        match self.kind {
            Source::Filler { fps, cap } => {
                let rate = cap.map_or(target, |cap| target.min(cap));
                let bytes = rate.as_bps_f64() / 8.0 / fps + self.carry;
                let whole = libm::floor(bytes);
                self.carry = bytes - whole;
                (Some(DataSize::from_bytes(whole as u64)), TimeDelta::from_secs_f64(1.0 / fps))
            }
            Source::Rfc8593 { fps, reaction } => {
                let (size, interval) = self.model.frame(now, target, fps, reaction);
                (Some(size), interval)
            }
            Source::Encoder { fps, cap, .. } => {
                let camera = Camera { fps, cap };
                let size = match (&mut self.simulcast, &mut self.pipeline) {
                    (_, Some(pipeline)) => Some(pipeline.frame(fps, cap, target)),
                    (Some(simulcast), None) => simulcast.frame(now, camera, target, share),
                    (None, None) => self.encoder.frame(now, camera, target, share),
                };
                (size, self.encoder.interval(fps))
            }
        }
    }
}

/// The statistical model of RFC 8593.
#[derive(Clone, Debug)]
struct Rfc8593 {
    stream: Stream,
    /// `R_v`, and the time at which it was adopted.
    rate: Option<(Bitrate, Timestamp)>,
    /// Remaining frames of the transient.
    transient: u32,
}

impl Rfc8593 {
    fn new(stream: Stream) -> Self {
        Self { stream, rate: None, transient: 0 }
    }

    fn frame(
        &mut self,
        now: Timestamp,
        target: Bitrate,
        fps: f64,
        reaction: TimeDelta,
    ) -> (DataSize, TimeDelta) {
        let rate = self.take_over(now, target, reaction);
        let nominal = rate.as_bps_f64() / 8.0 / fps;
        // The frames of a transient together match the target rate [RFC8593 §5.2]. At low rates the
        // burst frame alone would exceed this, so it is limited to leave the minimum size for each
        // of the others.
        let rest = f64::from(TRANSIENT_FRAMES - 1);
        let total = nominal * f64::from(TRANSIENT_FRAMES);
        let burst = (BURST_FRAME.as_bytes() as f64).min(total - rest * nominal * LEAST_FACTOR);
        let bytes = match self.transient {
            0 => nominal * self.factor(SIZE_SCALE),
            TRANSIENT_FRAMES => burst,
            _ => (total - burst) / rest,
        };
        self.transient = self.transient.saturating_sub(1);
        let interval = TimeDelta::from_secs_f64(self.factor(INTERVAL_SCALE) / fps);
        (DataSize::from_bytes(libm::round(bytes) as u64), interval)
    }

    fn take_over(&mut self, now: Timestamp, target: Bitrate, reaction: TimeDelta) -> Bitrate {
        match self.rate {
            None => {
                self.rate = Some((target, now));
                // The stream starts with an I-frame, as after any large rate change.
                self.transient = TRANSIENT_FRAMES;
            }
            Some((rate, since)) if rate != target && now - since >= reaction => {
                let change = (target.as_bps_f64() - rate.as_bps_f64()).abs();
                // A transient is longer than the reaction latency. A second burst within a
                // transient would exceed the target rate, which all frames of a transient together
                // match [RFC8593 §5.2].
                if change > TRANSIENT_CHANGE * rate.as_bps_f64() && self.transient == 0 {
                    self.transient = TRANSIENT_FRAMES;
                }
                self.rate = Some((target, now));
            }
            Some(_) => {}
        }
        self.rate.map_or(target, |(rate, _)| rate)
    }

    fn factor(&mut self, scale: f64) -> f64 {
        (1.0 + self.stream.laplace(scale)).max(LEAST_FACTOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_net::Seed;

    const REACTION: TimeDelta = TimeDelta::from_millis(200);

    fn source(kind: Source) -> MediaSource {
        MediaSource::new(kind, Seed::new(1).stream("source"))
    }

    fn frames(source: &mut MediaSource, target: Bitrate, from: Timestamp, n: usize) -> Vec<u64> {
        let mut now = from;
        (0..n)
            .map(|_| {
                let (size, interval) = source.frame(now, target, 1.0);
                now += interval;
                size.unwrap().as_bytes()
            })
            .collect()
    }

    #[test]
    fn a_filler_meets_its_target_to_the_byte_and_an_encoder_cap_lowers_it() {
        let target = Bitrate::from_kbps(1000);
        let mut filler = source(Source::Filler { fps: 30.0, cap: None });
        let sizes = frames(&mut filler, target, Timestamp::ZERO, 300);
        assert_eq!(sizes.iter().sum::<u64>(), 1_250_000);
        let cap = Some(Bitrate::from_kbps(600));
        let mut capped = source(Source::Filler { fps: 30.0, cap });
        assert!(frames(&mut capped, target, Timestamp::ZERO, 30).iter().all(|&size| size == 2_500));
    }

    // [RFC8593 §5.2]
    #[test]
    fn a_transient_begins_with_the_burst_and_carries_the_target_over_it() {
        let mut model = source(Source::Rfc8593 { fps: 30.0, reaction: REACTION });
        let sizes = frames(&mut model, Bitrate::from_kbps(1000), Timestamp::ZERO, 8);
        assert_eq!(sizes[0], 13_500);
        assert!(sizes[1..].iter().all(|&size| size == 2_833));
        // 8 frames at 1 Mbit/s and 30 fps amount to 33,333 B.
        assert_eq!(sizes.iter().sum::<u64>(), 33_331);
    }

    #[test]
    fn a_burst_frame_at_a_low_rate_leaves_the_other_frames_something() {
        let mut model = source(Source::Rfc8593 { fps: 30.0, reaction: REACTION });
        let sizes = frames(&mut model, Bitrate::from_kbps(150), Timestamp::ZERO, 8);
        assert_eq!(sizes, [4_563, 63, 63, 63, 63, 63, 63, 63]);
    }

    // [RFC8593 §5.1]
    #[test]
    fn a_request_within_the_reaction_latency_is_ignored() {
        let kbps = Bitrate::from_kbps;
        for reaction_ms in [100, 200] {
            let reaction = TimeDelta::from_millis(reaction_ms);
            let mut model = source(Source::Rfc8593 { fps: 30.0, reaction }).model;
            let mut at = |ms, target| model.take_over(Timestamp::from_millis(ms), target, reaction);
            at(0, kbps(1000));
            assert_eq!(at(reaction_ms - 1, kbps(500)), kbps(1000));
            assert_eq!(at(reaction_ms, kbps(500)), kbps(500));
        }
    }

    // [RFC8593 §5.2]: the frames of a transient together match the target rate.
    #[test]
    fn a_large_change_within_a_transient_begins_no_second_burst() {
        let mut model = source(Source::Rfc8593 { fps: 30.0, reaction: REACTION });
        let mut frame = |number: i64, kbps| {
            let now = Timestamp::from_millis(33 * number);
            model.frame(now, Bitrate::from_kbps(kbps), 1.0).0.unwrap().as_bytes()
        };
        let before: Vec<u64> = (0..7).map(|number| frame(number, 1000)).collect();
        assert_eq!(before, [13_500, 2_833, 2_833, 2_833, 2_833, 2_833, 2_833]);
        // Eighth frame, 231 ms after the first, at 500 kbit/s: (8 x 2,083 - 13,500) / 7 bytes.
        assert_eq!(frame(7, 500), 452);
        // The transient is over, so the next large change begins a new one.
        assert_eq!(frame(14, 1000), 13_500);
    }

    #[test]
    fn in_the_steady_state_the_model_carries_its_target_on_average() {
        let mut model = source(Source::Rfc8593 { fps: 30.0, reaction: REACTION });
        let (mut now, mut bytes) = (Timestamp::ZERO, 0);
        for _ in 0..60_000 {
            let (size, interval) = model.frame(now, Bitrate::from_kbps(1000), 1.0);
            bytes += size.unwrap().as_bytes();
            now += interval;
        }
        let mean = DataSize::from_bytes(bytes) / (now - Timestamp::ZERO);
        assert!((mean / Bitrate::from_kbps(1000) - 1.0).abs() < 0.01, "{mean}");
    }
}
