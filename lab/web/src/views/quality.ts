// What the peers of real calls saw: the delay from the camera to the other peer's screen, stalls on
// screen, and how the pictures look beside those that were sent.

import { tooltipOption, type Option, type Plot, type SeriesOption, type Surface } from "../chart";
import { picturesData, screensData } from "../data";
import { el, table } from "../dom";
import { figure } from "../figure";
import type { QualityRow, Scenario, ScreenPlot, WorstPicture } from "../format";
import { commandsOf, formatNumber, groupLabel, nearestIndex, pairs } from "../model";
import type { Palette } from "../theme";
import { name, number } from "./tables";
import { LEGEND_WITHOUT_SYMBOL, panelFrame, timeOf } from "./time";

const PANEL = {
  title: "To the screen (thick), to the received track (thin)",
  axis: "Delay (ms)",
  height: 180,
};

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
  const build = (surface: Surface) => overTime(scenario, plots, palette, surface, DELAYS);
  const data = () => screensData(scenario, plots);
  const commands = () => commandsOf(scenario.groups.filter((group) => group.engine === "call"));
  const subject = scenario.id;
  views.push(figure({ title, subject, caption, description, commands, build, data }).element);
  if (plots.some(hasScores)) views.push(picturesFigure(scenario, plots, rows, palette));
  const worst = worstPictures(plots);
  if (worst !== null) views.push(worst);
  return views;
}

const hasScores = (plot: ScreenPlot) => plot.picture_s.length > 0;

/** VMAF over time; PSNR where no run has VMAF. */
function picturesFigure(
  scenario: Scenario,
  plots: ScreenPlot[],
  rows: QualityRow[],
  palette: Palette,
): HTMLElement {
  const hasVmaf = plots.some((plot) => plot.vmaf.some((value) => value !== null));
  const [score, unit] = hasVmaf ? ["VMAF", " (0 to 100)"] : ["PSNR", " (dB)"];
  const valuesOf = (plot: ScreenPlot) => (hasVmaf ? plot.vmaf : plot.psnr_db);
  const title = `${score} of the received pictures`;
  const caption =
    `${score} of one received picture every half second beside the sent one, in the camera's size, for the first run of each controller. ` +
    (hasVmaf
      ? "100 is a picture like the sent one (model vmaf_v0.6.1)."
      : "This weir was built without VMAF.");
  const description = () =>
    `${title}. ${rows.map((row) => `${row.controller}, ${row.stream}: ${formatNumber(hasVmaf ? row.vmaf : row.psnr_db, 1)}.`).join(" ")}`;
  const panel = { title: score as string, axis: `${score}${unit}`, height: 180 };
  const timesOf = (plot: ScreenPlot) => plot.picture_s;
  const curves = (plot: ScreenPlot): Curve[] => [[valuesOf(plot), 2]];
  const tip = (plot: ScreenPlot, at: number) => `${score} ${formatNumber(valuesOf(plot)[at], 1)}`;
  const build = (surface: Surface) =>
    overTime(scenario, plots, palette, surface, { panel, timesOf, curves, tip });
  const data = () => picturesData(scenario, plots);
  const commands = () => commandsOf(scenario.groups.filter((group) => group.engine === "call"));
  const subject = scenario.id;
  return figure({ title, subject, caption, description, commands, build, data }).element;
}

/** Whether both are images with their data. A record may have any text. */
function isDrawn(worst: WorstPicture | null): worst is WorstPicture {
  const image = /^data:image\/png;base64,[A-Za-z0-9+/]+=*$/;
  return worst !== null && image.test(worst.received) && image.test(worst.sent);
}

/** The worst picture of each stream beside what was sent; null if no record has its images. */
function worstPictures(plots: ScreenPlot[]): HTMLElement | null {
  const shown = plots.flatMap((plot) => (isDrawn(plot.worst) ? [{ plot, worst: plot.worst }] : []));
  if (shown.length === 0) return null;
  const part = el("div", { class: "part worst" }, el("h3", {}, "The worst pictures"));
  for (const { plot, worst } of shown) {
    const name = `${label(plots, plot)}, at ${formatNumber(worst.time_s, 1)} s`;
    const image = (src: string, what: string) =>
      el(
        "figure",
        {},
        el("img", { src, alt: `${name}: ${what}`, loading: "lazy" }),
        el("figcaption", {}, what),
      );
    const pair = el(
      "div",
      { class: "pictures" },
      image(worst.received, "received"),
      image(worst.sent, "sent"),
    );
    part.append(el("details", {}, el("summary", {}, name), pair));
  }
  part.append(
    el(
      "p",
      { class: "note" },
      'Brightness only. With content = "film": Big Buck Bunny, © Blender Foundation, CC BY 3.0.',
    ),
  );
  return part;
}

