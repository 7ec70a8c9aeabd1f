//! Playout as in a browser: when a frame goes to the decoder, and when it is on the screen.
//!
//! ```text
//! frame -> Extrapolator -> time of rendering -> decoder -> screen -> Freezes
//!   |          ^               ^
//!   +-> Jitter +---> delay ----+
//! ```
//!
//! The rules are libwebrtc's [LIBWEBRTC §VideoStreamBufferController, §VCMTiming]. What departs
//! from them is PLAYOUT-D1 and PLAYOUT-D3 to PLAYOUT-D5 (docs/reference/quality.md).

mod extrapolator;
mod jitter;
mod kalman;
mod rtt_filter;

use std::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

use super::assembler::Frame;
use super::freezes::Freezes;
use super::playout::Rendered;
use extrapolator::Extrapolator;
use jitter::Jitter;

/// Time from the decoder to the screen that the receiver plans with (libwebrtc's default).
const RENDER_DELAY: TimeDelta = TimeDelta::from_millis(10);
/// PLAYOUT-D1: decoding takes the same time for every frame.
const DECODE: TimeDelta = TimeDelta::from_millis(2);
/// A frame that is later than this is skipped if a newer one can be decoded without it.
const MOST_LATE: TimeDelta = TimeDelta::from_millis(5);
/// Chromium decodes all its streams at common moments, 64 a second [LIBWEBRTC §DecodeSynchronizer].
const TICK: TimeDelta = TimeDelta::from_nanos(1_000_000_000 / 64);
/// A time of rendering or a delay beyond this resets the estimates.
const MOST_DELAY: TimeDelta = TimeDelta::from_secs(10);
/// A longer time without capture means that the source was paused [WEBRTC-STATS §8].
const PAUSE: TimeDelta = TimeDelta::from_secs(5);

/// Frames between assembly and screen.
#[derive(Clone, Debug)]
pub(super) struct JitterBuffer {
    line: Extrapolator,
    jitter: Jitter,
    /// What the jitter estimate asked for last, and the delay in use, both zero at first.
    jitter_delay: TimeDelta,
    delay: TimeDelta,
    /// Frames that can be decoded, in order.
    waiting: VecDeque<Waiting>,
    /// When the first of them is rendered, and when it goes to the decoder.
    rendering: Timestamp,
    release: Timestamp,
    decoder_free: Timestamp,
    /// Frames in the decoder or on the way to the screen.
    leaving: VecDeque<Leaving>,
    /// Completion and capture of the last frame that no retransmission delayed.
    last: Option<(Timestamp, Timestamp)>,
    last_captured: Option<Timestamp>,
    freezes: Freezes,
    /// Sum and number of the times in this buffer since they were taken.
    buffered: (TimeDelta, i64),
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    frame: Frame,
    after_pause: bool,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    due: Timestamp,
    captured: Timestamp,
    after_pause: bool,
}

impl JitterBuffer {
    /// Without frames; the stream starts at `start`.
    pub(super) fn new(start: Timestamp) -> Self {
        Self {
            line: Extrapolator::new(start),
            jitter: Jitter::default(),
            jitter_delay: TimeDelta::ZERO,
            delay: TimeDelta::ZERO,
            waiting: VecDeque::new(),
            rendering: Timestamp::ZERO,
            release: Timestamp::ZERO,
            decoder_free: Timestamp::ZERO,
            leaving: VecDeque::new(),
            last: None,
            last_captured: None,
            freezes: Freezes::default(),
            buffered: (TimeDelta::ZERO, 0),
        }
    }

