//! The encoder of a pipeline of `weir call`: libvpx's VP8, at the rate that the element `weircc`
//! gives it, with a short buffer and no frame dropping.
//!
//! ```text
//! target -> repair and send queue off -> 95 % -> rate -> buffer -> size -> frame
//! ```
//!
//! The rules of the buffer come from libvpx. The other values were measured with libvpx alone, at
//! the pipelines' settings, with the film in 640x360 (docs/reference/video.md).

use weir::controller::Target;
use weir::units::{Bitrate, DataSize, TimeDelta};
use weir_net::seed::Stream;

use super::encoder::wire_size;
use super::picture::{BITS_PER_BYTE, Costs};
use crate::config::EncoderVideo;

// What `weircc` does [library/gst/src/cc/encoders.rs].
/// A picture is left out while what waits to be sent needs longer than this.
pub(crate) const MAX_QUEUE: TimeDelta = TimeDelta::from_millis(250);
/// A queue of this length is usual; what waits beyond that leaves within the second time.
const USUAL_QUEUE: TimeDelta = TimeDelta::from_millis(50);
const DRAIN_TIME: TimeDelta = TimeDelta::from_millis(500);
/// The encoder gets at least this share of the target.
const MIN_SHARE: f64 = 0.5;
/// Share of its rate that the encoder is asked for.
const ASKED_SHARE: f64 = 0.95;

// The buffer [LIBVPX §ratectrl], with the settings of the pipelines: a level is its content divided
// by the rate, in seconds.
/// The first and the optimal level, and the largest.
const BEST_LEVEL: f64 = 0.1;
const MAX_LEVEL: f64 = 0.15;
/// A picture's budget is corrected by half of the relative deviation from the optimum, which is at
/// most this above it.
const CORRECTION: f64 = 0.5;
const MAX_SURPLUS: f64 = 0.15;

// Measured.
/// Bytes of a key frame and mean bytes of a picture at the coarsest quality, 640x360.
const COARSEST_KEY_BYTES: f64 = 5_300.0;
const COARSEST_BYTES: f64 = 720.0;
/// Standard deviation of the logarithm of the latter, and correlation with the next picture's.
const COARSEST_DEVIATION: f64 = 0.27;
const PERSISTENCE: f64 = 0.63;
/// Size of a key frame that is not the first, as a multiple of the budget.
const KEY_FRAME: f64 = 4.4;
/// Pixels of the measured film.
const PIXELS: f64 = 640.0 * 360.0;
/// Standard deviation of the logarithm of a picture's size at no rate, and its growth for each
/// Mbit/s. A picture that is too large is followed by one that is too small.
const DEVIATION: f64 = 0.29;
const DEVIATION_PER_MBPS: f64 = 0.06;
const ALTERNATION: f64 = -0.45;
/// The first picture after a cut of the film, as a multiple of the budget, by rate in Mbit/s.
const CUTS: [(f64, f64); 7] =
    [(0.15, 1.3), (0.3, 6.9), (0.6, 8.8), (1.0, 8.2), (1.5, 7.8), (2.0, 7.5), (2.5, 5.6)];
/// The film's pictures between two cuts.
const FILM_LOOP: u32 = 120;
/// The picture after a cut has this share of the bytes of the coarsest quality. Those that follow
/// have the coarsest quality until the buffer has reached this part of its optimal level.
const AFTER_CUT: f64 = 0.35;
const RECOVERED: f64 = 1.0 / 3.0;
/// Growth of a picture's size from one to the next while the rate has grown.
const GROWTH: f64 = 1.6;

/// The rate of the encoder while `queued` waits to be sent, of `rate` for media.
pub(crate) fn rate_beside(target: &Target, queued: DataSize, rate: Bitrate) -> Bitrate {
    let excess = queued.saturating_sub(target.pacing_rate * USUAL_QUEUE);
    rate.saturating_sub(excess / DRAIN_TIME).max(target.source_bitrate * MIN_SHARE)
}

/// State of the encoder.
#[derive(Clone, Debug)]
pub(super) struct PipelineEncoder {
    stream: Stream,
    /// Factors of the picture's size on bytes, and of pictures that were left out.
    size_factor: f64,
    motion: f64,
    /// Rate for the next picture, in bit/s, and bits that may be spent; `None` before the first.
    state: Option<(f64, f64)>,
    /// Number of pictures from the camera, and of those since the last frame.
    pictures: u32,
    moved: u32,
    /// Whether no frame shows the film since its last cut; frames since then, while they have the
    /// coarsest quality.
    is_after_cut: bool,
    recovering: Option<u32>,
    wants_key_frame: bool,
    /// Bits that the last picture was meant to have.
    reached: f64,
    /// Deviations of the coarsest quality and of the size, in standard deviations.
    picture: f64,
    noise: f64,
}

