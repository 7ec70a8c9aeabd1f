//! Which streams of a track its publisher still sends.
//!
//! A publisher that has too little bandwidth stops its largest layers and says nothing. A stream is
//! silent when others of the track go on without it: that holds for any frame rate, and not while
//! the whole uplink is gone.

use weir::units::{TimeDelta, Timestamp};

const STREAMS: usize = 4;
/// A stream is not silent before this time without a packet.
const SILENCE: TimeDelta = TimeDelta::from_millis(400);
/// Nor before so many of its usual times between two frames: one frame may be lost.
const OWN_TIMES: f64 = 2.5;
/// Frames of another stream meanwhile. A screen's largest stream pauses after a large frame.
const FRAMES: u32 = 3;
const SCREEN_FRAMES: u32 = 6;
/// A longer time without a frame is a pause.
const MAX_INTERVAL: TimeDelta = TimeDelta::from_secs(2);
/// A stream that is alone is silent after so many of its own frames have not come.
const OWN_FRAMES: i64 = 8;
/// A stream that was silent is back after this many frames.
const BACK: u32 = 3;

/// What was heard of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    last: Option<Timestamp>,
    timestamp: u32,
    /// Smoothed time between two frames.
    interval: TimeDelta,
    /// Frames of each other stream since its last packet.
    others: [u32; STREAMS],
    state: State,
}

impl Heard {
    /// Whether its next frame is not missing yet.
    fn is_alive(&self, now: Timestamp) -> bool {
        let most = SILENCE.max(self.interval * OWN_TIMES);
        matches!(self.last, Some(last) if now - last < most)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Sent,
    /// It fell silent while it was watched. Counts frames since.
    Silent(u32),
    /// The host said that it is stopped. A key frame begins it again.
    Stopped,
}

/// The streams of one track of simulcast.
#[derive(Clone, Debug, Default)]
pub(super) struct Silence {
    streams: [Heard; STREAMS],
}

impl Silence {
    /// A packet of a stream came, whether it is forwarded or not.
    pub fn on_packet(
        &mut self,
        now: Timestamp,
        stream: u8,
        timestamp: u32,
        starts_key_frame: bool,
    ) {
        let Some(heard) = self.streams.get_mut(usize::from(stream)) else { return };
        let is_frame = heard.last.is_none() || heard.timestamp != timestamp;
        let gap = heard.last.map_or(TimeDelta::ZERO, |last| now - last);
        heard.last = Some(now);
        heard.others = [0; STREAMS];
        if starts_key_frame {
            heard.state = State::Sent;
        }
        if !is_frame {
            return;
        }
        heard.timestamp = timestamp;
        if heard.state == State::Sent && gap < MAX_INTERVAL {
            let is_first = heard.interval == TimeDelta::ZERO;
            heard.interval = if is_first { gap } else { (heard.interval * 7 + gap) / 8 };
        }
        heard.state = match heard.state {
            State::Silent(frames) if frames + 1 < BACK => State::Silent(frames + 1),
            State::Silent(_) => State::Sent,
            other => other,
        };
        for (index, other) in self.streams.iter_mut().enumerate() {
            if index != usize::from(stream) {
                other.others[usize::from(stream)] += 1;
            }
        }
    }

    /// The host knows that a stream is stopped.
    pub fn stop(&mut self, stream: u8) {
        if let Some(heard) = self.streams.get_mut(usize::from(stream)) {
            heard.state = State::Stopped;
        }
    }

    /// The publisher began anew: nothing is known.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The streams that cannot be forwarded now, one bit each. `active` is forwarded. `is_steady`:
    /// the source always makes frames, as a camera does.
    pub fn silent(&mut self, now: Timestamp, active: Option<u8>, is_steady: bool) -> u8 {
        let active = active.map(usize::from).filter(|&active| active < STREAMS);
        if let Some(active) = active
            && self.streams[active].state == State::Sent
            && self.fell_silent(now, active, is_steady)
        {
            self.streams[active].state = State::Silent(0);
        }
        let mut mask = 0;
        for (index, heard) in self.streams.iter().enumerate() {
            if heard.state != State::Sent {
                mask |= 1 << index;
            }
        }
        let is_without_picture = match active {
            Some(active) => mask & 1 << active != 0,
            // The watched stream fell silent, and nothing has replaced it yet.
            None => mask != self.stopped(),
        };
        if is_without_picture { mask | self.not_alive(now) } else { mask }
    }

    /// The streams that the host has stopped, one bit each.
    fn stopped(&self) -> u8 {
        let mut mask = 0;
        for (index, heard) in self.streams.iter().enumerate() {
            if heard.state == State::Stopped {
                mask |= 1 << index;
            }
        }
        mask
    }

    fn fell_silent(&self, now: Timestamp, stream: usize, is_steady: bool) -> bool {
        let heard = &self.streams[stream];
        let Some(last) = heard.last else { return false };
        if heard.is_alive(now) {
            return false;
        }
        let is_without_others = heard.others.iter().all(|&frames| frames == 0);
        let is_alone = is_without_others && is_steady && now - last >= heard.interval * OWN_FRAMES;
        let least = if is_steady { FRAMES } else { SCREEN_FRAMES };
        is_alone || heard.others.iter().any(|&frames| frames >= least)
    }

