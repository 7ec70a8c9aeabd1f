// Generated from the types of lab/report by `WEIR_UPDATE=1 cargo test -p weir-report generated`.
import type { Calls, SplitRow } from "./calls";
import type { Engine } from "./record";
import type { Forwarding } from "./server";
import type { Signalling } from "./signalling";

/** Everything that one report shows. */
export interface Report {
  schema: number;
  title: string;
  /** The command that wrote this report. */
  command: string;
  /** Program and version. */
  generator: string;
  definitions: Array<Definition>;
  /** In the order of legends and tables. */
  controllers: Array<string>;
  /** One for each requirement of RFC 8836 and controller; empty if no expectation tests any. */
  verdicts: Array<RequirementRow>;
  /** What Google's congestion control changed since 2013. */
  then_and_now: Array<ThenAndNow>;
  /** Real calls of each scenario, means over participants and runs. */
  participants: Array<ParticipantsRow>;
  /** Simulated runs compared with real calls of the same scenarios. */
  errors: Array<ErrorRow>;
  scenarios: Array<Scenario>;
  /** Of calls through an IMS. */
  signalling: Array<Signalling>;
  /** Number of runs over all scenarios, controllers and seeds. */
  runs: number;
}

export interface Definition {
  term: string;
  text: string;
}

/** Whether a controller meets a requirement of RFC 8836; `met` is `null` if nothing tested it. */
export interface RequirementRow {
  requirement: string;
  text: string;
  controller: string;
  met: boolean | null;
  /** Number of expectations on this requirement that hold. */
  held: number;
  tested: number;
  /** The expectation that decides, with its value and limit. */
  by: string;
  /** Value and limit of that expectation. */
  figure: string;
}

/** A flow under the algorithm of 2013 and under today's, means over the seeds. */
export interface ThenAndNow {
  scenario: string;
  flow: string;
  then: FlowMeans;
  now: FlowMeans;
}

export interface FlowMeans {
  utilization: number | null;
  rate_mbps: number | null;
  p95_queuing_delay_ms: number | null;
  loss_percent: number | null;
}

/** Means over the participants of a scenario's calls. */
export interface ParticipantsRow {
  scenario: string;
  controller: string;
  participants: number;
  runs: number;
  success_ratio: number | null;
  setup_ms: number | null;
  first_frame_ms: number | null;
  rtt_ms: number | null;
  one_way_delay_ms: number | null;
  send_rate_mbps: number | null;
  receive_rate_mbps: number | null;
  /** In percent of one core. */
  cpu_percent: number | null;
  memory_mb: number | null;
}

/** A media flow, simulated and real, means over the seeds; errors are simulated minus real. */
export interface ErrorRow {
  scenario: string;
  flow: string;
  sim_controller: string;
  real_controller: string;
  real_mbps: number;
  sim_mbps: number;
  /** Error of the rate, in percent of the real rate. */
  error_percent: number | null;
  real_p95_ms: number | null;
  sim_p95_ms: number | null;
  error_ms: number | null;
  /** Whether the machine disturbed all runs of the real call. Headlines leave such rows out. */
  is_disturbed: boolean;
}

export interface Scenario {
  id: string;
  title: string;
  /** Document and section that the scenario comes from. */
  source: string;
  description: string;
  duration_s: number;
  /** The network in words, one fact per entry. */
  network: Array<string>;
  groups: Array<Group>;
  paper: Array<PaperRow>;
  findings: Array<Finding>;
  sections: Array<SectionRow>;
  /** Flows whose receiver shows the video. */
  video: Array<VideoRow>;
  split: Array<SplitRow>;
  /** TCP and UDP flows that compete with the media. */
  loads: Array<LoadRow>;
  expectations: Array<Expectation>;
  fairness: Array<FairnessRow>;
  sim_real: Array<SimReal>;
  /** `null` where no real call was made. */
  calls: Calls | null;
  /** Use of the channel of a Wi-Fi cell; `null` without a cell. */
  airtime: Airtime | null;
  /** Bearers of a cellular cell; `null` without one. */
  cellular: Cellular | null;
  /** What a forwarding server sent to whom; `null` without one. */
  server: Forwarding | null;
}

