// Reports for tests, generated from a seed. The curves look plausible, but say nothing about any
// controller.

import type {
  BearerCurve,
  BoxPlot,
  Calls,
  Cellular,
  Engine,
  Group,
  Histogram,
  Point,
  RateChange,
  Report,
  ResourceGrid,
  Scenario,
} from "../src/format";

/** A small generator with a known sequence (mulberry32), so that pictures stay the same. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Schedule = [from_s: number, capacity_mbps: number][];

interface Shape {
  id: string;
  title: string;
  source: string;
  duration_s: number;
  base_rtt_ms: number;
  schedule: Schedule;
}

const STEPS: Schedule = [2, 1.5, 1, 0.5, 1, 1.5, 2, 1.5, 1, 0.5].map((rate, i) => [20 * i, rate]);
const DROPS: Schedule = [
  [0, 2],
  [30, 0.5],
  [33, 2],
  [60, 0.5],
  [65, 2],
  [90, 0.5],
  [92, 2],
];
const CALL: Schedule = [
  [0, 2],
  [15, 0.5],
  [25, 2],
];

const SHAPES: Shape[] = [
  shape("lund/rmcat-ns3", "Capacity in steps", "lund, section 5", 200, 50, STEPS),
  shape("lund/sudden-reduction", "Three sudden drops", "lund, section 5", 120, 50, DROPS),
  shape("lund/sweden-china", "Sudden drops, long path", "lund, section 5", 120, 370, DROPS),
  shape("lund/no-jitter", "Long path without jitter", "lund, section 5", 120, 370, DROPS),
  shape("rfc8867/5.1", "Variable capacity, one flow", "RFC 8867, section 5.1", 100, 50, STEPS),
  shape("demo/first-call", "A first call", "this project", 40, 50, CALL),
];

/** The scenario with two flows on one path, and with expectations. */
const SHARED = "rfc8867/5.1";

const CONTROLLERS = ["gcc-draft", "nada", "scream"];
const BROWSER = "gcc-chromium";
const EAGERNESS = new Map([
  ["gcc-draft", 0.78],
  ["nada", 0.93],
  ["scream", 0.85],
  [BROWSER, 0.88],
]);
const SEEDS = ["1", "2", "3", "4", "5"];
const POINTS = 1000;

function shape(
  id: string,
  title: string,
  source: string,
  duration_s: number,
  base_rtt_ms: number,
  schedule: Schedule,
): Shape {
  return { id, title, source, duration_s, base_rtt_ms, schedule };
}

/** Six scenarios under three controllers, and one real call with two flows. */
export function fixture(): Report {
  const next = random(7);
  const scenarios = SHAPES.map((it) => scenarioOf(it, next));
  return {
    schema: 1,
    title: "Weir report: fixture",
    command: "weir report runs/lund runs/rfc8867 runs/first-call -o report.html",
    generator: "weir 0.1.0 (fixture)",
    definitions: [
      { term: "Utilization", text: "Received bits over capacity, both over the same time." },
      { term: "Queuing delay", text: "One-way delay of a packet less the path's fixed delay." },
      { term: "RTT", text: "From sending a packet until the feedback on it arrives." },
    ],
    controllers: [...CONTROLLERS, BROWSER],
    verdicts: verdictRows(),
    then_and_now: thenAndNowRows(),
    participants: [PARTICIPANTS],
    errors: [ERROR],
    scenarios,
    runs: scenarios
      .flatMap((s) => s.groups)
      .filter((g) => g.flow !== "tcp-1")
      .reduce((n, g) => n + g.seeds.length, 0),
  };
}

