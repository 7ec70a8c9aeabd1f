// The data of each plot as a table for its CSV file: pure functions, no DOM, no chart library.

import type { Cell, CsvTable } from "./csv";
import type {
  Airtime,
  BearerCurve,
  Boxes,
  Cellular,
  DelayPlot,
  Forwarding,
  Group,
  Histogram,
  PacerPlot,
  ScreenPlot,
  RatePlot,
  ResourceGrid,
  Scenario,
  Series,
  SplitRow,
} from "./format";
import { cumulative, pipelineGroups, type ScatterSeries } from "./model";

type Named = Pick<Group, "controller" | "engine" | "flow">;

const NAMES = ["scenario", "engine", "controller", "flow"];

function names(scenario: string, { engine, controller, flow }: Named): Cell[] {
  return [scenario, engine, controller, flow];
}

// Over time

export interface SeriesView {
  groups: Group[];
  columns: Exclude<keyof Series, "time_s">[];
  /** Whether the rate changes are drawn too. */
  events: boolean;
  from_s: number;
  to_s: number;
}

const CHANGE = ["from_mbps", "reason", "state", "signals"];

/** One row for each group and time. Rate changes have rows of their own, with a reason. */
export function seriesData(scenario: string, view: SeriesView): CsvTable {
  const { groups, columns, events, from_s, to_s } = view;
  const within = (time: number) => time >= from_s && time <= to_s;
  const rows = groups.flatMap((group) => {
    const start = [...names(scenario, group), group.seeds.length];
    const { time_s } = group.series;
    const samples = time_s.flatMap((time, i): Cell[][] => {
      if (!within(time)) return [];
      const values = columns.map((column) => group.series[column][i] ?? null);
      return [[...start, time, ...values, ...(events ? CHANGE.map(() => null) : [])]];
    });
    const changes = (events ? group.events : []).filter(({ time_s }) => within(time_s));
    return samples.concat(
      changes.map((change) => [
        ...start,
        change.time_s,
        ...columns.map((column) => (column === "target_mbps" ? change.target_mbps : null)),
        change.from_mbps,
        change.reason,
        change.state,
        Object.entries(change.signals)
          .map(([name, value]) => `${name} ${value}`)
          .join("; "),
      ]),
    );
  });
  return { head: [...NAMES, "runs", "time_s", ...columns, ...(events ? CHANGE : [])], rows };
}

// Over the seeds

/**
 * The metrics that have boxes, their columns, and the factor that converts a value to the column's
 * unit.
 */
const BOXES: [metric: keyof Boxes, column: string, scale: number][] = [
  ["utilization", "utilization_percent", 100],
  ["rtt_ms", "rtt_ms", 1],
  ["responsiveness_s", "responsiveness_s", 1],
  ["loss_percent", "loss_percent", 1],
];

const BOX_PARTS = ["min", "q1", "median", "q3", "max"] as const;

/** One row for each box. Outliers share one cell, because their number differs. */
export function boxData(scenario: string, groups: Group[]): CsvTable {
  const shown = BOXES.filter(([metric]) => groups.some((group) => group.box[metric] !== null));
  const head = shown.flatMap(([, column]) =>
    [...BOX_PARTS, "outliers"].map((part) => `${column}.${part}`),
  );
  const rows = groups.map((group) => [
    ...names(scenario, group),
    group.seeds.length,
    ...shown.flatMap(([metric, , scale]): Cell[] => {
      const box = group.box[metric];
      if (box === null) return [...BOX_PARTS, "outliers"].map(() => null);
      const outliers = box.outliers.map((value) => Number((value * scale).toPrecision(12)));
      return [...BOX_PARTS.map((part) => box[part] * scale), outliers.join(" ")];
    }),
  ]);
  return { head: [...NAMES, "runs", ...head], rows };
}

/** One row for each dot. */
export function scatterData(series: ScatterSeries[], x: string, y: string): CsvTable {
  const rows = series.flatMap(({ engine, controller, points }) =>
    points.map((point) => [
      ...names(point.scenario, { engine, controller, flow: point.flow }),
      point.seed,
      point.x,
      point.y,
    ]),
  );
  return { head: [...NAMES, "seed", x, y], rows };
}

// Parts of the rate

/**
 * Parts of a row's rate, in Mbit/s. The clock of a browser may make the rest negative; it is then
 * zero.
 */
