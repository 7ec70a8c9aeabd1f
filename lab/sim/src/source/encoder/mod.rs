//! A browser's video encoder: its rate control, and the bitrate adjuster that compares its output
//! with the requested rate.
//!
//! ```text
//! target -> headers off -> cap -> push-back -> detector -> rate -> buffer -> quality -> frame
//!                                             ^                                           |
//!                                             +-------------------------------------------+
//! ```
//!
//! Rules and constants come from libvpx, with the settings of libwebrtc. The variation of frame
//! sizes and the size at the coarsest quality were measured in calls of Chromium.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::seed::Stream;

use super::overshoot::OvershootDetector;
use super::picture::{BITS_PER_BYTE, Costs};
use super::push_back::PushBack;
use super::scaler::Scaler;
use crate::config::{Codec, Content, EncoderVideo};
use crate::rtp_format::{COUNTED_OVERHEAD, MAX_PACKET, OVERHEAD};

// Parameters of the rate control [LIBVPX §ratectrl], as [LIBWEBRTC §LibvpxVp8Encoder] sets them. A
// level is the content of the rate buffer divided by the rate, in seconds.
/// Initial, optimal and maximum level.
const INITIAL_LEVEL: f64 = 0.5;
const BEST_LEVEL: f64 = 0.6;
const MAX_LEVEL: f64 = 1.0;
/// The relative correction of a frame's budget: half of the relative deviation of the level from
/// its optimum, where the deviation is limited to these values.
const CORRECTION: f64 = 0.5;
const MAX_SHORTAGE: f64 = 1.0;
const MAX_SURPLUS: f64 = 0.15;
/// At or above the optimal level, the quality is at least that of the average frame or one step
/// better than that of the last frame, whichever is lower. Below it the limit falls; at this level
/// it reaches the coarsest quality.
const FREE_LEVEL: f64 = BEST_LEVEL / 4.0;
/// Change of frame size per step of quality, and number of frames before the limit applies.
const QUALITY_STEP: f64 = 1.02;
const FREE_FRAMES: u32 = 150;
/// Below these levels the encoder drops one frame of two, two of three and three of four.
const DROP_LEVELS: [f64; 3] = [0.12, 0.045, 0.0225];
/// Below these levels the encoders of VP9 and AV1 drop one frame of two, and all frames
/// [LIBVPX §vp9_ratectrl], [LIBAOM §ratectrl].
const HALF_LEVEL: f64 = 0.18;
const NO_LEVEL: f64 = 0.0;
/// AV1 encodes a frame whatever its buffer holds once it has dropped frames for this long
/// [LIBWEBRTC §LibaomAv1Encoder].
const AV1_MAX_DROPS_S: f64 = 0.25;

// Measured: docs/reference/video.md.
/// Standard deviation of the logarithm of a frame's size. It falls linearly with the rate, down to
/// the second value.
const DEVIATION: f64 = 0.22;
const LEAST_DEVIATION: f64 = 0.03;
const DEVIATION_PER_MBPS: f64 = 0.11;
/// Standard deviation of the logarithm of the size of a frame at the coarsest quality, and
/// correlation from one frame to the next. The deviation is due to the content of the pictures.
const LEAST_BITS_DEVIATION: f64 = 0.30;
const PERSISTENCE: f64 = 0.86;
/// Size of a key frame relative to other frames.
const KEY_FRAME: f64 = 3.0;
/// The camera plays a file of this many frames in a loop. At the start of the loop one picture
/// comes twice: the second takes few bits, and the rate control overshoots for the next ones. The
/// effect is invisible at low rates, where all pictures lose their noise. It grows between the two
/// rates and is complete from the second one.
const CAMERA_LOOP: u32 = 61;
const CAMERA_SEAM: [f64; 4] = [0.18, 1.55, 1.31, 1.08];
const SEAM_MBPS: (f64, f64) = (0.4, 1.4);
/// The film has so many pictures. The first one follows a cut, and takes as much as a key frame:
/// with libvpx alone 2.5 to 4.6 times the median (docs/reference/video.md).
const FILM_LOOP: u32 = 120;
/// The page of [`Content::Screen`] jumps every this many pictures.
const PAGE: u32 = 60;
/// Sizes of four successive frames of a layer of simulcast relative to their mean: three temporal
/// layers, of which the lowest has a quarter of the frames and 40 % of the rate
/// [LIBWEBRTC §SimulcastRateAllocator].
const TEMPORAL: [f64; 4] = [1.6, 0.8, 0.8, 0.8];
/// Maximum encoding time of a picture.
const ENCODING_S: f64 = 0.005;

/// The camera that feeds the encoder, and the rate limit of the encoder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Camera {
    pub fps: f64,
    pub cap: Option<Bitrate>,
}

