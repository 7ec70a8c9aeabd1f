//! Media rate control: computes the target bitrate from reference window and round-trip time.
//!
//! Implements [SCREAMV2 §4.4].

use super::media_queue::Frame;
use super::parameters::Parameters;
use crate::units::{Bitrate, DataSize, TimeDelta};

// Parameters [SCREAMV2 §4.4].
/// `RATE_ADJUST_GAIN`: integral gain of the delay in the send queue.
const RATE_ADJUST_GAIN: f64 = 1.0 / 16.0;
/// `FRAME_SIZE_DEV_ALPHA`: gain of the average frame size deviation.
const FRAME_SIZE_DEV_ALPHA: f64 = 1.0 / 64.0;
// Parameters of [SCREAMV2 §4.4] that the draft does not name.
/// Share of a frame period that the oldest byte may wait.
const QUEUE_SHARE: f64 = 0.25;
/// Largest `rate_adjust_factor`.
const RATE_ADJUST_MAX: f64 = 0.5;
/// Largest `frame_size_dev`.
const FRAME_SIZE_DEV_MAX: f64 = 0.2;
/// `ref_wnd_ratio` above which the target of small windows is reduced, and the maximum reduction.
const SMALL_WINDOW: f64 = 0.1;
const SMALL_WINDOW_MAX: f64 = 0.2;

/// The two correction factors that depend on the source's frames.
#[derive(Clone, Debug)]
pub(super) struct MediaRate {
    p: Parameters,
    /// `MSS` in bytes (SCREAMV2-D11).
    mss: f64,
    /// Reduction of the rate because of the send queue, `rate_adjust_factor`.
    rate_adjust: f64,
    /// Averaged excess of the frame sizes, `frame_size_dev`.
    frame_size_deviation: f64,
}

impl MediaRate {
    pub fn new(p: Parameters) -> Self {
        Self { p, mss: p.mss, rate_adjust: 0.0, frame_size_deviation: 0.0 }
    }

    /// SCREAMV2-D11: segments have this size from now on.
    pub fn set_segment(&mut self, mss: f64) {
        self.mss = mss;
    }

    /// Takes a complete frame that was encoded for this target bitrate.
    pub fn on_frame(&mut self, frame: &Frame, target: Bitrate) {
        if !self.p.adjusts_to_frames {
            return;
        }
        let error = frame.queue_delay / frame.period - QUEUE_SHARE;
        let adjusted = self.rate_adjust + error * RATE_ADJUST_GAIN;
        self.rate_adjust = adjusted.clamp(0.0, RATE_ADJUST_MAX);
        let nominal = (target * frame.period).as_bytes().max(1) as f64;
        let deviation = (frame.size.as_bytes() as f64 / nominal - 1.0).max(0.0);
        let change = (deviation - self.frame_size_deviation) * FRAME_SIZE_DEV_ALPHA;
        self.frame_size_deviation = (self.frame_size_deviation + change).min(FRAME_SIZE_DEV_MAX);
    }

    /// `target_bitrate` before the limits apply.
    pub fn bitrate(&self, ref_wnd: f64, segment_ratio: f64, rtt: TimeDelta) -> Bitrate {
        let scale = 1.0 - (segment_ratio - SMALL_WINDOW).clamp(0.0, SMALL_WINDOW_MAX);
        let scale = scale * self.mss / (self.mss + self.p.packet_overhead);
        let divisor = self.p.media_head_room + self.rate_adjust + self.frame_size_deviation;
        DataSize::from_bytes((ref_wnd * scale / divisor) as u64) / rtt
    }

    /// The window that gives this bitrate before any frame was measured (SCREAMV2-D1).
    pub fn window_for(&self, bitrate: Bitrate, rtt: TimeDelta) -> f64 {
        let bytes = (bitrate * rtt).as_bytes() as f64;
        let large = bytes * self.p.media_head_room * (self.mss + self.p.packet_overhead) / self.mss;
        // A window of few segments gives less [SCREAMV2 §4.4]: by a part that grows as it has
        // fewer, up to `SMALL_WINDOW_MAX`.
        let small = (large + self.mss) / (1.0 + SMALL_WINDOW);
        large.max(small.min(large / (1.0 - SMALL_WINDOW_MAX)))
    }

