// A cellular cell: the radio link and the bearers of each terminal over time, and who had which
// resource blocks.

import { tooltipOption, type Option, type Plot, type SeriesOption, type Surface } from "../chart";
import type { CsvTable } from "../csv";
import { bearerData, BEARER_COLUMNS } from "../data";
import { el, empty } from "../dom";
import { figure, type Figure } from "../figure";
import type { BearerCurve, Cellular, Scenario } from "../format";
import { formatNumber, pairs, unique } from "../model";
import { paletteOf, type Palette } from "../theme";
import { resourceView } from "./resources";
import { LEGEND_WITHOUT_SYMBOL, panelFrame, steerByKeys, timeOf, type Panels } from "./time";

const TITLE = "Bearers over time";
/** The bearer whose curves stand for the terminal's radio link. */
const DEFAULT = "default";
/** With more curves than this, one terminal is shown at first. */
const MANY = 10;
/** Number of events that are listed. */
const CHANGES_SHOWN = 12;

type BearerColumn = (typeof BEARER_COLUMNS)[number];

interface BearerPanel {
  title: string;
  axis: string;
  height: number;
  column: BearerColumn;
  /** Name and decimals in the tooltip. */
  short: string;
  digits: number;
  /** Whether the value is of the terminal and not of the bearer. */
  radio: boolean;
}

const PANELS: BearerPanel[] = [
  panel("Rate delivered", "Rate (Mbit/s)", 150, "rate_mbps", ["Mbit/s", 2], false),
  panel("Queue", "Queue (kB)", 110, "queue_kb", ["kB", 1], false),
  panel("Share of resource blocks", "Share (%)", 110, "prb_percent", ["PRB %", 1], false),
  panel("SINR without fading", "SINR (dB)", 90, "sinr_db", ["dB", 1], true),
  panel("MCS of new blocks", "MCS", 90, "mcs", ["MCS", 1], true),
  panel("HARQ retransmissions", "HARQ (%)", 90, "retransmission_percent", ["HARQ %", 1], true),
];

function panel(
  title: string,
  axis: string,
  height: number,
  column: BearerColumn,
  [short, digits]: [string, number],
  radio: boolean,
): BearerPanel {
  return { title, axis, height, column, short, digits, radio };
}

interface View extends Panels {
  panels: BearerPanel[];
  cellular: Cellular;
  curves: BearerCurve[];
  palette: Palette;
}

interface Choice {
  direction: BearerCurve["direction"];
  /** `null` for all. */
  terminal: string | null;
}

export function cellularViews(scenario: Scenario, cellular: Cellular): HTMLElement[] {
  return [bearersView(scenario, cellular), resourceView(scenario.id, cellular)];
}

function bearersView(scenario: Scenario, cellular: Cellular): HTMLElement {
  const terminals = unique(cellular.curves.map((curve) => curve.terminal));
  const measured = cellular.curves.some((curve) =>
    BEARER_COLUMNS.some((column) => curve[column].some((value) => value !== null)),
  );
  if (!measured) {
    const none = empty("No values of bearers were recorded.");
    return el("div", { class: "part" }, el("h3", {}, TITLE), none);
  }
  const most = cellular.curves.length > 2 * MANY;
  const choice: Choice = { direction: "down", terminal: most ? (terminals[0] as string) : null };
  const shown = () =>
    cellular.curves.filter(
      ({ direction, terminal }) =>
        direction === choice.direction && (choice.terminal ?? terminal) === terminal,
    );
  const view = (): View => ({
    cellular,
    curves: shown(),
    panels: PANELS,
    duration_s: scenario.duration_s,
    palette: paletteOf(terminals),
  });
  const cut = cellular.is_cut ? " The cell has more bearers than are shown." : "";
  const plot: Figure = figure({
    title: TITLE,
    subject: scenario.id,
    caption:
      `One run under ${cellular.controller}, first seed. A colour is a terminal; solid: its default ` +
      `bearer, dashed: other bearers. SINR, MCS and HARQ are of the terminal.${cut}`,
    controls: selectors(terminals, choice, () => plot.redraw()),
    description: () => describe(view(), choice),
    commands: () => [cellular.command],
    build: (surface) => bearerPlot(view(), surface),
    data: (zoom) => zoomedData(scenario.id, view(), zoom),
    attach: (chart, surface) => steerByKeys(chart, surface, scenario.duration_s),
  });
  return el("div", {}, plot.element, ...changesList(cellular));
}

function selectors(terminals: string[], choice: Choice, redraw: () => void): HTMLElement {
  const directions: BearerCurve["direction"][] = ["down", "up"];
  const way = el("select", {}, ...directions.map((text) => el("option", {}, text)));
  way.addEventListener("change", () => {
    choice.direction = directions[way.selectedIndex] as BearerCurve["direction"];
    redraw();
  });
  const options = ["all", ...terminals].map((text) => el("option", {}, text));
  const terminal = el("select", {}, ...options);
  // Use the index, because a terminal may be called "all".
  terminal.selectedIndex = choice.terminal === null ? 0 : terminals.indexOf(choice.terminal) + 1;
  terminal.addEventListener("change", () => {
    choice.terminal = terminals[terminal.selectedIndex - 1] ?? null;
    redraw();
  });
  const byTerminal = el("label", {}, "Terminal ", terminal);
  return el(
    "div",
    { class: "selectors" },
    el("label", {}, "Direction ", way),
    terminals.length > 1 ? byTerminal : null,
  );
}