function scenarioOf(it: Shape, next: () => number): Scenario {
  const call = it.id === "demo/first-call";
  const shared = it.id === SHARED;
  const alone = shared ? ["media-1", "tcp-1"] : ["media-1"];
  const flows = call ? ["media-1-up", "media-1-down"] : alone;
  const groups = flows.flatMap((flow) => [
    ...CONTROLLERS.map((controller) => groupOf(it, controller, "sim", flow, next)),
    ...(call ? [groupOf(it, BROWSER, "call", flow, next)] : []),
  ]);
  return {
    id: it.id,
    title: it.title,
    source: it.source,
    description:
      "One media flow that always meets its target crosses a bottleneck whose capacity changes.",
    duration_s: it.duration_s,
    network: [
      `Bottleneck of ${it.schedule.map(([, rate]) => rate).join(", ")} Mbit/s in turn.`,
      "Drop-tail queue of 300 ms.",
      `${it.base_rtt_ms / 2} ms one way in each direction.`,
    ],
    groups,
    paper: call ? [] : paperRows(),
    findings: call ? [] : findingRows(),
    sections: call ? sectionRows(groups) : [],
    video: call ? videoRows(groups) : [],
    split: call ? splitRows() : [],
    loads: call ? [LOAD] : [],
    expectations: shared ? expectationRows() : [],
    fairness: shared ? fairnessRows() : [],
    sim_real: call ? flows.map(comparison) : [],
    calls: call ? callRows() : null,
    airtime: shared ? AIRTIME : null,
    cellular: shared ? cellularOf(it.duration_s) : null,
  };
}

function groupOf(
  it: Shape,
  controller: string,
  engine: Engine,
  flow: string,
  next: () => number,
): Group {
  const eager = EAGERNESS.get(controller) ?? 0.8;
  const group = emptyGroup(controller, engine, flow);
  group.seeds = engine === "call" ? ["1"] : SEEDS;
  const verb = engine === "call" ? "call" : "run";
  group.command = `weir ${verb} ${it.id} --controller ${controller} --seeds ${group.seeds.length}`;
  fillSeries(group, it, eager, next);
  group.points = group.seeds.map((seed) => pointOf(seed, eager, it, next));
  const column = (pick: (point: Point) => number | null) =>
    boxOf(group.points.map(pick).filter((value) => value !== null));
  if (group.seeds.length > 1) {
    group.box = {
      utilization: column((p) => p.utilization),
      rtt_ms: column((p) => p.rtt_ms),
      responsiveness_s: column((p) => p.responsiveness_s),
      loss_percent: column((p) => p.loss_percent),
    };
  }
  if (engine === "call") {
    group.lateness_us = latenessOf(next);
    group.warnings = ["12 packets left more than 1 ms late; the processors were 93 % busy."];
  }
  return group;
}

export function emptyGroup(controller: string, engine: Engine, flow: string): Group {
  return {
    controller,
    engine,
    flow,
    seeds: [],
    command: `weir run demo/none --controller ${controller}`,
    series: {
      time_s: [],
      capacity_mbps: [],
      target_mbps: [],
      received_mbps: [],
      rtt_ms: [],
      queuing_delay_ms: [],
      loss_percent: [],
    },
    events: [],
    box: { utilization: null, rtt_ms: null, responsiveness_s: null, loss_percent: null },
    points: [],
    warnings: [],
    lateness_us: null,
  };
}

function capacityAt(schedule: Schedule, time: number): number {
  return schedule.findLast(([from]) => from <= time)?.[1] ?? 0;
}

function fillSeries(group: Group, it: Shape, eager: number, next: () => number): void {
  const { series } = group;
  let target = 0.3;
  let queue = 0;
  const step = it.duration_s / POINTS;
  for (let i = 0; i < POINTS; i++) {
    const time = i * step;
    const capacity = capacityAt(it.schedule, time);
    const before = target;
    const goal = capacity * eager;
    target += (goal - target) * (target > goal ? 0.6 : 0.12) * step * (0.7 + 0.6 * next());
    target = Math.min(2.5, Math.max(0.05, target * (0.985 + 0.03 * next())));
    queue = Math.min(300, Math.max(0, queue + (target - capacity) * 220 * step - 4 * step));
    const lost = queue >= 300 ? 15 * next() : 0;
    const received = Math.min(target, capacity) * (0.97 + 0.03 * next());
    series.time_s.push(round(time));
    series.capacity_mbps.push(capacity);
    series.target_mbps.push(round(target));
    series.received_mbps.push(i < 5 ? null : round(received));
    series.rtt_ms.push(i < 5 ? null : round(it.base_rtt_ms + queue + 3 * next()));
    series.queuing_delay_ms.push(i < 5 ? null : round(queue + 2 * next()));
    series.loss_percent.push(i < 5 ? null : round(lost));
    if (group.engine === "sim" && Math.abs(target - before) > 0.02) {
      group.events.push(changeOf(time, before, target, queue));
    }
  }
}

