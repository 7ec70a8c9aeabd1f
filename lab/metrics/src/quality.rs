//! Metrics of what is seen of a flow's video: delay to the screen, stalls, the picture, good time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir::units::{TimeDelta, Timestamp};
use weir_sim::trace::{Forwarded, HalfSecond, ROW_INTERVAL, Seen, Video};

use super::Distribution;
use super::declared::{declare, shape};
use super::tally::Tally;

/// Length of an interval of good time.
const HALF_SECOND: TimeDelta = TimeDelta::from_millis(500);
/// Records have VMAF in hundredths.
const HUNDREDTHS: f64 = 100.0;

/// Mean and lower end of a score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Mean.
    pub mean: f64,
    /// 5 % are below.
    pub p5: f64,
    /// The worst.
    pub min: f64,
}

shape!(Score: mean, p5, min);

declare! {
    /// Metrics of what is seen. `None`, and left out of a summary, unless the flow has `quality`;
    /// a subscriber of a forwarding server has good time, too.
    #[derive(Default)]
    #[serde(default)]
    pub struct QualityMetrics in "" {
        /// Good time: share of the half seconds from the first picture on that are good. They have
        /// a new picture on screen, a mean of at most 250 ms from capture to screen, and a VMAF of
        /// at least 80 for the picture shown last. VMAF is by a model. Of a subscriber, these half
        /// seconds of all its cameras, while they are shown.
        #[serde(skip_serializing_if = "Option::is_none")]
        good_ratio: Option<f64> = "ratio", Higher, [Watched], title: "Good time";
        /// Share of the half seconds of `good_ratio` without a new picture.
        #[serde(skip_serializing_if = "Option::is_none")]
        no_picture_ratio: Option<f64> = "ratio", Lower, [Watched];
        /// Share of the half seconds of `good_ratio` whose picture is new and more than 250 ms
        /// late.
        #[serde(skip_serializing_if = "Option::is_none")]
        late_ratio: Option<f64> = "ratio", Lower, [Watched];
        /// Share of the half seconds of `good_ratio` whose picture is in time, with a VMAF below
        /// 80.
        #[serde(skip_serializing_if = "Option::is_none")]
        bad_picture_ratio: Option<f64> = "ratio", Lower, [Watched];
        /// Time from capture to screen of the pictures shown, as the mean over each 50 ms.
        /// Percentiles are over these values.
        #[serde(skip_serializing_if = "Option::is_none")]
        shown_delay_ms: Option<Distribution> = "ms", Lower, [Quality], title: "Delay to the screen";
        /// Number of stalls on screen, by the rule of `freeze_count`.
        #[serde(skip_serializing_if = "Option::is_none")]
        stalls: Option<u64> = "", Lower, [Quality];
        /// Total duration of the stalls.
        #[serde(skip_serializing_if = "Option::is_none")]
        stalled_s: Option<f64> = "s", Lower, [Quality];
        /// Duration of the longest stall; 0 without one.
        #[serde(skip_serializing_if = "Option::is_none")]
        longest_stall_s: Option<f64> = "s", Lower, [Quality], title: "Longest stall";
        /// Total duration of the stalls over the time from the first picture on.
        #[serde(skip_serializing_if = "Option::is_none")]
        stalled_ratio: Option<f64> = "ratio", Lower, [Quality], title: "Stalled";
        /// VMAF of the pictures shown, as the mean over each 50 ms, by a model of bits per pixel,
        /// frame rate, codec, size and content. Only for a source `encoder` with the content `film`
        /// or `head`.
        #[serde(skip_serializing_if = "Option::is_none")]
        vmaf: Option<Score> = "0 to 100", Higher, [Quality], title: "VMAF (modelled)";
        /// Mean time of a frame between its first packet and the decoder, as in getStats.
        #[serde(skip_serializing_if = "Option::is_none")]
        jitter_buffer_ms: Option<f64> = "ms", Neither, [Quality];
    }
}

/// What was seen in the rows so far.
#[derive(Clone, Debug, Default)]
pub struct QualityMeter {
    /// Whether a row says what was seen.
    is_seen: bool,
    /// Whether it is a subscriber's.
    is_forwarded: bool,
    delay: Tally,
    stalls: u64,
    stalled: TimeDelta,
    longest_stall: TimeDelta,
    /// Time from the first picture on.
    watched: TimeDelta,
    /// Number of rows by VMAF in hundredths.
    scores: BTreeMap<u64, u64>,
    buffered: TimeDelta,
    buffered_rows: i64,
    current: Interval,
    /// Intervals by what they were like.
    judged: [u64; 4],
    /// Whether an interval has no VMAF.
    has_unjudged: bool,
}

