// Box plots over the seeds; the boxes are computed by the lab, this only draws them.

import {
  baseOption,
  legendOption,
  panelTitle,
  textWidth,
  tooltipOption,
  valueAxis,
  type CustomSeriesOption,
  type Plot,
  type SeriesOption,
  type Surface,
} from "../chart";
import { el } from "../dom";
import type { BoxPlot, Boxes, Group, Scenario } from "../format";
import { flowsOf, formatNumber, groupLabel, plural } from "../model";
import { theme, type Palette } from "../theme";

interface BoxPanel {
  metric: keyof Boxes;
  title: string;
  axis: string;
  digits: number;
  scale: number;
}

const PANELS: BoxPanel[] = [
  { metric: "utilization", title: "Utilization", axis: "Utilization (%)", digits: 1, scale: 100 },
  { metric: "rtt_ms", title: "Round-trip time", axis: "RTT (ms)", digits: 0, scale: 1 },
  {
    metric: "responsiveness_s",
    title: "Responsiveness",
    axis: "Responsiveness (s)",
    digits: 2,
    scale: 1,
  },
  { metric: "loss_percent", title: "Loss", axis: "Loss (%)", digits: 2, scale: 1 },
];

const COLUMN_MIN = 340;
const ROW = 30;
const TITLE = 22;
const X_AXIS = 50;
const BOX_HEIGHT = 16;

/** Groups that have a box of any metric. */
export function boxGroups(scenario: Scenario): Group[] {
  return scenario.groups.filter((g) => Object.values(g.box).some((box) => box !== null));
}

/** Metrics that have a box in any group, and the names of those that have none. */
export function boxPanels(scenario: Scenario): { shown: BoxPanel[]; missing: string[] } {
  const has = (panel: BoxPanel) => scenario.groups.some((g) => g.box[panel.metric] !== null);
  return {
    shown: PANELS.filter(has),
    missing: PANELS.filter((panel) => !has(panel)).map((panel) => panel.title.toLowerCase()),
  };
}

export function boxPlot(scenario: Scenario, palette: Palette, surface: Surface): Plot {
  const groups = boxGroups(scenario);
  const flows = flowsOf(scenario).length;
  const panels = boxPanels(scenario).shown;
  const names = groups.map((group) => groupLabel(group, flows));
  const { legend, height: legendHeight } = legendOption(names, surface.width);
  const columns = surface.width >= 2 * COLUMN_MIN ? 2 : 1;
  const columnWidth = surface.width / columns;
  const labels = Math.min(Math.max(...names.map(textWidth)) + 18, columnWidth * 0.45);
  const body = ROW * groups.length + 8;
  const pitch = TITLE + body + X_AXIS;
  const place = (i: number) => ({
    left: (i % columns) * columnWidth,
    top: legendHeight + 6 + Math.floor(i / columns) * pitch,
  });
  return {
    height: legendHeight + 6 + Math.ceil(panels.length / columns) * pitch,
    option: {
      ...baseOption(),
      legend,
      title: panels.map((panel, i) => panelTitle(panel.title, place(i).top, place(i).left)),
      tooltip: { ...tooltipOption(() => ""), trigger: "item" },
      grid: panels.map((_, i) => ({
        left: place(i).left + labels,
        top: place(i).top + TITLE,
        width: columnWidth - labels - 24,
        height: body,
        outerBoundsMode: "none",
      })),
      xAxis: panels.map((panel, gridIndex) => ({
        ...valueAxis(panel.axis, 28),
        gridIndex,
        scale: true,
        splitNumber: 4,
      })),
      yAxis: panels.map((_, gridIndex) => categoryAxis(names, gridIndex, labels)),
      series: panels.flatMap((panel, index) =>
        groups.flatMap((group, row) => {
          const box = group.box[panel.metric];
          const [name, color] = [names[row] as string, palette(group.controller)];
          return box === null ? [] : boxSeries({ panel, index, group, box, row, name, color });
        }),
      ),
    },
  };
}

