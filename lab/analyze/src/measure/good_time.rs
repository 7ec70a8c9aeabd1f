//! Good time of a received video, as far as reports of its receiver tell: a picture that moves, and
//! not late.
//!
//! The rule is that of [`weir call --quality`](../../../docs/reference/quality.md) without the
//! picture's looks: a report does not have them. So this is an upper bound.

use weir_record::calls::stats::Kind;

use crate::measure::samples::{Sample, SampledStream};
use crate::read::dump::StreamDirection;

/// Longest delay of a good picture in ms, as in calls with `--quality`.
const GOOD_DELAY_MS: f64 = 250.0;
/// A longer time without packets in s means that the sender paused [WEBRTC-STATS §8].
const PAUSE_S: f64 = 5.0;

/// Seconds of received videos by what they were like for the person who watched. Those of several
/// videos add up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct GoodTime {
    /// With new pictures, of which the delay is at most 250 ms.
    pub good_s: f64,
    /// Frozen, or without a decoded frame.
    pub no_picture_s: f64,
    /// With pictures that are later.
    pub late_s: f64,
}

impl GoodTime {
    /// All seconds that are judged.
    pub fn watched_s(&self) -> f64 {
        self.good_s + self.no_picture_s + self.late_s
    }

    /// Shares of good time, of time without a picture, and of late pictures. `None` if nothing was
    /// judged.
    pub fn ratios(&self) -> Option<[f64; 3]> {
        let watched_s = self.watched_s();
        let parts = [self.good_s, self.no_picture_s, self.late_s];
        (watched_s > 0.0).then(|| parts.map(|part_s| part_s / watched_s))
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.good_s += other.good_s;
        self.no_picture_s += other.no_picture_s;
        self.late_s += other.late_s;
    }
}

/// Of all received videos.
pub(crate) fn of_streams<'a>(streams: impl Iterator<Item = &'a SampledStream>) -> GoodTime {
    let mut all = GoodTime::default();
    for stream in streams {
        // The mean of a whole call is not the time in which it was so.
        let is_mean = stream.samples.len() < 2;
        if (stream.direction, stream.kind) != (StreamDirection::Received, Kind::Video) || is_mean {
            continue;
        }
        let mut meter = GoodTimeMeter::default();
        for sample in &stream.samples {
            all.add(&meter.push(sample));
        }
        all.add(&meter.finish());
    }
    all
}

/// Judges the intervals of a stream one after the other. What it has returned stays true.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GoodTimeMeter {
    has_begun: bool,
    /// The interval before, from which a freeze that ends now may take seconds.
    last: GoodTime,
    /// Seconds without a frame since the last one.
    still_s: f64,
    /// Of these, seconds without a packet at the end.
    silent_s: f64,
}

impl GoodTimeMeter {
    /// Takes an interval and returns the seconds that are certain now.
    pub fn push(&mut self, sample: &Sample) -> GoodTime {
        let length_s = sample.end_s - sample.start_s;
        let Some(rate) = sample.frame_rate else { return self.finish() };
        // A shared page that stands still has no new picture to show.
        if rate <= 0.0 && sample.is_screen {
            return self.finish();
        }
        if rate <= 0.0 {
            if self.has_begun {
                self.still_s += length_s;
                self.silent_s = if sample.packets > 0 { 0.0 } else { self.silent_s + length_s };
            }
            return GoodTime::default();
        }
        self.has_begun = true;
        let Some(delay_ms) = sample.delay_ms() else { return self.finish() };
        // A freeze counts when it ends. It may have begun before the interval.
        let frozen_s = (sample.frozen_s - self.still_s).max(0.0);
        let within_s = frozen_s.min(length_s);
        self.last.move_to_no_picture(frozen_s - within_s);
        let certain = self.finish();
        let rest_s = length_s - within_s;
        let is_late = delay_ms > GOOD_DELAY_MS;
        self.last = GoodTime {
            good_s: if is_late { 0.0 } else { rest_s },
            no_picture_s: within_s,
            late_s: if is_late { rest_s } else { 0.0 },
        };
        certain
    }

