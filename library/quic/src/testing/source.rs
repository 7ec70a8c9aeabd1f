//! Video frames in groups, from an encoder that follows an estimate or not.

use weir::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Frames in a second, which are one group.
const FRAME_RATE: u64 = 30;
/// A key frame in units of the others.
const KEY_UNITS: f64 = 3.0;
/// Sizes vary by this share to both sides.
const VARIATION: f64 = 0.15;
/// The policy of moq's encoder: its part of the estimate, how fast it climbs, and the moves that
/// it ignores.
const HEADROOM: f64 = 0.9;
const CLIMB_PER_SECOND: f64 = 0.25;
const IGNORED: f64 = 0.05;
/// An encoder follows a new rate this late.
const LAG: TimeDelta = TimeDelta::from_millis(150);

/// A frame of video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Counts from 0.
    pub number: u64,
    /// Frames of one group depend on each other; a group is one stream.
    pub group: u64,
    /// When it was taken.
    pub captured: Timestamp,
    /// Its bytes.
    pub size: DataSize,
}

/// What the source sends.
#[derive(Clone, Copy, Debug)]
pub enum SourceConfig {
    /// A source that does not follow the estimate.
    Fixed(Bitrate),
    /// An encoder with moq's policy, from `start` and up to `max`.
    Adaptive {
        /// The first rate.
        start: Bitrate,
        /// The highest rate.
        max: Bitrate,
        /// Its part of the estimate.
        headroom: f64,
    },
}

impl SourceConfig {
    /// moq's policy with its headroom.
    pub const fn adaptive(start: Bitrate, max: Bitrate) -> Self {
        Self::Adaptive { start, max, headroom: HEADROOM }
    }
}

/// The rate of an encoder with moq's policy: a part of the estimate. It falls at once, climbs by
/// 25 % a second, ignores moves below 5 %, and follows 150 ms late.
#[derive(Clone, Copy, Debug)]
pub struct EncoderRate {
    max: Bitrate,
    headroom: f64,
    rate: Bitrate,
    /// The rate that it follows next, and when.
    next: Option<(Timestamp, Bitrate)>,
}

impl EncoderRate {
    /// moq's policy with its headroom, from `start` and up to `max`.
    pub const fn new(start: Bitrate, max: Bitrate) -> Self {
        Self { max, headroom: HEADROOM, rate: start, next: None }
    }

    /// The rate for the frame that is taken now, at 30 frames a second.
    pub fn follow(&mut self, now: Timestamp, estimate: Option<Bitrate>) -> Bitrate {
        if let Some((_, rate)) = self.next.filter(|&(due, _)| due <= now) {
            self.rate = rate;
            self.next = None;
        }
        let Some(estimate) = estimate else { return self.rate };
        let wanted = (estimate * self.headroom).min(self.max);
        let latest = self.next.map_or(self.rate, |(_, rate)| rate);
        let ratio = wanted / latest;
        if !(1.0 - IGNORED..=1.0 + IGNORED).contains(&ratio) {
            let due = self.next.map_or(now + LAG, |(due, _)| due);
            let climb = 1.0 + CLIMB_PER_SECOND / FRAME_RATE as f64;
            self.next = Some((due, wanted.min(latest * climb)));
        }
        self.rate
    }
}

/// Makes frames.
#[derive(Clone, Debug)]
pub struct Source {
    rate: SourceRate,
    number: u64,
    began: Option<Timestamp>,
    random: u64,
}

#[derive(Clone, Debug)]
enum SourceRate {
    Fixed(Bitrate),
    Adaptive(EncoderRate),
}

impl Source {
    /// A source that begins when it is first asked.
    pub fn new(config: SourceConfig) -> Self {
        let rate = match config {
            SourceConfig::Fixed(rate) => SourceRate::Fixed(rate),
            SourceConfig::Adaptive { start, max, headroom } => {
                SourceRate::Adaptive(EncoderRate { headroom, ..EncoderRate::new(start, max) })
            }
        };
        Self { rate, number: 0, began: None, random: 7 }
    }

    /// When the next frame is due.
    pub fn next_time(&self) -> Timestamp {
        let Some(began) = self.began else { return Timestamp::ZERO };
        began + TimeDelta::from_nanos((self.number * 1_000_000_000 / FRAME_RATE) as i64)
    }

    /// The frame that is due now.
    pub fn next_frame(&mut self, now: Timestamp, estimate: Option<Bitrate>) -> Option<Frame> {
        self.began.get_or_insert(now);
        let captured = self.next_time();
        if captured > now {
            return None;
        }
        let rate = match &mut self.rate {
            SourceRate::Fixed(rate) => *rate,
            SourceRate::Adaptive(encoder) => encoder.follow(now, estimate),
        };
        let is_key = self.number.is_multiple_of(FRAME_RATE);
        let units = if is_key { KEY_UNITS } else { 1.0 };
        let all = (FRAME_RATE - 1) as f64 + KEY_UNITS;
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let draw = (self.random >> 33) as f64 / f64::from(1_u32 << 31);
        let varied = 1.0 + VARIATION * (2.0 * draw - 1.0);
        let second = rate * TimeDelta::from_secs(1);
        let size = (second * (units / all * varied)).max(DataSize::from_bytes(16));
        let (number, group) = (self.number, self.number / FRAME_RATE);
        self.number += 1;
        Some(Frame { number, group, captured, size })
    }
}
