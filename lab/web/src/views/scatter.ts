// Rate against p95 queuing delay, one dot for each media flow and run. The colour is the
// controller, the symbol the engine.

import {
  baseOption,
  legendOption,
  tooltipOption,
  valueAxis,
  type Plot,
  type Surface,
} from "../chart";
import { el } from "../dom";
import { formatNumber, plural, type ScatterPoint, type ScatterSeries } from "../model";
import { theme, type Palette } from "../theme";

/** Caption of every scatter: the meaning of a dot. */
export const DOT =
  "Each dot is one media flow in one run. Circle: simulated. Diamond: real call or command. " +
  "Dots further up and to the left are better.";
/** Column of the horizontal axis. */
export const X_COLUMN = "p95_queuing_delay_ms";

export interface ScatterView {
  series: ScatterSeries[];
  yName: string;
  yDigits: number;
  palette: Palette;
}

const X_NAME = "95th percentile of queuing delay (ms)";
const BODY = 280;
const X_AXIS = 52;

export function scatterPlot(view: ScatterView, surface: Surface): Plot {
  const names = view.series.map((entry) => entry.label);
  const { legend, height } = legendOption(names, surface.width);
  const top = height + 12;
  return {
    height: top + BODY + X_AXIS,
    option: {
      ...baseOption(),
      legend,
      grid: { left: 72, right: 20, top, height: BODY, outerBoundsMode: "none" },
      xAxis: { ...valueAxis(X_NAME, 28), min: 0 },
      yAxis: { ...valueAxis(view.yName, 42), min: 0 },
      tooltip: { ...tooltipOption((item) => tip(view, item)), trigger: "item" },
      series: view.series.map((entry) => ({
        type: "scatter",
        name: entry.label,
        symbol: entry.engine === "sim" ? "circle" : "diamond",
        symbolSize: entry.engine === "sim" ? 9 : 13,
        itemStyle: {
          color: view.palette(entry.controller),
          opacity: 0.8,
          borderColor: theme().background,
          borderWidth: 1,
        },
        data: entry.points.map((point) => [point.x, point.y]),
      })),
    },
  };
}

function tip(view: ScatterView, item: unknown): HTMLElement {
  const { seriesIndex, dataIndex } = item as { seriesIndex: number; dataIndex: number };
  const entry = view.series[seriesIndex] as ScatterSeries;
  const point = entry.points[dataIndex] as ScatterPoint;
  return el(
    "div",
    { class: "tip-body" },
    el("strong", {}, entry.label),
    el("p", {}, `${point.scenario}, ${point.flow}, seed ${point.seed}`),
    el("p", {}, `${view.yName}: ${formatNumber(point.y, view.yDigits)}`),
    el("p", {}, `${X_NAME}: ${formatNumber(point.x, 1)}`),
  );
}

/** Text alternative of the scatter. */
export function describeScatter(view: ScatterView): string {
  const average = (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  const clauses = view.series.map(({ label, points }) => {
    const y = formatNumber(average(points.map((p) => p.y)), view.yDigits);
    const x = formatNumber(average(points.map((p) => p.x)), 0);
    return `${label}, ${plural(points.length, "dot")}: mean ${y} at ${x} ms`;
  });
  return `${view.yName} against ${X_NAME}. ${clauses.join(". ")}.`;
}