function changeOf(time: number, from: number, target: number, queue: number): RateChange {
  const down = target < from;
  return {
    time_s: round(time),
    from_mbps: round(from),
    target_mbps: round(target),
    reason: down ? "over-use" : "ramp-up",
    state: down ? "decrease" : "increase",
    signals: { gradient_ms: round(down ? 0.4 : -0.1), threshold_ms: 12.5, queue_ms: round(queue) },
  };
}

function pointOf(seed: string, eager: number, it: Shape, next: () => number): Point {
  const mean = it.schedule.reduce((sum, [, rate]) => sum + rate, 0) / it.schedule.length;
  const utilization = eager + 0.06 * (next() - 0.5);
  return {
    seed,
    utilization: round(utilization),
    throughput_mbps: round(utilization * mean),
    p95_queuing_delay_ms: round(20 + 180 * eager * next()),
    loss_percent: round(0.8 * next()),
    rtt_ms: round(it.base_rtt_ms + 10 + 40 * next()),
    responsiveness_s: round(1 + 5 * (1 - eager) + next()),
  };
}

/** Quartiles by interpolation. Whiskers end at the extremes without the one invented outlier. */
function boxOf(values: number[]): BoxPlot {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (q: number) => {
    const position = q * (sorted.length - 1);
    const low = Math.floor(position);
    const [a, b] = [sorted[low] as number, sorted[Math.ceil(position)] as number];
    return round(a + (b - a) * (position - low));
  };
  const outlier = round(at(1) + 2 * (at(1) - at(0)));
  const [min, q1, median, q3, max] = [at(0), at(0.25), at(0.5), at(0.75), at(1)];
  return { min, q1, median, q3, max, outliers: [outlier] };
}

function latenessOf(next: () => number): Histogram {
  const edges = [0, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 20000];
  const shares = [900, 4200, 6100, 1800, 420, 60, 14, 8, 0, 4];
  const counts = shares.map((share) => Math.round(share * (0.9 + 0.2 * next())));
  return { edges, counts, p50: 31, p99: 180, max: 6120 };
}

function paperRows(): Scenario["paper"] {
  return [
    {
      where: "Figure 5.1",
      metric: "Utilization",
      controller: "gcc-draft",
      flow: null,
      section: null,
      published: "77–79 %",
      measured: "78.4 %",
      note: "",
      since: "",
    },
    {
      where: "Figure 5.3",
      metric: "Responsiveness",
      controller: "nada",
      flow: "media-1",
      section: "all",
      published: "< 2 s",
      measured: null,
      note: "The capacity never changes by 250 kbit/s within the section.",
      since: "probes at the start",
    },
  ];
}

function findingRows(): Scenario["findings"] {
  const where = "section 5.4";
  return [
    {
      text: "NADA has the best utilization.",
      where,
      measured: "NADA 93 %, SCReAM 85 %, GCC 78 %.",
      holds: true,
      why: "",
    },
    {
      text: "GCC has loss peaks of 50 %.",
      where,
      measured: "The highest peak is 22 %.",
      holds: false,
      why: "The queue here holds 300 ms; the paper does not state its size.",
    },
    {
      text: "SCReAM stays at 300 kbit/s.",
      where,
      measured: "Between 0.3 and 1.1 Mbit/s.",
      holds: null,
      why: "The paper's figure shows one run.",
    },
  ];
}

