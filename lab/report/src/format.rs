//! The report's data as the page reads it. `lab/web/src/format/` is generated from these types,
//! comments included: `WEIR_UPDATE=1 cargo test -p weir-report generated` writes it again.
//!
//! Every number carries its unit in its name; `null` means that the value does not apply or that
//! nobody measured it. Seeds are strings, because JavaScript loses integers above 2^53.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use weir_net::path::Direction;
use weir_record::calls::file::Lateness;
use weir_record::run::Engine;

use super::call_format::{Calls, SplitRow};
use super::server_format::Forwarding;
use super::signalling::Signalling;

/// Everything that one report shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Report {
    pub(super) schema: u32,
    pub(super) title: String,
    /// The command that wrote this report.
    pub(super) command: String,
    /// Program and version.
    pub(super) generator: String,
    pub(super) definitions: Vec<Definition>,
    /// In the order of legends and tables.
    pub(super) controllers: Vec<String>,
    /// One for each requirement of RFC 8836 and controller; empty if no expectation tests any.
    pub(super) verdicts: Vec<RequirementRow>,
    /// What Google's congestion control changed since 2013.
    pub(super) then_and_now: Vec<ThenAndNow>,
    /// Real calls of each scenario, means over participants and runs.
    pub(super) participants: Vec<ParticipantsRow>,
    /// Simulated runs compared with real calls of the same scenarios.
    pub(super) errors: Vec<ErrorRow>,
    pub(super) scenarios: Vec<Scenario>,
    /// Of calls through an IMS.
    pub(super) signalling: Vec<Signalling>,
    /// Number of runs over all scenarios, controllers and seeds.
    pub(super) runs: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Definition {
    pub term: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Scenario {
    pub id: String,
    pub title: String,
    /// Document and section that the scenario comes from.
    pub source: String,
    pub description: String,
    pub duration_s: f64,
    /// The network in words, one fact per entry.
    pub network: Vec<String>,
    pub groups: Vec<Group>,
    pub paper: Vec<PaperRow>,
    pub findings: Vec<Finding>,
    pub sections: Vec<SectionRow>,
    /// Flows whose receiver shows the video.
    pub video: Vec<VideoRow>,
    pub split: Vec<SplitRow>,
    /// TCP and UDP flows that compete with the media.
    pub loads: Vec<LoadRow>,
    pub expectations: Vec<Expectation>,
    pub fairness: Vec<FairnessRow>,
    pub sim_real: Vec<SimReal>,
    /// `null` where no real call was made.
    pub calls: Option<Calls>,
    /// Use of the channel of a Wi-Fi cell; `null` without a cell.
    pub airtime: Option<Airtime>,
    /// Bearers of a cellular cell; `null` without one.
    pub cellular: Option<Cellular>,
    /// What a forwarding server sent to whom; `null` without one.
    pub server: Option<Forwarding>,
}

/// Bearers of a cellular cell over one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Cellular {
    /// The command that repeats the run.
    pub command: String,
    pub controller: String,
    /// Ends of the spans over which the values of the curves are taken.
    pub time_s: Vec<f64>,
    pub curves: Vec<BearerCurve>,
    /// Whether the cell has more bearers than there are curves.
    pub is_cut: bool,
    /// What became of bearers.
    pub changes: Vec<BearerChange>,
    /// `null` if no block was recorded.
    pub grid: Option<ResourceGrid>,
}

/// One direction of a bearer; one value for each time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct BearerCurve {
    pub terminal: String,
    pub bearer: String,
    #[serde(serialize_with = "word")]
    #[cfg_attr(test, ts(type = "\"up\" | \"down\""))]
    pub direction: Direction,
    /// Rate of the IP bytes delivered.
    pub rate_mbps: Vec<Option<f64>>,
    pub queue_kb: Vec<Option<f64>>,
    /// Share of the direction's resource blocks.
    pub prb_percent: Vec<Option<f64>>,
    /// Without fading. This and the rest are of the terminal.
    pub sinr_db: Vec<Option<f64>>,
    pub mcs: Vec<Option<f64>>,
    /// Retransmissions of HARQ over all transmissions of blocks.
    pub retransmission_percent: Vec<Option<f64>>,
}