export const RATE_PARTS: {
  name: string;
  column: string;
  rate: (row: SplitRow) => number | null;
}[] = [
  { name: "video", column: "video", rate: (row) => row.video_mbps },
  { name: "retransmitted", column: "retransmission", rate: (row) => row.retransmission_mbps },
  { name: "parity", column: "fec", rate: (row) => row.fec_mbps },
  {
    name: "headers, reports, audio",
    column: "other",
    rate: ({ rate_mbps, video_mbps, retransmission_mbps, fec_mbps }) =>
      rate_mbps === null
        ? null
        : Math.max(0, rate_mbps - video_mbps - (retransmission_mbps ?? 0) - (fec_mbps ?? 0)),
  },
];

/** One row for each bar, with each part as a rate and as a share of the capacity. */
export function splitData(scenario: string, rows: SplitRow[]): CsvTable {
  const head = RATE_PARTS.flatMap(({ column }) => [`${column}_mbps`, `${column}_percent`]);
  return {
    head: [...NAMES, "capacity_mbps", ...head],
    rows: rows.map((row) => [
      ...names(scenario, row),
      row.capacity_mbps,
      ...RATE_PARTS.flatMap((part): Cell[] => {
        const rate = part.rate(row);
        const known = rate !== null && row.capacity_mbps !== null;
        return [rate, known ? (100 * rate) / (row.capacity_mbps as number) : null];
      }),
    ]),
  };
}

// Real calls

export function latenessData(scenario: string, group: Group, histogram: Histogram): CsvTable {
  const { edges, counts } = histogram;
  return {
    head: ["scenario", "engine", "controller", "lateness_from_us", "lateness_to_us", "packets"],
    rows: counts.map((count, i) => [
      scenario,
      group.engine,
      group.controller,
      edges[i] ?? null,
      edges[i + 1] ?? null,
      count,
    ]),
  };
}

export function ratesData(scenario: Scenario, plots: RatePlot[]): CsvTable {
  const rows = plots.flatMap((plot) =>
    plot.time_s.map((time, i) => [
      scenario.id,
      scenario.calls?.seed ?? null,
      plot.peer,
      plot.what,
      time,
      plot.captured_kbps[i] ?? null,
      plot.reported_kbps[i] ?? null,
    ]),
  );
  const values = ["time_s", "captured_kbps", "reported_kbps"];
  return { head: ["scenario", "seed", "peer", "stream", ...values], rows };
}

/** Width of a bin of the delays, ms. */
export const DELAY_BIN_MS = 10;

/** One row for each bin; the last bin has no upper edge. */
export function delaysData(scenario: Scenario, plots: DelayPlot[]): CsvTable {
  const rows = plots.flatMap(({ stream, counts }) => {
    const total = counts.reduce((a, b) => a + b, 0);
    const shares = cumulative(counts);
    return counts.map((count, i): Cell[] => [
      scenario.id,
      scenario.calls?.seed ?? null,
      stream,
      i * DELAY_BIN_MS,
      i === counts.length - 1 ? null : (i + 1) * DELAY_BIN_MS,
      count,
      total === 0 ? null : (100 * count) / total,
      100 * (shares[i] ?? 0),
    ]);
  });
  const edges = ["delay_from_ms", "delay_to_ms"];
  const values = ["packets", "packets_percent", "cumulative_percent"];
  return { head: ["scenario", "seed", "stream", ...edges, ...values], rows };
}

/** One row for each report of a pipeline, and one for each change of its target. */
export function pacersData(scenario: Scenario, plots: PacerPlot[]): CsvTable {
  const reports = plots.flatMap((plot) =>
    plot.time_s.map((time, i): Cell[] => {
      const values = [plot.queue_ms[i] ?? null, plot.encoder_mbps[i] ?? null, null, null];
      return [scenario.id, plot.controller, plot.peer, time, ...values];
    }),
  );
  const changes = pipelineGroups(scenario, plots).flatMap((group) =>
    group.events.map((change): Cell[] => {
      const values = [null, null, change.target_mbps, change.reason];
      return [scenario.id, group.controller, group.flow, change.time_s, ...values];
    }),
  );
  const values = ["time_s", "pacer_queue_ms", "encoder_mbps", "target_mbps", "reason"];
  return { head: ["scenario", "controller", "peer", ...values], rows: reports.concat(changes) };
}