/** One flow over all runs of one controller under one engine. */
export interface Group {
  controller: string;
  engine: Engine;
  flow: string;
  seeds: Array<string>;
  /** The command that repeats these runs. */
  command: string;
  series: Series;
  /** Rate changes of the first seed, by time. */
  events: Array<RateChange>;
  box: Boxes;
  points: Array<Point>;
  warnings: Array<string>;
  /** How late the emulator released packets; `null` for simulated runs. */
  lateness_us: Histogram | null;
}

/**
 * Averages over the seeds, interpolated linearly on a common grid of times. Each column has an
 * entry for each point of time.
 */
export interface Series {
  time_s: Array<number>;
  capacity_mbps: Array<number | null>;
  /**
   * The rate that the oracle reaches, which knows the schedule as late as feedback could report
   * it. Only on wired paths.
   */
  possible_mbps: Array<number | null>;
  target_mbps: Array<number | null>;
  received_mbps: Array<number | null>;
  rtt_ms: Array<number | null>;
  queuing_delay_ms: Array<number | null>;
  loss_percent: Array<number | null>;
}

export interface RateChange {
  time_s: number;
  from_mbps: number;
  target_mbps: number;
  reason: string;
  state: string;
  /** The controller's signals at the change; the unit is in the name. */
  signals: Record<string, number>;
}

export interface Boxes {
  utilization: BoxPlot | null;
  rtt_ms: BoxPlot | null;
  responsiveness_s: BoxPlot | null;
  loss_percent: BoxPlot | null;
}

/** A box plot over the seeds. The whiskers end at `min` and `max`, without the outliers. */
export interface BoxPlot {
  min: number;
  q1: number;
  median: number;
  q3: number;
  max: number;
  outliers: Array<number>;
}

/** One run of a group, at the group's flow. */
export interface Point {
  seed: string;
  throughput_mbps: number | null;
  utilization: number | null;
  p95_queuing_delay_ms: number | null;
  loss_percent: number | null;
  rtt_ms: number | null;
  responsiveness_s: number | null;
  /** Good time; only of a flow with `quality`, or a call with `--quality`. */
  good_percent: number | null;
}

/** Histogram of the release lateness of packets. */
export interface Histogram {
  /** Edges of the bins, one more than `counts`. */
  edges: Array<number>;
  counts: Array<number>;
  p50: number;
  p99: number;
  max: number;
}

/** A published value and ours. */
export interface PaperRow {
  where: string;
  /** `null` for the first flow. */
  flow: string | null;
  /** `null` for the whole time. */
  section: string | null;
  metric: string;
  controller: string | null;
  published: string;
  measured: string | null;
  note: string;
  /** What changed since, for a real call outside the published spread; else empty. */
  since: string;
}

/** A published statement, and whether our runs agree; `holds` is `null` if unknown. */
export interface Finding {
  text: string;
  where: string;
  measured: string;
  holds: boolean | null;
  why: string;
}

export interface SectionRow {
  controller: string;
  engine: Engine;
  name: string;
  from_s: number;
  to_s: number;
  utilization: number | null;
  rate_mbps: number | null;
  p95_queuing_delay_ms: number | null;
  rtt_ms: number | null;
  loss_percent: number | null;
}

/** Video quality of a flow and the cost of its repair; means over the seeds. */
export interface VideoRow {
  controller: string;
  engine: Engine;
  flow: string;
  frame_rate: number | null;
  freezes: number | null;
  frozen_s: number | null;
  p95_frame_delay_ms: number | null;
  residual_loss_percent: number | null;
  rtx_percent: number | null;
  fec_percent: number | null;
  /** Only of a flow with `quality`, as is `vmaf`, which is modelled. */
  good_percent: number | null;
  vmaf: number | null;
}

/** Load beside the media, over the whole time or a section; means over the seeds. */
export interface LoadRow {
  controller: string;
  engine: Engine;
  flow: string;
  /** `null` for the whole time. */
  section: string | null;
  rate_mbps: number | null;
  /** Only for TCP, as is `retransmitted_packets`. */
  goodput_mbps: number | null;
  retransmitted_packets: number | null;
  p95_queuing_delay_ms: number | null;
  loss_percent: number | null;
}