function sectionRows(groups: Group[]): Scenario["sections"] {
  const spans: [string, number, number][] = [
    ["before", 0, 15],
    ["drop", 15, 25],
    ["after", 25, 40],
  ];
  return groups
    .filter((group) => group.flow === "media-1-up")
    .flatMap(({ controller, engine }) =>
      spans.map(([name, from_s, to_s], i) => ({
        controller,
        engine,
        name,
        from_s,
        to_s,
        utilization: 0.9 - 0.1 * i,
        rate_mbps: 1.8 - 0.6 * i,
        p95_queuing_delay_ms: 35 + 60 * i,
        rtt_ms: engine === "call" ? 62 + 40 * i : null,
        loss_percent: 0.2 * i,
      })),
    );
}

function videoRows(groups: Group[]): Scenario["video"] {
  return groups
    .filter((group) => group.engine === "sim")
    .map(({ controller, engine, flow }, i) => ({
      controller,
      engine,
      flow,
      frame_rate: 30 - 2 * i,
      freezes: i,
      frozen_s: 0.8 * i,
      p95_frame_delay_ms: 80 + 40 * i,
      residual_loss_percent: 0.5 * i,
      rtx_percent: 2,
      fec_percent: 10,
    }));
}

function splitRows(): Scenario["split"] {
  const [simulated, real] = [
    { controller: "gcc-draft", engine: "sim" as const, fec_mbps: 0.1 },
    { controller: "chromium", engine: "call" as const, fec_mbps: null },
  ];
  const flow = { flow: "media-1-up", capacity_mbps: 2, rate_mbps: 1.8 };
  return [simulated, real].map((run) => {
    return { ...run, ...flow, video_mbps: 1.6, retransmission_mbps: 0.04 };
  });
}

const ERROR: Report["errors"][number] = {
  scenario: "demo/first-call",
  flow: "media-1-up",
  sim_controller: "gcc-draft",
  real_controller: "chromium",
  real_mbps: 1.72,
  sim_mbps: 1.81,
  error_percent: 5.2,
  real_p95_ms: 80,
  sim_p95_ms: null,
  error_ms: null,
};

const AIRTIME: Scenario["airtime"] = {
  command: `weir run ${SHARED} --controller nada --seed 1`,
  controller: "nada",
  from_s: 30,
  nodes: ["ap", "caller-1", "caller-2"],
  frames: [
    { start_us: 0, end_us: 180, node: 1, kind: "data", mpdus: 4, decoded: 3, text: "data to ap" },
    {
      start_us: 190,
      end_us: 224,
      node: 0,
      kind: "block-ack",
      mpdus: 1,
      decoded: 1,
      text: "BlockAck",
    },
    {
      start_us: 300,
      end_us: 2400,
      node: 1,
      kind: "data",
      mpdus: 1,
      decoded: 0,
      text: "data to ap",
    },
  ],
};

/** Three terminals; the second one has a second bearer. */
function cellularOf(duration_s: number): Cellular {
  const time_s = Array.from({ length: 100 }, (_, i) => ((i + 1) * duration_s) / 100);
  const bearers: [string, string][] = [
    ["pc3", "default"],
    ["pc4", "default"],
    ["pc4", "video"],
    ["walker", "default"],
  ];
  const curve = ([terminal, bearer]: [string, string], i: number, down: boolean): BearerCurve => {
    const wave = (mean: number, width: number) =>
      time_s.map((time) => mean + width * Math.sin(time / (5 + i)));
    return {
      terminal,
      bearer,
      direction: down ? "down" : "up",
      rate_mbps: wave(down ? 4 : 2, 1),
      queue_kb: wave(50 * (i + 1), 40),
      prb_percent: wave(20, 5),
      sinr_db: wave(5 - 4 * i, 3),
      // A terminal that sends nothing has no MCS.
      mcs: wave(15, 6).map((value, k) => (k > 40 && k < 50 ? null : value)),
      retransmission_percent: wave(10, 5),
    };
  };
  const all = [true, false].flatMap((down) => bearers.map((it, i) => curve(it, i, down)));
  return {
    command: `weir run ${SHARED} --controller nada --seed 1`,
    controller: "nada",
    time_s,
    curves: all,
    is_cut: false,
    changes: [{ time_s: 12.5, terminal: "pc4", bearer: "video", event: "added" }],
    grid: gridOf(),
  };
}