/** Name of a curve: the terminal alone for its default bearer. */
function nameOf({ terminal, bearer }: BearerCurve): string {
  return bearer === DEFAULT ? terminal : `${terminal} ${bearer}`;
}

function bearerPlot(view: View, surface: Surface): Plot {
  const frame = panelFrame(view, view.curves.map(nameOf), surface);
  const yAxis = (frame.option.yAxis as object[]).map((axis, i) =>
    // A signal may be below zero.
    view.panels[i]?.column === "sinr_db" ? { ...axis, min: undefined, scale: true } : axis,
  );
  const option: Option = {
    ...frame.option,
    yAxis: yAxis as NonNullable<Option["yAxis"]>,
    tooltip: {
      ...tooltipOption((parameters) => tip(view, timeOf(parameters))),
      trigger: "axis",
    },
    series: view.panels.flatMap((panel, i) => panelSeries(view, panel, i)),
  };
  return { option, height: frame.height };
}

function panelSeries(view: View, panel: BearerPanel, index: number): SeriesOption[] {
  return drawn(view, panel).map((curve) => ({
    type: "line",
    name: nameOf(curve),
    data: pairs(view.cellular.time_s, curve[panel.column]),
    xAxisIndex: index,
    yAxisIndex: index,
    showSymbol: false,
    symbol: "none",
    lineStyle: {
      color: view.palette(curve.terminal),
      width: 1.6,
      type: curve.bearer === DEFAULT ? "solid" : [5, 3],
    },
    itemStyle: LEGEND_WITHOUT_SYMBOL,
    emphasis: { disabled: true },
  }));
}

/** The curves of a panel: one for each terminal where the value is not of the bearer. */
function drawn(view: View, panel: BearerPanel): BearerCurve[] {
  return view.curves.filter((curve) => !panel.radio || curve.bearer === DEFAULT);
}

/** Tooltip: every value at that time. */
function tip(view: View, time: number): HTMLElement {
  const { time_s } = view.cellular;
  const after = time_s.findIndex((end) => end >= time);
  const index = after === -1 ? time_s.length - 1 : after;
  const row = (curve: BearerCurve) =>
    el(
      "tr",
      {},
      el(
        "th",
        {},
        el("span", { class: "swatch", style: `background:${view.palette(curve.terminal)}` }),
        nameOf(curve),
      ),
      ...view.panels.map((panel) => {
        const value = panel.radio && curve.bearer !== DEFAULT ? null : curve[panel.column][index];
        return el("td", {}, formatNumber(value, panel.digits));
      }),
    );
  const head = ["", ...view.panels.map((panel) => panel.short)];
  return el(
    "div",
    { class: "tip-body" },
    el("strong", {}, `${formatNumber(time_s[index], 2)} s`),
    el(
      "table",
      {},
      el("tr", {}, ...head.map((text) => el("th", {}, text))),
      ...view.curves.map(row),
    ),
  );
}

function zoomedData(scenario: string, view: View, zoom: Surface["zoom"]): CsvTable {
  const at = (percent: number) => (percent / 100) * view.duration_s;
  const span = { from_s: at(zoom.start), to_s: at(zoom.end) };
  return bearerData(scenario, view.cellular, view.curves, span);
}

function describe(view: View, { direction }: Choice): string {
  const mean = (values: (number | null)[]) => {
    const known = values.filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((a, b) => a + b, 0) / known.length;
  };
  const clause = (curve: BearerCurve) =>
    `${nameOf(curve)}: ${formatNumber(mean(curve.rate_mbps), 2)} Mbit/s with ` +
    `${formatNumber(mean(curve.prb_percent), 1)} % of the resource blocks`;
  const way = direction === "down" ? "downlink" : "uplink";
  return `Bearers of the ${way} over ${view.duration_s} s. ${view.curves.map(clause).join(". ")}.`;
}

/** What became of bearers, as a list; nothing if no bearer came or went. */
function changesList({ changes }: Cellular): HTMLElement[] {
  if (changes.length === 0) return [];
  const lines = changes
    .slice(0, CHANGES_SHOWN)
    .map(({ time_s, terminal, bearer, event }) =>
      el("li", {}, `${formatNumber(time_s, 2)} s: bearer ${bearer} of ${terminal} ${event}`),
    );
  const more = changes.length - lines.length;
  const rest = more === 0 ? [] : [el("li", {}, `${more} more`)];
  return [el("ul", { class: "bearer-changes" }, ...lines, ...rest)];
}