    /// The stream ends, or a new picture has come: what was open is certain.
    pub fn finish(&mut self) -> GoodTime {
        let mut certain = std::mem::take(&mut self.last);
        let still_s = std::mem::take(&mut self.still_s);
        let silent_s = std::mem::take(&mut self.silent_s);
        certain.no_picture_s += still_s - if silent_s > PAUSE_S { silent_s } else { 0.0 };
        certain
    }
}

impl GoodTime {
    /// Says of so many seconds at most that they had no picture.
    fn move_to_no_picture(&mut self, seconds: f64) {
        for part_s in [&mut self.good_s, &mut self.late_s] {
            let moved_s = seconds.min(*part_s);
            *part_s -= moved_s;
            self.no_picture_s += moved_s;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval of a second that ends at a time in s.
    fn sample(end_s: f64, frame_rate: f64, rtt_ms: f64, frozen_s: f64) -> Sample {
        Sample {
            start_s: end_s - 1.0,
            end_s,
            frame_rate: Some(frame_rate),
            rtt_ms: Some(rtt_ms),
            jitter_buffer_ms: Some(50.0),
            frozen_s,
            packets: 100,
            ..Sample::default()
        }
    }

    fn judged(samples: &[Sample]) -> (f64, f64, f64) {
        let mut meter = GoodTimeMeter::default();
        let mut all = GoodTime::default();
        for sample in samples {
            let before = all;
            all.add(&meter.push(sample));
            let [was, is] = [before, all].map(|it| [it.good_s, it.no_picture_s, it.late_s]);
            assert!(was.iter().zip(is).all(|(was, is)| *was <= is), "{before:?}, {all:?}");
        }
        all.add(&meter.finish());
        (all.good_s, all.no_picture_s, all.late_s)
    }

    #[test]
    fn watching_begins_with_the_first_frame_and_half_a_round_trip_counts() {
        let samples = [
            sample(1.0, 0.0, 100.0, 0.0),
            sample(2.0, 30.0, 100.0, 0.0),
            sample(3.0, 30.0, 400.0, 0.0),
            sample(4.0, 30.0, 402.0, 0.0),
        ];
        assert_eq!(judged(&samples), (2.0, 0.0, 1.0));
    }

    #[test]
    fn a_freeze_counts_once_whenever_it_began() {
        // From 1.75 to 4.25 s: a quarter of the second interval, two without a frame, a quarter.
        let samples = [
            sample(1.0, 30.0, 100.0, 0.0),
            sample(2.0, 20.0, 100.0, 0.0),
            sample(3.0, 0.0, 100.0, 0.0),
            sample(4.0, 0.0, 100.0, 0.0),
            sample(5.0, 20.0, 100.0, 2.5),
            sample(6.0, 30.0, 100.0, 0.0),
        ];
        assert_eq!(judged(&samples), (3.5, 2.5, 0.0));
        // From 1.1 to 2.9 s.
        let samples = [
            sample(1.0, 30.0, 100.0, 0.0),
            sample(2.0, 3.0, 100.0, 0.0),
            sample(3.0, 3.0, 100.0, 1.75),
        ];
        assert_eq!(judged(&samples), (1.25, 1.75, 0.0));
    }

    /// A second in which no packet came.
    fn silent(end_s: f64) -> Sample {
        Sample { packets: 0, ..sample(end_s, 0.0, 100.0, 0.0) }
    }

    // [WEBRTC-STATS §8]
    #[test]
    fn a_pause_of_the_sender_is_not_watched_and_a_shorter_one_has_no_picture() {
        let mut samples = vec![sample(1.0, 30.0, 100.0, 0.0)];
        for second in 2..=6 {
            samples.push(silent(f64::from(second)));
        }
        assert_eq!(judged(&samples), (1.0, 5.0, 0.0));
        samples.push(silent(7.0));
        assert_eq!(judged(&samples), (1.0, 0.0, 0.0));
    }

    #[test]
    fn without_a_jitter_buffer_nothing_is_judged() {
        let unknown = Sample { jitter_buffer_ms: None, ..sample(1.0, 30.0, 100.0, 0.0) };
        assert_eq!(judged(&[unknown]), (0.0, 0.0, 0.0));
        assert_eq!(GoodTime::default().ratios(), None);
    }
}
