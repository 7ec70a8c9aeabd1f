//! The report's data on real calls, as the page reads it. See [`format`](super::format).

use serde::Serialize;
use weir_record::calls::file::Agreement;
use weir_record::run::Engine;

/// Real calls. Tables cover all runs; plots, `streams` and `agreement` only the first one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Calls {
    /// Of the first run.
    pub seed: String,
    pub tried: usize,
    pub succeeded: usize,
    /// Why the other calls failed.
    pub failures: Vec<String>,
    /// Runs that the machine disturbed. No other member includes them.
    pub left_out: Vec<String>,
    /// Whether the machine disturbed all runs.
    pub disturbed: bool,
    pub setup: Vec<SetupRow>,
    pub peers: Vec<PeerRow>,
    pub streams: Vec<StreamRow>,
    #[cfg_attr(test, ts(as = "Vec<crate::typed::Agreement>"))]
    pub agreement: Vec<Agreement>,
    /// Over all runs.
    pub compared: usize,
    pub agreed: usize,
    /// Of the first call.
    pub rates: Vec<RatePlot>,
    pub errors: Vec<StreamErrorRow>,
    pub delays: Vec<DelayPlot>,
    /// Of the first run of each controller.
    pub pacers: Vec<PacerPlot>,
    /// What each peer saw, by the tags in the pictures.
    pub quality: Vec<QualityRow>,
    /// The same over time, of the first run of each controller.
    pub screens: Vec<ScreenPlot>,
    /// What happened to an analyzed call, in a few sentences; `null` of other calls.
    pub verdict: Option<String>,
    /// The first report of an analyzed call, from which its times count, in ms since 1970.
    pub began_ms: Option<f64>,
    /// What limited analyzed calls, over all runs. The largest effect on the call comes first.
    pub findings: Vec<FindingRow>,
    /// The participants of an application under test, each followed by its streams.
    pub app: Vec<AppRow>,
}

/// What limited a stream for a while.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct FindingRow {
    pub seed: String,
    pub stream: String,
    /// What limited it: `connection`, `network`, `controller`, `encoder`, `processor` or
    /// `application`. `video` and `audio` are effects: what was seen and heard.
    pub part: String,
    /// The rule that found it, such as `capacity` or `freeze`.
    pub rule: String,
    pub says: String,
    pub from_s: f64,
    pub to_s: f64,
    /// Number of samples that it rests on.
    pub samples: usize,
}

/// The steps of a peer's set-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct SetupRow {
    pub seed: String,
    pub peer: String,
    /// From opening the page until the lab has sent its configuration.
    pub page_ms: f64,
    pub camera_ms: Option<f64>,
    /// Time waiting for the other peer.
    pub waiting_ms: f64,
    /// From then until both session descriptions are there.
    pub signalling_ms: Option<f64>,
    /// From then until a path is found.
    pub ice_ms: Option<f64>,
    pub dtls_ms: Option<f64>,
    /// From the moment when both are ready until media can flow.
    pub total_ms: f64,
    /// From then until the first frame of the other peer is shown.
    pub first_frame_ms: Option<f64>,
    pub path: String,
}

/// A peer's program and the video it showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct PeerRow {
    pub seed: String,
    pub controller: String,
    pub peer: String,
    /// In percent of one core.
    pub cpu_percent: Option<f64>,
    pub memory_mb: Option<f64>,
    pub encode_ms: Option<f64>,
    pub decode_ms: Option<f64>,
    pub frame_rate: Option<f64>,
    pub frame_size: Option<String>,
    pub freezes: Option<f64>,
    pub frozen_s: Option<f64>,
    /// What limited the quality, with shares of the time.
    pub limited: Option<String>,
}

/// Rate of a flow, split into video and repair; means over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct SplitRow {
    pub controller: String,
    #[cfg_attr(test, ts(as = "crate::typed::Engine"))]
    pub engine: Engine,
    /// The flow; for media from a forwarding server, the receiver.
    pub flow: String,
    pub capacity_mbps: Option<f64>,
    /// Of all IP packets.
    pub rate_mbps: Option<f64>,
    pub video_mbps: f64,
    pub retransmission_mbps: Option<f64>,
    pub fec_mbps: Option<f64>,
}

/// A stream as the captures of both ends saw it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct StreamRow {
    pub call: usize,
    pub from: String,
    pub to: String,
    pub role: String,
    pub ssrc: String,
    pub packets: u64,
    /// IP packets that arrived, over the call.
    pub received_mbps: Option<f64>,
    pub lost_percent: f64,
    pub reordered: u64,
    pub duplicates: u64,
    pub mean_delay_ms: Option<f64>,
    pub p50_delay_ms: Option<f64>,
    pub p95_delay_ms: Option<f64>,
    pub max_delay_ms: Option<f64>,
}