function categoryAxis(names: string[], gridIndex: number, width: number) {
  return {
    type: "category" as const,
    gridIndex,
    data: names,
    inverse: true,
    axisTick: { show: false },
    axisLine: { show: true, lineStyle: { color: theme().muted } },
    axisLabel: {
      color: theme().muted,
      width: width - 10,
      overflow: "break" as const,
      lineHeight: 13,
      interval: 0,
    },
  };
}

interface PlacedBox {
  panel: BoxPanel;
  /** Index of the panel among those shown. */
  index: number;
  group: Group;
  box: BoxPlot;
  row: number;
  name: string;
  color: string;
}

function boxSeries({ panel, index, group, box, row, name, color }: PlacedBox): SeriesOption[] {
  const shared = { name, xAxisIndex: index, yAxisIndex: index, itemStyle: { color } };
  return [
    {
      ...shared,
      type: "custom",
      encode: { x: [0, 1, 2, 3, 4], y: 5 },
      data: [[...five(box, panel.scale), row]],
      renderItem: drawBox(color, group.engine !== "sim"),
      tooltip: { formatter: () => boxTip(name, panel, box) },
    },
    {
      ...shared,
      type: "scatter",
      data: box.outliers.map((value) => [value * panel.scale, row]),
      symbolSize: 6,
      tooltip: { formatter: () => boxTip(name, panel, box) },
    },
  ];
}

function five(box: BoxPlot, scale: number): number[] {
  return [box.min, box.q1, box.median, box.q3, box.max].map((value) => value * scale);
}

function drawBox(color: string, dashed: boolean): NonNullable<CustomSeriesOption["renderItem"]> {
  return (_, api) => {
    const row = api.value(5);
    const [x0, x1, x2, x3, x4] = [0, 1, 2, 3, 4].map((i) => api.coord([api.value(i), row])[0]) as [
      number,
      number,
      number,
      number,
      number,
    ];
    const y = api.coord([api.value(0), row])[1] as number;
    const half = BOX_HEIGHT / 2;
    const stroke = { stroke: color, lineWidth: 1.5, lineDash: dashed ? [4, 2] : (false as const) };
    const line = (from: number, to: number, up: number, style: object) => ({
      type: "line" as const,
      shape: { x1: from, y1: y - up, x2: to, y2: y + up },
      style,
    });
    const area = { x: x1, y: y - half, width: Math.max(x3 - x1, 1), height: BOX_HEIGHT };
    return {
      type: "group",
      children: [
        line(x0, x1, 0, stroke),
        line(x3, x4, 0, stroke),
        line(x0, x0, half / 2, stroke),
        line(x4, x4, half / 2, stroke),
        { type: "rect", shape: area, style: { ...stroke, fill: theme().background } },
        { type: "rect", shape: area, style: { fill: color, opacity: 0.2 } },
        line(x2, x2, half, { stroke: color, lineWidth: 3 }),
      ],
    };
  };
}

function boxTip(name: string, panel: BoxPanel, box: BoxPlot): HTMLElement {
  const [min, q1, median, q3, max] = five(box, panel.scale).map((value) =>
    formatNumber(value, panel.digits),
  );
  return el(
    "div",
    { class: "tip-body" },
    el("strong", {}, name),
    el("p", {}, `${panel.axis}: median ${median}, quartiles ${q1} to ${q3}`),
    el("p", {}, `whiskers ${min} to ${max}, ${plural(box.outliers.length, "outlier")}`),
  );
}

/** Text alternative of the boxes. */
export function describeBoxes(scenario: Scenario): string {
  const flows = flowsOf(scenario).length;
  const clauses = boxPanels(scenario).shown.map((panel) => {
    const medians = boxGroups(scenario).map((group) => {
      const median = group.box[panel.metric]?.median;
      const value = formatNumber(median === undefined ? null : median * panel.scale, panel.digits);
      return `${groupLabel(group, flows)} ${value}`;
    });
    return `${panel.axis}: ${medians.join("; ")}`;
  });
  return `Box plots over the seeds, medians. ${clauses.join(". ")}.`;
}