function gridOf(): ResourceGrid {
  const block = (
    tti: number,
    direction: "up" | "down",
    node: number,
    prbs: [number, number][],
  ) => ({
    tti,
    direction,
    node,
    prbs,
    mcs: 12,
    bytes: 700,
    attempt: 1,
    is_decoded: true,
  });
  return {
    from_s: 30,
    tti_ms: 1,
    ttis: 40,
    prbs_up: 25,
    prbs_down: 25,
    nodes: ["base-station", "pc3", "pc4", "walker"],
    blocks: [
      block(0, "down", 1, [[0, 11]]),
      {
        ...block(0, "down", 2, [
          [12, 15],
          [20, 24],
        ]),
        is_decoded: false,
      },
      block(1, "up", 1, [[0, 24]]),
      {
        ...block(8, "down", 2, [
          [12, 15],
          [20, 24],
        ]),
        attempt: 2,
      },
      block(12, "up", 3, [[3, 20]]),
      block(39, "down", 3, [[0, 24]]),
    ],
  };
}

const PARTICIPANTS: Report["participants"][number] = {
  scenario: "demo/first-call",
  controller: "chromium",
  participants: 2,
  runs: 3,
  success_ratio: 0.667,
  setup_ms: 175,
  first_frame_ms: 305,
  rtt_ms: 52,
  one_way_delay_ms: null,
  send_rate_mbps: 1.7,
  receive_rate_mbps: 1.6,
  cpu_percent: 48,
  memory_mb: 350,
};

const LOAD: Scenario["loads"][number] = {
  controller: "chromium",
  engine: "call",
  flow: "tcp-1",
  section: null,
  rate_mbps: 1.2,
  goodput_mbps: 1.15,
  retransmitted_packets: 210,
  p95_queuing_delay_ms: 280,
  loss_percent: 1.4,
};

function callRows(): Calls {
  const time_s = Array.from({ length: 60 }, (_, i) => (i + 1) / 2);
  const captured_kbps = time_s.map((t) => 1500 + 400 * Math.sin(t / 3));
  const peers = ["a", "b"];
  return {
    seed: "1",
    tried: 3,
    succeeded: 2,
    failures: ["the peers are not connected after 30 s"],
    left_out: ["seed 4 is left out of all values: this machine disturbed the run"],
    disturbed: false,
    setup: peers.map((peer) => ({
      seed: "1",
      peer,
      page_ms: 310,
      camera_ms: peer === "a" ? 120 : null,
      waiting_ms: 40,
      signalling_ms: 60,
      ice_ms: 35,
      dtls_ms: 80,
      total_ms: 175,
      first_frame_ms: 130,
      path: "10.45.0.1 (host) to 10.45.0.2 (host), udp",
    })),
    peers: peers.map((peer) => ({
      seed: "1",
      controller: BROWSER,
      peer,
      cpu_percent: 48.8,
      memory_mb: 310,
      encode_ms: 9.2,
      decode_ms: null,
      frame_rate: 29.7,
      frame_size: "640 x 480",
      freezes: 1,
      frozen_s: 0.4,
      limited: "none 80 %, bandwidth 20 %",
    })),
    streams: [
      {
        call: 1,
        from: "a",
        to: "b",
        role: "video",
        ssrc: "0x1234abcd",
        packets: 7200,
        received_mbps: 1.8,
        lost_percent: 1.2,
        reordered: 0,
        duplicates: 0,
        mean_delay_ms: 31,
        p50_delay_ms: 28,
        p95_delay_ms: 55,
        max_delay_ms: 140,
      },
    ],
    agreement: [
      {
        subject: "media a to b, at b",
        quantity: "packets",
        witness: "getStats",
        witnessed: 7110,
        captured: 7114,
        error: -4,
        limit: 26,
        agrees: true,
      },
    ],
    compared: 22,
    agreed: 22,
    rates: ["sent video and retransmissions", "received video"].map((what) => ({
      peer: what.startsWith("sent") ? "a" : "b",
      what,
      time_s,
      reported_kbps: captured_kbps.map((rate, i) => rate * (i % 2 === 0 ? 1.02 : 0.98)),
      captured_kbps,
      error_percent: 0.1,
      interval_error_percent: 2,
    })),
    errors: [
      {
        peer: "a",
        what: "sent video and retransmissions",
        mid: "1",
        ssrcs: "0x5f3a0001, 0x5f3a0002",
        reported_packets: 19000,
        captured_packets: 19001,
        error_percent: 0.1,
        interval_error_percent: 2,
      },
    ],
    delays: [
      {
        stream: "video from a to b",
        counts: [0, 0, 4000, 2000, 600, 300, ...Array(24).fill(8), 20],
      },
    ],
  };
}

