//! Playout of a flow without `quality`: decides when a decoded frame is shown.
//!
//! A frame is shown one playout delay after its capture, or at once if it is decoded later than
//! that. The playout delay follows the delays of recent frames, slowly enough to be unnoticeable.
//! Decoding takes no time.

use std::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

use super::freezes::Freezes;

/// Number of frames in the window of delays: ten seconds at 30 frames a second.
const WINDOW: usize = 300;
/// Share of these frames that should arrive in time.
const IN_TIME: f64 = 0.95;
/// Time from the decoder to the screen (libwebrtc's default render delay).
const RENDER_DELAY: TimeDelta = TimeDelta::from_millis(10);
/// A longer time without capture means that the source was paused [WEBRTC-STATS §8].
const PAUSE: TimeDelta = TimeDelta::from_secs(5);
/// Playout runs at most this much faster or slower than capture (libwebrtc: 100 ms a second).
const MAX_SPEED_CHANGE: f64 = 0.1;

/// A frame on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rendered {
    /// Time from its capture to now.
    pub(super) delay: TimeDelta,
    /// Duration of the freeze that it ended, if any.
    pub(super) freeze: Option<TimeDelta>,
    /// When it was captured.
    pub(super) captured: Timestamp,
}

/// Frames between decoder and screen.
#[derive(Clone, Debug, Default)]
pub(super) struct Playout {
    delays: Delays,
    /// The playout delay, and the capture time of the frame that set it.
    delay: Option<(TimeDelta, Timestamp)>,
    queue: VecDeque<Waiting>,
    freezes: Freezes,
}

/// A frame that waits to be shown.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    due: Timestamp,
    captured: Timestamp,
    /// The source was paused before it.
    after_pause: bool,
}

impl Playout {
    /// A frame is decoded. Frames come in order of capture. `is_next` is true if no frame was
    /// skipped since the last one.
    pub(super) fn on_frame(&mut self, now: Timestamp, captured: Timestamp, is_next: bool) {
        self.delays.push(now - captured);
        let wanted = self.delays.percentile() + RENDER_DELAY;
        let (mut delay, mut after_pause) = (wanted, false);
        if let Some((old, last)) = self.delay {
            let elapsed = captured - last;
            let step = elapsed * MAX_SPEED_CHANGE;
            delay = wanted.clamp(old - step, old + step);
            after_pause = is_next && elapsed > PAUSE;
        }
        self.delay = Some((delay, captured));
        let due = (captured + delay).max(now);
        self.queue.push_back(Waiting { due, captured, after_pause });
    }

    /// Time at which the next frame is due.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.queue.front().map(|frame| frame.due)
    }

    /// Shows the newest frame that is due. Older frames are skipped.
    pub(super) fn render(&mut self, now: Timestamp) -> Option<Rendered> {
        let due = self.queue.iter().take_while(|frame| frame.due <= now).count();
        let after_pause = self.queue.iter().take(due).any(|frame| frame.after_pause);
        let frame = self.queue.drain(..due).next_back()?;
        if after_pause {
            self.freezes.on_pause();
        }
        let captured = frame.captured;
        Some(Rendered { delay: now - captured, freeze: self.freezes.on_frame(now), captured })
    }

    /// The stream ends [`Freezes::finish`].
    pub(super) fn finish(&mut self, last_frame: Timestamp) -> Option<TimeDelta> {
        self.freezes.finish(last_frame)
    }
}

/// Delays of recent frames, in order of arrival and sorted.
#[derive(Clone, Debug, Default)]
struct Delays {
    recent: VecDeque<TimeDelta>,
    sorted: Vec<TimeDelta>,
}

impl Delays {
    fn push(&mut self, delay: TimeDelta) {
        let oldest = if self.recent.len() == WINDOW { self.recent.pop_front() } else { None };
        self.recent.push_back(delay);
        let to = self.sorted.partition_point(|&other| other < delay);
        let Some(oldest) = oldest else {
            self.sorted.insert(to, delay);
            return;
        };
        // Only what lies between the two moves by one place.
        let from = self.sorted.partition_point(|&other| other < oldest);
        if from < to {
            self.sorted.copy_within(from + 1..to, from);
            self.sorted[to - 1] = delay;
        } else {
            self.sorted.copy_within(to..from, to + 1);
            self.sorted[to] = delay;
        }
    }