    /// Sets the round-trip time.
    pub(super) fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.jitter.on_round_trip_time(now, rtt);
    }

    /// A frame can be decoded. Frames come in order of capture.
    pub(super) fn on_frame(&mut self, now: Timestamp, frame: Frame) {
        if !frame.repeated {
            self.line.on_frame(frame.received, frame.captured);
        }
        let is_next = frame.skipped_packets == 0;
        let after_pause =
            is_next && self.last_captured.is_some_and(|last| frame.captured - last > PAUSE);
        self.last_captured = Some(frame.captured);
        self.waiting.push_back(Waiting { frame, after_pause });
        if self.waiting.len() == 1 {
            self.schedule(now);
        } else if frame.key && self.planned_release() + MOST_LATE < now {
            // Nothing before a key frame is needed.
            let skips_pause = self.waiting.drain(..self.waiting.len() - 1).any(|it| it.after_pause);
            self.waiting[0].after_pause |= skips_pause;
            self.schedule(now);
        }
    }

    /// Decides when the first waiting frame is decoded and rendered.
    fn schedule(&mut self, now: Timestamp) {
        if let Some(Waiting { frame, .. }) = self.waiting.front() {
            self.rendering = self.rendering_of(now, frame.captured);
            self.release = tick_before(self.planned_release(), now.max(self.decoder_free));
        }
    }

    fn rendering_of(&self, now: Timestamp, captured: Timestamp) -> Timestamp {
        // PLAYOUT-D4: no sound to keep in step with.
        let delay = self.delay.clamp(TimeDelta::ZERO, MOST_DELAY);
        self.line.completion(captured).map_or(now, |completion| completion + delay)
    }

    /// When the first waiting frame should go to the decoder, so as to be rendered in time.
    fn planned_release(&self) -> Timestamp {
        self.rendering - DECODE - RENDER_DELAY
    }

    /// Time at which something is due.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let release = (!self.waiting.is_empty()).then_some(self.release);
        let screen = self.leaving.front().map(|frame| frame.due);
        [release, screen].into_iter().flatten().min()
    }

    /// Decodes the frames that are due, and shows the newest picture that is due.
    pub(super) fn render(&mut self, now: Timestamp) -> Option<Rendered> {
        while !self.waiting.is_empty() && self.release <= now {
            self.decode(now);
        }
        let due = self.leaving.iter().take_while(|frame| frame.due <= now).count();
        let after_pause = self.leaving.iter().take(due).any(|frame| frame.after_pause);
        let frame = self.leaving.drain(..due).next_back()?;
        if after_pause {
            self.freezes.on_pause();
        }
        Some(Rendered {
            delay: now - frame.captured,
            freeze: self.freezes.on_frame(now),
            captured: frame.captured,
        })
    }

    /// The first waiting frame goes to the decoder.
    fn decode(&mut self, now: Timestamp) {
        let Some(Waiting { frame, after_pause }) = self.waiting.pop_front() else { return };
        let mut rendering = self.rendering;
        let target = self.jitter_delay + DECODE + RENDER_DELAY;
        if (rendering - now).abs() > MOST_DELAY || target > MOST_DELAY {
            (self.line, self.jitter) = (Extrapolator::new(now), Jitter::default());
            (self.jitter_delay, self.delay) = (TimeDelta::ZERO, TimeDelta::ZERO);
            rendering = self.rendering_of(now, frame.captured);
        }
        if frame.repeated {
            self.jitter.on_repeated(now);
        } else {
            self.learn(now, &frame, rendering);
        }
        // From the first packet on, as getStats counts it [LIBWEBRTC §VideoStreamBufferController].
        self.buffered.0 += now - frame.begun;
        self.buffered.1 += 1;
        self.decoder_free = now + DECODE;
        // PLAYOUT-D3: no wait for the compositor's next refresh.
        let due = self.decoder_free.max(rendering - RENDER_DELAY);
        let due = self.leaving.back().map_or(due, |last| due.max(last.due));
        self.leaving.push_back(Leaving { due, captured: frame.captured, after_pause });
        self.schedule(now);
    }

    /// Updates the estimate of the jitter and the delay.
    fn learn(&mut self, now: Timestamp, frame: &Frame, rendering: Timestamp) {
        let (received, captured) = (frame.received, frame.captured);
        if let Some((last_received, last_captured)) = self.last {
            let delay = (received - last_received) - (captured - last_captured);
            let bytes = frame.size.as_bytes() as f64;
            self.jitter.on_frame(now, delay.as_millis_f64(), bytes);
        }
        self.last = Some((received, captured));
        self.jitter_delay = self.jitter.estimate(now);
        if self.delay == TimeDelta::ZERO {
            self.delay = self.jitter_delay;
        }
        let target = self.jitter_delay + DECODE + RENDER_DELAY;
        let delayed = now - rendering + DECODE + RENDER_DELAY;
        if delayed >= TimeDelta::ZERO {
            self.delay = (self.delay + delayed).min(target);
        }
    }

    /// Mean time from the first packet of a frame until it is decoded, since the last call.
    pub(super) fn take_buffered(&mut self) -> Option<TimeDelta> {
        let (sum, count) = std::mem::take(&mut self.buffered);
        if count > 0 { Some(sum / count) } else { None }
    }

    /// The stream ends [`Freezes::finish`].
    pub(super) fn finish(&mut self, last_frame: Timestamp) -> Option<TimeDelta> {
        self.freezes.finish(last_frame)
    }
}

/// When a frame goes to the decoder that may go at `now` and should at `latest`: at the last tick
/// before that, or at once if it would be too late at the next one.
fn tick_before(latest: Timestamp, now: Timestamp) -> Timestamp {
    let next_tick = last_tick(now) + TICK;
    if latest < next_tick - MOST_LATE { now } else { last_tick(latest).max(next_tick) }
}

fn last_tick(time: Timestamp) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos() / TICK.as_nanos() * TICK.as_nanos())
}

#[cfg(test)]
mod tests;