function comparison(flow: string): Scenario["sim_real"][number] {
  const row = (metric: string, unit: string, simulated: number | null, real: number | null) => {
    const error = simulated === null || real === null ? null : round(real - simulated);
    return { metric, unit, simulated, real, error, note: error === null ? "not in getStats" : "" };
  };
  return {
    flow,
    sim_controller: "gcc-draft",
    real_controller: BROWSER,
    rows: [
      row("mean received rate", "Mbit/s", 1.21, 1.32),
      row("mean RTT", "ms", 71, 78.5),
      row("p95 queuing delay", "ms", 142, 139),
      row("responsiveness", "s", 2.4, null),
    ],
  };
}

function verdictRows(): Report["verdicts"] {
  const row = (requirement: string, text: string, met: boolean | null) =>
    CONTROLLERS.map((controller, i) => ({
      requirement,
      text,
      controller,
      met: met === null ? null : met || i === 0,
      held: met === null ? 0 : 2,
      tested: met === null ? 0 : met || i === 0 ? 2 : 3,
      by: met === null ? "" : `${SHARED}: the queue stays short: 87.000, at most 100`,
      figure: met === null ? "" : "87, at most 100",
    }));
  return [
    ...row("1a", "counts jitter as delay", true),
    ...row("1c", "follows a change of the path within about a second", false),
    ...row("6", "shares what it knows among streams", null),
  ];
}

function thenAndNowRows(): Report["then_and_now"] {
  const measured = (utilization: number) => ({
    utilization,
    rate_mbps: utilization * 2,
    p95_queuing_delay_ms: 250 * (1 - utilization),
    loss_percent: 0.4,
  });
  const row = (flow: string) => {
    return { scenario: "bari/constant", flow, then: measured(0.71), now: measured(0.93) };
  };
  return [row("media-1"), row("tcp-1")];
}

const OUTCOMES = ["holds", "known miss", "known miss that holds now", "fails"] as const;

function expectationRows(): Scenario["expectations"] {
  return CONTROLLERS.flatMap((controller, c) =>
    [0, 1].map((i) => {
      const outcome = OUTCOMES[(c + i) % OUTCOMES.length] ?? "holds";
      return {
        controller,
        text: "the queue stays below 100 ms for 95 % of the time",
        measured: 80 + 17.4 * (c + i),
        confidence: i === 0 ? null : 2.5,
        limit: "at most 100",
        outcome,
        why: outcome.startsWith("known") ? "frames that vary: holds with an ideal source" : "",
      };
    }),
  );
}

