// A metric of a sweep over two of its parameters: a map for each controller, all with one scale of colours.

import {
  FONT,
  FONT_SIZE,
  baseOption,
  panelTitle,
  textWidth,
  tooltipOption,
  type CustomSeriesOption,
  type Plot,
  type Surface,
} from "../chart";
import { el } from "../dom";
import type { HeatCell } from "../format";
import { plural } from "../model";
import {
  columnsOf,
  named,
  placeOf,
  rowsOf,
  short,
  shownOf,
  spanOf,
  valueOf,
  type HeatView,
} from "../sweep";
import { scaleColour, theme } from "../theme";

/** Least height of a row. */
const ROW = 26;
/** Space of a map's title. */
const HEAD = 24;
const X_AXIS = 50;
const GAP = 18;
/** A map that is narrower has no room for its columns. */
const MAP_MIN = 300;
/** A cell that is narrower has no number in it. */
const NUMBER_MIN = 34;

export function heatPlot(view: HeatView, surface: Surface): Plot {
  const { report, scenario, map } = view;
  const [columns, rows, shown] = [columnsOf(view), rowsOf(view), shownOf(view)];
  const span = spanOf(view) ?? { low: 0, high: 0 };
  const left = Math.max(8, ...rows.map((name) => textWidth(name) + 14)) + (map.y === null ? 0 : 20);
  const across = Math.max(1, Math.min(shown.length, Math.floor(surface.width / MAP_MIN)));
  const width = (surface.width - GAP * (across - 1)) / across;
  // The name of the second parameter stands beside the rows.
  const beside = map.y === null ? 0 : textWidth(scenario.parameters[map.y]?.name ?? "") + 8;
  const row = Math.max(ROW, Math.ceil(beside / Math.max(1, rows.length)));
  const body = row * rows.length;
  const height = HEAD + body + X_AXIS;
  const place = (i: number) => ({
    left: (i % across) * (width + GAP),
    top: Math.floor(i / across) * (height + GAP),
  });
  const axis = (data: string[]) => ({
    type: "category" as const,
    data,
    axisTick: { show: false },
    axisLine: { lineStyle: { color: theme().muted } },
    axisLabel: { color: theme().muted, fontFamily: FONT, fontSize: FONT_SIZE, hideOverlap: true },
    nameLocation: "middle" as const,
    nameTextStyle: { color: theme().text, fontFamily: FONT, fontSize: FONT_SIZE },
  });
  const cellWidth = (width - left - 4) / Math.max(1, columns.length);
  return {
    height: Math.ceil(shown.length / across) * (height + GAP) - GAP,
    option: {
      ...baseOption(),
      title: shown.map((controller, i) =>
        panelTitle(report.controllers[controller] ?? "", place(i).top, place(i).left),
      ),
      grid: shown.map((_, i) => ({
        left: place(i).left + left,
        top: place(i).top + HEAD,
        width: width - left - 4,
        height: body,
        outerBoundsMode: "none" as const,
      })),
      xAxis: shown.map((_, i) => ({
        ...axis(columns),
        gridIndex: i,
        name: scenario.parameters[map.x]?.name ?? "",
        nameGap: 26,
      })),
      yAxis: shown.map((_, i) => ({
        ...axis(rows),
        gridIndex: i,
        name: map.y === null ? "" : (scenario.parameters[map.y]?.name ?? ""),
        nameGap: left - 14,
      })),
      tooltip: { ...tooltipOption((item) => tip(view, shown, item)), trigger: "item" },
      series: shown.map((controller, i): CustomSeriesOption => {
        const cells = map.cells.filter((cell) => cell.controller === controller);
        return {
          type: "custom",
          name: report.controllers[controller] ?? "",
          xAxisIndex: i,
          yAxisIndex: i,
          data: cells.map((cell) => [cell.x, cell.y]),
          renderItem: (parameters, api) => {
            const cell = cells[parameters.dataIndex] as HeatCell;
            const [x = 0, y = 0] = api.coord([cell.x, cell.y]);
            return shapeOf(valueOf(view, cell), span, { x, y, width: cellWidth, height: row });
          },
        };
      }),
    },
  };
}

/** A cell, around its middle. */
function shapeOf(
  value: number | null,
  { low, high }: { low: number; high: number },
  at: { x: number; y: number; width: number; height: number },
) {
  const ratio = value === null ? 0 : high > low ? (value - low) / (high - low) : 0.5;
  const { background, text } = scaleColour(ratio);
  const fill = value === null ? theme().grid : background;
  const box = {
    x: at.x - at.width / 2,
    y: at.y - at.height / 2,
    width: at.width,
    height: at.height,
  };
  const style = { fill, stroke: theme().background, lineWidth: 1 };
  const label = {
    text: short(value),
    x: at.x,
    y: at.y,
    fill: text,
    font: `${FONT_SIZE}px ${FONT}`,
  };
  const middle = { align: "center" as const, verticalAlign: "middle" as const };
  return {
    type: "group" as const,
    children: [
      { type: "rect" as const, shape: box, style },
      ...(at.width < NUMBER_MIN || value === null
        ? []
        : [{ type: "text" as const, style: { ...label, ...middle }, silent: true }]),
    ],
  };
}

function tip(view: HeatView, shown: number[], item: unknown): HTMLElement {
  const { seriesIndex, dataIndex } = item as { seriesIndex: number; dataIndex: number };
  const controller = shown[seriesIndex] as number;
  const cells = view.map.cells.filter((cell) => cell.controller === controller);
  const cell = cells[dataIndex] as HeatCell;
  const lines = view.report.metrics.map((metric, i) =>
    el("p", {}, `${named(metric)}: ${short(cell.values[i])}`),
  );
  return el(
    "div",
    { class: "tip-body" },
    el("strong", {}, view.report.controllers[controller] ?? ""),
    ...placeOf(view, cell).map((text) => el("p", {}, text)),
    ...lines,
    el("p", {}, plural(cell.runs, "run")),
  );
}
