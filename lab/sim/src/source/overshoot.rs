//! Overshoot detector: measures how far an encoder exceeds the requested rate, and adjusts the
//! request accordingly.
//!
//! Implements [LIBWEBRTC §EncoderOvershootDetector], and the part of §EncoderBitrateAdjuster that
//! applies to a single layer.

use std::collections::VecDeque;

use weir::units::{Bitrate, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §EncoderBitrateAdjuster].
/// Length of the window of frames.
const WINDOW: TimeDelta = TimeDelta::from_secs(3);
/// Utilization assumed before this many frames.
const FIRST_USE: f64 = 1.2;
const FIRST_FRAMES: u32 = 30;
/// Maximum utilization, so the rate is divided by at most this value. Beyond it the encoder should
/// drop frames.
const MAX_USE: f64 = 2.0;

/// A frame in the window.
#[derive(Clone, Copy, Debug)]
struct Made {
    time: Timestamp,
    /// Link utilization: the time to send the frame relative to its budget. It exceeds one if
    /// earlier frames were too large.
    link_use: f64,
    /// Size of the frame in bits, and bits requested since the frame before.
    bits: f64,
    asked_bits: f64,
}

/// The detector.
#[derive(Clone, Debug, Default)]
pub(super) struct OvershootDetector {
    window: VecDeque<Made>,
    frames: u32,
    /// Backlog in bits of a sender that sends at the adjusted rate.
    backlog: f64,
    /// The adjusted rate in bit/s, and the time of the last adjustment.
    rate: f64,
    last: Option<Timestamp>,
    /// Bits requested since the last frame, before adjustment.
    asked_bits: f64,
}

impl OvershootDetector {
    /// Returns the rate to request from the encoder so that it produces `asked`. `headroom` is the
    /// spare capacity of the link.
    pub(super) fn adjust(&mut self, now: Timestamp, asked: Bitrate, headroom: Bitrate) -> Bitrate {
        let elapsed = self.last.replace(now).map_or(TimeDelta::ZERO, |last| now - last);
        self.backlog = (self.backlog - self.rate * elapsed.as_secs_f64()).max(0.0);
        self.asked_bits += asked.as_bps_f64() * elapsed.as_secs_f64();
        while self.window.front().is_some_and(|made| now - made.time > WINDOW) {
            self.window.pop_front();
        }
        let (link, media) = self.uses();
        // A link with spare capacity can carry the excess, as long as the average stays within the
        // request.
        let excess = asked * (link - media.max(1.0)).max(0.0);
        let rate = asked * (1.0 / link) + excess.min(headroom) * (1.0 / link);
        self.rate = rate.as_bps_f64();
        rate
    }

    /// Mean utilization of the link and of the requested rate over the window.
    fn uses(&self) -> (f64, f64) {
        if self.frames < FIRST_FRAMES || self.window.is_empty() {
            return (FIRST_USE, FIRST_USE);
        }
        let (mut link, mut bits, mut asked) = (0.0, 0.0, 0.0);
        for made in &self.window {
            link += made.link_use;
            bits += made.bits;
            asked += made.asked_bits;
        }
        ((link / self.window.len() as f64).clamp(1.0, MAX_USE), bits / asked.max(1.0))
    }

    /// Assumes the first utilization again until enough frames have come.
    pub(super) fn measure_anew(&mut self) {
        self.frames = 0;
    }

    /// Takes a frame of `bits`. `budget` is the number of bits per frame at the adjusted rate.
    pub(super) fn on_frame(&mut self, now: Timestamp, bits: f64, budget: f64) {
        // The backlog of earlier frames delays this one. A single large frame is harmless.
        let excess = (self.backlog + bits - budget).clamp(0.0, self.backlog);
        let is_first = self.window.is_empty();
        let link_use = if is_first { (bits / budget).max(1.0) } else { 1.0 + excess / budget };
        let asked_bits = std::mem::take(&mut self.asked_bits);
        self.window.push_back(Made { time: now, link_use, bits, asked_bits });
        self.frames = self.frames.saturating_add(1);
        self.backlog += bits - excess;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Bitrate = Bitrate::from_kbps(1_000);
    /// Produces 25 frames a second for `seconds`. The frame sizes are the budget times each of
    /// `factors` in turn. Returns the final adjusted rate in kbit/s.
    fn run(seconds: i64, headroom: Bitrate, factors: &[f64]) -> f64 {
        let mut detector = OvershootDetector::default();
        let mut rate = ASKED;
        for frame in 0..25 * seconds {
            let now = Timestamp::from_millis(40 * frame);
            rate = detector.adjust(now, ASKED, headroom);
            let factor = factors[frame as usize % factors.len()];
            let budget = rate.as_bps_f64() / 25.0;
            detector.on_frame(now, factor * budget, budget);
        }
        rate.as_kbps_f64()
    }

    // [LIBWEBRTC §EncoderBitrateAdjuster]
    #[test]
    fn before_30_frames_a_sixth_is_kept_back_then_nothing_if_it_is_exact() {
        let mut detector = OvershootDetector::default();
        let rate = detector.adjust(Timestamp::ZERO, ASKED, Bitrate::ZERO);
        assert_eq!(rate.as_bps(), 833_333);
        assert!(run(10, Bitrate::ZERO, &[1.0]) > 999.0);
    }

    // [LIBWEBRTC §EncoderOvershootDetector]
    #[test]
    fn a_large_frame_does_no_harm_if_the_next_one_makes_up_for_it() {
        assert!(run(10, Bitrate::ZERO, &[1.8, 0.2]) > 990.0);
        assert!(run(10, Bitrate::ZERO, &[1.0, 1.8, 1.0, 0.2]) < 900.0);
    }

    // [LIBWEBRTC §EncoderBitrateAdjuster]
    #[test]
    fn an_encoder_that_makes_too_much_is_asked_for_down_to_half() {
        let rate = run(10, Bitrate::ZERO, &[1.2]);
        assert!((500.0..850.0).contains(&rate), "{rate}");
        assert_eq!(run(10, Bitrate::ZERO, &[9.0]), 500.0);
    }

    // [LIBWEBRTC §EncoderBitrateAdjuster]
    #[test]
    fn a_link_with_room_lets_uneven_frames_pass_while_their_average_is_kept() {
        let uneven = [1.0, 1.8, 1.0, 0.2];
        let without = run(10, Bitrate::ZERO, &uneven);
        let with = run(10, Bitrate::from_kbps(2_000), &uneven);
        assert!(with > 990.0 && with > without + 90.0, "{with} {without}");
    }
}
