// The Pareto fronts of a sweep: utilization against queuing delay, a dot for each controller and combination of the
// parameters, and a line through the dots that no other dot of the controller beats in both.

import {
  baseOption,
  legendOption,
  tooltipOption,
  valueAxis,
  type Plot,
  type SeriesOption,
  type Surface,
} from "../chart";
import { el } from "../dom";
import type { SweepDot, SweepReport, SweepScenario } from "../format";
import { formatNumber, plural } from "../model";
import { byController } from "../sweep";
import { theme, type Palette } from "../theme";

const X_NAME = "95th percentile of queuing delay (ms)";
const Y_NAME = "Utilization (%)";
const BODY = 320;
const X_AXIS = 52;

const point = (dot: SweepDot) => [dot.p95_queuing_delay_ms, dot.utilization * 100];

export function frontPlot(
  report: SweepReport,
  scenario: SweepScenario,
  palette: Palette,
  surface: Surface,
): Plot {
  const groups = byController(scenario);
  const names = groups.map(([number]) => report.controllers[number] ?? "");
  const { legend, height } = legendOption(names, surface.width);
  const top = height + 12;
  return {
    height: top + BODY + X_AXIS,
    option: {
      ...baseOption(),
      legend,
      grid: { left: 72, right: 20, top, height: BODY, outerBoundsMode: "none" },
      xAxis: { ...valueAxis(X_NAME, 28), min: 0 },
      yAxis: { ...valueAxis(Y_NAME, 42), min: 0 },
      tooltip: { ...tooltipOption((item) => tip(report, scenario, groups, item)), trigger: "item" },
      series: groups.flatMap(([, dots], i): SeriesOption[] => {
        const name = names[i] ?? "";
        const color = palette(name);
        const front = dots
          .filter((dot) => dot.on_own_front)
          .sort((a, b) => a.p95_queuing_delay_ms - b.p95_queuing_delay_ms);
        return [
          {
            type: "scatter",
            name,
            symbolSize: 7,
            itemStyle: { color, opacity: 0.55, borderColor: theme().background, borderWidth: 1 },
            data: dots.map(point),
          },
          {
            type: "line",
            name,
            step: "end",
            symbol: "none",
            silent: true,
            lineStyle: { color, width: 2 },
            itemStyle: { color },
            data: front.map(point),
          },
        ];
      }),
    },
  };
}

function tip(
  report: SweepReport,
  scenario: SweepScenario,
  groups: [number, SweepDot[]][],
  item: unknown,
): HTMLElement {
  const { seriesIndex, dataIndex } = item as { seriesIndex: number; dataIndex: number };
  // Each controller has two series, dots and front.
  const dot = groups[Math.floor(seriesIndex / 2)]?.[1][dataIndex] as SweepDot;
  const at = scenario.parameters.map(({ name }, i) => el("p", {}, `${name}: ${dot.at[i]}`));
  return el(
    "div",
    { class: "tip-body" },
    el("strong", {}, report.controllers[dot.controller] ?? ""),
    ...at,
    el("p", {}, `${Y_NAME}: ${formatNumber(dot.utilization * 100, 1)}`),
    el("p", {}, `${X_NAME}: ${formatNumber(dot.p95_queuing_delay_ms, 1)}`),
    el("p", {}, plural(dot.runs, "run")),
  );
}