/** An expectation of `weir check` under one controller. */
export interface Expectation {
  controller: string;
  text: string;
  /** Mean over the seeds. */
  measured: number | null;
  /** Half the width of its 95 % confidence interval. */
  confidence: number | null;
  /** `at least 0.67`. */
  limit: string;
  outcome: ExpectationOutcome;
  /** Reason of a known miss. */
  why: string;
}

/** Result of an expectation. */
export type ExpectationOutcome = "holds" | "fails" | "in doubt" | "known miss" | "known miss that holds now";

/** Fairness between media flows, means over the seeds. A ratio is of the least fair window. */
export interface FairnessRow {
  controller: string;
  engine: Engine;
  jain: number | null;
  ratio_1s: number | null;
  ratio_5s: number | null;
  ratio_20s: number | null;
  /** Share of the windows of 5 s in which no two flows differ by more than a factor of three. */
  within_5s: number | null;
}

/** One flow of real calls, compared with its simulation. */
export interface SimReal {
  flow: string;
  sim_controller: string;
  real_controller: string;
  rows: Array<SimRealRow>;
}

export interface SimRealRow {
  metric: string;
  unit: string;
  simulated: number | null;
  real: number | null;
  /** Simulated minus real. */
  error: number | null;
  note: string;
}

/** Use of the channel of a Wi-Fi cell over a few milliseconds of one run. */
export interface Airtime {
  /** The command that repeats the run. */
  command: string;
  controller: string;
  /** Start of the picture, in the run's time. */
  from_s: number;
  nodes: Array<string>;
  frames: Array<AirFrame>;
}

/** A frame on the air; times from the beginning of the picture. */
export interface AirFrame {
  start_us: number;
  end_us: number;
  /** Index of its sender. */
  node: number;
  kind: AirFrameKind;
  /** Packets in the frame; 1 in an acknowledgement. */
  mpdus: number;
  /** How many of these packets arrived. */
  decoded: number;
  text: string;
}

/** Kinds of frames on the air. */
export type AirFrameKind = "data" | "ack" | "block-ack";

/** Bearers of a cellular cell over one run. */
export interface Cellular {
  /** The command that repeats the run. */
  command: string;
  controller: string;
  /** Ends of the spans over which the values of the curves are taken. */
  time_s: Array<number>;
  curves: Array<BearerCurve>;
  /** Whether the cell has more bearers than there are curves. */
  is_cut: boolean;
  /** What became of bearers. */
  changes: Array<BearerChange>;
  /** `null` if no block was recorded. */
  grid: ResourceGrid | null;
}

/** One direction of a bearer; one value for each time. */
export interface BearerCurve {
  terminal: string;
  bearer: string;
  direction: "up" | "down";
  /** Rate of the IP bytes delivered. */
  rate_mbps: Array<number | null>;
  queue_kb: Array<number | null>;
  /** Share of the direction's resource blocks. */
  prb_percent: Array<number | null>;
  /** Without fading. This and the rest are of the terminal. */
  sinr_db: Array<number | null>;
  mcs: Array<number | null>;
  /** Retransmissions of HARQ over all transmissions of blocks. */
  retransmission_percent: Array<number | null>;
}

/** What became of a bearer. */
export interface BearerChange {
  time_s: number;
  terminal: string;
  bearer: string;
  /** `added`, `changed`, `removed`, `refused`, `pre-empted` or `unknown`. */
  event: string;
}

/** Who had which resource blocks over a few milliseconds. */
export interface ResourceGrid {
  /** Start of the picture, in the run's time. */
  from_s: number;
  tti_ms: number;
  /** Number of TTIs in the picture. */
  ttis: number;
  prbs_up: number;
  prbs_down: number;
  nodes: Array<string>;
  blocks: Array<GridBlock>;
}

/** A transmission of a block. */
export interface GridBlock {
  /** Number of its TTI in the picture, from 0. */
  tti: number;
  direction: "up" | "down";
  /** Index of its terminal. */
  node: number;
  /** First and last resource block of each range. */
  prbs: Array<[number, number]>;
  mcs: number;
  bytes: number;
  /** 1 for the first transmission. */
  attempt: number;
  is_decoded: boolean;
}
