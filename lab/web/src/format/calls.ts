// Generated from the types of lab/report by `WEIR_UPDATE=1 cargo test -p weir-report generated`.
import type { Agreement, Engine } from "./record";

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
