// The report's data as the lab writes it: the contract between the Rust side and this page.
// Generated from lab/report/src/{format,call_format,server_format,signalling,sweep}.rs by `WEIR_UPDATE=1 cargo test -p weir-report generated`.
//
// Every number carries its unit in its name. `null` means that the value does not apply or that
// nobody measured it. Seeds are strings, because JavaScript loses integers above 2^53.

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

/** How a run was made: in simulation, or with real programs. */
export type Engine = "sim" | "call" | "link";

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

/** Rate of a flow, split into video and repair; means over the seeds. */
export interface SplitRow {
  controller: string;
  engine: Engine;
  /** The flow; for media from a forwarding server, the receiver. */
  flow: string;
  capacity_mbps: number | null;
  /** Of all IP packets. */
  rate_mbps: number | null;
  video_mbps: number;
  retransmission_mbps: number | null;
  fec_mbps: number | null;
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

/** Real calls. Tables cover all runs; plots, `streams` and `agreement` only the first one. */
export interface Calls {
  /** Of the first run. */
  seed: string;
  tried: number;
  succeeded: number;
  /** Why the other calls failed. */
  failures: Array<string>;
  /** Runs that the machine disturbed. No other member includes them. */
  left_out: Array<string>;
  /** Whether the machine disturbed all runs. */
  disturbed: boolean;
  setup: Array<SetupRow>;
  peers: Array<PeerRow>;
  streams: Array<StreamRow>;
  agreement: Array<Agreement>;
  /** Over all runs. */
  compared: number;
  agreed: number;
  /** Of the first call. */
  rates: Array<RatePlot>;
  errors: Array<StreamErrorRow>;
  delays: Array<DelayPlot>;
  /** Of the first run of each controller. */
  pacers: Array<PacerPlot>;
  /** What each peer saw, by the tags in the pictures. */
  quality: Array<QualityRow>;
  /** The same over time, of the first run of each controller. */
  screens: Array<ScreenPlot>;
  /** What happened to an analyzed call, in a few sentences; `null` of other calls. */
  verdict: string | null;
  /** The first report of an analyzed call, from which its times count, in ms since 1970. */
  began_ms: number | null;
  /** What limited analyzed calls, over all runs. The largest effect on the call comes first. */
  findings: Array<FindingRow>;
  /** The participants of an application under test, each followed by its streams. */
  app: Array<AppRow>;
}

/** The steps of a peer's set-up. */
export interface SetupRow {
  seed: string;
  peer: string;
  /** From opening the page until the lab has sent its configuration. */
  page_ms: number;
  camera_ms: number | null;
  /** Time waiting for the other peer. */
  waiting_ms: number;
  /** From then until both session descriptions are there. */
  signalling_ms: number | null;
  /** From then until a path is found. */
  ice_ms: number | null;
  dtls_ms: number | null;
  /** From the moment when both are ready until media can flow. */
  total_ms: number;
  /** From then until the first frame of the other peer is shown. */
  first_frame_ms: number | null;
  path: string;
}

/** A peer's program and the video it showed. */
export interface PeerRow {
  seed: string;
  controller: string;
  peer: string;
  /** In percent of one core. */
  cpu_percent: number | null;
  memory_mb: number | null;
  encode_ms: number | null;
  decode_ms: number | null;
  frame_rate: number | null;
  frame_size: string | null;
  freezes: number | null;
  frozen_s: number | null;
  /** What limited the quality, with shares of the time. */
  limited: string | null;
}

/** A stream as the captures of both ends saw it. */
export interface StreamRow {
  call: number;
  from: string;
  to: string;
  role: string;
  ssrc: string;
  packets: number;
  /** IP packets that arrived, over the call. */
  received_mbps: number | null;
  lost_percent: number;
  reordered: number;
  duplicates: number;
  mean_delay_ms: number | null;
  p50_delay_ms: number | null;
  p95_delay_ms: number | null;
  max_delay_ms: number | null;
}

/** One quantity, measured by two witnesses. */
export interface Agreement {
  /** The subject and the place of the measurement: `audio a to b, at a`. */
  subject: string;
  /** `packets`, `payload bytes`, `bytes`, `lost packets` or `mean delay, ms`. */
  quantity: string;
  /** The witness other than the capture: `getStats` or `emulator`. */
  witness: string;
  /** Value of this witness. */
  witnessed: number;
  /** Value of the capture. */
  captured: number;
  /** Witnessed minus captured. */
  error: number;
  /** Largest error at which the two still agree. */
  limit: number;
  /** Whether the error is within the limit. */
  agrees: boolean;
}

/** The payload of a stream over time, as a peer reported it and as its host's capture saw it. */
export interface RatePlot {
  peer: string;
  /** Direction (sent or received) and kind of the stream. */
  what: string;
  time_s: Array<number>;
  reported_kbps: Array<number>;
  captured_kbps: Array<number>;
  error_percent: number | null;
  interval_error_percent: number | null;
}

/** Counts of a stream by a peer and by the capture at its host. */
export interface StreamErrorRow {
  peer: string;
  what: string;
  /** The media section of the session description. */
  mid: string | null;
  ssrcs: string;
  reported_packets: number;
  captured_packets: number;
  /** Payload over the whole call: reported minus captured. */
  error_percent: number | null;
  /** Mean difference of the report intervals. */
  interval_error_percent: number | null;
}

/** Packets of a stream by their one-way delay, in bins of 10 ms; the last is all from 300 ms on. */
export interface DelayPlot {
  stream: string;
  counts: Array<number>;
}

/** What waited in the pacer of a pipeline over time. */
export interface PacerPlot {
  controller: string;
  peer: string;
  time_s: Array<number>;
  /** Largest time that was waiting, in each interval between two reports. */
  queue_ms: Array<number | null>;
  /** Target bitrate of the encoder at the end of the interval. */
  encoder_mbps: Array<number | null>;
}

/** What a peer saw of another one's camera. */
export interface QualityRow {
  seed: string;
  controller: string;
  /** The camera and the screen, such as `a to b`. */
  stream: string;
  /** From capture to the received track. */
  received_p50_ms: number | null;
  /** From capture to the screen. */
  shown_p50_ms: number | null;
  shown_p95_ms: number | null;
  shown_p99_ms: number | null;
  frame_rate: number | null;
  stalls: number;
  stalled_s: number;
  stalled_percent: number | null;
  /** VMAF of the compared pictures: mean, and the value that 5 % of them are below. */
  vmaf: number | null;
  vmaf_p5: number | null;
  psnr_db: number | null;
  /** Good time, and its causes of loss. */
  good_percent: number | null;
  late_percent: number | null;
  bad_picture_percent: number | null;
  repeats: number;
  skips: number;
  tags_read_percent: number | null;
  /** By how much the sound is later than the picture, median over the seconds. */
  sound_behind_ms: number | null;
  /** How late the sender's page saw 5 % of its camera's frames. */
  camera_late_p95_ms: number | null;
  /** Of the machine's processors, over the run. */
  busy_percent: number | null;
}

/** Delay of the pictures over time. */
export interface ScreenPlot {
  controller: string;
  stream: string;
  /** Ends of the intervals. */
  time_s: Array<number>;
  /** Means from capture to the received track. */
  received_ms: Array<number | null>;
  /** Means from capture to the screen. */
  shown_ms: Array<number | null>;
  /** When each compared picture was received. */
  picture_s: Array<number>;
  vmaf: Array<number | null>;
  psnr_db: Array<number>;
  worst: WorstPicture | null;
}

/** The picture that looks worst beside what was sent. */
export interface WorstPicture {
  /** When it was received. */
  time_s: number;
  /** Addresses of the images, with their data. */
  received: string;
  sent: string;
}

/** What limited a stream for a while. */
export interface FindingRow {
  seed: string;
  stream: string;
  /**
   * What limited it: `connection`, `network`, `controller`, `encoder`, `processor` or
   * `application`. `video` and `audio` are effects: what was seen and heard.
   */
  part: string;
  /** The rule that found it, such as `capacity` or `freeze`. */
  rule: string;
  says: string;
  from_s: number;
  to_s: number;
  /** Number of samples that it rests on. */
  samples: number;
}

/** A participant of an application under test, or one of its streams, over the whole run. */
export interface AppRow {
  seed: string;
  name: string;
  /** Of a stream that it sends: codec, layer of simulcast, layers of scalable coding. */
  sends: string | null;
  setup_ms: number | null;
  first_frame_ms: number | null;
  send_rate_mbps: number | null;
  receive_rate_mbps: number | null;
  frame_rate: number | null;
  frame_height: number | null;
  freezes: number | null;
  limited_by_bandwidth_percent: number | null;
  concealed_percent: number | null;
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

/** What a forwarding server sent to its subscribers over one run. */
export interface Forwarding {
  /** The command that repeats the run. */
  command: string;
  controller: string;
  duration_s: number;
  /** Layers of the publisher that has most. */
  layers: number;
  lanes: Array<ForwardedLane>;
  /** Chosen and switched layers, and pauses, by time. */
  choices: Array<LayerChoice>;
  /** Whether there were more lanes or choices than these. */
  is_cut: boolean;
}

/** One publisher's picture on its way to one subscriber. */
export interface ForwardedLane {
  /** The subscriber. */
  flow: string;
  publisher: string;
  spans: Array<ForwardedSpan>;
}

/** A time in which one layer was sent. */
export interface ForwardedSpan {
  from_s: number;
  to_s: number;
  /** From 0, the smallest; `null`: nothing was sent. */
  layer: number | null;
  /** Why it was chosen; empty at the start. */
  reason: string;
}

/** A decision about a layer. */
export interface LayerChoice {
  time_s: number;
  flow: string;
  publisher: string;
  /** `chosen`, `switched` or `cut`. */
  decision: string;
  from: number | null;
  /** `null`: a pause. */
  to: number | null;
  reason: string;
  /** What all pictures could take at that moment. */
  budget_kbps: number;
  /** What all pictures need after the decision. */
  needed_kbps: number;
}

/** The messages of a call between the parts of an IMS, and how long its phases took. */
export interface Signalling {
  /** Both users; with a scenario, its name and the seed too. */
  title: string;
  /** The terminals and parts, in the order in which they appear. */
  parts: Array<string>;
  phases: Array<Phase>;
  /** In the order of time. */
  messages: Array<SignallingMessage>;
}

/** A phase of a call, such as from INVITE to 180. */
export interface Phase {
  name: string;
  duration_ms: number;
}

/** A message between two parts. */
export interface SignallingMessage {
  /** Since the first message. */
  time_ms: number;
  from: string;
  to: string;
  /** `SIP`, `Diameter`, `HTTP` or `bearer`; `media` for the first picture. */
  protocol: string;
  /** Method, status or command. */
  name: string;
  text: string;
}

/** Everything that the report of a sweep shows. `kind` tells the page which report it has. */
export interface SweepReport {
  schema: number;
  /** Always `sweep`. */
  kind: string;
  title: string;
  /** The command that wrote this report. */
  command: string;
  /** Program and version. */
  generator: string;
  /** In the order of legends and tables. */
  controllers: Array<string>;
  /**
   * Metrics that have a value in at least one run. Members named `values` have one entry for
   * each.
   */
  metrics: Array<SweepMetric>;
  runs: number;
  scenarios: Array<SweepScenario>;
}

/** A metric of a run: the mean over its media flows. */
export interface SweepMetric {
  name: string;
  unit: string;
  /** `higher`, `lower` or empty. */
  better: string;
  meaning: string;
}

export interface SweepScenario {
  id: string;
  runs: number;
  seeds: number;
  /** Number of different combinations of the parameters' values. */
  points: number;
  parameters: Array<SweepParameter>;
  maps: Array<HeatMap>;
  /**
   * Mean over the seeds, for each controller and combination of parameters. If there are many, a
   * part of them, which contains every front.
   */
  dots: Array<SweepDot>;
  fronts: Array<FrontRow>;
  worst: Array<WorstRuns>;
}

/** A parameter, and its values or ranges of its values in rising order. */
export interface SweepParameter {
  name: string;
  bins: Array<string>;
}

/** Two parameters against each other; `y` is `null` if the sweep has only one. */
export interface HeatMap {
  /** Index of the parameter. */
  x: number;
  y: number | null;
  cells: Array<HeatCell>;
}

/**
 * The runs of a controller in which both parameters have values of one bin. All numbers but the
 * last two are indices.
 */
export interface HeatCell {
  controller: number;
  x: number;
  y: number;
  runs: number;
  /** Mean of each metric. */
  values: Array<number | null>;
}

/** A controller at one combination of the parameters. */
export interface SweepDot {
  controller: number;
  /** Value of each parameter. */
  at: Array<string>;
  p95_queuing_delay_ms: number;
  utilization: number;
  runs: number;
  /** No other dot of this controller has at least this utilization and at most this delay. */
  on_own_front: boolean;
}

/**
 * How often a controller is on the Pareto front of utilization and delay among the controllers,
 * over all combinations of the parameters.
 */
export interface FrontRow {
  controller: number;
  points: number;
  on_front: number;
  /** The only one on the front: no other has more utilization or less delay. */
  alone: number;
}

/** The worst runs of a controller by one metric, the worst first. */
export interface WorstRuns {
  controller: number;
  /** Index of the metric. */
  metric: number;
  runs: Array<WorstRun>;
}

export interface WorstRun {
  seed: string;
  /** Value of each parameter. */
  at: Array<string>;
  values: Array<number | null>;
  /** The command that makes this run again, with a record. */
  command: string;
}
