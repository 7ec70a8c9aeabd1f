//! Metrics of a flow's video: share of repair in the rate, frames shown, delay and freezes.

use weir::units::{DataSize, TimeDelta};
use weir_sim::trace::{ROW_INTERVAL, Video};

use super::Distribution;
use super::declared::declare;
use super::tally::Tally;

declare! {
    /// Metrics of the video. `None` where the receiver shows no video.
    #[derive(Default)]
    pub struct VideoMetrics in "" {
        /// Received bits of media that was sent for the first time, over the bits that the
        /// bottleneck could carry in the same time: the good utilization of bari.
        media_utilization: Option<f64> = "ratio", Higher, [Repair, Capacity];
        /// Mean received rate of media that was sent for the first time.
        media_rate_mbps: Option<f64> = "Mbit/s", Higher, [Repair];
        /// Retransmissions over all received bytes of the video.
        rtx_share: Option<f64> = "ratio", Neither, [Repair];
        /// Parity packets over all received bytes of the video.
        fec_share: Option<f64> = "ratio", Neither, [Repair];
        /// Media packets that were missing even after repair, over all media packets whose outcome
        /// was known.
        residual_loss_ratio: Option<f64> = "ratio", Lower, [Repair];
        /// Frames shown per second.
        frame_rate: Option<f64> = "1/s", Higher, [Repair];
        /// Time of frames from capture to screen, as the mean over each 50 ms. Percentiles are over
        /// these values.
        frame_delay_ms: Option<Distribution> = "ms", Lower, [Repair];
        /// Number of freezes. A freeze is a time between two shown frames of at least three times
        /// the mean of the last 30 such times, and at least 150 ms above that mean. The mean
        /// includes this time. The time from the last shown frame to the source's last one counts,
        /// too: a picture that stands to the end is a freeze.
        freeze_count: Option<u64> = "", Lower, [Repair];
        /// Total duration of the freezes.
        freeze_duration_s: Option<f64> = "s", Lower, [Repair];
        /// Duration of the longest freeze; 0 without one.
        #[serde(default)]
        longest_freeze_s: Option<f64> = "s", Lower, [Repair], title: "Longest freeze";
    }
}

/// Video values of the rows so far.
#[derive(Clone, Debug, Default)]
pub(super) struct VideoMeter {
    rows: i64,
    sum: Video,
    longest: TimeDelta,
    delay: Tally,
}

impl VideoMeter {
    pub(super) fn push(&mut self, video: &Video) {
        let sum = &mut self.sum;
        self.rows += 1;
        sum.media += video.media;
        sum.rtx += video.rtx;
        sum.fec += video.fec;
        sum.media_packets += video.media_packets;
        sum.unrepaired_packets += video.unrepaired_packets;
        sum.frames += video.frames;
        sum.freezes += video.freezes;
        sum.frozen += video.frozen;
        // A freeze is longer than a row, so at most one ends in it.
        self.longest = self.longest.max(video.frozen);
        if let Some(delay) = video.frame_delay {
            self.delay.push(delay);
        }
    }

    /// `carried` are the bytes that the bottleneck could carry; `None` if it is unlimited.
    pub(super) fn finish(&mut self, carried: Option<f64>) -> VideoMetrics {
        let Video { media_packets, unrepaired_packets, frames, freezes, frozen, .. } = self.sum;
        let time = ROW_INTERVAL * self.rows;
        if time == TimeDelta::ZERO {
            return VideoMetrics::default();
        }
        let bytes = |size: DataSize| size.as_bytes() as f64;
        let (media, rtx, fec) = (bytes(self.sum.media), bytes(self.sum.rtx), bytes(self.sum.fec));
        let unrepaired = unrepaired_packets as f64;
        VideoMetrics {
            media_utilization: carried.and_then(|carried| ratio(media, carried)),
            media_rate_mbps: ratio(media * 8.0 / 1e6, time.as_secs_f64()),
            rtx_share: ratio(rtx, media + rtx + fec),
            fec_share: ratio(fec, media + rtx + fec),
            residual_loss_ratio: ratio(unrepaired, unrepaired + media_packets as f64),
            frame_rate: ratio(frames as f64, time.as_secs_f64()),
            frame_delay_ms: self.delay.above(TimeDelta::ZERO),
            freeze_count: Some(freezes),
            freeze_duration_s: Some(frozen.as_secs_f64()),
            longest_freeze_s: Some(self.longest.as_secs_f64()),
        }
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    if whole > 0.0 { Some(part / whole) } else { None }
}

#[cfg(test)]
mod tests {
    use weir::units::Bitrate;
    use weir_sim::trace::Row;

    use super::*;
    use crate::Metrics;

    fn row(video: Option<Video>) -> Row {
        Row::default().with_capacity(Some(Bitrate::from_kbps(800))).with_video(video)
    }

    #[test]
    fn a_hand_made_video_has_the_metrics_worked_out_by_hand() {
        let bytes = DataSize::from_bytes;
        let first = Video::default()
            .with_media(bytes(3_000))
            .with_rtx(bytes(500))
            .with_fec(bytes(500))
            .with_media_packets(3)
            .with_frames(2)
            .with_frame_delay(Some(TimeDelta::from_millis(60)));
        let second = first
            .with_unrepaired_packets(2)
            .with_frames(1)
            .with_freezes(1)
            .with_frozen(TimeDelta::from_millis(400))
            .with_frame_delay(Some(TimeDelta::from_millis(100)));
        let third = first.with_frames(0).with_frame_delay(None);
        let metrics =
            Metrics::of(&[row(Some(first)), row(Some(second)), row(Some(third))], &[]).video;
        assert_eq!(metrics.media_utilization, Some(0.6)); // 9,000 B of 15,000
        assert_eq!((metrics.rtx_share, metrics.fec_share), (Some(0.125), Some(0.125)));
        assert_eq!(metrics.residual_loss_ratio, Some(2.0 / 11.0));
        assert_eq!(metrics.frame_rate, Some(3.0 / 0.15));
        let delay = metrics.frame_delay_ms.unwrap();
        assert_eq!((delay.mean, delay.max), (80.0, 100.0));
        assert_eq!((metrics.freeze_count, metrics.freeze_duration_s), (Some(1), Some(0.4)));
        assert_eq!(metrics.longest_freeze_s, Some(0.4));
    }

    #[test]
    fn the_longest_freeze_is_that_of_one_row_and_not_a_sum() {
        let frozen = |ms| {
            let video = Video::default().with_freezes(u64::from(ms > 0));
            row(Some(video.with_frozen(TimeDelta::from_millis(ms))))
        };
        let metrics = Metrics::of(&[frozen(300), frozen(0), frozen(700), frozen(200)], &[]).video;
        assert_eq!((metrics.freeze_duration_s, metrics.longest_freeze_s), (Some(1.2), Some(0.7)));
        assert_eq!(Metrics::of(&[frozen(0)], &[]).video.longest_freeze_s, Some(0.0));
    }

    #[test]
    fn a_flow_that_shows_no_video_has_no_such_metrics() {
        assert_eq!(Metrics::of(&[row(None), row(None)], &[]).video, VideoMetrics::default());
    }
}
