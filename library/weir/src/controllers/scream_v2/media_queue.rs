//! The frames in the send queue: wait of the oldest byte, frame size and frame period.
//!
//! Derives `media_qdelay`, `frame_size` and `frame_period` [SCREAMV2 §4.4] from the bytes added to
//! the queue and the bytes left in it.

use alloc::collections::VecDeque;

use crate::units::{DataSize, TimeDelta, Timestamp};

/// `frame_period` until the second frame [SCREAMV2 §4.4].
const INITIAL_FRAME_PERIOD: TimeDelta = TimeDelta::from_millis(20);
/// Gain of the averaged frame period, and its range. The range excludes pauses (SCREAMV2-D6).
const FRAME_PERIOD_GAIN: f64 = 1.0 / 8.0;
const FRAME_PERIOD_MIN: TimeDelta = TimeDelta::from_millis(4);
const FRAME_PERIOD_MAX: TimeDelta = TimeDelta::from_millis(200);
/// Maximum number of frames remembered: more than half a minute of video.
const MAX_FRAMES: usize = 1024;

/// A complete frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub size: DataSize,
    /// `media_qdelay`: wait of the oldest byte in the queue when the next frame was added.
    pub queue_delay: TimeDelta,
    /// Averaged time between frames, `frame_period`.
    pub period: TimeDelta,
}

/// Tracks the frames in the send queue from the queue's length.
#[derive(Clone, Debug)]
pub(super) struct MediaQueue {
    /// For each frame: when it was added, and the total of bytes added up to its end.
    frames: VecDeque<(Timestamp, u64)>,
    /// Total of bytes added, and the bytes of the newest frame.
    added: u64,
    newest: u64,
    queued: u64,
    period: TimeDelta,
}

impl Default for MediaQueue {
    fn default() -> Self {
        Self {
            frames: VecDeque::new(),
            added: 0,
            newest: 0,
            queued: 0,
            period: INITIAL_FRAME_PERIOD,
        }
    }
}

impl MediaQueue {
    /// The source added `added` bytes. Bytes added at the same time form one frame. Returns the
    /// previous frame if this starts a new one.
    pub fn on_media(&mut self, now: Timestamp, added: DataSize, queued: DataSize) -> Option<Frame> {
        let complete = match self.frames.back().map(|&(time, _)| time) {
            Some(time) if time == now => None,
            newest => self.complete_frame(now, newest),
        };
        self.added = self.added.saturating_add(added.as_bytes());
        self.newest = self.newest.saturating_add(added.as_bytes());
        match self.frames.back_mut() {
            Some((time, end)) if *time == now => *end = self.added,
            _ => self.frames.push_back((now, self.added)),
        }
        if self.frames.len() > MAX_FRAMES {
            self.frames.pop_front();
        }
        self.set_queued(queued);
        complete
    }

    fn complete_frame(&mut self, now: Timestamp, newest: Option<Timestamp>) -> Option<Frame> {
        let size = DataSize::from_bytes(core::mem::take(&mut self.newest));
        let period = (now - newest?).clamp(FRAME_PERIOD_MIN, FRAME_PERIOD_MAX);
        self.period += (period - self.period) * FRAME_PERIOD_GAIN;
        let waiting = self.frames.front().filter(|_| self.queued > 0);
        let queue_delay = waiting.map_or(TimeDelta::ZERO, |&(time, _)| now - time);
        Some(Frame { size, queue_delay, period: self.period })
    }

    /// Sets the current length of the queue.
    pub fn set_queued(&mut self, queued: DataSize) {
        self.queued = queued.as_bytes();
        let gone = self.added.saturating_sub(self.queued);
        // The newest frame is kept for its time.
        while self.frames.len() > 1 && self.frames.front().is_some_and(|&(_, end)| end <= gone) {
            self.frames.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }

    fn ms(millis: i64) -> TimeDelta {
        TimeDelta::from_millis(millis)
    }

    // [SCREAMV2 §4.4]
    #[test]
    fn a_frame_is_what_comes_at_one_time_and_is_told_when_the_next_one_comes() {
        let mut queue = MediaQueue::default();
        let at = |millis: i64| Timestamp::from_millis(1_000 + millis);
        assert_eq!(queue.on_media(at(0), bytes(1_000), bytes(1_000)), None);
        assert_eq!(queue.on_media(at(0), bytes(500), bytes(1_500)), None);
        queue.set_queued(bytes(0));
        let frame = queue.on_media(at(60), bytes(900), bytes(900)).unwrap();
        assert_eq!(frame, Frame { size: bytes(1_500), queue_delay: ms(0), period: ms(25) });
    }

    // [SCREAMV2 §4.4]
    #[test]
    fn the_oldest_byte_in_the_queue_tells_the_delay() {
        let mut queue = MediaQueue::default();
        let mut frame = |millis, queued| {
            queue.on_media(Timestamp::from_millis(millis), bytes(1_000), bytes(queued))
        };
        frame(20, 1_000);
        frame(40, 2_000);
        // Half of the first frame has left when the third one comes, all of it before the fourth.
        frame(60, 2_500);
        let third = frame(80, 2_000).unwrap();
        assert_eq!(third.queue_delay, ms(60));
        let fourth = frame(100, 1_000).unwrap();
        assert_eq!(fourth.queue_delay, ms(40));
    }

    // SCREAMV2-D6
    #[test]
    fn a_pause_is_no_frame_period_and_memory_is_bounded() {
        let mut queue = MediaQueue::default();
        queue.on_media(Timestamp::ZERO, bytes(1), bytes(1));
        let late = queue.on_media(Timestamp::from_secs(600), bytes(1), bytes(2)).unwrap();
        assert_eq!(late.period.as_micros(), 42_500);
        let soon = Timestamp::from_secs(600) + TimeDelta::from_micros(1);
        let next = queue.clone().on_media(soon, bytes(1), bytes(3)).unwrap();
        assert_eq!(next.period.as_micros(), 37_687, "an eighth of the way to 4 ms");
        for second in 601..9_000 {
            queue.on_media(Timestamp::from_secs(second), bytes(1), DataSize::MAX);
        }
        assert_eq!(queue.frames.len(), MAX_FRAMES);
    }
}