/** One row for each interval of a camera and a screen. */
export function screensData(scenario: Scenario, plots: ScreenPlot[]): CsvTable {
  const rows = plots.flatMap((plot) =>
    plot.time_s.map((time, i): Cell[] => {
      const values = [time, plot.received_ms[i] ?? null, plot.shown_ms[i] ?? null];
      return [scenario.id, plot.controller, plot.stream, ...values];
    }),
  );
  const values = ["time_s", "received_delay_ms", "shown_delay_ms"];
  return { head: ["scenario", "controller", "stream", ...values], rows };
}

/** Scores of the received pictures, one row for each. */
export function picturesData(scenario: Scenario, plots: ScreenPlot[]): CsvTable {
  const rows = plots.flatMap((plot) =>
    plot.picture_s.map((time, i): Cell[] => {
      const values = [time, plot.vmaf[i] ?? null, plot.psnr_db[i] ?? null];
      return [scenario.id, plot.controller, plot.stream, ...values];
    }),
  );
  return { head: ["scenario", "controller", "stream", "time_s", "vmaf", "psnr_db"], rows };
}

// Wi-Fi

/** One row for each frame, in the run's time. */
export function airtimeData(scenario: string, airtime: Airtime): CsvTable {
  const head = ["scenario", "controller", "node", "kind", "start_us", "end_us"];
  const begin_us = airtime.from_s * 1e6;
  return {
    head: [...head, "packets_sent", "packets_arrived", "frame"],
    rows: airtime.frames.map((frame) => [
      scenario,
      airtime.controller,
      airtime.nodes[frame.node] ?? null,
      frame.kind,
      begin_us + frame.start_us,
      begin_us + frame.end_us,
      frame.mpdus,
      frame.decoded,
      frame.text,
    ]),
  };
}

// Forwarding server

/** One row for each time in which one layer was sent. */
export function serverData(scenario: string, server: Forwarding): CsvTable {
  return {
    head: ["scenario", "controller", "publisher", "flow", "from_s", "to_s", "layer", "reason"],
    rows: server.lanes.flatMap(({ flow, publisher, spans }) =>
      spans.map(({ from_s, to_s, layer, reason }) => [
        scenario,
        server.controller,
        publisher,
        flow,
        from_s,
        to_s,
        layer,
        reason,
      ]),
    ),
  };
}

// Cellular

/** The columns of a bearer over time, in the order of the panels. */
export const BEARER_COLUMNS = [
  "rate_mbps",
  "queue_kb",
  "prb_percent",
  "sinr_db",
  "mcs",
  "retransmission_percent",
] as const;

/** One row for each bearer and time. */
export function bearerData(
  scenario: string,
  { controller, time_s }: Cellular,
  curves: BearerCurve[],
  span: { from_s: number; to_s: number },
): CsvTable {
  const within = (time: number) => time >= span.from_s && time <= span.to_s;
  const head = ["scenario", "controller", "terminal", "bearer", "direction", "time_s"];
  const rows = curves.flatMap((curve) =>
    time_s.flatMap((time, i): Cell[][] => {
      if (!within(time)) return [];
      const values = BEARER_COLUMNS.map((column) => curve[column][i] ?? null);
      const { terminal, bearer, direction } = curve;
      return [[scenario, controller, terminal, bearer, direction, time, ...values]];
    }),
  );
  return { head: [...head, ...BEARER_COLUMNS], rows };
}

/** One row for each transmission of a block, in the run's time. */
export function gridData(scenario: string, controller: string, grid: ResourceGrid): CsvTable {
  const head = ["scenario", "controller", "terminal", "direction", "start_s", "prbs", "mcs"];
  return {
    head: [...head, "bytes", "attempt", "decoded"],
    rows: grid.blocks.map((block) => [
      scenario,
      controller,
      grid.nodes[block.node] ?? null,
      block.direction,
      grid.from_s + (block.tti * grid.tti_ms) / 1000,
      prbText(block.prbs),
      block.mcs,
      block.bytes,
      block.attempt,
      block.is_decoded ? 1 : 0,
    ]),
  };
}

/** Ranges of resource blocks, as the record has them: `0-5 9-11`. */
export function prbText(prbs: [number, number][]): string {
  return prbs.map(([first, last]) => `${first}-${last}`).join(" ");
}
