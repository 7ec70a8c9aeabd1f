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

// Parameters of the push-back [LIBWEBRTC §VideoStreamEncoder].
/// A push-back up to this value is ignored. At most one picture in this many is discarded.
const LEAST_PUSH_BACK: f64 = 0.01;
const LEAST_GROUP: u32 = 2;

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
/// The page of [`Content::Screen`] jumps every this many pictures.
const PAGE: u32 = 60;
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
    /// Number of pictures from the camera, and the number of those that came during push-back.
    pictures: u32,
    pushed_back: u32,
    /// Number of frames encoded, and number of frames still to drop.
    frames: u32,
    to_drop: u32,
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
    wants_key_frame: bool,
    /// Encoding time of the next frame, in seconds.
    encoding_s: f64,
}

impl Encoder {
    pub(super) fn new(stream: Stream, video: EncoderVideo) -> Self {
        Self {
            stream,
            video,
            costs: Costs::of(video),
            scaler: Scaler::new(video),
            detector: OvershootDetector::default(),
            buffer: None,
            pictures: 0,
            pushed_back: 0,
            frames: 0,
            to_drop: 0,
            last_log: 0.0,
            mean_log: 0.0,
            picture: 0.0,
            unsharp: 0.0,
            is_new_page: false,
            wants_key_frame: true,
            encoding_s: 0.0,
        }
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
        let (asked, is_thrown_away) =
            self.push_back(camera.cap.map_or(media, |cap| media.min(cap)), share);
        let rate = self.detector.adjust(now, asked, media.saturating_sub(asked)).as_bps_f64();
        let seam = self.seam(rate);
        if is_thrown_away {
            return None;
        }
        // The encoder does not know about discarded pictures. It assumes that pictures come at the
        // camera's rate.
        let budget = rate / self.scaler.fps(camera.fps);
        let buffer = self.buffer.unwrap_or(rate * INITIAL_LEVEL);
        let buffer = (buffer + budget).min(rate * MAX_LEVEL);
        self.buffer = Some(buffer);
        let level = buffer / rate;
        if self.is_dropped(level) {
            self.scaler.on_drop();
            return None;
        }
        let bits = self.size(level, budget, rate) * seam;
        self.scaler.on_frame(now, self.costs.qp(bits / self.costs.factor(self.scaler.pixels())));
        self.buffer = Some(buffer - bits);
        self.detector.on_frame(now, bits, budget);
        Some(wire_size(bits))
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
        if self.video.content == Content::Screen {
            return 1.0;
        }
        let factor = CAMERA_SEAM.get(place).filter(|_| !is_first_round).copied().unwrap_or(1.0);
        let (from, to) = SEAM_MBPS;
        let clarity = ((rate / 1e6 - from) / (to - from)).clamp(0.0, 1.0);
        1.0 + (factor - 1.0) * clarity
    }

