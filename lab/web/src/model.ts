// The content of the page, computed from the report alone: pure functions, no DOM, no chart
// library.

import type {
  Engine,
  Expectation,
  Group,
  PacerPlot,
  Point,
  RateChange,
  Report,
  Scenario,
  Series,
  SimReal,
  SweepReport,
  RequirementRow,
} from "./format";

/** One entry for each point of time of its series. */
type Column = Series["target_mbps"];

export const NONE = "–";

/** Names of the engines on the page. */
export const ENGINE_NAME: Record<Engine, string> = {
  sim: "simulated",
  call: "real call",
  link: "command",
};

/** Reads the report, or returns in one line why it cannot be shown. */
export function parseReport(text: string): Report | SweepReport | { problem: string } {
  if (text.trim() === "" || text.startsWith("/*")) {
    return { problem: "This file holds no data. Make a report with: weir report DIR -o FILE.html" };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { problem: "The data in this file is not valid JSON. Make the report again." };
  }
  const schema = (value as { schema?: unknown } | null)?.schema;
  if (schema !== 1) {
    return { problem: `This page reads schema 1, the data says ${JSON.stringify(schema)}.` };
  }
  return withShortNames(value as Report | SweepReport, text);
}

/** Begin of the label of a stack of the arena. */
const STACK = "--stack ";

/**
 * In the place of a controller, the call of an application or of a stack has the options that repeat it. Tables and
 * legends have no room for them; the commands below the figures still have them.
 */
function withShortNames(report: Report | SweepReport, text: string): Report | SweepReport {
  const long = report.controllers.filter((name) => name.startsWith("--app "));
  const stacks = report.controllers.filter((name) => name.startsWith(STACK));
  if (long.length + stacks.length === 0) return report;
  const short = new Map(
    long.map((name, index) => {
      const participants = / --participants (\d+)/.exec(name)?.[1];
      const number = long.length === 1 ? "" : ` ${index + 1}`;
      const size =
        participants === undefined ? "" : `, ${plural(Number(participants), "participant")}`;
      return [name, `application${number}${size}`];
    }),
  );
  for (const name of stacks) short.set(name, name.slice(STACK.length));
  return JSON.parse(text, (_, value: unknown) => {
    return typeof value === "string" ? (short.get(value) ?? value) : value;
  }) as Report | SweepReport;
}

// Numbers

export function mean(values: Iterable<number | null>): number | null {
  let sum = 0;
  let count = 0;
  for (const value of values) {
    if (value !== null) {
      sum += value;
      count += 1;
    }
  }
  return count === 0 ? null : sum / count;
}

/** A number for a table: `digits` decimals, or a dash where there is none. */
export function formatNumber(value: number | null | undefined, digits: number): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const text = value.toFixed(digits);
  // Avoid "-0.0": the rounded value has no sign.
  return Number(text) === 0 ? (0).toFixed(digits) : text;
}

/** A ratio as a percentage without its sign. */
export function formatPercent(ratio: number | null): string {
  return formatNumber(ratio === null ? null : ratio * 100, 0);
}

/** A signal or an error, whose size is not known beforehand: four significant digits. */
export function formatSignal(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return NONE;
  return Math.abs(value) >= 1e4 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
}

/** `04:32:52 to 04:33:02`: times of day in UTC. The span counts from a moment in ms since 1970. */
export function clockSpan(span: { from_s: number; to_s: number }, began: number): string {
  const at = (seconds: number) => new Date(began + seconds * 1e3).toISOString().slice(11, 19);
  const [from, to] = [at(span.from_s), at(span.to_s)];
  return from === to ? from : `${from} to ${to}`;
}

/** Address of an element of the page. */
export function linkTo(id: string): string {
  return `#${encodeURIComponent(id)}`;
}

/** Whether every word of the query is in the text, without regard to case. */
export function wordsMatch(text: string, query: string): boolean {
  const within = text.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => within.includes(word));
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Seeds in one phrase: "1–5", or a list where they are not consecutive. */
export function seedPhrase(seeds: string[]): string {
  if (seeds.length === 0) return NONE;
  const numbers = seeds.map((seed) => (/^\d+$/.test(seed) ? BigInt(seed) : null));
  const consecutive = numbers.every((number, i) => {
    const previous = i === 0 ? null : numbers[i - 1];
    return number !== null && (i === 0 || (previous != null && number === previous + 1n));
  });
  return consecutive && seeds.length > 2 ? `${seeds[0]}–${seeds.at(-1)}` : seeds.join(", ");
}

