// The content of the page of a sweep, computed from its report alone: pure functions, no DOM, no chart library.

import type { CsvTable } from "./csv";
import type {
  HeatCell,
  HeatMap,
  SweepDot,
  SweepMetric,
  SweepReport,
  SweepScenario,
} from "./format";
import { NONE, formatNumber } from "./model";

/** What the reader has chosen. */
export interface HeatView {
  report: SweepReport;
  scenario: SweepScenario;
  map: HeatMap;
  /** Index of the metric. */
  metric: number;
}

/** A number with three digits that count. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 5));
}

/** A metric with its unit. */
export function named({ name, unit }: SweepMetric): string {
  return unit === "" || unit === "ratio" ? name : `${name} (${unit})`;
}

/** Names of the rows: the bins of the second parameter, or one row without one. */
export function rowsOf({ scenario, map }: HeatView): string[] {
  return map.y === null ? [""] : (scenario.parameters[map.y]?.bins ?? []);
}

export function columnsOf({ scenario, map }: HeatView): string[] {
  return scenario.parameters[map.x]?.bins ?? [];
}

export const valueOf = (view: HeatView, cell: HeatCell) => cell.values[view.metric] ?? null;

/** Lowest and highest value over all maps; `null` if no cell has one. */
export function spanOf(view: HeatView): { low: number; high: number } | null {
  const values = view.map.cells.map((cell) => valueOf(view, cell)).filter((it) => it !== null);
  if (values.length === 0) return null;
  // Not Math.min(...values): a large sweep has more cells than a call has arguments.
  return {
    low: values.reduce((a, b) => Math.min(a, b)),
    high: values.reduce((a, b) => Math.max(a, b)),
  };
}

/** The controllers that have a cell. */
export function shownOf({ map }: HeatView): number[] {
  return [...new Set(map.cells.map(({ controller }) => controller))].sort((a, b) => a - b);
}

/** The values of a cell's parameters. */
export function placeOf({ scenario, map }: HeatView, cell: HeatCell): string[] {
  const part = (index: number, bin: number) => {
    const parameter = scenario.parameters[index];
    return `${parameter?.name}: ${parameter?.bins[bin]}`;
  };
  return [part(map.x, cell.x), ...(map.y === null ? [] : [part(map.y, cell.y)])];
}

/** Text alternative: for each controller the place of its best and of its worst cell. */
export function describeHeat(view: HeatView): string {
  const metric = view.report.metrics[view.metric] as SweepMetric;
  const clauses = shownOf(view).map((controller) => {
    const cells = view.map.cells
      .filter((cell) => cell.controller === controller && valueOf(view, cell) !== null)
      .sort((a, b) => (valueOf(view, a) ?? 0) - (valueOf(view, b) ?? 0));
    const end = (cell: HeatCell | undefined) =>
      cell === undefined
        ? "no value"
        : `${short(valueOf(view, cell))} at ${placeOf(view, cell).join(", ")}`;
    return `${view.report.controllers[controller]}: lowest ${end(cells[0])}; highest ${end(cells.at(-1))}`;
  });
  return `${named(metric)} over the parameters. ${clauses.join(". ")}.`;
}

/** One row for each cell, with all metrics. */
export function heatData(view: HeatView): CsvTable {
  const { report, scenario, map } = view;
  const name = (index: number) => scenario.parameters[index]?.name ?? "";
  const second = map.y === null ? [] : [name(map.y)];
  const columns = report.metrics.map((metric) => metric.name);
  const rows = map.cells.map((cell) => [
    scenario.id,
    report.controllers[cell.controller] ?? "",
    scenario.parameters[map.x]?.bins[cell.x] ?? "",
    ...(map.y === null ? [] : [scenario.parameters[map.y]?.bins[cell.y] ?? ""]),
    cell.runs,
    ...cell.values,
  ]);
  return { head: ["scenario", "controller", name(map.x), ...second, "runs", ...columns], rows };
}

export function byController({ dots }: SweepScenario): [number, SweepDot[]][] {
  const numbers = [...new Set(dots.map(({ controller }) => controller))].sort((a, b) => a - b);
  return numbers.map((number) => [number, dots.filter(({ controller }) => controller === number)]);
}

/** Text alternative of the plot: the ends of each front. */
export function describeFront(report: SweepReport, scenario: SweepScenario): string {
  const clauses = byController(scenario).map(([number, dots]) => {
    const front = dots
      .filter((dot) => dot.on_own_front)
      .sort((a, b) => a.p95_queuing_delay_ms - b.p95_queuing_delay_ms);
    const end = (dot: SweepDot | undefined) =>
      `${formatNumber((dot?.utilization ?? 0) * 100, 0)} % at ${formatNumber(dot?.p95_queuing_delay_ms, 0)} ms`;
    return `${report.controllers[number]}: from ${end(front[0])} to ${end(front.at(-1))}`;
  });
  return `Pareto fronts of utilization and queuing delay. ${clauses.join(". ")}.`;
}

/** One row for each dot. */
export function frontData(report: SweepReport, scenario: SweepScenario): CsvTable {
  const rows = scenario.dots.map((dot) => [
    scenario.id,
    report.controllers[dot.controller] ?? "",
    ...dot.at,
    dot.runs,
    dot.p95_queuing_delay_ms,
    dot.utilization,
    dot.on_own_front ? 1 : 0,
  ]);
  const parameters = scenario.parameters.map(({ name }) => name);
  const head = ["scenario", "controller", ...parameters, "runs"];
  return { head: [...head, "p95_queuing_delay_ms", "utilization", "on_own_front"], rows };
}