/// State of the encoder.
#[derive(Clone, Debug)]
pub(super) struct Encoder {
    stream: Stream,
    video: EncoderVideo,
    costs: Costs,
    scaler: Scaler,
    detector: OvershootDetector,
    /// Bits that may still be spent; `None` before the first frame.
    buffer: Option<f64>,
    /// Number of pictures from the camera.
    pictures: u32,
    push_back: PushBack,
    /// As a layer of simulcast: whether it is one, its least rate, by how much a rate is larger
    /// relative to the picture than with a picture of full size, and frames since the last key
    /// frame.
    is_layer: bool,
    least_rate: Bitrate,
    closeness: f64,
    temporal: u32,
    /// Number of frames encoded, and number of frames still to drop.
    frames: u32,
    to_drop: u32,
    /// Number of frames dropped since the last one, and whether the references have no noise left.
    dropped: u32,
    is_smooth: bool,
    /// Logarithm of the size of the last frame in bits, and the mean of this logarithm over all
    /// frames.
    last_log: f64,
    mean_log: f64,
    /// Deviation of the picture's size at the coarsest quality from the median, in standard
    /// deviations.
    picture: f64,
    /// Bits that the page since its last jump still takes at the best quality, and whether no frame
    /// shows it yet.
    unsharp: f64,
    is_new_page: bool,
    /// Whether no frame shows the film since its last cut.
    is_after_cut: bool,
    wants_key_frame: bool,
    /// Encoding time of the next frame, in seconds.
    encoding_s: f64,
}

impl Encoder {
    pub(super) fn new(mut stream: Stream, video: EncoderVideo) -> Self {
        let costs = Costs::of(video);
        // A page stands for a while when the call begins, and not for the same time in each call.
        let jumps = costs.jump > 0.0;
        let pictures = if jumps { (f64::from(PAGE) * stream.uniform()) as u32 } else { 0 };
        Self {
            stream,
            video,
            costs,
            scaler: Scaler::new(video),
            detector: OvershootDetector::default(),
            buffer: None,
            pictures,
            push_back: PushBack::default(),
            is_layer: false,
            least_rate: Bitrate::ZERO,
            closeness: 1.0,
            temporal: 0,
            frames: 0,
            to_drop: 0,
            dropped: 0,
            is_smooth: false,
            last_log: 0.0,
            mean_log: 0.0,
            picture: 0.0,
            unsharp: if jumps { costs.jump * BITS_PER_BYTE } else { 0.0 },
            is_new_page: jumps,
            is_after_cut: false,
            wants_key_frame: true,
            encoding_s: 0.0,
        }
    }

    /// The encoder of a layer of simulcast, which gets at least `least_rate` while it is on.
    pub(super) fn layer(stream: Stream, video: EncoderVideo, least_rate: Bitrate) -> Self {
        let full = EncoderVideo::DEFAULT;
        let pixels = |video: EncoderVideo| f64::from(video.width) * f64::from(video.height);
        let closeness = pixels(full) / pixels(video);
        Self { is_layer: true, least_rate, closeness, ..Self::new(stream, video) }
    }

    /// Another layer began or ended, so that the detectors measure anew [LIBWEBRTC
    /// §EncoderBitrateAdjuster].
    pub(super) fn on_new_layout(&mut self) {
        self.detector.measure_anew();
    }

    /// Pixels of the picture that it encodes.
    pub(super) fn pixels(&self) -> f64 {
        self.scaler.pixels()
    }

    /// Makes the next frame a key frame.
    pub(super) fn begin_key_frame(&mut self) {
        self.wants_key_frame = true;
    }

    /// Returns the size on the wire of the frame that is due now, or `None` if it is dropped.
    /// `share` is the fraction of the rate that remains after push-back.
    pub(super) fn frame(
        &mut self,
        now: Timestamp,
        camera: Camera,
        target: Bitrate,
        share: f64,
    ) -> Option<DataSize> {
        if self.scaler.drops_first(target) {
            return None;
        }
        if self.scaler.check(now) {
            self.restart();
        }
        let media = media_rate(target);
        let asked = camera.cap.map_or(media, |cap| media.min(cap));
        let (asked, is_thrown_away) = self.push_back.divide(asked, share);
        let headroom = media.saturating_sub(asked);
        self.encode(now, camera.fps, asked, headroom, is_thrown_away)
    }