/// The payload of a stream over time, as a peer reported it and as its host's capture saw it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct RatePlot {
    pub peer: String,
    /// Direction (sent or received) and kind of the stream.
    pub what: String,
    pub time_s: Vec<f64>,
    pub reported_kbps: Vec<f64>,
    pub captured_kbps: Vec<f64>,
    pub error_percent: Option<f64>,
    pub interval_error_percent: Option<f64>,
}

/// What a peer saw of another one's camera.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct QualityRow {
    pub seed: String,
    pub controller: String,
    /// The camera and the screen, such as `a to b`.
    pub stream: String,
    /// From capture to the received track.
    pub received_p50_ms: Option<f64>,
    /// From capture to the screen.
    pub shown_p50_ms: Option<f64>,
    pub shown_p95_ms: Option<f64>,
    pub shown_p99_ms: Option<f64>,
    pub frame_rate: Option<f64>,
    pub stalls: u64,
    pub stalled_s: f64,
    pub stalled_percent: Option<f64>,
    /// VMAF of the compared pictures: mean, and the value that 5 % of them are below.
    pub vmaf: Option<f64>,
    pub vmaf_p5: Option<f64>,
    pub psnr_db: Option<f64>,
    /// Good time, and its causes of loss.
    pub good_percent: Option<f64>,
    pub late_percent: Option<f64>,
    pub bad_picture_percent: Option<f64>,
    pub repeats: u64,
    pub skips: u64,
    pub tags_read_percent: Option<f64>,
    /// By how much the sound is later than the picture, median over the seconds.
    pub sound_behind_ms: Option<f64>,
    /// How late the sender's page saw 5 % of its camera's frames.
    pub camera_late_p95_ms: Option<f64>,
    /// Of the machine's processors, over the run.
    pub busy_percent: Option<f64>,
}

/// Delay of the pictures over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ScreenPlot {
    pub controller: String,
    pub stream: String,
    /// Ends of the intervals.
    pub time_s: Vec<f64>,
    /// Means from capture to the received track.
    pub received_ms: Vec<Option<f64>>,
    /// Means from capture to the screen.
    pub shown_ms: Vec<Option<f64>>,
    /// When each compared picture was received.
    pub picture_s: Vec<f64>,
    pub vmaf: Vec<Option<f64>>,
    pub psnr_db: Vec<f64>,
    pub worst: Option<WorstPicture>,
}

/// The picture that looks worst beside what was sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct WorstPicture {
    /// When it was received.
    pub time_s: f64,
    /// Addresses of the images, with their data.
    pub received: String,
    pub sent: String,
}

/// Counts of a stream by a peer and by the capture at its host.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct StreamErrorRow {
    pub peer: String,
    pub what: String,
    /// The media section of the session description.
    pub mid: Option<String>,
    pub ssrcs: String,
    pub reported_packets: u64,
    pub captured_packets: u64,
    /// Payload over the whole call: reported minus captured.
    pub error_percent: Option<f64>,
    /// Mean difference of the report intervals.
    pub interval_error_percent: Option<f64>,
}

/// Packets of a stream by their one-way delay, in bins of 10 ms; the last is all from 300 ms on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct DelayPlot {
    pub stream: String,
    pub counts: Vec<u64>,
}

/// What waited in the pacer of a pipeline over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct PacerPlot {
    pub controller: String,
    pub peer: String,
    pub time_s: Vec<f64>,
    /// Largest time that was waiting, in each interval between two reports.
    pub queue_ms: Vec<Option<f64>>,
    /// Target bitrate of the encoder at the end of the interval.
    pub encoder_mbps: Vec<Option<f64>>,
}

/// A participant of an application under test, or one of its streams, over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct AppRow {
    pub seed: String,
    pub name: String,
    /// Of a stream that it sends: codec, layer of simulcast, layers of scalable coding.
    pub sends: Option<String>,
    pub setup_ms: Option<f64>,
    pub first_frame_ms: Option<f64>,
    pub send_rate_mbps: Option<f64>,
    pub receive_rate_mbps: Option<f64>,
    pub frame_rate: Option<f64>,
    pub frame_height: Option<f64>,
    pub freezes: Option<f64>,
    pub limited_by_bandwidth_percent: Option<f64>,
    pub concealed_percent: Option<f64>,
}
