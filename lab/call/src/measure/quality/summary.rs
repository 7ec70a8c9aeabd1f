//! What follows from the times of the frames.

use std::ops::Range;

use weir::units::{TimeDelta, Timestamp};
use weir_metrics::{mean, percentile};
use weir_record::calls::delays::Delays;
use weir_record::calls::quality::{PictureQuality, PictureScore, Quality, QualityInterval, Spread};
use weir_sim::Freezes;
use weir_vmaf::Scores;

use super::lateness;
use super::scoring::ScoredPicture;
use super::timeline::{Frame, Timeline};

const INTERVAL: TimeDelta = TimeDelta::from_millis(500);

/// Browsers give tenths of a millisecond; means and shares have more.
const DECIMALS: f64 = 1e4;

/// Measures the frames that were shown within `span`. The names and the call's number are left
/// empty.
pub(super) fn of(timeline: &Timeline, scored: &[ScoredPicture], span: Range<Timestamp>) -> Quality {
    let mut scored = scored.to_vec();
    scored.retain(|picture| is_in(Some(picture.time), &span));
    let mut received_delays = Vec::new();
    for frame in timeline.frames.iter().filter(|frame| is_in(frame.received, &span)) {
        received_delays.extend(frame.received_delay());
    }
    let mut shown = timeline.frames.clone();
    shown.retain(|frame| is_in(frame.shown, &span));
    let shown_delays = shown.iter().filter_map(Frame::shown_delay).collect();
    let mut pictures = timeline.pictures.clone();
    pictures.retain(|&time| is_in(Some(time), &span));
    let lasted = pictures.first().map(|&first| span.end - first);
    let repeats = shown.iter().map(|frame| u64::from(frame.repeats)).sum::<u64>();
    let new = (pictures.len() as u64).saturating_sub(repeats);
    let stalls = stalls(&pictures, span.end);
    let longest = stalls.iter().max().copied().unwrap_or(TimeDelta::ZERO);
    let stalled = stalls.iter().fold(TimeDelta::ZERO, |sum, &stall| sum + stall);
    Quality {
        camera: timeline.camera,
        track: timeline.track,
        screen: timeline.screen,
        missed: timeline.missed,
        received_delay_ms: delays(received_delays),
        shown_delay_ms: delays(shown_delays),
        frame_rate: lasted.map(|time| rounded(new as f64 / time.as_secs_f64())),
        repeats,
        skips: skips(&shown),
        stalls: stalls.len() as u64,
        stalled_s: rounded(stalled.as_secs_f64()),
        longest_stall_s: Some(rounded(longest.as_secs_f64())),
        stalled_ratio: lasted.map(|time| rounded(stalled / time)),
        picture: picture(&scored),
        camera_late_ms: lateness::of(&timeline.camera_late, &span),
        intervals: intervals(&shown, &span),
        ..Quality::default()
    }
}

fn is_in(time: Option<Timestamp>, span: &Range<Timestamp>) -> bool {
    time.is_some_and(|time| span.contains(&time))
}

fn delays(delays: Vec<TimeDelta>) -> Option<Delays> {
    Delays::of(delays.into_iter().map(TimeDelta::as_millis_f64).collect(), DECIMALS)
}

fn rounded(value: f64) -> f64 {
    (value * DECIMALS).round() / DECIMALS
}

/// Durations of the stalls. A picture that stays to the end may be one.
fn stalls(pictures: &[Timestamp], end: Timestamp) -> Vec<TimeDelta> {
    let mut freezes = Freezes::default();
    let mut stalls = Vec::new();
    for &time in pictures.iter().chain([&end]) {
        stalls.extend(freezes.on_frame(time));
    }
    stalls
}

/// Captured frames that are not among the shown ones, between the first and the last of these.
fn skips(shown: &[Frame]) -> u64 {
    let [first, .., last] = shown else { return 0 };
    (last.index - first.index + 1 - shown.len()) as u64
}

fn picture(scored: &[ScoredPicture]) -> Option<PictureQuality> {
    let worst = scored.iter().min_by(|a, b| a.rank().total_cmp(&b.rank()))?;
    Some(PictureQuality {
        pictures: scored.len(),
        vmaf: spread(scored, |scores| scores.vmaf),
        vmaf_neg: spread(scored, |scores| scores.vmaf_neg),
        ssim: spread(scored, |scores| scores.ssim),
        psnr_db: spread(scored, |scores| Some(scores.psnr_db)),
        worst_s: Some(rounded(worst.time.as_secs_f64())),
        scores: scored.iter().map(picture_score).collect(),
    })
}

