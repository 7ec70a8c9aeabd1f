// Rates, delays and loss over one time axis, with the rate changes of a chosen controller.

import {
  baseOption,
  legendOption,
  panelTitle,
  tooltipOption,
  valueAxis,
  type Chart,
  type Option,
  type Plot,
  type SeriesOption,
  type Surface,
} from "../chart";
import type { CsvTable } from "../csv";
import { seriesData } from "../data";
import { el } from "../dom";
import type { Group, Series } from "../format";
import { marksAt, type Mark } from "../marks";
import {
  capacityOf,
  cutOff,
  eventsNear,
  formatNumber,
  formatSignal,
  groupLabel,
  pairs,
  possibleOf,
  sampleAt,
  thinEvents,
} from "../model";
import { theme, type Palette } from "../theme";
import { markColour, markSeries } from "./marks";

type LineColumn = Exclude<keyof Series, "time_s" | "capacity_mbps" | "possible_mbps">;

export interface Panel {
  title: string;
  axis: string;
  height: number;
  thick: LineColumn;
  thin: LineColumn | null;
  capacity: boolean;
}

export const RATE: Panel = {
  title: "Rate: received (thick), target (thin)",
  axis: "Rate (Mbit/s)",
  height: 220,
  thick: "received_mbps",
  thin: "target_mbps",
  capacity: true,
};

export const DELAY: Panel = {
  title: "Delay: round-trip time (thick), queuing (thin)",
  axis: "Delay (ms)",
  height: 150,
  thick: "rtt_ms",
  thin: "queuing_delay_ms",
  capacity: false,
};

export const LOSS: Panel = {
  title: "Loss of packets",
  axis: "Loss (%)",
  height: 110,
  thick: "loss_percent",
  thin: null,
  capacity: false,
};

export const RECEIVED: Panel = { ...RATE, title: "Received rate", thin: null };

export interface TimeView {
  groups: Group[];
  panels: Panel[];
  duration_s: number;
  /** Number of flows in the scenario. With more than one, names contain the flow. */
  flows: number;
  /** Whether rate changes are marked on the curves and described in the tooltip. */
  events: boolean;
  /** Findings of the call, shaded. */
  marks: Mark[];
  palette: Palette;
}

/** Hides the symbol of a curve in the legend: curves have no symbols. */
export const LEGEND_WITHOUT_SYMBOL = { opacity: 0 };
const CAPACITY = "capacity";
const POSSIBLE = "possible";
const LEFT = 72;
const RIGHT = 14;
const TITLE = 20;
const PANEL_GAP = 14;
const X_AXIS = 46;
const SLIDER = 40;
/** Width in pixels that is reserved for one rate-change marker. */
const MARKER_SPACE = 8;
/** Share of the visible time within which a rate change counts as near the pointer. */
const NEAR = 0.01;
const NEAR_LIMIT = 4;

export function timePlot(view: TimeView, surface: Surface): Plot {
  const shown = capacityOf(view.groups).length > 0 ? [CAPACITY] : [];
  if (view.panels.some((panel) => panel.capacity) && possibleOf(view.groups).length > 0) {
    shown.push(POSSIBLE);
  }
  const names = [...shown, ...view.groups.map((g) => groupLabel(g, view.flows))];
  const panels = view.panels.map((panel) => withMost(panel, view.groups));
  const { option: frame, height } = panelFrame({ ...view, panels }, names, surface);
  const option: Option = {
    ...frame,
    tooltip: {
      ...tooltipOption((parameters) => tip(view, surface, timeOf(parameters))),
      trigger: "axis",
    },
    series: [
      ...markSeries(view.marks, view.panels.length),
      ...view.panels.flatMap((panel, i) => panelSeries(view, panel, i)),
      ...(view.events ? view.groups.map((group) => markers(view, group, surface)) : []),
    ],
  };
  return { option, height };
}