function fairnessRows(): Scenario["fairness"] {
  return CONTROLLERS.map((controller, i) => ({
    controller,
    engine: "sim" as const,
    jain: 0.99 - 0.1 * i,
    ratio_1s: 0.41,
    ratio_5s: 0.52,
    ratio_20s: i === 2 ? null : 0.63,
    within_5s: 1 - 0.05 * i,
  }));
}

/** The same report without any of the values that may be missing. */
export function withoutValues(report: Report): Report {
  const bare = structuredClone(report);
  for (const verdict of bare.verdicts) verdict.met = null;
  for (const row of bare.then_and_now) row.then = row.now = NO_MEASUREMENT;
  for (const scenario of bare.scenarios) {
    for (const group of scenario.groups) {
      const { time_s, ...columns } = group.series;
      for (const column of Object.values(columns)) column.fill(null);
      group.points = group.points.map(({ seed }) => ({ ...NO_POINT, seed }));
      group.box = emptyGroup("", "sim", "").box;
      group.events = [];
      group.lateness_us = null;
    }
    for (const row of scenario.sections) Object.assign(row, NO_SECTION);
    for (const row of scenario.video) Object.assign(row, NO_VIDEO);
    scenario.split = [];
    if (scenario.cellular !== null) {
      for (const curve of scenario.cellular.curves) {
        for (const values of Object.values(curve)) if (Array.isArray(values)) values.fill(null);
      }
      scenario.cellular.grid = null;
    }
    for (const row of scenario.paper) Object.assign(row, { controller: null, measured: null });
    for (const finding of scenario.findings) finding.holds = null;
    for (const row of scenario.expectations)
      Object.assign(row, { measured: null, confidence: null });
    for (const row of scenario.fairness) Object.assign(row, NO_FAIRNESS);
    if (scenario.calls !== null) Object.assign(scenario.calls, { rates: [], delays: [] });
    for (const pair of scenario.sim_real) {
      for (const row of pair.rows) Object.assign(row, { simulated: null, real: null, error: null });
    }
  }
  return bare;
}

const NO_POINT = {
  throughput_mbps: null,
  utilization: null,
  p95_queuing_delay_ms: null,
  loss_percent: null,
  rtt_ms: null,
  responsiveness_s: null,
};

const NO_VIDEO = {
  frame_rate: null,
  freezes: null,
  frozen_s: null,
  p95_frame_delay_ms: null,
  residual_loss_percent: null,
  rtx_percent: null,
  fec_percent: null,
};

const NO_MEASUREMENT = {
  utilization: null,
  rate_mbps: null,
  p95_queuing_delay_ms: null,
  loss_percent: null,
};

const NO_FAIRNESS = {
  jain: null,
  ratio_1s: null,
  ratio_5s: null,
  ratio_20s: null,
  within_5s: null,
};

const NO_SECTION = {
  utilization: null,
  rate_mbps: null,
  p95_queuing_delay_ms: null,
  rtt_ms: null,
  loss_percent: null,
};

/** The same report with markup in every text. */
export function hostile(report: Report): Report {
  const attack = `</script><b>bold</b><img src=x onerror="window.attacked = true">&amp;`;
  const poison = (value: unknown, key: string): unknown => {
    if (typeof value === "string") return UNTOUCHED.has(key) ? value : `${value}${attack}`;
    if (Array.isArray(value)) return value.map((item) => poison(item, key));
    if (value === null || typeof value !== "object") return value;
    const named = Object.entries(value).map(([name, item]) => {
      return [key === "signals" ? `${name}${attack}` : name, poison(item, name)];
    });
    return Object.fromEntries(named);
  };
  return poison(report, "") as Report;
}

const UNTOUCHED = new Set(["engine", "outcome"]);

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** Puts a report into the built page as the lab does. */
export function fill(page: string, report: Report): string {
  const json = JSON.stringify(report).replaceAll("<", "\\u003c");
  return page.replace("/*WEIR_DATA*/", () => json);
}
