//! Metrics of the calls of a real run.

use serde::{Deserialize, Serialize};

use super::declared::{declare, shape};

/// Start of the paths of metrics of all calls together.
pub const CALLS_PREFIX: &str = "calls.";
/// Start of the paths of metrics of a participant.
pub const PARTICIPANT_PREFIX: &str = "participant.";

declare! {
    /// How many calls succeeded.
    #[derive(Default)]
    pub struct CallSuccess in "calls." {
        /// Calls that connected and lasted, over all calls that were attempted.
        success_ratio: Option<f64> = "ratio", Higher, [];
    }
}

declare! {
    /// Means over participants. For a participant with several connections, a value is the mean
    /// over them, but a rate is their sum.
    #[derive(Default)]
    #[serde(default)]
    pub struct CallMetrics in "calls." {
        /// Set-up, first step: from the start of a connection until both session descriptions are
        /// there.
        signalling_ms: Option<f64> = "ms", Lower, [];
        /// Set-up, second step: from then until a path is found; 0 if it was found before.
        ice_ms: Option<f64> = "ms", Lower, [];
        /// Set-up, third step: from then until keys are agreed on.
        dtls_ms: Option<f64> = "ms", Lower, [];
        /// Set-up: the three steps together.
        setup_ms: Option<f64> = "ms", Lower, [];
        /// From the start of a connection until the first frame of the other peer is shown: the
        /// set-up time of aalto, section 6.1.2.
        first_frame_ms: Option<f64> = "ms", Lower, [];
        /// One-way delay of the video packets that a participant receives, from the captures.
        one_way_delay_ms: Option<OneWayDelay> = "ms", Lower, [];
        /// From the camera to the screen of a participant that receives, with `--quality`.
        screen_delay_ms: Option<OneWayDelay> = "ms", Lower, [];
        /// Share of the time in which its picture stood still, by the rule of getStats' freezes.
        screen_stall_ratio: Option<f64> = "ratio", Lower, [];
        /// The longest time in which a picture on any screen stood still, by the same rule.
        longest_stall_s: Option<f64> = "s", Lower, [];
        /// VMAF of the pictures that it received, with `--quality` and the feature `vmaf`.
        vmaf: Option<f64> = "0 to 100", Higher, [];
        /// PSNR of the same.
        psnr_db: Option<f64> = "dB", Higher, [];
        /// Good time: share of the half seconds with a new picture, a mean delay of at most 250 ms
        /// to the screen, and a VMAF of at least 80.
        good_ratio: Option<f64> = "ratio", Higher, [];
        /// Round-trip time from getStats.
        rtt_ms: Option<f64> = "ms", Lower, [];
        /// Pictures a second that a participant decodes, from getStats.
        frame_rate: Option<f64> = "1/s", Higher, [];
        /// How long its picture was frozen, from getStats.
        frozen_s: Option<f64> = "s", Lower, [];
        /// The longest freeze of any participant, from getStats: the most frozen time that one
        /// report, each 500 ms, adds. If two freezes end between two reports, it is their sum. A
        /// picture that stands to the end is one, too.
        longest_freeze_s: Option<f64> = "s", Lower, [];
        /// Rate of the media that a participant sends over all its connections, as IP packets, from
        /// getStats.
        send_rate_mbps: Option<f64> = "Mbit/s", Neither, [];
        /// The same for the media that a participant receives.
        receive_rate_mbps: Option<f64> = "Mbit/s", Neither, [];
        /// Processor time of the browser over wall time: 1 is one core all the time.
        cpu_cores: Option<f64> = "", Lower, [];
        /// Largest proportional set size of the browser.
        memory_mb: Option<f64> = "MB", Lower, [];
    }
}

declare! {
    /// Of one participant of an application under test, or of one of its streams. The rates and
    /// freezes of a participant are sums over its streams, its longest freeze is that of all of
    /// them, and all other values are means over them. Its rates are from its first report to its
    /// last, also where it had no stream.
    #[derive(Default)]
    #[serde(default)]
    pub struct ParticipantMetrics in "participant." {
        /// 1 if it joined and stayed, 0 if it failed.
        success_ratio: Option<f64> = "ratio", Higher, [];
        /// Set-up of its connections: from the first session description that its page sets until
        /// keys are agreed on, as the mean over them.
        setup_ms: Option<f64> = "ms", Lower, [];
        /// From the same moment until the first frame of a received video is decoded; late by up to
        /// 50 ms.
        first_frame_ms: Option<f64> = "ms", Lower, [];
        /// Rate of the video that it sends, as IP packets, from getStats.
        send_rate_mbps: Option<f64> = "Mbit/s", Neither, [];
        /// The same for the video that it receives.
        receive_rate_mbps: Option<f64> = "Mbit/s", Neither, [];
        /// Frames encoded a second.
        sent_frame_rate: Option<f64> = "1/s", Higher, [];
        /// Frames decoded a second.
        frame_rate: Option<f64> = "1/s", Higher, [];
        /// Height of the decoded frames.
        frame_height: Option<f64> = "pixels", Higher, [];
        /// Freezes that ended, as the browser counts them.
        freeze_count: Option<f64> = "", Lower, [];
        /// Total duration of these freezes.
        freeze_duration_s: Option<f64> = "s", Lower, [];
        /// The longest of them on any of its streams: the most frozen time that one report, each
        /// 500 ms, adds. If two freezes end between two reports, it is their sum. A picture that
        /// stands to the end is one, too.
        longest_freeze_s: Option<f64> = "s", Lower, [];
        /// Packets that it did not receive.
        loss_ratio: Option<f64> = "ratio", Lower, [];
        /// Round-trip time of its receiver reports.
        rtt_ms: Option<f64> = "ms", Lower, [];
        /// Share of the reports in which the estimated bandwidth limited the video that it sends.
        limited_by_bandwidth_ratio: Option<f64> = "ratio", Lower, [];
        /// Share of the reports in which its processor did.
        limited_by_cpu_ratio: Option<f64> = "ratio", Lower, [];
        /// Samples of the audio that it receives that were made up because theirs did not arrive in
        /// time, without silence. Only of a participant, as the mean over its audio streams.
        audio_concealed_ratio: Option<f64> = "ratio", Lower, [];
    }
}

/// One-way delay over the packets of a stream, as a mean over the streams.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneWayDelay {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

shape!(OneWayDelay: mean, p50, p95);