/** The panel, whose axis ends above its curves where the capacity is far above them. */
function withMost(panel: Panel, groups: Group[]): Panel & { most: number | null } {
  const columns = [panel.thick, ...(panel.thin === null ? [] : [panel.thin])];
  const cut = panel.capacity ? cutOff(groups, columns) : null;
  if (cut === null) return { ...panel, most: null };
  const capacity = formatNumber(cut.capacity, 0);
  return { ...panel, title: `${panel.title}; capacity up to ${capacity}`, most: cut.end };
}

/** Panels under each other over one time axis. */
export interface Panels {
  /** `most` is the end of the axis; without it, that of the curves. */
  panels: { title: string; axis: string; height: number; most?: number | null }[];
  duration_s: number;
}

/** Everything of such a plot but its curves and its tooltip. */
export function panelFrame(view: Panels, names: string[], surface: Surface): Plot {
  const { legend, height: legendHeight } = legendOption(names, surface.width);
  const tops: number[] = [];
  let bottom = legendHeight + 6;
  for (const panel of view.panels) {
    tops.push(bottom + TITLE);
    bottom += TITLE + panel.height + PANEL_GAP;
  }
  const height = bottom - PANEL_GAP + X_AXIS + (surface.screen ? SLIDER : 0);
  const option: Option = {
    ...baseOption(),
    ...panelAxes(view, tops),
    legend,
    title: view.panels.map((panel, i) => panelTitle(panel.title, (tops[i] as number) - TITLE + 2)),
    axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: theme().muted } },
    dataZoom: zoomOption(view, surface),
  };
  return { option, height };
}

/** The columns that the panels draw, over the visible time. */
export function timeData(scenario: string, view: TimeView, zoom: Surface["zoom"]): CsvTable {
  const drawn = view.panels.flatMap((panel) => [
    ...(panel.capacity ? (["capacity_mbps", "possible_mbps"] as const) : []),
    ...(panel.thin === null ? [] : [panel.thin]),
    panel.thick,
  ]);
  const at = (percent: number) => (percent / 100) * view.duration_s;
  const span = { from_s: at(zoom.start), to_s: at(zoom.end) };
  return seriesData(scenario, {
    ...span,
    groups: view.groups,
    columns: drawn,
    events: view.events,
  });
}

function panelAxes(view: Panels, tops: number[]): Option {
  const last = view.panels.length - 1;
  return {
    grid: view.panels.map((panel, i) => ({
      left: LEFT,
      right: RIGHT,
      top: tops[i] as number,
      height: panel.height,
      outerBoundsMode: "none",
    })),
    xAxis: view.panels.map((_, gridIndex) => {
      const axis = valueAxis(gridIndex === last ? "Time (s)" : "", 26);
      const labelled = gridIndex === last;
      return {
        ...axis,
        // It stays at the bottom of a panel with values below zero.
        axisLine: { ...axis.axisLine, onZero: false },
        gridIndex,
        min: 0,
        max: view.duration_s,
        axisLabel: {
          ...axis.axisLabel,
          show: labelled,
          // One such as 119.687 would be cut off at the edge.
          showMaxLabel: Number.isInteger(view.duration_s),
        },
        splitLine: { show: false },
      };
    }),
    yAxis: view.panels.map((panel, gridIndex) => ({
      ...valueAxis(panel.axis, 42),
      gridIndex,
      min: 0,
      ...(panel.most ? { max: panel.most } : {}),
      splitNumber: Math.max(2, Math.round(panel.height / 45)),
    })),
  };
}