    /// Reduction of the rate because of the send queue, `rate_adjust_factor`.
    pub fn rate_adjust(&self) -> f64 {
        self.rate_adjust
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    fn frame(bytes: u64, queue_millis: i64) -> Frame {
        Frame {
            size: DataSize::from_bytes(bytes),
            queue_delay: TimeDelta::from_millis(queue_millis),
            period: TimeDelta::from_millis(40),
        }
    }

    // [SCREAMV2 §4.4]
    #[test]
    fn the_target_is_the_window_a_round_trip_with_overhead_and_head_room() {
        let rate = MediaRate::new(Parameters::DRAFT);
        // 20 400 B * 8 / 0.1 s / 1.02 / 1.2
        assert_eq!(rate.bitrate(20_400.0, 0.05, RTT).as_bps(), 1_333_280);
        assert_eq!(rate.bitrate(20_400.0, 0.2, RTT).as_bps(), 1_200_000);
        assert_eq!(rate.bitrate(20_400.0, 1.0, RTT).as_bps(), 1_066_640, "at most a fifth less");
    }

    // [SCREAMV2 §4.4]
    #[test]
    fn a_wait_and_large_frames_add_to_the_head_room() {
        let rate = MediaRate {
            rate_adjust: 0.3,
            frame_size_deviation: 0.1,
            ..MediaRate::new(Parameters::DRAFT)
        };
        assert_eq!(rate.bitrate(20_400.0, 0.05, RTT).as_bps(), 1_000_000);
    }

    // SCREAMV2-D1
    #[test]
    fn the_first_window_gives_the_start_bitrate_back() {
        let start = Bitrate::from_kbps(1_000);
        let window = MediaRate::new(Parameters::DRAFT).window_for(start, RTT);
        assert_eq!(MediaRate::new(Parameters::DRAFT).bitrate(window, 0.06, RTT), start);
    }

    // SCREAMV2-D1: also where the window has few segments, and the draft's rate is a fifth lower.
    #[test]
    fn the_window_for_a_bitrate_gives_it_back_with_any_number_of_segments() {
        let rate = MediaRate::new(Parameters::DRAFT);
        for kbps in [5, 50, 150, 200, 250, 300, 500, 700, 1_000, 100_000] {
            let bitrate = Bitrate::from_kbps(kbps);
            let window = rate.window_for(bitrate, RTT);
            let back = rate.bitrate(window, (1_000.0 / window).min(1.0), RTT);
            // Bytes are whole numbers.
            let error = bitrate.as_bps().abs_diff(back.as_bps());
            assert!(error <= 160, "{kbps} kbit/s: {back:?}");
        }
    }

    // [SCREAMV2 §4.4]
    #[test]
    fn a_wait_of_over_a_quarter_period_lowers_the_rate_by_a_third_at_most() {
        let target = Bitrate::from_kbps(1_000);
        let mut rate = MediaRate::new(Parameters::DRAFT);
        rate.on_frame(&frame(5_000, 10), target);
        assert_eq!(rate.rate_adjust(), 0.0);
        rate.on_frame(&frame(5_000, 50), target);
        assert_eq!(rate.rate_adjust(), 1.0 / 16.0);
        (0..100).for_each(|_| rate.on_frame(&frame(5_000, 90), target));
        assert_eq!(rate.rate_adjust(), 0.5);
        (0..100).for_each(|_| rate.on_frame(&frame(5_000, 0), target));
        assert_eq!(rate.rate_adjust(), 0.0);
    }

    // [SCREAMV2 §4.4]
    #[test]
    fn frames_above_their_nominal_size_lower_the_rate_smaller_do_not_raise_it() {
        let target = Bitrate::from_kbps(1_000);
        let mut rate = MediaRate::new(Parameters::DRAFT);
        rate.on_frame(&frame(10_000, 0), target);
        assert_eq!(rate.frame_size_deviation, 1.0 / 64.0);
        (0..1_000).for_each(|_| rate.on_frame(&frame(50_000, 0), target));
        assert_eq!(rate.frame_size_deviation, 0.2);
        (0..10_000).for_each(|_| rate.on_frame(&frame(100, 0), target));
        assert!(rate.frame_size_deviation < 1e-9);
    }
}