/** Cumulative share of the total up to and including each count; all zero if the total is zero. */
export function cumulative(counts: number[]): number[] {
  const total = counts.reduce((a, b) => a + b, 0);
  let sum = 0;
  return counts.map((count) => {
    sum += count;
    return total === 0 ? 0 : sum / total;
  });
}

// Groups

export function unique<T>(values: Iterable<T>): T[] {
  return [...new Set(values)];
}

/** Controllers in the order of the legends: the report's list, then any other. */
export function controllerOrder(report: Report): string[] {
  const used = report.scenarios.flatMap((s) => s.groups.map((g) => g.controller));
  return unique([...report.controllers, ...used]);
}

export function flowsOf(scenario: Scenario): string[] {
  return unique(scenario.groups.map((group) => group.flow));
}

/**
 * Whether a flow is driven by the controller or by the command. TCP flows have their own control.
 */
export function isMedia(flow: string): boolean {
  return flow.startsWith("media") || flow.startsWith("link");
}

/** Name of a group in legends: the flow is named only where the plot shows more than one. */
export function groupLabel(group: Pick<Group, "controller" | "engine" | "flow">, flows: number) {
  const name = `${group.controller}, ${ENGINE_NAME[group.engine]}`;
  return flows > 1 ? `${name}, ${group.flow}` : name;
}

/** The flows that pipelines sent, of the controllers of `plots`. */
export function pipelineGroups(scenario: Scenario, plots: PacerPlot[]): Group[] {
  const controllers = new Set(plots.map((plot) => plot.controller));
  return scenario.groups.filter(
    (group) => group.engine === "call" && controllers.has(group.controller) && hasSeries(group),
  );
}

/** The choice of a scenario's selectors; null shows all. */
export interface Selection {
  controller: string | null;
  flow: string | null;
}

export function selectGroups(scenario: Scenario, selection: Selection): Group[] {
  return scenario.groups.filter(
    (group) =>
      (selection.flow === null || group.flow === selection.flow) &&
      (selection.controller === null || group.controller === selection.controller),
  );
}

export function commandsOf(groups: Group[]): string[] {
  return unique(groups.map((group) => group.command));
}

/** Whether a scenario is the network of a call that was made elsewhere, from its dump. */
export function isAnalyzed(scenario: Scenario): boolean {
  return (scenario.calls?.verdict ?? null) !== null;
}

export function summary(report: Report): string {
  const engines = unique(report.scenarios.flatMap((s) => s.groups.map((g) => g.engine)));
  const how = engines.map((engine) => ENGINE_NAME[engine]).join(" and ");
  if (report.runs === 0 && report.signalling.length > 0) {
    return `${plural(report.signalling.length, "call")} through an IMS · ${report.generator}`;
  }
  const analyzed = report.scenarios.filter(isAnalyzed).length;
  if (analyzed > 0 && analyzed === report.scenarios.length) {
    return `${plural(analyzed, "analyzed call")} · ${report.generator}`;
  }
  const parts = [
    plural(report.runs, "run"),
    plural(report.scenarios.length, "scenario"),
    `${plural(report.controllers.length, "controller")} (${report.controllers.join(", ")})`,
  ];
  if (how !== "") parts.push(how);
  return `${parts.join(" · ")} · ${report.generator}`;
}

// Matrix

export interface MatrixColumn {
  controller: string;
  engine: Engine;
}

/** Largest number of flows with a line each in a cell. More flows share one line, their mean. */
const MATRIX_LINES = 2;

export interface MatrixLine {
  flow: string;
  utilization: number | null;
  p95_queuing_delay_ms: number | null;
  good_percent: number | null;
}

/** Means over the runs of one scenario and column: a line per flow, and the colour's value. */
export interface MatrixCell {
  lines: MatrixLine[];
  utilization: number | null;
  /** Results of the expectations in a few words; empty if there are none. */
  outcome: string;
}

export interface Matrix {
  columns: MatrixColumn[];
  rows: { scenario: Scenario; cells: (MatrixCell | null)[] }[];
}