function zoomOption(view: Panels, surface: Surface): NonNullable<Option["dataZoom"]> {
  const { muted, grid } = theme();
  const shared = {
    xAxisIndex: view.panels.map((_, i) => i),
    filterMode: "none" as const,
    ...surface.zoom,
  };
  // The wheel scrolls the page. With Ctrl it zooms.
  const inside = {
    ...shared,
    type: "inside" as const,
    zoomOnMouseWheel: "ctrl" as const,
    moveOnMouseMove: false,
    moveOnMouseWheel: false,
    preventDefaultMouseMove: false,
  };
  if (!surface.screen) return [inside];
  const slider = {
    ...shared,
    type: "slider" as const,
    left: LEFT,
    right: RIGHT,
    bottom: 8,
    height: 18,
    showDetail: false,
    showDataShadow: false as const,
    brushSelect: false,
    borderColor: grid,
    fillerColor: "rgba(128,128,128,0.15)",
    handleStyle: { color: theme().background, borderColor: muted },
    moveHandleSize: 0,
  };
  return [slider, inside];
}

function panelSeries(view: TimeView, panel: Panel, index: number): SeriesOption[] {
  const line = (group: Group, column: LineColumn, width: number): SeriesOption => {
    const color = view.palette(group.controller);
    return {
      type: "line",
      name: groupLabel(group, view.flows),
      data: pairs(group.series.time_s, group.series[column]),
      xAxisIndex: index,
      yAxisIndex: index,
      showSymbol: false,
      symbol: "none",
      lineStyle: { color, width, type: group.engine === "sim" ? "solid" : [6, 3] },
      itemStyle: LEGEND_WITHOUT_SYMBOL,
      emphasis: { disabled: true },
    };
  };
  const capacity: SeriesOption = {
    type: "line",
    name: CAPACITY,
    data: capacityOf(view.groups),
    xAxisIndex: index,
    yAxisIndex: index,
    step: "end",
    showSymbol: false,
    symbol: "none",
    lineStyle: { color: theme().capacity, width: 1.5 },
    itemStyle: LEGEND_WITHOUT_SYMBOL,
    areaStyle: { color: theme().capacity, opacity: 0.14 },
    emphasis: { disabled: true },
    z: 1,
  };
  const possible: SeriesOption = {
    type: "line",
    name: POSSIBLE,
    data: possibleOf(view.groups),
    xAxisIndex: index,
    yAxisIndex: index,
    showSymbol: false,
    symbol: "none",
    lineStyle: { color: theme().capacity, width: 1.2, type: [2, 3] },
    itemStyle: LEGEND_WITHOUT_SYMBOL,
    emphasis: { disabled: true },
    z: 2,
  };
  return [
    ...(panel.capacity ? [capacity, possible] : []),
    ...view.groups.flatMap((group) => [
      line(group, panel.thick, 2),
      ...(panel.thin === null ? [] : [line(group, panel.thin, 0.9)]),
    ]),
  ];
}

/** Marks the largest rate changes on the target's curve. */
function markers(view: TimeView, group: Group, surface: Surface): SeriesOption {
  const span = (surface.zoom.end - surface.zoom.start) / 100;
  const slots = Math.max(1, (surface.width - LEFT - RIGHT) / MARKER_SPACE / Math.max(span, 0.01));
  const events = thinEvents(group.events, view.duration_s, slots);
  return {
    type: "scatter",
    name: groupLabel(group, view.flows),
    data: events.map((event) => [event.time_s, event.target_mbps]),
    symbolSize: 5,
    itemStyle: {
      color: theme().background,
      borderColor: view.palette(group.controller),
      borderWidth: 1.5,
    },
    z: 4,
  };
}

export function timeOf(parameters: unknown): number {
  const first = Array.isArray(parameters) ? parameters[0] : parameters;
  return Number((first as { axisValue?: unknown } | undefined)?.axisValue);
}