    /// The delay that a share [`IN_TIME`] of the frames does not exceed; zero without frames.
    fn percentile(&self) -> TimeDelta {
        let rank = libm::ceil(self.sorted.len() as f64 * IN_TIME) as usize;
        self.sorted.get(rank.saturating_sub(1)).copied().unwrap_or(TimeDelta::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: i64 = 33;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn millis(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Decodes frames with these delays in ms. Returns the delays with which they are due.
    fn due(playout: &mut Playout, delays: impl IntoIterator<Item = i64>) -> Vec<i64> {
        let frames = (0..).zip(delays).map(|(frame, delay)| {
            let captured = at(frame * INTERVAL);
            playout.on_frame(captured + millis(delay), captured, true);
            playout.queue.back().map_or(0, |frame| (frame.due - frame.captured).as_millis())
        });
        frames.collect()
    }

    #[test]
    fn frames_of_equal_delay_are_shown_as_evenly_as_they_were_captured() {
        assert_eq!(due(&mut Playout::default(), [50; 100]), [60; 100]);
    }

    #[test]
    fn a_late_frame_is_shown_at_once() {
        let mut playout = Playout::default();
        assert_eq!(due(&mut playout, [50, 50, 200]), [60, 60, 200]);
    }

    #[test]
    fn the_delay_follows_the_95th_percentile_at_a_tenth_of_the_time() {
        let mut playout = Playout::default();
        let delays = due(&mut playout, (0..900).map(|frame| if frame < 300 { 50 } else { 150 }));
        // The percentile moves after one frame in twenty of 300 was late. The change from 60 to 160
        // ms then takes a second.
        assert_eq!(playout.delay.unwrap().0, millis(160));
        assert_eq!(delays[314], 150, "late, so at once");
        assert_eq!(*delays.last().unwrap(), 160);
        let reached = delays.iter().position(|&delay| delay == 160).unwrap();
        assert!((344..=346).contains(&reached), "{reached}");
    }

    #[test]
    fn delays_are_forgotten_after_300_frames() {
        let mut delays = Delays::default();
        for _ in 0..300 {
            delays.push(millis(150));
        }
        for _ in 0..284 {
            delays.push(millis(50));
        }
        assert_eq!(delays.percentile(), millis(150), "16 of 300");
        delays.push(millis(50));
        assert_eq!(delays.percentile(), millis(50), "15 of 300");
    }

    #[test]
    fn of_frames_that_are_due_together_the_newest_is_shown() {
        let mut playout = Playout::default();
        playout.on_frame(at(50), at(0), true);
        for captured in [33, 66, 99] {
            playout.on_frame(at(300), at(captured), true);
        }
        assert_eq!(playout.next_deadline(), Some(at(60)));
        assert_eq!(playout.render(at(59)), None);
        let first = Rendered { delay: millis(60), freeze: None, captured: at(0) };
        assert_eq!(playout.render(at(60)), Some(first));
        let shown = playout.render(at(310)).unwrap();
        assert_eq!(shown.delay, millis(211));
        assert_eq!(playout.next_deadline(), None);
    }

    #[test]
    fn a_picture_that_never_moves_again_froze() {
        let mut playout = Playout::default();
        for frame in 0..10 {
            let captured = at(frame * INTERVAL);
            playout.on_frame(captured, captured, true);
            playout.render(captured + RENDER_DELAY);
        }
        let frozen = playout.finish(at(5_000));
        assert_eq!(frozen, Some(at(5_000) - at(9 * INTERVAL) - RENDER_DELAY));
    }

    // [WEBRTC-STATS §8]
    #[test]
    fn a_paused_source_did_not_freeze_but_one_whose_frames_were_lost_did() {
        let shown_after_a_gap = |is_next| {
            let mut playout = Playout::default();
            for frame in 0..10 {
                let captured = at(frame * INTERVAL);
                playout.on_frame(captured, captured, true);
                playout.render(captured + RENDER_DELAY);
            }
            playout.on_frame(at(9_000), at(9_000), is_next);
            playout.render(at(9_500)).unwrap().freeze.is_some()
        };
        assert!(!shown_after_a_gap(true));
        assert!(shown_after_a_gap(false));
    }
}
