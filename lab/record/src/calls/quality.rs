//! What was measured of the pictures that a peer received, by the tags in them.

use serde::{Deserialize, Serialize};
use weir_sim::trace::HalfSecond;

use super::delays::Delays;

/// Name of the file that shows the worst picture of a camera; `what` is `received` or `sent`.
pub fn worst_file(call: usize, from: &str, to: &str, what: &str) -> String {
    format!("worst-{call}-{from}-{to}-{what}.png")
}

/// The pictures of one camera on the screen of one peer. Delays, rates and stalls are of the call's
/// time in the scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quality {
    /// Number of the call.
    pub call: usize,
    /// The participant whose camera it is.
    pub from: String,
    /// The participant whose screen it is.
    pub to: String,
    /// Frames at the sender's camera, with the call's set-up and end.
    pub camera: TagCount,
    /// Frames on the received track.
    pub track: TagCount,
    /// Pictures on screen.
    pub screen: TagCount,
    /// Pictures that the browser showed and its page did not see.
    pub missed: u64,
    /// From capture to the received track, after the decoder; `null` if no frame came.
    pub received_delay_ms: Option<Delays>,
    /// From capture to the screen; `null` if no frame was shown.
    pub shown_delay_ms: Option<Delays>,
    /// New pictures on screen, a second.
    pub frame_rate: Option<f64>,
    /// Pictures that were shown again.
    pub repeats: u64,
    /// Captured frames that were not shown, between the first and the last that were.
    pub skips: u64,
    /// Stalls of the picture on screen, by the rule for `freezeCount` of getStats.
    pub stalls: u64,
    /// Total duration of the stalls, in s.
    pub stalled_s: f64,
    /// Duration of the longest stall, in s; `null` in records before 30 November 2026.
    pub longest_stall_s: Option<f64>,
    /// Total duration of the stalls over the time from the first picture on.
    pub stalled_ratio: Option<f64>,
    /// How the pictures look beside those of the camera; `null` if none was compared.
    pub picture: Option<PictureQuality>,
    /// How late the sender's page saw the frames of its own camera, after the one that it saw
    /// soonest. Above a limit the machine was too busy, and the run is disturbed. Absent if the
    /// sender reads no camera.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub camera_late_ms: Option<Delays>,
    /// Means over intervals of 500 ms, by the time of showing.
    pub intervals: Vec<QualityInterval>,
}

/// Scores of the pictures on the received track, of one picture every half second. They are
/// compared in the camera's size, without the tag.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PictureQuality {
    /// Number of pictures.
    pub pictures: usize,
    /// VMAF by the model `vmaf_v0.6.1`, 0 to 100. `null` if this program was built without it.
    pub vmaf: Option<Spread>,
    /// The same by the model `vmaf_v0.6.1neg`, which does not reward sharpening.
    pub vmaf_neg: Option<Spread>,
    /// Structural similarity, 0 to 1.
    pub ssim: Option<Spread>,
    /// Peak signal to noise ratio of the luma in dB; 60 for equal pictures.
    pub psnr_db: Option<Spread>,
    /// When the worst picture was received, in the scenario's time.
    pub worst_s: Option<f64>,
    /// Each picture.
    pub scores: Vec<PictureScore>,
}

/// Scores of one picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PictureScore {
    /// When it was received, in the scenario's time.
    pub time_s: f64,
    /// VMAF by the model `vmaf_v0.6.1`.
    pub vmaf: Option<f64>,
    /// PSNR in dB.
    pub psnr_db: f64,
}

/// Mean and lower end of a score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// The worst 5 % are below.
    pub p5: f64,
    /// The worst.
    pub min: f64,
}

/// Shares of a call's half seconds, which sum to 1. An interval counts for the first that applies:
/// stalled, late, bad picture, good.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GoodTime {
    /// With a new picture on screen, of which all is well.
    pub good: f64,
    /// Without a new picture.
    pub stalled: f64,
    /// With a mean delay of more than 250 ms from the camera to the screen.
    pub late: f64,
    /// With a VMAF below 80 of the picture that was compared last.
    pub bad_picture: f64,
}

impl Quality {
    /// `None` if nothing was shown, or if no picture has a VMAF.
    pub fn good_time(&self) -> Option<GoodTime> {
        let scores = &self.picture.as_ref()?.scores;
        let first = self.intervals.iter().position(|it| it.shown > 0)?;
        let intervals = &self.intervals[first..];
        let share = 1.0 / intervals.len() as f64;
        let mut time = GoodTime::default();
        for interval in intervals {
            let before = scores.partition_point(|score| score.time_s <= interval.time_s);
            // The first picture is compared a moment after it is shown.
            let vmaf = scores.get(before.saturating_sub(1))?.vmaf?;
            let part = match HalfSecond::judge(interval.shown, interval.shown_delay_ms, vmaf) {
                HalfSecond::NoPicture => &mut time.stalled,
                HalfSecond::Late => &mut time.late,
                HalfSecond::BadPicture => &mut time.bad_picture,
                HalfSecond::Good => &mut time.good,
            };
            *part += share;
        }
        Some(time)
    }
}

/// How many frames a page saw at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagCount {
    /// Frames.
    pub seen: usize,
    /// Those whose tag could be read.
    pub read: usize,
    /// Those whose tag is that of a captured frame.
    pub matched: usize,
}

/// The frames that were shown in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QualityInterval {
    /// Its end, in the scenario's time.
    pub time_s: f64,
    /// Number of frames that were shown first in it.
    pub shown: u64,
    /// Mean delay to the received track.
    #[serde(default)]
    pub received_delay_ms: Option<f64>,
    /// Mean delay to the screen.
    #[serde(default)]
    pub shown_delay_ms: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(half: u32, shown: u64, delay: f64) -> QualityInterval {
        let time_s = 0.5 * f64::from(half);
        let shown_delay_ms = (shown > 0).then_some(delay);
        QualityInterval { time_s, shown, received_delay_ms: None, shown_delay_ms }
    }

    fn score(time_s: f64, vmaf: f64) -> PictureScore {
        PictureScore { time_s, vmaf: Some(vmaf), psnr_db: 30.0 }
    }

    #[test]
    fn an_interval_is_good_or_has_one_cause_and_a_picture_begins_the_call() {
        let intervals = vec![
            interval(1, 0, 0.0),
            interval(2, 15, 100.0),
            interval(3, 15, 251.0),
            interval(4, 0, 0.0),
            interval(5, 15, 250.0),
        ];
        let scores = vec![score(1.01, 80.0), score(2.2, 79.9)];
        let picture = Some(PictureQuality { scores, ..PictureQuality::default() });
        let quality = Quality { intervals, picture, ..Quality::default() };
        let time = quality.good_time().unwrap();
        let quarter = 0.25;
        let GoodTime { good, stalled, late, bad_picture } = time;
        assert_eq!([good, stalled, late, bad_picture], [quarter; 4]);
    }

    #[test]
    fn without_vmaf_or_pictures_there_is_no_good_time() {
        assert_eq!(Quality::default().good_time(), None);
        let picture = Some(PictureQuality {
            scores: vec![PictureScore { time_s: 0.1, vmaf: None, psnr_db: 30.0 }],
            ..PictureQuality::default()
        });
        let intervals = vec![interval(1, 15, 100.0)];
        let quality = Quality { intervals, picture, ..Quality::default() };
        assert_eq!(quality.good_time(), None);
    }
}
