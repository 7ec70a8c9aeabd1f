// What a pipeline's controller asked for, why, and what waited in its pacer.

import { tooltipOption, type Option, type Plot, type SeriesOption, type Surface } from "../chart";
import { pacersData } from "../data";
import { el } from "../dom";
import { figure } from "../figure";
import type { Group, PacerPlot, RateChange, Scenario } from "../format";
import {
  commandsOf,
  eventsNear,
  formatNumber,
  groupLabel,
  nearestIndex,
  pairs,
  pipelineGroups,
  thinEvents,
} from "../model";
import { theme, type Palette } from "../theme";
import { LEGEND_WITHOUT_SYMBOL, panelFrame, timeOf } from "./time";

const TARGET = { title: "Target of the controller (thick), of the encoder (thin)", height: 180 };
const QUEUE = { title: "Longest wait in the pacer", height: 130 };
/** Width in pixels that is reserved for the dot of one change. */
const DOT_SPACE = 8;
/** Share of the visible time within which a change counts as near the pointer. */
const NEAR = 0.01;
const NEAR_LIMIT = 3;

/** Empty if no sender was a pipeline. */
export function pacerView(scenario: Scenario, palette: Palette): HTMLElement[] {
  const plots = scenario.calls?.pacers ?? [];
  if (plots.length === 0) return [];
  const groups = pipelineGroups(scenario, plots);
  const title = "Target, reasons and pacer of the pipelines";
  const caption =
    "The first run of each controller. A dot is a change of the target; point at it to see its reason. The wait is " +
    "the largest one between two reports, sampled every 50 ms.";
  const description = () => `${title}. ${plots.map(describe).join(" ")}`;
  const build = (surface: Surface) => pacerPlot(scenario, plots, palette, surface);
  const data = () => pacersData(scenario, plots);
  const commands = () => commandsOf(groups);
  const spec = { title, subject: scenario.id, caption, description, commands, build, data };
  return [figure(spec).element];
}

/** Name of a curve: the controller, and its peer if several have it. */
function label(plots: PacerPlot[], { controller, peer }: PacerPlot): string {
  const peers = plots.filter((plot) => plot.controller === controller).length;
  return groupLabel({ controller, engine: "call", flow: peer }, peers);
}

function describe(plot: PacerPlot): string {
  const known = plot.queue_ms.filter((wait) => wait !== null);
  const longest = known.length === 0 ? null : Math.max(...known);
  return `${plot.controller}, ${plot.peer}: longest wait ${formatNumber(longest, 0)} ms.`;
}

function pacerPlot(
  scenario: Scenario,
  plots: PacerPlot[],
  palette: Palette,
  surface: Surface,
): Plot {
  const groups = pipelineGroups(scenario, plots);
  const panels = [
    { ...TARGET, axis: "Rate (Mbit/s)" },
    { ...QUEUE, axis: "Wait (ms)" },
  ];
  const names = plots.map((plot) => label(plots, plot));
  const view = { panels, duration_s: scenario.duration_s };
  const { option: frame, height } = panelFrame(view, names, surface);
  const style = (controller: string, width: number) => ({
    showSymbol: false,
    symbol: "none",
    lineStyle: { color: palette(controller), width },
    itemStyle: LEGEND_WITHOUT_SYMBOL,
    emphasis: { disabled: true },
  });
  const reported = (plot: PacerPlot, panel: 0 | 1): SeriesOption => ({
    type: "line",
    name: label(plots, plot),
    data: pairs(plot.time_s, panel === 0 ? plot.encoder_mbps : plot.queue_ms),
    xAxisIndex: panel,
    yAxisIndex: panel,
    ...style(plot.controller, panel === 0 ? 0.9 : 2),
  });
  const target = (group: Group): SeriesOption => ({
    type: "line",
    name: nameOf(plots, group),
    data: pairs(group.series.time_s, group.series.target_mbps),
    xAxisIndex: 0,
    yAxisIndex: 0,
    ...style(group.controller, 2),
  });
  const option: Option = {
    ...frame,
    tooltip: {
      ...tooltipOption((at) => tip(scenario, plots, groups, timeOf(at), surface)),
      trigger: "axis",
    },
    series: [
      ...groups.flatMap((group) => [target(group), dots(scenario, plots, group, palette, surface)]),
      ...plots.flatMap((plot) => [reported(plot, 0), reported(plot, 1)]),
    ],
  };
  return { option, height };
}

/** Name of the curve to which a flow belongs; of several calls, the first one's. */
function nameOf(plots: PacerPlot[], { controller }: Group): string {
  const plot = plots.find((one) => one.controller === controller);
  return plot === undefined ? controller : label(plots, plot);
}

function dots(
  scenario: Scenario,
  plots: PacerPlot[],
  group: Group,
  palette: Palette,
  surface: Surface,
): SeriesOption {
  const span = Math.max((surface.zoom.end - surface.zoom.start) / 100, 0.01);
  const slots = Math.max(1, surface.width / DOT_SPACE / span);
  const changes = thinEvents(group.events, scenario.duration_s, slots);
  return {
    type: "scatter",
    name: nameOf(plots, group),
    data: changes.map((change) => [change.time_s, change.target_mbps]),
    symbolSize: 5,
    itemStyle: {
      color: theme().background,
      borderColor: palette(group.controller),
      borderWidth: 1.5,
    },
    z: 4,
  };
}

/** Tooltip: what waited at that time, and the changes near it with their reasons. */
function tip(
  scenario: Scenario,
  plots: PacerPlot[],
  groups: Group[],
  time: number,
  surface: Surface,
): HTMLElement {
  const window = (NEAR * scenario.duration_s * (surface.zoom.end - surface.zoom.start)) / 100;
  const waits = plots.map((plot) => {
    const wait = plot.queue_ms[nearestIndex(plot.time_s, time)];
    return el("p", {}, `${label(plots, plot)}: ${formatNumber(wait, 0)} ms in the pacer`);
  });
  const changes = groups.flatMap((group) =>
    eventsNear(group.events, time, window, NEAR_LIMIT).map((change) => reason(group, change)),
  );
  return el(
    "div",
    { class: "tip-body" },
    el("strong", {}, `${formatNumber(time, 2)} s`),
    ...waits,
    changes.length === 0 ? null : el("div", { class: "changes" }, ...changes),
  );
}

function reason(group: Group, change: RateChange): HTMLElement {
  const [from, to] = [change.from_mbps, change.target_mbps].map((rate) => formatNumber(rate, 2));
  return el(
    "p",
    {},
    `${group.controller}, ${formatNumber(change.time_s, 2)} s `,
    el("strong", {}, change.reason),
    ` ${from} → ${to} Mbit/s`,
  );
}