fn picture_score(picture: &ScoredPicture) -> PictureScore {
    PictureScore {
        time_s: rounded(picture.time.as_secs_f64()),
        vmaf: picture.scores.vmaf.map(rounded),
        psnr_db: rounded(picture.scores.psnr_db),
    }
}

fn spread(scored: &[ScoredPicture], score: fn(&Scores) -> Option<f64>) -> Option<Spread> {
    let mut scores: Vec<f64> = scored.iter().filter_map(|picture| score(&picture.scores)).collect();
    scores.sort_by(f64::total_cmp);
    Some(Spread {
        mean: rounded(mean(scores.clone())?),
        p5: rounded(percentile(&scores, 0.05)?),
        min: rounded(*scores.first()?),
    })
}

fn intervals(shown: &[Frame], span: &Range<Timestamp>) -> Vec<QualityInterval> {
    let mut intervals = Vec::new();
    let mut start = span.start;
    while start < span.end {
        let end = start + INTERVAL;
        let (mut received, mut screen, mut count) = (Vec::new(), Vec::new(), 0);
        for frame in shown.iter().filter(|frame| is_in(frame.shown, &(start..end))) {
            received.extend(frame.received_delay().map(TimeDelta::as_millis_f64));
            screen.extend(frame.shown_delay().map(TimeDelta::as_millis_f64));
            count += 1;
        }
        intervals.push(QualityInterval {
            time_s: end.as_secs_f64(),
            shown: count,
            received_delay_ms: mean(received).map(rounded),
            shown_delay_ms: mean(screen).map(rounded),
        });
        start = end;
    }
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// A frame that was captured at a multiple of 40 ms, received 20 ms later and shown at `shown`.
    fn frame(index: usize, shown: i64) -> Frame {
        let captured = ms(40 * index as i64);
        Frame {
            index,
            number: index as u16,
            captured,
            received: Some(captured + TimeDelta::from_millis(20)),
            shown: Some(ms(shown)),
            repeats: 0,
            width: 640,
            height: 360,
        }
    }

    fn timeline(frames: Vec<Frame>) -> Timeline {
        let pictures = frames.iter().filter_map(|frame| frame.shown).collect();
        Timeline { frames, pictures, ..Timeline::default() }
    }

    #[test]
    fn a_hand_made_call_has_the_values_worked_out_by_hand() {
        let mut frames = Vec::new();
        for index in 0..50 {
            frames.push(frame(index, 40 * index as i64 + 30));
        }
        // Ten frames are not shown: the picture stands for 440 ms.
        frames.drain(30..40);
        frames[3].repeats = 1;
        let mut timeline = timeline(frames);
        timeline.pictures.insert(4, ms(160));
        let quality = of(&timeline, &[], ms(0)..ms(2_030));
        let delays = quality.shown_delay_ms.unwrap();
        assert_eq!((delays.min, delays.p50, delays.p99), (30.0, 30.0, 30.0));
        assert_eq!(quality.received_delay_ms.unwrap().p95, 20.0);
        assert_eq!((quality.repeats, quality.skips, quality.stalls), (1, 10, 1));
        assert_eq!((quality.stalled_s, quality.stalled_ratio), (0.44, Some(0.22)));
        assert_eq!(quality.longest_stall_s, Some(0.44));
        assert_eq!(quality.frame_rate, Some(20.0));
        let shown: Vec<u64> = quality.intervals.iter().map(|it| it.shown).collect();
        assert_eq!(shown, [12, 13, 5, 10, 0]);
        assert_eq!(quality.intervals[4].shown_delay_ms, None);
    }

    #[test]
    fn a_picture_that_stays_to_the_end_is_a_stall() {
        let frames = (0..20).map(|index| frame(index, 40 * index as i64 + 30)).collect();
        let quality = of(&timeline(frames), &[], ms(0)..ms(3_000));
        assert_eq!((quality.stalls, quality.stalled_s), (1, 2.21));
    }

    #[test]
    fn of_a_call_without_pictures_only_the_counts_are_known() {
        let quality = of(&Timeline::default(), &[], ms(0)..ms(500));
        assert_eq!((quality.shown_delay_ms, quality.frame_rate), (None, None));
        assert_eq!((quality.skips, quality.stalls, quality.intervals.len()), (0, 0, 1));
    }
}
