// What the peers of real calls saw: the delay from the camera to the other peer's screen, and
// stalls on screen.

import { tooltipOption, type Option, type Plot, type SeriesOption, type Surface } from "../chart";
import { screensData } from "../data";
import { el, table, type TableColumn } from "../dom";
import { figure } from "../figure";
import type { QualityRow, Scenario, ScreenPlot } from "../format";
import { commandsOf, formatNumber, groupLabel, nearestIndex, pairs } from "../model";
import type { Palette } from "../theme";
import { name } from "./tables";
import { LEGEND_WITHOUT_SYMBOL, panelFrame, timeOf } from "./time";

const PANEL = { title: "To the screen (thick), to the received track (thin)", height: 180 };

/** Empty if no run read tags. */
export function qualityView(scenario: Scenario, palette: Palette): HTMLElement[] {
  const { quality: rows, screens: plots } = scenario.calls ?? { quality: [], screens: [] };
  if (rows.length === 0) return [];
  const title = "From the camera to the screen";
  const heading = el("h3", {}, "Pictures on screen");
  const views: HTMLElement[] = [el("div", { class: "part" }, heading, qualityTable(rows))];
  const caption =
    "Mean delay of the frames that were shown in each interval of 500 ms, for the first run of each controller. " +
    "The two curves differ by the time between decoder and screen. A gap is an interval without a new picture.";
  const description = () => `${title}. ${rows.map(describe).join(" ")}`;
  const build = (surface: Surface) => screenPlot(scenario, plots, palette, surface);
  const data = () => screensData(scenario, plots);
  const commands = () => commandsOf(scenario.groups.filter((group) => group.engine === "call"));
  const subject = scenario.id;
  views.push(figure({ title, subject, caption, description, commands, build, data }).element);
  return views;
}

function describe(row: QualityRow): string {
  const [half, most] = [row.shown_p50_ms, row.shown_p95_ms].map((ms) => formatNumber(ms, 0));
  return `${row.controller}, ${row.stream}: median ${half} ms, 95 % within ${most} ms, ${row.stalls} stalls.`;
}

function qualityTable(rows: QualityRow[]): HTMLElement {
  const number = (
    head: string,
    value: (row: QualityRow) => number | null,
    digits: number,
  ): TableColumn<QualityRow> => {
    return { head, cell: (row) => formatNumber(value(row), digits), kind: "number" };
  };
  return table<QualityRow>(
    "Delay from the camera to the screen, and stalls on screen",
    [
      { head: "Controller", cell: (row) => name(row.controller) },
      { head: "Camera and screen", cell: (row) => name(row.stream) },
      { head: "Seed", cell: (row) => row.seed },
      number("Delay to the track, median (ms)", (row) => row.received_p50_ms, 0),
      number("To the screen, median (ms)", (row) => row.shown_p50_ms, 0),
      number("95 % (ms)", (row) => row.shown_p95_ms, 0),
      number("99 % (ms)", (row) => row.shown_p99_ms, 0),
      number("Pictures a second", (row) => row.frame_rate, 1),
      number("Stalls", (row) => row.stalls, 0),
      number("Stalled (s)", (row) => row.stalled_s, 1),
      number("Stalled (%)", (row) => row.stalled_percent, 1),
      number("Repeats", (row) => row.repeats, 0),
      number("Skips", (row) => row.skips, 0),
      number("Tags read (%)", (row) => row.tags_read_percent, 1),
      number("Machine busy (%)", (row) => row.busy_percent, 0),
    ],
    rows,
  );
}

/** Name of a curve: the controller, and the stream if there are several. */
function label(plots: ScreenPlot[], { controller, stream }: ScreenPlot): string {
  const streams = plots.filter((plot) => plot.controller === controller).length;
  return groupLabel({ controller, engine: "call", flow: stream }, streams);
}

function screenPlot(
  scenario: Scenario,
  plots: ScreenPlot[],
  palette: Palette,
  surface: Surface,
): Plot {
  const view = { panels: [{ ...PANEL, axis: "Delay (ms)" }], duration_s: scenario.duration_s };
  const { option: frame, height } = panelFrame(
    view,
    plots.map((plot) => label(plots, plot)),
    surface,
  );
  const line = (plot: ScreenPlot, values: (number | null)[], width: number): SeriesOption => ({
    type: "line",
    name: label(plots, plot),
    data: pairs(plot.time_s, values),
    showSymbol: false,
    symbol: "none",
    lineStyle: { color: palette(plot.controller), width },
    itemStyle: LEGEND_WITHOUT_SYMBOL,
    emphasis: { disabled: true },
  });
  const option: Option = {
    ...frame,
    tooltip: { ...tooltipOption((at) => tip(plots, timeOf(at))), trigger: "axis" },
    series: plots.flatMap((plot) => [
      line(plot, plot.shown_ms, 2),
      line(plot, plot.received_ms, 0.9),
    ]),
  };
  return { option, height };
}

function tip(plots: ScreenPlot[], time: number): HTMLElement {
  const lines = plots.map((plot) => {
    const at = nearestIndex(plot.time_s, time);
    const [shown, received] = [plot.shown_ms[at], plot.received_ms[at]].map((ms) =>
      formatNumber(ms, 0),
    );
    return el(
      "p",
      {},
      `${label(plots, plot)}: ${shown} ms to the screen, ${received} ms to the track`,
    );
  });
  return el("div", { class: "tip-body" }, el("strong", {}, `${formatNumber(time, 2)} s`), ...lines);
}