function describe(row: QualityRow): string {
  const [half, most] = [row.shown_p50_ms, row.shown_p95_ms].map((ms) => formatNumber(ms, 0));
  return `${row.controller}, ${row.stream}: median ${half} ms, 95 % within ${most} ms, ${row.stalls} stalls.`;
}

function qualityTable(rows: QualityRow[]): HTMLElement {
  const hasSound = rows.some((row) => row.sound_behind_ms !== null);
  const hasLateness = rows.some((row) => row.camera_late_p95_ms !== null);
  return table<QualityRow>(
    "Delay from the camera to the screen, stalls on screen, and scores of the pictures",
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
      number("Good time (%)", (row) => row.good_percent, 0),
      number("Late (%)", (row) => row.late_percent, 0),
      number("Bad picture (%)", (row) => row.bad_picture_percent, 0),
      number("VMAF, mean", (row) => row.vmaf, 1),
      number("VMAF, 5 %", (row) => row.vmaf_p5, 1),
      number("PSNR (dB)", (row) => row.psnr_db, 1),
      number("Repeats", (row) => row.repeats, 0),
      number("Skips", (row) => row.skips, 0),
      number("Tags read (%)", (row) => row.tags_read_percent, 1),
      ...(hasSound
        ? [number<QualityRow>("Sound behind the picture (ms)", (row) => row.sound_behind_ms, 0)]
        : []),
      ...(hasLateness
        ? [number<QualityRow>("Camera late, 95 % (ms)", (row) => row.camera_late_p95_ms, 1)]
        : []),
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

/** Values and width of a curve. */
type Curve = [(number | null)[], number];

interface Drawn {
  panel: { title: string; axis: string; height: number };
  timesOf: (plot: ScreenPlot) => number[];
  curves: (plot: ScreenPlot) => Curve[];
  /** What the tooltip says of a plot's interval. */
  tip: (plot: ScreenPlot, at: number) => string;
}

const DELAYS: Drawn = {
  panel: PANEL,
  timesOf: (plot) => plot.time_s,
  curves: (plot) => [
    [plot.shown_ms, 2],
    [plot.received_ms, 0.9],
  ],
  tip: (plot, at) => {
    const [shown, received] = [plot.shown_ms[at], plot.received_ms[at]].map((ms) =>
      formatNumber(ms, 0),
    );
    return `${shown} ms to the screen, ${received} ms to the track`;
  },
};

function overTime(
  scenario: Scenario,
  plots: ScreenPlot[],
  palette: Palette,
  surface: Surface,
  drawn: Drawn,
): Plot {
  const view = { panels: [drawn.panel], duration_s: scenario.duration_s };
  const { option: frame, height } = panelFrame(
    view,
    plots.map((plot) => label(plots, plot)),
    surface,
  );
  const line = (plot: ScreenPlot, [values, width]: Curve): SeriesOption => ({
    type: "line",
    name: label(plots, plot),
    data: pairs(drawn.timesOf(plot), values),
    showSymbol: false,
    symbol: "none",
    lineStyle: { color: palette(plot.controller), width },
    itemStyle: LEGEND_WITHOUT_SYMBOL,
    emphasis: { disabled: true },
  });
  const option: Option = {
    ...frame,
    tooltip: { ...tooltipOption((at) => tip(plots, timeOf(at), drawn)), trigger: "axis" },
    series: plots.flatMap((plot) => drawn.curves(plot).map((curve) => line(plot, curve))),
  };
  return { option, height };
}

function tip(plots: ScreenPlot[], time: number, drawn: Drawn): HTMLElement {
  const lines = plots.map((plot) => {
    const at = nearestIndex(drawn.timesOf(plot), time);
    return el("p", {}, `${label(plots, plot)}: ${drawn.tip(plot, at)}`);
  });
  return el("div", { class: "tip-body" }, el("strong", {}, `${formatNumber(time, 2)} s`), ...lines);
}