/// The interval of half a second that is not over.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    /// Its number; `None` before the first picture.
    number: Option<i64>,
    shown: u64,
    delay_ms: f64,
    /// VMAF of the picture shown last, also in an interval before.
    vmaf: Option<u64>,
}

impl QualityMeter {
    /// Adds a row of a flow that is received.
    pub fn push(&mut self, time: Timestamp, video: &Video, seen: Option<&Seen>) {
        self.is_seen |= seen.is_some();
        let number = (time - ROW_INTERVAL - Timestamp::ZERO) / HALF_SECOND;
        let number = libm::floor(number) as i64;
        if self.current.number.is_some_and(|current| current != number) {
            self.judge();
        }
        if self.current.number.is_some() || video.frames > 0 {
            self.current.number = Some(number);
            self.watched += ROW_INTERVAL;
        }
        self.stalls += video.freezes;
        self.stalled += video.frozen;
        self.longest_stall = self.longest_stall.max(video.frozen);
        if let Some(delay) = video.frame_delay {
            self.delay.push(delay);
            self.current.shown += video.frames;
            self.current.delay_ms += delay.as_millis_f64() * video.frames as f64;
        }
        let Some(seen) = seen else { return };
        if let Some(vmaf) = seen.vmaf {
            *self.scores.entry(vmaf).or_default() += 1;
            self.current.vmaf = Some(vmaf);
        }
        if let Some(wait) = seen.jitter_buffer {
            self.buffered += wait;
            self.buffered_rows += 1;
        }
    }

    /// Half seconds that the simulation has judged itself, track by track.
    pub fn push_forwarded(&mut self, row: &Forwarded) {
        let Forwarded { halves_without_picture, late_halves, bad_halves, good_halves, .. } = *row;
        let counts = [halves_without_picture, late_halves, bad_halves, good_halves];
        for (sum, count) in self.judged.iter_mut().zip(counts) {
            *sum += count;
        }
        self.is_forwarded = true;
    }

    /// The current interval is over.
    fn judge(&mut self) {
        let Interval { shown, delay_ms, vmaf, .. } = self.current;
        let delay = if shown > 0 { Some(delay_ms / shown as f64) } else { None };
        match vmaf {
            Some(vmaf) => {
                let half = HalfSecond::judge(shown, delay, vmaf as f64 / HUNDREDTHS);
                self.judged[half as usize] += 1;
            }
            None => self.has_unjudged = true,
        }
        (self.current.shown, self.current.delay_ms) = (0, 0.0);
    }

    /// What was seen in all rows.
    pub fn finish(&mut self) -> QualityMetrics {
        if self.is_forwarded {
            return self.shares();
        }
        if !self.is_seen {
            return QualityMetrics::default();
        }
        if self.current.number.take().is_some() {
            self.judge();
        }
        let watched = self.watched.as_secs_f64();
        QualityMetrics {
            shown_delay_ms: self.delay.above(TimeDelta::ZERO),
            stalls: Some(self.stalls),
            stalled_s: Some(self.stalled.as_secs_f64()),
            longest_stall_s: Some(self.longest_stall.as_secs_f64()),
            stalled_ratio: (watched > 0.0).then(|| (self.stalled.as_secs_f64() / watched).min(1.0)),
            vmaf: self.score(),
            jitter_buffer_ms: (self.buffered_rows > 0)
                .then(|| (self.buffered / self.buffered_rows).as_millis_f64()),
            ..self.shares()
        }
    }

    /// The shares of the half seconds; `None` if one has no VMAF.
    fn shares(&self) -> QualityMetrics {
        let intervals: u64 = self.judged.iter().sum();
        let is_judged = intervals > 0 && !self.has_unjudged;
        let [no_picture_ratio, late_ratio, bad_picture_ratio, good_ratio] =
            self.judged.map(|count| is_judged.then(|| count as f64 / intervals as f64));
        QualityMetrics {
            good_ratio,
            no_picture_ratio,
            late_ratio,
            bad_picture_ratio,
            ..QualityMetrics::default()
        }
    }

    fn score(&self) -> Option<Score> {
        let rows: u64 = self.scores.values().sum();
        let (min, _) = self.scores.first_key_value()?;
        let sum: u64 = self.scores.iter().map(|(vmaf, rows)| vmaf * rows).sum();
        let mut below = 0;
        let mut p5 = *min;
        for (vmaf, rows_of) in &self.scores {
            p5 = *vmaf;
            below += rows_of;
            if below * 20 >= rows {
                break;
            }
        }
        Some(Score {
            mean: sum as f64 / rows as f64 / HUNDREDTHS,
            p5: p5 as f64 / HUNDREDTHS,
            min: *min as f64 / HUNDREDTHS,
        })
    }
}