/** Tooltip: every value at that time, and the rate changes near it. */
function tip(view: TimeView, surface: Surface, time: number): HTMLElement {
  const span = (view.duration_s * (surface.zoom.end - surface.zoom.start)) / 100;
  const capacity = capacityOf(view.groups).length > 0 ? capacityAt(view.groups, time) : null;
  const head = ["", "received", "target", "RTT", "queuing", "loss"];
  const units = ["", "Mbit/s", "Mbit/s", "ms", "ms", "%"];
  const rows = view.groups.map((group) => valueRow(view, group, time));
  const changes = view.groups.flatMap((group) =>
    eventsNear(group.events, time, span * NEAR, view.events ? NEAR_LIMIT : 1).map((event) =>
      changeLine(view, group, event),
    ),
  );
  return el(
    "div",
    { class: "tip-body" },
    el("strong", {}, `${formatNumber(time, 2)} s`),
    capacity === null ? null : ` capacity ${formatNumber(capacity, 2)} Mbit/s`,
    el(
      "table",
      {},
      el("tr", {}, ...head.map((text) => el("th", {}, text))),
      el("tr", { class: "units" }, ...units.map((text) => el("td", {}, text))),
      ...rows,
    ),
    changes.length === 0 ? null : el("div", { class: "changes" }, ...changes),
    ...marksAt(view.marks, time).map((mark) => el("p", { class: "mark" }, markLine(mark))),
  );
}

function markLine(mark: Mark): HTMLElement {
  const number = el("strong", { style: `color:${markColour(mark)}` }, `${mark.number} `);
  return el("span", {}, number, mark.says);
}

function capacityAt(groups: Group[], time: number): number | null {
  for (const group of groups) {
    const capacity = sampleAt(group.series, time)?.capacity_mbps ?? null;
    if (capacity !== null) return capacity;
  }
  return null;
}

function swatch(view: TimeView, group: Group): HTMLElement {
  const style = `background:${view.palette(group.controller)}`;
  return el("span", { class: "swatch", style });
}

function valueRow(view: TimeView, group: Group, time: number): HTMLElement {
  const sample = sampleAt(group.series, time);
  const cells = [
    formatNumber(sample?.received_mbps, 2),
    formatNumber(sample?.target_mbps, 2),
    formatNumber(sample?.rtt_ms, 0),
    formatNumber(sample?.queuing_delay_ms, 0),
    formatNumber(sample?.loss_percent, 2),
  ];
  return el(
    "tr",
    {},
    el("th", {}, swatch(view, group), groupLabel(group, view.flows)),
    ...cells.map((text) => el("td", {}, text)),
  );
}

function changeLine(view: TimeView, group: Group, event: Group["events"][number]): HTMLElement {
  const signals = Object.entries(event.signals)
    .map(([name, value]) => `${name} ${formatSignal(value)}`)
    .join(", ");
  const [from, to] = [event.from_mbps, event.target_mbps].map((rate) => formatNumber(rate, 2));
  return el(
    "p",
    {},
    swatch(view, group),
    `${formatNumber(event.time_s, 2)} s `,
    el("strong", {}, event.reason),
    ` ${from} → ${to} Mbit/s, state ${event.state}`,
    view.events && signals !== "" ? el("span", { class: "signals" }, signals) : null,
  );
}

/** Lets the arrow keys move the pointer, and reads its values to a screen reader. */
export function steerByKeys(chart: Chart, surface: HTMLElement, duration_s: number): void {
  const spoken = el("p", { class: "spoken", "aria-live": "polite" });
  surface.after(spoken);
  surface.tabIndex = 0;
  surface.setAttribute("role", "group");
  let position = 0.5;
  surface.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -0.005, ArrowRight: 0.005 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    position = Math.min(1, Math.max(0, position + step * (event.shiftKey ? 10 : 1)));
    const x = chart.convertToPixel({ xAxisIndex: 0 }, position * duration_s);
    const [, y] = chart.convertToPixel({ gridIndex: 0 }, [0, 0]) as number[];
    chart.dispatchAction({ type: "showTip", x, y: (y as number) - 5 });
    spoken.textContent = surface.querySelector(".tip-body")?.textContent ?? "";
  });
  surface.addEventListener("blur", () => chart.dispatchAction({ type: "hideTip" }));
}