export function matrixOf(report: Report): Matrix {
  const all = report.scenarios.flatMap((scenario) => scenario.groups);
  const engines: Engine[] = ["sim", "call", "link"];
  const columns = engines.flatMap((engine) =>
    controllerOrder(report)
      .filter((name) => all.some((g) => g.controller === name && g.engine === engine))
      .map((controller) => ({ controller, engine })),
  );
  const rows = report.scenarios.map((scenario) => ({
    scenario,
    cells: columns.map((column) => matrixCell(scenario, column)),
  }));
  return { columns, rows };
}

function matrixCell(scenario: Scenario, column: MatrixColumn): MatrixCell | null {
  const groups = scenario.groups.filter(
    (g) => g.controller === column.controller && g.engine === column.engine,
  );
  if (groups.length === 0) return null;
  const lines = groups.map((group) => ({
    flow: group.flow,
    utilization: mean(group.points.map((p) => p.utilization)),
    p95_queuing_delay_ms: mean(group.points.map((p) => p.p95_queuing_delay_ms)),
    good_percent: mean(group.points.map((p) => p.good_percent)),
  }));
  const media = lines.filter((line) => isMedia(line.flow));
  const utilization = mean(media.map((line) => line.utilization));
  const joined = {
    flow: plural(media.length, "media flow"),
    utilization,
    p95_queuing_delay_ms: mean(media.map((line) => line.p95_queuing_delay_ms)),
    good_percent: mean(media.map((line) => line.good_percent)),
  };
  const outcome = column.engine === "sim" ? outcomeOf(scenario, column) : "";
  return { lines: lines.length > MATRIX_LINES ? [joined] : lines, utilization, outcome };
}

function outcomeOf(scenario: Scenario, column: MatrixColumn): string {
  const of = scenario.expectations.filter((it) => it.controller === column.controller);
  if (of.length === 0) return "";
  const count = (outcome: Expectation["outcome"]) =>
    of.filter((it) => it.outcome === outcome).length;
  const parts = [
    [count("fails"), "fails"],
    [count("known miss that holds now"), "changed"],
    [count("in doubt"), "in doubt"],
    [count("known miss"), "known miss"],
  ] as const;
  const words = parts.filter(([n]) => n > 0).map(([n, word]) => `${n} ${word}`);
  return words.length === 0 ? "pass" : words.join(", ");
}

// Verdicts

/** Requirements by controllers, in the order of the data. */
export function verdictsOf(report: Report): { controllers: string[]; rows: RequirementRow[][] } {
  const controllers = unique(report.verdicts.map((verdict) => verdict.controller));
  const rows = unique(report.verdicts.map((verdict) => verdict.requirement)).map((requirement) =>
    report.verdicts.filter((verdict) => verdict.requirement === requirement),
  );
  return { controllers, rows };
}

// Series

/** Chart points of one column; a gap is a null. */
export function pairs(times: number[], column: Column): [number, number | null][] {
  return times.map((time, i) => [time, column[i] ?? null]);
}

function hasValues(column: Column): boolean {
  return column.some((value) => value !== null);
}

export function hasSeries(group: Group): boolean {
  const { time_s, capacity_mbps: _, possible_mbps: __, ...measured } = group.series;
  return time_s.length > 0 && Object.values(measured).some(hasValues);
}

/** The capacity that the groups share, from the first group that has one. */
export function capacityOf(groups: Group[]): [number, number | null][] {
  const group = groups.find((g) => hasValues(g.series.capacity_mbps));
  return group === undefined ? [] : pairs(group.series.time_s, group.series.capacity_mbps);
}

/** A capacity this many times above the curves would make them a line at zero. */
const FAR_ABOVE = 4;

/** Where the axis of these curves ends if the capacity is far above them, and the capacity. */
export function cutOff(
  groups: Group[],
  columns: Exclude<keyof Series, "time_s">[],
): { end: number; capacity: number } | null {
  const largest = (column: Exclude<keyof Series, "time_s">) =>
    groups
      .flatMap((group) => group.series[column])
      .reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
  const curves = Math.max(...columns.map(largest));
  const capacity = largest("capacity_mbps");
  if (curves === 0 || capacity <= FAR_ABOVE * curves) return null;
  return { end: Number((1.5 * curves).toPrecision(2)), capacity };
}