    /// While no picture comes, only streams that are sent now help. If none is, the smallest may
    /// be asked for.
    fn not_alive(&self, now: Timestamp) -> u8 {
        let mut mask = 0;
        for (index, heard) in self.streams.iter().enumerate() {
            if !heard.is_alive(now) || heard.state != State::Sent {
                mask |= 1 << index;
            }
        }
        if mask == (1 << STREAMS) - 1 { mask & !1 } else { mask }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Frames of these streams from one time to another.
    fn send(silence: &mut Silence, streams: &[u8], from: i64, to: i64, every: i64) {
        for ms in (from..to).step_by(every as usize) {
            for &stream in streams {
                silence.on_packet(at(ms), stream, ms as u32, false);
            }
        }
    }

    #[test]
    fn a_stream_is_silent_when_others_go_on_without_it() {
        let mut silence = Silence::default();
        send(&mut silence, &[0, 1, 2], 0, 1_000, 33);
        assert_eq!(silence.silent(at(1_000), Some(2), true), 0);
        send(&mut silence, &[0], 1_000, 1_380, 33);
        assert_eq!(silence.silent(at(1_380), Some(2), true), 0);
        send(&mut silence, &[0], 1_380, 1_450, 33);
        assert_eq!(silence.silent(at(1_450), Some(2), true), 0b1110);
        // It is forwarded no longer. The one between may be tried again.
        assert_eq!(silence.silent(at(1_460), Some(0), true), 0b100);
        send(&mut silence, &[0, 2], 1_460, 1_600, 33);
        assert_eq!(silence.silent(at(1_600), Some(0), true), 0);
    }

    #[test]
    fn a_slow_screen_is_not_silent_between_its_frames() {
        let mut silence = Silence::default();
        send(&mut silence, &[0, 1], 0, 10_000, 1_000);
        assert_eq!(silence.silent(at(9_990), Some(1), false), 0);
        send(&mut silence, &[0], 10_000, 14_000, 1_000);
        assert_eq!(silence.silent(at(14_000), Some(1), false), 0);
        send(&mut silence, &[0], 14_000, 16_000, 1_000);
        assert_eq!(silence.silent(at(15_100), Some(1), false), 0b1110);
        // It stands still: nothing is sent, and nothing is silent.
        let mut silence = Silence::default();
        send(&mut silence, &[0, 1], 0, 1_000, 66);
        assert_eq!(silence.silent(at(60_000), Some(1), false), 0);
    }

    #[test]
    fn a_camera_of_which_nothing_comes_is_asked_for_its_smallest_stream() {
        let mut silence = Silence::default();
        send(&mut silence, &[2], 0, 1_000, 33);
        assert_eq!(silence.silent(at(1_380), Some(2), true), 0);
        assert_eq!(silence.silent(at(1_400), Some(2), true), 0b1110);
    }

    // Found in simulation: two of three streams ended, the third did not fit at once, and the other
    // dead one was asked for four seconds.
    #[test]
    fn until_a_picture_comes_dead_streams_are_not_asked_for() {
        for every in [33, 200, 500, 1_000] {
            let mut silence = Silence::default();
            send(&mut silence, &[0, 1, 2], 0, 10 * every, every);
            let frames = (10 * every).max(1_000) / every;
            send(&mut silence, &[2], 10 * every, (10 + frames) * every, every);
            let mut now = (10 + frames) * every - 1;
            assert_eq!(silence.silent(at(now), Some(0), true), 0b1011, "each {every} ms");
            // Nothing is forwarded.
            for _ in 0..50 {
                now += every / 2;
                silence.on_packet(at(now), 2, now as u32, false);
                assert_eq!(silence.silent(at(now), None, true), 0b1011, "each {every} ms");
            }
            assert_eq!(silence.silent(at(now), Some(2), true), 0b1, "each {every} ms");
        }
    }

    #[test]
    fn a_stream_that_the_host_stopped_begins_with_a_key_frame() {
        let mut silence = Silence::default();
        send(&mut silence, &[0, 1], 0, 1_000, 33);
        silence.stop(1);
        send(&mut silence, &[0, 1], 1_000, 1_200, 33);
        assert_eq!(silence.silent(at(1_200), Some(1), true), 0b1110);
        silence.on_packet(at(1_210), 1, 1_210, true);
        assert_eq!(silence.silent(at(1_210), Some(1), true), 0);
    }

    // At 5 frames a second the picture stood for 1.3 s: six frames were waited for.
    #[test]
    fn a_stream_is_silent_after_two_or_three_of_its_frames_at_any_rate() {
        for every in [16, 33, 66, 100, 200, 333, 500, 1_000] {
            let mut silence = Silence::default();
            send(&mut silence, &[0, 1], 0, 20 * every, every);
            let last = 19 * every;
            let mut silent = None;
            for ms in last + 1..last + 5_000 {
                if ms % every == 0 {
                    silence.on_packet(at(ms), 0, ms as u32, false);
                }
                if silence.silent(at(ms), Some(1), true) & 2 != 0 {
                    silent = silent.or(Some(ms - last));
                }
            }
            let expected = (every * 5 / 2).max(400);
            assert!(
                silent.is_some_and(|ms| (expected..=expected + 2 * every).contains(&ms)),
                "each {every} ms: {silent:?}"
            );
        }
    }

    // LiveKit's smallest stream of a screen has 3 frames a second.
    #[test]
    fn a_slow_stream_that_loses_a_frame_is_not_silent() {
        for every in [200, 333, 500, 1_000] {
            let mut silence = Silence::default();
            for ms in 0..60_000 {
                if ms % 66 == 0 {
                    silence.on_packet(at(ms), 1, ms as u32, false);
                }
                if ms % every == 0 && ms / every % 7 != 6 {
                    silence.on_packet(at(ms), 0, ms as u32, false);
                }
                if ms > 5 * every {
                    assert_eq!(silence.silent(at(ms), Some(0), true), 0, "each {every} at {ms}");
                }
            }
        }
    }
}