    /// Returns the rate after push-back, and whether this picture is discarded. One picture is
    /// discarded in each group; the size of the group is the inverse of the rate reduction.
    fn push_back(&mut self, rate: Bitrate, share: f64) -> (Bitrate, bool) {
        if 1.0 - share <= LEAST_PUSH_BACK {
            return (rate, false);
        }
        let group = ((1.0 / (1.0 - share)) as u32).max(LEAST_GROUP);
        let is_thrown_away = self.pushed_back.is_multiple_of(group);
        self.pushed_back += 1;
        (rate * (1.0 - 1.0 / f64::from(group)), is_thrown_away)
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

    /// Whether a buffer below zero drops a frame whose turn it is [LIBVPX §ratectrl]. The model of
    /// [`Content::Noise`] was measured as a whole without this rule, which such frames hardly meet.
    fn drops_on_debt(&self) -> bool {
        matches!(self.video.content, Content::Hard | Content::Screen)
    }

    fn size(&mut self, level: f64, budget: f64, rate: f64) -> f64 {
        let off = (level - BEST_LEVEL) / BEST_LEVEL;
        let wanted = budget * (1.0 + CORRECTION * off.clamp(-MAX_SHORTAGE, MAX_SURPLUS));
        let coarsest = self.coarsest();
        let finest = libm::log(self.finest_bits()).max(coarsest);
        let exact = self.limit_quality(level, libm::log(wanted), coarsest);
        let exact = exact.min(finest).max(coarsest);
        self.frames += 1;
        self.mean_log += (exact - self.mean_log) / f64::from(self.frames);
        self.last_log = exact;
        let key = if std::mem::take(&mut self.wants_key_frame) { KEY_FRAME } else { 1.0 };
        let deviation = (DEVIATION - DEVIATION_PER_MBPS * rate / 1e6).max(LEAST_DEVIATION);
        let noise = deviation * self.costs.unevenness * self.stream.normal();
        let bits = key * libm::exp((exact + noise).max(coarsest));
        self.unsharp = (self.unsharp - bits).max(0.0);
        bits
    }

    /// Bits of this picture at the best quality.
    fn finest_bits(&self) -> f64 {
        let factor = self.costs.factor(self.scaler.pixels());
        (self.costs.finest * BITS_PER_BYTE * factor).max(self.unsharp)
    }

    /// Logarithm of the size in bits of this picture at the coarsest quality.
    fn coarsest(&mut self) -> f64 {
        let news = libm::sqrt(1.0 - PERSISTENCE * PERSISTENCE) * self.stream.normal();
        self.picture = PERSISTENCE * self.picture + news;
        let factor = self.costs.factor(self.scaler.pixels());
        let is_new = std::mem::take(&mut self.is_new_page);
        let bytes = if is_new { self.costs.least_jump } else { self.costs.coarsest };
        let bits = bytes * BITS_PER_BYTE * factor;
        libm::log(bits) + LEAST_BITS_DEVIATION * self.costs.unevenness * self.picture
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
fn wire_size(bits: f64) -> DataSize {
    let payload = libm::ceil(bits / BITS_PER_BYTE) as u64;
    let packets = payload.div_ceil(MAX_PACKET - OVERHEAD).max(1);
    DataSize::from_bytes(payload + packets * OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Degradation;
    use weir_net::Seed;

    const CAMERA: Camera = Camera { fps: 30.0, cap: None };

    /// An encoder and the number of the next picture.
    struct Bench(Encoder, i64);

    impl Bench {
        fn new() -> Self {
            Self::of(EncoderVideo::DEFAULT)
        }

        fn of(video: EncoderVideo) -> Self {
            Self(Encoder::new(Seed::new(1).stream("source"), video), 0)
        }

        /// Encodes this many pictures and returns the frame sizes in bytes on the wire.
        fn run(
            &mut self,
            pictures: i64,
            kbps: u64,
            camera: Camera,
            share: f64,
        ) -> Vec<Option<u64>> {
            let frames = (self.1..self.1 + pictures).map(|picture| {
                let now = Timestamp::from_nanos(picture * 1_000_000_000 / 30);
                let frame = self.0.frame(now, camera, Bitrate::from_kbps(kbps), share);
                frame.map(DataSize::as_bytes)
            });
            let frames = frames.collect();
            self.1 += pictures;
            frames
        }

        /// Encodes this many pictures and returns the mean rate in kbit/s.
        fn kbps(&mut self, pictures: i64, kbps: u64) -> f64 {
            kbps_of(&self.run(pictures, kbps, CAMERA, 1.0))
        }
    }

    fn kbps_of(frames: &[Option<u64>]) -> f64 {
        let bytes: u64 = frames.iter().flatten().sum();
        bytes as f64 * 8.0 / (frames.len() as f64 / 30.0) / 1e3
    }

    #[test]
    fn a_constant_target_is_met_but_for_what_uneven_frames_keep_back() {
        for kbps in [500, 1_000, 2_000] {
            let mut bench = Bench::new();
            bench.run(300, kbps, CAMERA, 1.0);
            let share = bench.kbps(1_800, kbps) / kbps as f64;
            assert!((0.90..1.0).contains(&share), "{share} of {kbps} kbit/s");
        }
    }

    #[test]
    fn the_cap_is_for_frames_without_their_headers() {
        let mut bench = Bench::new();
        let camera = Camera { cap: Some(Bitrate::from_kbps(1_500)), ..CAMERA };
        bench.run(300, 4_000, camera, 1.0);
        let kbps = kbps_of(&bench.run(900, 4_000, camera, 1.0));
        assert!((1_500.0..1_650.0).contains(&kbps), "{kbps}");
    }

    // [LIBVPX §ratectrl]: while the target grows, the buffer stays below its optimum.
    #[test]
    fn growth_of_8_percent_a_second_is_followed_5_percent_below() {
        let mut bench = Bench::new();
        bench.run(300, 500, CAMERA, 1.0);
        let shares = (0..15).map(|second| {
            let kbps = 500.0 * 1.08f64.powi(second);
            bench.kbps(30, kbps as u64) / kbps
        });
        let shares: Vec<f64> = shares.collect();
        let mean = shares[3..].iter().sum::<f64>() / 12.0;
        assert!((0.88..0.97).contains(&mean), "{shares:?}");
    }

    // [LIBVPX §ratectrl]: a buffer above its optimum is spent before the quality falls.
    #[test]
    fn after_a_fall_of_the_target_more_than_that_is_sent_for_a_second() {
        let mut bench = Bench::new();
        bench.run(600, 2_000, CAMERA, 1.0);
        let first = bench.kbps(30, 1_700);
        assert!(first > 1_700.0, "{first}");
        bench.run(90, 1_700, CAMERA, 1.0);
        let later = bench.kbps(300, 1_700);
        assert!((1_550.0..1_700.0).contains(&later), "{later}");
    }

    // [LIBVPX §ratectrl]: 30 frames of 920 B a second amount to 221 kbit/s.
    #[test]
    fn below_the_coarsest_quality_frames_are_left_out() {
        let mut bench = Bench::new();
        bench.run(300, 1_000, CAMERA, 1.0);
        let frames = bench.run(600, 120, CAMERA, 1.0);
        let left_out = frames[300..].iter().filter(|frame| frame.is_none()).count();
        assert!((60..240).contains(&left_out), "{left_out} of 300");
        assert!(kbps_of(&frames[300..]) < 130.0);
    }

    // [LIBWEBRTC §VideoStreamEncoder]
    #[test]
    fn push_back_throws_away_one_picture_of_as_many_as_it_takes_and_of_two_at_most() {
        for (share, expect) in [(1.0, 0), (0.995, 0), (0.75, 75), (0.3, 150), (0.02, 150)] {
            let mut bench = Bench::new();
            bench.run(300, 2_000, CAMERA, 1.0);
            let frames = bench.run(300, 2_000, CAMERA, share);
            assert_eq!(frames.iter().filter(|frame| frame.is_none()).count(), expect, "{share}");
        }
    }

    #[test]
    fn key_frames_are_made_whatever_the_buffer_holds() {
        let mut bench = Bench::new();
        bench.run(600, 100, CAMERA, 1.0);
        for _ in 0..20 {
            bench.0.begin_key_frame();
            assert!(bench.run(1, 100, CAMERA, 1.0)[0].is_some());
        }
    }

    fn bench(content: Content, codec: Codec) -> Bench {
        Bench::of(EncoderVideo { content, codec, ..EncoderVideo::DEFAULT })
    }

    fn made(frames: &[Option<u64>]) -> Vec<u64> {
        frames.iter().copied().flatten().collect()
    }

    // The call of `encoder/drop/hard`: 4 frames a second of 12.5 kB.
    #[test]
    fn hard_content_has_few_frames_of_the_coarsest_quality() {
        let mut bench = bench(Content::Hard, Codec::Vp8);
        bench.run(450, 2_500, CAMERA, 1.0);
        bench.run(90, 480, CAMERA, 1.0);
        let fallen = made(&bench.run(600, 480, CAMERA, 1.0));
        let mean = fallen.iter().sum::<u64>() / fallen.len() as u64;
        assert!((40..110).contains(&fallen.len()), "{} frames in 20 s", fallen.len());
        assert!((11_000..15_500).contains(&mean), "{mean} B");
    }

    #[test]
    fn a_page_that_stands_still_takes_almost_nothing_until_it_jumps() {
        let mut bench = bench(Content::Screen, Codec::Vp8);
        bench.run(600, 2_000, CAMERA, 1.0);
        let frames = made(&bench.run(60, 2_000, CAMERA, 1.0));
        let largest = frames.iter().max().unwrap();
        let (still, sum) =
            (frames.iter().filter(|bytes| **bytes < 200).count(), frames.iter().sum::<u64>());
        assert!(*largest > 5_000 && still > 20, "{frames:?}");
        assert!((100_000..130_000).contains(&sum), "{sum} B a page");
    }

    // [LIBWEBRTC §VideoStreamEncoder]
    #[test]
    fn a_picture_of_another_size_begins_with_a_key_frame() {
        let degradation = Degradation::MaintainFramerate;
        let mut bench = Bench::of(EncoderVideo { degradation, ..EncoderVideo::DEFAULT });
        let first = bench.run(3, 300, CAMERA, 1.0);
        assert_eq!(first.iter().position(Option::is_some), Some(2), "two pictures are too large");
        let frames = made(&bench.run(1_200, 4_000, CAMERA, 1.0));
        let mean = frames.iter().sum::<u64>() / frames.len() as u64;
        assert!(frames.iter().any(|bytes| *bytes > 2 * mean), "no key frame");
        assert_eq!(bench.0.scaler.pixels(), 921_600.0);
    }

    // [LIBAOM §ratectrl]
    #[test]
    fn av1_drops_every_frame_while_its_buffer_is_empty() {
        let mut bench = bench(Content::Noise, Codec::Av1);
        bench.run(300, 1_000, CAMERA, 1.0);
        bench.0.buffer = Some(-40_000.0);
        let frames = bench.run(12, 100, CAMERA, 1.0);
        assert!(frames[..11].iter().all(Option::is_none), "{frames:?}");
    }
}