    /// The same for a rate that is already divided. `headroom` is the spare capacity of the link.
    pub(super) fn encode(
        &mut self,
        now: Timestamp,
        fps: f64,
        asked: Bitrate,
        headroom: Bitrate,
        is_thrown_away: bool,
    ) -> Option<DataSize> {
        let rate = self.detector.adjust(now, asked, headroom).as_bps_f64();
        let rate = rate.max(self.least_rate.min(asked).as_bps_f64());
        let seam = self.seam(rate * self.closeness);
        if is_thrown_away {
            return None;
        }
        // The encoder does not know about discarded pictures. It assumes that pictures come at the
        // camera's rate.
        let budget = rate / self.scaler.fps(fps);
        let buffer = self.buffer.unwrap_or(rate * INITIAL_LEVEL);
        let buffer = (buffer + budget).min(rate * MAX_LEVEL);
        self.buffer = Some(buffer);
        let level = buffer / rate;
        if self.is_dropped(level) && !self.is_forced(fps) {
            self.dropped += 1;
            self.scaler.on_drop();
            return None;
        }
        let pictures = 1 + std::mem::take(&mut self.dropped);
        let bits = self.size(level, budget, rate, pictures) * seam;
        if self.scaler.is_on() {
            let factor = self.costs.factor(self.scaler.pixels());
            self.scaler.on_frame(now, self.costs.qp(bits / factor));
        }
        self.is_after_cut = false;
        self.buffer = Some(buffer - bits);
        self.detector.on_frame(now, bits, budget);
        Some(wire_size(bits * self.temporal_share()))
    }

    /// Time from this frame to the next one. Pictures come at regular intervals; the encoding time
    /// is random.
    pub(super) fn interval(&mut self, fps: f64) -> TimeDelta {
        let before = std::mem::replace(&mut self.encoding_s, ENCODING_S * self.stream.uniform());
        TimeDelta::from_secs_f64(1.0 / self.scaler.fps(fps) + self.encoding_s - before)
    }

    /// Begins a new encoder for pictures of another size [LIBWEBRTC §VideoStreamEncoder].
    fn restart(&mut self) {
        self.detector = OvershootDetector::default();
        (self.buffer, self.frames, self.mean_log, self.to_drop) = (None, 0, 0.0, 0);
        self.wants_key_frame = true;
    }

    /// Factor on the size of the next frame that results from the camera's loop.
    fn seam(&mut self, rate: f64) -> f64 {
        let place = (self.pictures % CAMERA_LOOP) as usize;
        let is_first_round = self.pictures < CAMERA_LOOP;
        if self.costs.jump > 0.0 && self.pictures.is_multiple_of(PAGE) {
            self.is_new_page = true;
            self.unsharp =
                self.costs.jump * BITS_PER_BYTE * self.costs.factor(self.scaler.pixels());
        }
        self.pictures += 1;
        match self.video.content {
            Content::Film => {
                self.is_after_cut |= self.pictures % FILM_LOOP == 1 && self.frames > 0;
                return if self.is_after_cut && !self.wants_key_frame { KEY_FRAME } else { 1.0 };
            }
            Content::Screen | Content::Head | Content::Slides => return 1.0,
            Content::Noise | Content::Easy | Content::Hard => {}
        }
        let factor = CAMERA_SEAM.get(place).filter(|_| !is_first_round).copied().unwrap_or(1.0);
        let (from, to) = SEAM_MBPS;
        let clarity = ((rate / 1e6 - from) / (to - from)).clamp(0.0, 1.0);
        1.0 + (factor - 1.0) * clarity
    }

    /// Size of this frame relative to the mean, which its temporal layer decides.
    fn temporal_share(&mut self) -> f64 {
        let place = self.temporal as usize % TEMPORAL.len();
        self.temporal += 1;
        if self.is_layer { TEMPORAL[place] } else { 1.0 }
    }

    /// Whether the frame is dropped. While the level is low, all frames of a group but one are
    /// dropped. Key frames are never dropped.
    fn is_dropped(&mut self, level: f64) -> bool {
        let group = match self.video.codec {
            Codec::Vp9 | Codec::Av1 if level < NO_LEVEL && !self.wants_key_frame => return true,
            Codec::Vp9 | Codec::Av1 => u32::from(level < HALF_LEVEL),
            _ => DROP_LEVELS.iter().filter(|mark| level < **mark).count() as u32,
        };
        if self.wants_key_frame || group == 0 || self.to_drop == 0 {
            self.to_drop = group;
            return self.drops_on_debt() && level < NO_LEVEL && !self.wants_key_frame;
        }
        self.to_drop -= 1;
        true
    }

    /// Whether AV1 has dropped so many frames that it drops no more.
    fn is_forced(&self, fps: f64) -> bool {
        self.video.codec == Codec::Av1
            && f64::from(self.dropped) >= AV1_MAX_DROPS_S * self.scaler.fps(fps)
    }