impl PipelineEncoder {
    pub(super) fn new(stream: Stream, video: EncoderVideo) -> Self {
        let pixels = f64::from(video.width) * f64::from(video.height);
        let costs = Costs::of(video);
        Self {
            stream,
            size_factor: costs.factor(pixels) / costs.factor(PIXELS),
            motion: costs.motion,
            state: None,
            pictures: 0,
            moved: 0,
            is_after_cut: false,
            recovering: None,
            wants_key_frame: true,
            reached: 0.0,
            picture: 0.0,
            noise: 0.0,
        }
    }

    pub(super) fn begin_key_frame(&mut self) {
        self.wants_key_frame = true;
    }

    /// Leaves the picture out that is due now.
    pub(super) fn skip(&mut self) {
        self.is_after_cut |= self.pictures > 0 && self.pictures.is_multiple_of(FILM_LOOP);
        self.pictures += 1;
        self.moved += 1;
    }

    /// Size on the wire of the frame that is due now.
    pub(super) fn frame(&mut self, fps: f64, cap: Option<Bitrate>, rate: Bitrate) -> DataSize {
        wire_size(self.encode(fps, cap, rate))
    }

    /// Bits of the picture that is due now, without headers.
    fn encode(&mut self, fps: f64, cap: Option<Bitrate>, rate: Bitrate) -> f64 {
        self.skip();
        let asked = cap.map_or(rate, |cap| rate.min(cap)).as_bps_f64().max(1.0) * ASKED_SHARE;
        // libvpx adopts a new rate after the picture that is due.
        let (rate, buffer) = self.state.unwrap_or((asked, asked * BEST_LEVEL));
        let bits = self.size(rate, rate / fps, buffer / rate / BEST_LEVEL);
        self.moved = 0;
        let buffer = (buffer + rate / fps - bits).min(asked * MAX_LEVEL);
        self.state = Some((asked, buffer));
        bits
    }

    /// Bits of a picture at this rate, with this level relative to the optimal one.
    fn size(&mut self, rate: f64, budget: f64, level: f64) -> f64 {
        let coarsest = self.coarsest();
        let noise = self.noise(rate);
        let off = (level - 1.0).clamp(-1.0, MAX_SURPLUS);
        let wanted = budget * (1.0 + CORRECTION * off);
        let is_cut = std::mem::take(&mut self.is_after_cut);
        if std::mem::take(&mut self.wants_key_frame) {
            let is_first = self.state.is_none();
            self.recovering = (!is_first).then_some(0);
            self.reached = wanted;
            let meant = if is_first { budget } else { budget * KEY_FRAME };
            return meant.max(COARSEST_KEY_BYTES * BITS_PER_BYTE * self.size_factor);
        }
        if is_cut {
            self.recovering = Some(0);
            return (budget * cut(rate / self.size_factor / 1e6)).max(coarsest);
        }
        if level < 0.0 {
            // A rate that fell leaves too large a picture behind as well.
            self.recovering.get_or_insert(0);
        }
        if let Some(frames) = self.recovering
            && level < RECOVERED
        {
            self.recovering = Some(frames + 1);
            return if frames == 0 { coarsest * AFTER_CUT } else { coarsest };
        }
        self.recovering = None;
        self.reached = wanted.min((self.reached * GROWTH).max(coarsest));
        (self.reached * noise).max(coarsest)
    }

    /// Bits of this picture at the coarsest quality. The pictures since the last frame have moved
    /// on.
    fn coarsest(&mut self) -> f64 {
        let news = libm::sqrt(1.0 - PERSISTENCE * PERSISTENCE) * self.stream.normal();
        self.picture = PERSISTENCE * self.picture + news;
        let moved = libm::pow(f64::from(self.moved.max(1)), self.motion);
        let deviation = lognormal(COARSEST_DEVIATION, self.picture);
        COARSEST_BYTES * BITS_PER_BYTE * self.size_factor * moved * deviation
    }

    /// Factor on the size of this picture, with mean 1.
    fn noise(&mut self, rate: f64) -> f64 {
        let news = libm::sqrt(1.0 - ALTERNATION * ALTERNATION) * self.stream.normal();
        self.noise = ALTERNATION * self.noise + news;
        lognormal(DEVIATION + DEVIATION_PER_MBPS * rate / 1e6, self.noise)
    }
}

/// A factor with this deviation of its logarithm and a mean of 1.
fn lognormal(deviation: f64, normal: f64) -> f64 {
    libm::exp(deviation * normal - deviation * deviation / 2.0)
}

/// Size of the picture after a cut, as a multiple of the budget, between the measured rates.
fn cut(mbps: f64) -> f64 {
    let Some(above) = CUTS.iter().position(|(rate, _)| *rate >= mbps) else { return CUTS[6].1 };
    let (high, factor) = CUTS[above];
    let Some((low, below)) = above.checked_sub(1).map(|index| CUTS[index]) else { return factor };
    below + (factor - below) * (mbps - low) / (high - low)
}

#[cfg(test)]
mod tests;