#[cfg(test)]
mod tests {
    use weir_sim::trace::Row;

    use super::*;
    use crate::Metrics;

    /// A row of 50 ms that ends at `ms`, with one picture of this delay and VMAF, or none.
    fn row(ms: i64, picture: Option<(i64, u64)>) -> Row {
        let delay = picture.map(|(delay, _)| TimeDelta::from_millis(delay));
        let video =
            Video::default().with_frames(u64::from(picture.is_some())).with_frame_delay(delay);
        let seen = Seen::default()
            .with_vmaf(picture.map(|(_, vmaf)| vmaf))
            .with_jitter_buffer(picture.map(|_| TimeDelta::from_millis(20)));
        Row::new(Timestamp::from_millis(ms), 0).with_video(Some(video)).with_seen(Some(seen))
    }

    /// Half seconds with these pictures in each of their rows.
    fn rows(half_seconds: &[Option<(i64, u64)>]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (number, picture) in (0..).zip(half_seconds) {
            rows.extend((1..=10).map(|index| row(number * 500 + index * 50, *picture)));
        }
        rows
    }

    #[test]
    fn an_interval_is_good_or_has_one_cause_from_the_first_picture_on() {
        let halves = [None, Some((100, 8_000)), Some((251, 9_000)), None, Some((250, 7_999))];
        let QualityMetrics {
            good_ratio,
            no_picture_ratio,
            late_ratio,
            bad_picture_ratio,
            shown_delay_ms,
            vmaf,
            jitter_buffer_ms,
            ..
        } = Metrics::of(&rows(&halves), &[]).quality;
        let parts = [good_ratio, no_picture_ratio, late_ratio, bad_picture_ratio];
        assert_eq!(parts, [Some(0.25); 4]);
        assert_eq!(shown_delay_ms.map(|ms| (ms.p50, ms.max)), Some((250.0, 251.0)));
        let Score { mean, p5, min } = vmaf.unwrap();
        assert!((mean - 83.33).abs() < 1e-9 && (p5, min) == (79.99, 79.99), "{mean} {p5} {min}");
        assert_eq!(jitter_buffer_ms, Some(20.0));
    }

    #[test]
    fn stalls_are_shares_of_the_time_from_the_first_picture_on() {
        let mut rows = rows(&[None, Some((100, 9_000)), Some((100, 9_000))]);
        let video = rows[25].video.unwrap();
        rows[25].video = Some(video.with_freezes(1).with_frozen(TimeDelta::from_millis(250)));
        let quality = Metrics::of(&rows, &[]).quality;
        assert_eq!((quality.stalls, quality.stalled_s), (Some(1), Some(0.25)));
        assert_eq!(quality.longest_stall_s, Some(0.25));
        assert_eq!(quality.stalled_ratio, Some(0.25));
        assert_eq!(quality.good_ratio, Some(1.0));
    }

    #[test]
    fn without_a_model_of_the_picture_there_is_a_delay_but_no_good_time() {
        let mut rows = rows(&[Some((100, 9_000))]);
        for row in &mut rows {
            row.seen = row.seen.map(|seen| seen.with_vmaf(None));
        }
        let quality = Metrics::of(&rows, &[]).quality;
        assert_eq!((quality.good_ratio, quality.vmaf), (None, None));
        assert_eq!(quality.shown_delay_ms.map(|ms| ms.mean), Some(100.0));
    }

    #[test]
    fn the_half_seconds_of_a_subscriber_are_summed_over_its_tracks() {
        let mut forwarded = Forwarded::default();
        (forwarded.halves_without_picture, forwarded.bad_halves) = (1, 1);
        forwarded.good_halves = 2;
        let row = Row::default()
            .with_video(Some(Video::default().with_frames(1)))
            .with_forwarded(Some(forwarded));
        let quality = Metrics::of(&[row; 20], &[]).quality;
        assert_eq!((quality.good_ratio, quality.no_picture_ratio), (Some(0.5), Some(0.25)));
        assert_eq!((quality.late_ratio, quality.stalls), (Some(0.0), None));
    }

    #[test]
    fn a_flow_without_quality_adds_nothing_to_a_summary() {
        let mut rows = rows(&[Some((100, 9_000))]);
        for row in &mut rows {
            row.seen = None;
        }
        let quality = Metrics::of(&rows, &[]).quality;
        assert_eq!(quality, QualityMetrics::default());
        assert_eq!(serde_json::to_string(&quality).unwrap(), "{}");
    }
}