/// A direction as its name.
fn word<S: Serializer>(direction: &Direction, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(direction.word())
}

/// What became of a bearer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct BearerChange {
    pub time_s: f64,
    pub terminal: String,
    pub bearer: String,
    /// `added`, `changed`, `removed`, `refused`, `pre-empted` or `unknown`.
    pub event: String,
}

/// Who had which resource blocks over a few milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ResourceGrid {
    /// Start of the picture, in the run's time.
    pub from_s: f64,
    pub tti_ms: f64,
    /// Number of TTIs in the picture.
    pub ttis: u32,
    pub prbs_up: u16,
    pub prbs_down: u16,
    pub nodes: Vec<String>,
    pub blocks: Vec<GridBlock>,
}

/// A transmission of a block.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct GridBlock {
    /// Number of its TTI in the picture, from 0.
    pub tti: u32,
    #[serde(serialize_with = "word")]
    #[cfg_attr(test, ts(type = "\"up\" | \"down\""))]
    pub direction: Direction,
    /// Index of its terminal.
    pub node: usize,
    /// First and last resource block of each range.
    pub prbs: Vec<(u16, u16)>,
    pub mcs: u8,
    pub bytes: u32,
    /// 1 for the first transmission.
    pub attempt: u32,
    pub is_decoded: bool,
}

/// Use of the channel of a Wi-Fi cell over a few milliseconds of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Airtime {
    /// The command that repeats the run.
    pub command: String,
    pub controller: String,
    /// Start of the picture, in the run's time.
    pub from_s: f64,
    pub nodes: Vec<String>,
    pub frames: Vec<AirFrame>,
}

/// A frame on the air; times from the beginning of the picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct AirFrame {
    pub start_us: f64,
    pub end_us: f64,
    /// Index of its sender.
    pub node: usize,
    pub kind: AirFrameKind,
    /// Packets in the frame; 1 in an acknowledgement.
    pub mpdus: usize,
    /// How many of these packets arrived.
    pub decoded: usize,
    pub text: String,
}

/// Kinds of frames on the air.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub(super) enum AirFrameKind {
    Data,
    Ack,
    BlockAck,
}

/// Whether a controller meets a requirement of RFC 8836; `met` is `null` if nothing tested it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct RequirementRow {
    pub requirement: String,
    pub text: String,
    pub controller: String,
    pub met: Option<bool>,
    /// Number of expectations on this requirement that hold.
    pub held: usize,
    pub tested: usize,
    /// The expectation that decides, with its value and limit.
    pub by: String,
    /// Value and limit of that expectation.
    pub figure: String,
}

/// A flow under the algorithm of 2013 and under today's, means over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ThenAndNow {
    pub scenario: String,
    pub flow: String,
    pub then: FlowMeans,
    pub now: FlowMeans,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct FlowMeans {
    pub utilization: Option<f64>,
    pub rate_mbps: Option<f64>,
    pub p95_queuing_delay_ms: Option<f64>,
    pub loss_percent: Option<f64>,
}

/// Means over the participants of a scenario's calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ParticipantsRow {
    pub scenario: String,
    pub controller: String,
    pub participants: usize,
    pub runs: usize,
    pub success_ratio: Option<f64>,
    pub setup_ms: Option<f64>,
    pub first_frame_ms: Option<f64>,
    pub rtt_ms: Option<f64>,
    pub one_way_delay_ms: Option<f64>,
    pub send_rate_mbps: Option<f64>,
    pub receive_rate_mbps: Option<f64>,
    /// In percent of one core.
    pub cpu_percent: Option<f64>,
    pub memory_mb: Option<f64>,
}