    /// Logarithm of the bits of a frame of AV1. With an almost empty buffer the quantizer is so
    /// coarse that no noise is left in the references. Frames then cost almost nothing, until the
    /// buffer has filled, the quantizer falls, and all the noise comes back in one frame.
    fn smoothed(&mut self, level: f64, exact: f64) -> f64 {
        self.is_smooth |= level < HALF_LEVEL;
        if !self.is_smooth || self.costs.smooth == 0.0 {
            return exact;
        }
        self.is_smooth = level < HALF_LEVEL;
        let bytes = if self.is_smooth { self.costs.smooth } else { self.costs.sharpening };
        libm::log(bytes * BITS_PER_BYTE * self.costs.factor(self.scaler.pixels()))
    }

    /// Whether a buffer below zero drops a frame whose turn it is [LIBVPX §ratectrl]. The model of
    /// [`Content::Noise`] was measured as a whole without this rule, which such frames hardly meet.
    fn drops_on_debt(&self) -> bool {
        matches!(self.video.content, Content::Hard | Content::Screen)
    }

    /// Bits of this frame, which is so many pictures later than the one before.
    fn size(&mut self, level: f64, budget: f64, rate: f64, pictures: u32) -> f64 {
        let off = (level - BEST_LEVEL) / BEST_LEVEL;
        let wanted = budget * (1.0 + CORRECTION * off.clamp(-MAX_SHORTAGE, MAX_SURPLUS));
        let factor = self.costs.factor(self.scaler.pixels());
        let coarsest = self.coarsest(pictures, factor);
        let finest = libm::log(self.finest_bits(factor)).max(coarsest);
        let exact = self.limit_quality(level, libm::log(wanted), coarsest);
        let exact = self.smoothed(level, exact.min(finest).max(coarsest));
        let coarsest = coarsest.min(exact);
        self.frames += 1;
        self.mean_log += (exact - self.mean_log) / f64::from(self.frames);
        self.last_log = exact;
        let is_key_frame = std::mem::take(&mut self.wants_key_frame);
        if is_key_frame {
            self.temporal = 0;
        }
        let key = if is_key_frame { KEY_FRAME } else { 1.0 };
        let mbps = rate * self.closeness / 1e6;
        let deviation = (DEVIATION - DEVIATION_PER_MBPS * mbps).max(LEAST_DEVIATION);
        let noise = deviation * self.costs.unevenness * self.stream.normal();
        let bits = key * libm::exp((exact + noise).max(coarsest));
        self.unsharp = (self.unsharp - bits).max(0.0);
        bits
    }

    /// Bits of this picture at the best quality. Its size has this factor on all bits.
    fn finest_bits(&self, factor: f64) -> f64 {
        (self.costs.finest * BITS_PER_BYTE * factor).max(self.unsharp)
    }

    /// Logarithm of the size in bits of this picture at the coarsest quality. The pictures since
    /// the last frame have moved on.
    fn coarsest(&mut self, pictures: u32, factor: f64) -> f64 {
        let news = libm::sqrt(1.0 - PERSISTENCE * PERSISTENCE) * self.stream.normal();
        self.picture = PERSISTENCE * self.picture + news;
        let is_new = std::mem::take(&mut self.is_new_page);
        let bytes = if is_new { self.costs.least_jump } else { self.costs.coarsest };
        let bits = bytes * BITS_PER_BYTE * factor;
        let moved = self.costs.motion * libm::log(f64::from(pictures));
        libm::log(bits) + moved + LEAST_BITS_DEVIATION * self.costs.unevenness * self.picture
    }

    /// Limits the fall of quality while the buffer has spare bits: these are spent first.
    fn limit_quality(&self, level: f64, wanted_log: f64, coarsest: f64) -> f64 {
        if self.frames < FREE_FRAMES {
            return wanted_log;
        }
        let limit = (self.last_log + libm::log(QUALITY_STEP)).min(self.mean_log);
        let spare = ((level - FREE_LEVEL) / (BEST_LEVEL - FREE_LEVEL)).clamp(0.0, 1.0);
        wanted_log.max(coarsest + spare * (limit - coarsest))
    }
}

/// Rate without packet headers. All packets are assumed to be full, and their number per second is
/// rounded up [LIBWEBRTC §RtpVideoSender].
pub(crate) fn media_rate(target: Bitrate) -> Bitrate {
    let packets = libm::ceil(target.as_bps_f64() / BITS_PER_BYTE / MAX_PACKET as f64);
    let headers = Bitrate::from_bps_f64(packets * COUNTED_OVERHEAD as f64 * BITS_PER_BYTE);
    target.saturating_sub(headers)
}

/// Size of a frame including the headers of its packets.
pub(super) fn wire_size(bits: f64) -> DataSize {
    let payload = libm::ceil(bits / BITS_PER_BYTE) as u64;
    let packets = payload.div_ceil(MAX_PACKET - OVERHEAD).max(1);
    DataSize::from_bytes(payload + packets * OVERHEAD)
}

#[cfg(test)]
mod tests;