/** What the groups could reach, if they show the same flow. */
export function possibleOf(groups: Group[]): [number, number | null][] {
  const group = groups.find((g) => hasValues(g.series.possible_mbps));
  if (group === undefined || groups.some((g) => g.flow !== group.flow)) return [];
  return pairs(group.series.time_s, group.series.possible_mbps);
}

/** Index of the point nearest to `time`; -1 in an empty grid. `times` never decrease. */
export function nearestIndex(times: number[], time: number): number {
  const after = lowerBound(times.length, (i) => (times[i] as number) >= time);
  if (after === 0) return times.length === 0 ? -1 : 0;
  if (after === times.length) return times.length - 1;
  const [left, right] = [times[after - 1] as number, times[after] as number];
  return time - left <= right - time ? after - 1 : after;
}

/** Smallest index for which `reached` is true, or `length`. */
function lowerBound(length: number, reached: (index: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (reached(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Index of the last of `count` headings, given from the top down, at or above a line; -1 if none. */
export function lastAbove(count: number, top: (index: number) => number, line: number): number {
  return lowerBound(count, (i) => top(i) > line) - 1;
}

/** The values of a series at the grid point nearest to `time`. */
export type Sample = { [K in Exclude<keyof Series, "time_s">]: number | null };

export function sampleAt(series: Series, time: number): Sample | null {
  const i = nearestIndex(series.time_s, time);
  if (i < 0) return null;
  return {
    capacity_mbps: series.capacity_mbps[i] ?? null,
    possible_mbps: series.possible_mbps[i] ?? null,
    target_mbps: series.target_mbps[i] ?? null,
    received_mbps: series.received_mbps[i] ?? null,
    rtt_ms: series.rtt_ms[i] ?? null,
    queuing_delay_ms: series.queuing_delay_ms[i] ?? null,
    loss_percent: series.loss_percent[i] ?? null,
  };
}

/** One clause on a group for the text alternative of its plot. */
export function describeSeries(group: Group): string {
  const { received_mbps, rtt_ms, loss_percent } = group.series;
  const facts = [
    ["received rate", mean(received_mbps), 2, "Mbit/s"],
    ["round-trip time", mean(rtt_ms), 0, "ms"],
    ["loss", mean(loss_percent), 2, "%"],
  ] as const;
  const known = facts.filter(([, value]) => value !== null);
  const text = known.map(([name, value, digits, unit]) => {
    return `mean ${name} ${formatNumber(value, digits)} ${unit}`;
  });
  return text.length === 0 ? "no values" : text.join(", ");
}

// Rate changes

/**
 * The rate changes nearest to `time`, sorted by time: at most `limit`, and within `window` seconds.
 */
export function eventsNear(
  events: RateChange[],
  time: number,
  window: number,
  limit: number,
): RateChange[] {
  const first = lowerBound(events.length, (i) => (events[i] as RateChange).time_s >= time - window);
  const end = lowerBound(events.length, (i) => (events[i] as RateChange).time_s > time + window);
  const distance = (event: RateChange) => Math.abs(event.time_s - time);
  return events
    .slice(first, end)
    .sort((a, b) => distance(a) - distance(b))
    .slice(0, limit)
    .sort((a, b) => a.time_s - b.time_s);
}

/** Thins markers: keeps the largest change in each of `slots` equal spans of time. */
export function thinEvents(events: RateChange[], duration: number, slots: number): RateChange[] {
  const largest = new Map<number, RateChange>();
  const size = (event: RateChange) => Math.abs(event.target_mbps - event.from_mbps);
  for (const event of events) {
    const slot = duration > 0 ? Math.floor((event.time_s / duration) * slots) : 0;
    const kept = largest.get(slot);
    if (kept === undefined || size(event) > size(kept)) largest.set(slot, event);
  }
  return [...largest.values()].sort((a, b) => a.time_s - b.time_s);
}

// Scatter

export type PointMetric = Exclude<keyof Point, "seed">;

export interface ScatterPoint {
  x: number;
  y: number;
  seed: string;
  flow: string;
  scenario: string;
}

/** One legend entry of a scatter: all media flows and runs of one controller under one engine. */
export interface ScatterSeries {
  controller: string;
  engine: Engine;
  label: string;
  points: ScatterPoint[];
}

/**
 * One point for each media flow and run that has both metrics. `scale` multiplies `y`, for ratios
 * in per cent.
 */
export function scatterOf(
  scenarios: Scenario[],
  x: PointMetric,
  y: PointMetric,
  scale = 1,
): ScatterSeries[] {
  const series = new Map<string, ScatterSeries>();
  for (const scenario of scenarios) {
    for (const group of scenario.groups.filter(({ flow }) => isMedia(flow))) {
      const label = groupLabel(group, 1);
      const entry = series.get(label) ?? { ...pick(group), label, points: [] };
      series.set(label, entry);
      for (const point of group.points) {
        const [px, py] = [point[x], point[y]];
        if (px === null || py === null) continue;
        const { seed } = point;
        entry.points.push({ x: px, y: py * scale, seed, flow: group.flow, scenario: scenario.id });
      }
    }
  }
  return [...series.values()].filter((entry) => entry.points.length > 0);
}

function pick(group: Group): { controller: string; engine: Engine } {
  return { controller: group.controller, engine: group.engine };
}

// Freezes

/** Freezes of one video, as means over its runs. */
export interface FreezeRow {
  scenario: string;
  controller: string;
  engine: Engine;
  /** The flow; in a real call, the peer that saw the picture. */
  flow: string;
  runs: number;
  freezes: number;
  frozen_s: number | null;
}

/** Every video whose freezes were counted, sorted by frozen time, longest first. */
export function freezesOf(report: Report): FreezeRow[] {
  const rows = report.scenarios.flatMap((it) => [...simulatedFreezes(it), ...realFreezes(it)]);
  return rows.sort((a, b) => (b.frozen_s ?? 0) - (a.frozen_s ?? 0) || b.freezes - a.freezes);
}

function simulatedFreezes(scenario: Scenario): FreezeRow[] {
  return scenario.video.flatMap((row) => {
    const { controller, engine, flow, freezes, frozen_s } = row;
    const group = scenario.groups.find(
      (g) => g.controller === controller && g.engine === engine && g.flow === flow,
    );
    const runs = group?.seeds.length ?? 0;
    const counted = { scenario: scenario.id, controller, engine, flow, runs, frozen_s };
    return freezes === null ? [] : [{ ...counted, freezes }];
  });
}

/** In a real call each peer reports its freezes. Each seed is one run. */
function realFreezes(scenario: Scenario): FreezeRow[] {
  const seen = (scenario.calls?.peers ?? []).filter(({ freezes }) => freezes !== null);
  const key = ({ controller, peer }: { controller: string; peer: string }) =>
    `${controller}\n${peer}`;
  return unique(seen.map(key)).map((name) => {
    const rows = seen.filter((row) => key(row) === name);
    const { controller, peer } = rows[0] as (typeof rows)[number];
    return {
      scenario: scenario.id,
      controller,
      engine: "call",
      flow: `seen by ${peer}`,
      runs: rows.length,
      freezes: mean(rows.map((row) => row.freezes)) ?? 0,
      frozen_s: mean(rows.map((row) => row.frozen_s)),
    };
  });
}

// Simulated beside real

/** The simulated and the real group of a comparison; null for a group without a record. */
export function comparedGroups(scenario: Scenario, pair: SimReal): [Group | null, Group | null] {
  const find = (engine: Engine, controller: string) =>
    scenario.groups.find(
      (g) => g.engine === engine && g.controller === controller && g.flow === pair.flow,
    ) ?? null;
  return [find("sim", pair.sim_controller), find("call", pair.real_controller)];
}

// Warnings

export interface Warning {
  label: string;
  text: string;
}

export function warningsOf(scenario: Scenario): Warning[] {
  const flows = flowsOf(scenario).length;
  return scenario.groups.flatMap((group) =>
    unique(group.warnings).map((text) => ({ label: groupLabel(group, flows), text })),
  );
}

/** Whether a column is a controller that got the feedback of a recorded call: nothing of it was carried. */
export function isOpenLoop(controller: string): boolean {
  return controller.startsWith("analyzed ") && controller.includes(", open loop: ");
}