/// A media flow, simulated and real, means over the seeds; errors are simulated minus real.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ErrorRow {
    pub scenario: String,
    pub flow: String,
    pub sim_controller: String,
    pub real_controller: String,
    pub real_mbps: f64,
    pub sim_mbps: f64,
    /// Error of the rate, in percent of the real rate.
    pub error_percent: Option<f64>,
    pub real_p95_ms: Option<f64>,
    pub sim_p95_ms: Option<f64>,
    pub error_ms: Option<f64>,
    /// Whether the machine disturbed all runs of the real call. Headlines leave such rows out.
    pub(super) is_disturbed: bool,
}

/// An expectation of `weir check` under one controller.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Expectation {
    pub controller: String,
    pub text: String,
    /// Mean over the seeds.
    pub measured: Option<f64>,
    /// Half the width of its 95 % confidence interval.
    pub confidence: Option<f64>,
    /// `at least 0.67`.
    pub limit: String,
    pub outcome: ExpectationOutcome,
    /// Reason of a known miss.
    pub why: String,
}

/// Result of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) enum ExpectationOutcome {
    #[serde(rename = "holds")]
    Holds,
    #[serde(rename = "fails")]
    Fails,
    #[serde(rename = "in doubt")]
    InDoubt,
    #[serde(rename = "known miss")]
    KnownMiss,
    #[serde(rename = "known miss that holds now")]
    MissIsGone,
}

/// Fairness between media flows, means over the seeds. A ratio is of the least fair window.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct FairnessRow {
    pub controller: String,
    #[cfg_attr(test, ts(as = "crate::typed::Engine"))]
    pub engine: Engine,
    pub jain: Option<f64>,
    pub ratio_1s: Option<f64>,
    pub ratio_5s: Option<f64>,
    pub ratio_20s: Option<f64>,
    /// Share of the windows of 5 s in which no two flows differ by more than a factor of three.
    pub within_5s: Option<f64>,
}

/// One flow over all runs of one controller under one engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Group {
    pub controller: String,
    #[cfg_attr(test, ts(as = "crate::typed::Engine"))]
    pub engine: Engine,
    pub flow: String,
    pub seeds: Vec<String>,
    /// The command that repeats these runs.
    pub command: String,
    pub series: Series,
    /// Rate changes of the first seed, by time.
    pub events: Vec<RateChange>,
    #[serde(rename = "box")]
    pub boxes: Boxes,
    pub points: Vec<Point>,
    pub warnings: Vec<String>,
    /// How late the emulator released packets; `null` for simulated runs.
    pub lateness_us: Option<Histogram>,
}

/// Averages over the seeds, interpolated linearly on a common grid of times. Each column has an
/// entry for each point of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Series {
    pub time_s: Vec<f64>,
    pub capacity_mbps: Vec<Option<f64>>,
    /// The rate that the oracle reaches, which knows the schedule as late as feedback could report
    /// it. Only on wired paths.
    pub possible_mbps: Vec<Option<f64>>,
    pub target_mbps: Vec<Option<f64>>,
    pub received_mbps: Vec<Option<f64>>,
    pub rtt_ms: Vec<Option<f64>>,
    pub queuing_delay_ms: Vec<Option<f64>>,
    pub loss_percent: Vec<Option<f64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct RateChange {
    pub time_s: f64,
    pub from_mbps: f64,
    pub target_mbps: f64,
    pub reason: String,
    pub state: String,
    /// The controller's signals at the change; the unit is in the name.
    #[cfg_attr(test, ts(type = "Record<string, number>"))]
    pub signals: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Boxes {
    pub utilization: Option<BoxPlot>,
    pub rtt_ms: Option<BoxPlot>,
    pub responsiveness_s: Option<BoxPlot>,
    pub loss_percent: Option<BoxPlot>,
}

/// A box plot over the seeds. The whiskers end at `min` and `max`, without the outliers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct BoxPlot {
    pub min: f64,
    pub q1: f64,
    pub median: f64,
    pub q3: f64,
    pub max: f64,
    pub outliers: Vec<f64>,
}

/// One run of a group, at the group's flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Point {
    pub seed: String,
    pub throughput_mbps: Option<f64>,
    pub utilization: Option<f64>,
    pub p95_queuing_delay_ms: Option<f64>,
    pub loss_percent: Option<f64>,
    pub rtt_ms: Option<f64>,
    pub responsiveness_s: Option<f64>,
    /// Good time; only of a flow with `quality`, or a call with `--quality`.
    pub good_percent: Option<f64>,
}

/// Histogram of the release lateness of packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Histogram {
    /// Edges of the bins, one more than `counts`.
    pub edges: Vec<f64>,
    pub counts: Vec<u64>,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl Histogram {
    /// The release lateness of a run, in µs.
    pub fn of(lateness: &Lateness) -> Self {
        let Lateness { edges, counts, p50, p99, max } = lateness;
        Self {
            edges: edges.iter().map(|edge| *edge as f64).collect(),
            counts: counts.clone(),
            p50: *p50 as f64,
            p99: *p99 as f64,
            max: *max as f64,
        }
    }
}

/// Video quality of a flow and the cost of its repair; means over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct VideoRow {
    pub controller: String,
    #[cfg_attr(test, ts(as = "crate::typed::Engine"))]
    pub engine: Engine,
    pub flow: String,
    pub frame_rate: Option<f64>,
    pub freezes: Option<f64>,
    pub frozen_s: Option<f64>,
    pub p95_frame_delay_ms: Option<f64>,
    pub residual_loss_percent: Option<f64>,
    pub rtx_percent: Option<f64>,
    pub fec_percent: Option<f64>,
    /// Only of a flow with `quality`, as is `vmaf`, which is modelled.
    pub good_percent: Option<f64>,
    pub vmaf: Option<f64>,
}

/// Load beside the media, over the whole time or a section; means over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct LoadRow {
    pub controller: String,
    #[cfg_attr(test, ts(as = "crate::typed::Engine"))]
    pub engine: Engine,
    pub flow: String,
    /// `null` for the whole time.
    pub section: Option<String>,
    pub rate_mbps: Option<f64>,
    /// Only for TCP, as is `retransmitted_packets`.
    pub goodput_mbps: Option<f64>,
    pub retransmitted_packets: Option<f64>,
    pub p95_queuing_delay_ms: Option<f64>,
    pub loss_percent: Option<f64>,
}

/// A published value and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct PaperRow {
    #[serde(rename = "where")]
    pub location: String,
    /// `null` for the first flow.
    pub flow: Option<String>,
    /// `null` for the whole time.
    pub section: Option<String>,
    pub metric: String,
    pub controller: Option<String>,
    pub published: String,
    pub measured: Option<String>,
    pub note: String,
    /// What changed since, for a real call outside the published spread; else empty.
    pub since: String,
}

/// A published statement, and whether our runs agree; `holds` is `null` if unknown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Finding {
    pub text: String,
    #[serde(rename = "where")]
    pub location: String,
    pub measured: String,
    pub holds: Option<bool>,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct SectionRow {
    pub controller: String,
    #[cfg_attr(test, ts(as = "crate::typed::Engine"))]
    pub engine: Engine,
    pub name: String,
    pub from_s: f64,
    pub to_s: f64,
    pub utilization: Option<f64>,
    pub rate_mbps: Option<f64>,
    pub p95_queuing_delay_ms: Option<f64>,
    pub rtt_ms: Option<f64>,
    pub loss_percent: Option<f64>,
}

/// One flow of real calls, compared with its simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct SimReal {
    pub flow: String,
    pub sim_controller: String,
    pub real_controller: String,
    pub rows: Vec<SimRealRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct SimRealRow {
    pub metric: String,
    pub unit: String,
    pub simulated: Option<f64>,
    pub real: Option<f64>,
    /// Simulated minus real.
    pub error: Option<f64>,
    pub note: String,
}
