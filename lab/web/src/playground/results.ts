// What the simulator answered: a table of the metrics, the curves, and every rate change in words.

import { el, table } from "../dom";
import { figure, type Figure } from "../figure";
import type { Group, Report, Scenario } from "../format";
import { describeSeries, formatNumber, groupLabel, isMedia } from "../model";
import { lanesOf } from "../picture/lanes";
import { picture } from "../picture/picture";
import { paletteOf } from "../theme";
import { serverView } from "../views/server";
import {
  DELAY,
  LOSS,
  RATE,
  steerByKeys,
  timeData,
  timePlot,
  type Panel,
  type TimeView,
} from "../views/time";
import { verdict } from "./verdict";

export interface Shown {
  element: HTMLElement;
  /** Shows other runs in the same place, and keeps the zoom if they are as long. */
  show: (report: Report, command: string) => void;
}

/** How runs are shown. */
export interface Style {
  caption: string;
  /** Whether a group gets a curve. */
  isCurve: (group: Group) => boolean;
  /** Whether tables of metrics and changes are below the plot. */
  tables: boolean;
  /** Whether the run goes on: the picture shows its newest moment. */
  isLive: boolean;
  panels: Panel[];
}

const TALL = [RATE, DELAY, LOSS];
/** For a page on which controls and curves are in view together. */
const LOW: Panel[] = [
  { ...RATE, height: 120 },
  // The names of their axes stand upright and need as much.
  { ...DELAY, height: 74 },
  { ...LOSS, height: 58 },
];

const ZOOM =
  "Zoom with the slider, or with Ctrl and the mouse wheel. The arrow keys move the pointer.";

/** The legend's two entries that are no controllers. */
const CAPACITY_IN_WORDS =
  "Capacity, grey: what the link carries at most. Possible, dotted: what a sender would reach that learns each change as soon as feedback can tell it.";

const SIMULATED: Style = {
  caption: `Simulated. ${CAPACITY_IN_WORDS} Dots are changes of the target bitrate: point at one to see its reason and signals. ${ZOOM}`,
  isCurve,
  tables: true,
  isLive: false,
  panels: TALL,
};

/** The same beside controls. */
export const SIMULATED_LOW: Style = { ...SIMULATED, panels: LOW };

/** A real run while it goes on. */
export const LIVE: Style = {
  caption: `Real packets. ${CAPACITY_IN_WORDS} The network's rates are those of the last second, as the emulator counts them; getStats is what the sender's browser reports. ${ZOOM}`,
  isCurve: () => true,
  tables: false,
  isLive: true,
  panels: LOW,
};

export function results(style: Style = SIMULATED): Shown {
  const element = el("div", { class: "results" });
  let scenario: Scenario | null = null;
  let command = "";
  let plot: Figure | null = null;
  const metrics = el("div");
  const changes = el("div");
  const layers = el("div");
  const best = el("p", { class: "best", "aria-live": "polite" });

  const moving = picture();

  let flow = "";

  const curves = () => (scenario?.groups ?? []).filter(style.isCurve);
  const flows = () => [...new Set(curves().map((group) => group.flow))];
  const shown = () => curves().filter((group) => flow === "" || group.flow === flow);
  const view = (): TimeView => ({
    groups: shown(),
    panels: style.panels,
    duration_s: scenario?.duration_s ?? 0,
    flows: flow === "" ? flows().length : 1,
    events: true,
    marks: [],
    palette: paletteOf(controllersOf(scenario)),
  });

  const select = el("select");
  const selector = el("label", { class: "selectors" }, "Flow ", select);
  const showFlows = () => {
    const known = flows();
    if (flow !== "" && !known.includes(flow)) flow = known[0] ?? "";
    const options = known.map((name) => el("option", { value: name }, name));
    select.replaceChildren(...options, el("option", { value: "" }, "all"));
    select.value = flow;
    selector.hidden = known.length < 2;
  };
  const showPicture = (of: Scenario) => {
    const { duration_s, palette } = view();
    moving.show(lanesOf(of, shown()), duration_s, palette);
    const latest = shown().map((group) => group.series.time_s.at(-1) ?? 0);
    if (style.isLive) moving.showAt(Math.max(0, ...latest));
  };
  const showTables = () => {
    if (!style.tables) return;
    metrics.replaceChildren(metricsTable(shown(), view().flows));
    changes.replaceChildren(...shown().map((group) => changeList(group, view().flows)));
    const server = scenario?.server ?? null;
    layers.replaceChildren(...(server === null ? [] : [serverView(scenario?.id ?? "", server)]));
  };
  select.addEventListener("change", () => {
    flow = select.value;
    if (scenario !== null) showPicture(scenario);
    showTables();
    plot?.redraw();
  });

  const newFigure = (of: Scenario): Figure =>
    figure({
      title: "Rate, delay and loss over time",
      subject: of.id,
      caption: style.caption,
      description: () =>
        shown()
          .map((group) => `${groupLabel(group, view().flows)}: ${describeSeries(group)}`)
          .join(". "),
      commands: () => (command === "" ? [] : [command]),
      build: (surface) => timePlot(view(), surface),
      data: (zoom) => timeData(of.id, view(), zoom),
      attach: (chart, surface) => {
        moving.follow(chart);
        steerByKeys(chart, surface, of.duration_s);
      },
    });

  const show = (report: Report, repeated: string) => {
    const before = scenario;
    scenario = report.scenarios[0] ?? null;
    command = repeated;
    if (scenario === null) return;
    if (before?.id !== scenario.id) flow = style.tables ? (flows()[0] ?? "") : "";
    best.textContent = style.tables ? verdict(scenario.groups) : "";
    showFlows();
    showPicture(scenario);
    showTables();
    if (plot !== null && before?.duration_s === scenario.duration_s && before.id === scenario.id) {
      plot.redraw();
      return;
    }
    plot = newFigure(scenario);
    element.replaceChildren(best, selector, moving.element, plot.element, layers, metrics, changes);
  };
  return { element, show };
}

function controllersOf(scenario: Scenario | null): string[] {
  return [...new Set((scenario?.groups ?? []).map((group) => group.controller))];
}

/** The loads beside the media have their place in a report. Here they would hide the controllers. */
function isCurve(group: Group): boolean {
  return isMedia(group.flow) || group.flow.startsWith("tcp");
}

function metricsTable(groups: Group[], flows: number): HTMLElement {
  const value = (
    name: string,
    digits: number,
    of: (group: Group) => number | null | undefined,
  ) => ({
    head: name,
    kind: "number" as const,
    cell: (group: Group) => formatNumber(of(group), digits),
  });
  const first = (group: Group) => group.points[0];
  return table(
    "Metrics of each flow",
    [
      { head: "flow", cell: (group: Group) => groupLabel(group, flows) },
      value("received (Mbit/s)", 2, (group) => first(group)?.throughput_mbps),
      value("used (%)", 0, (group) => percent(first(group)?.utilization)),
      value("RTT (ms)", 0, (group) => first(group)?.rtt_ms),
      value("queuing, 95th percentile (ms)", 0, (group) => first(group)?.p95_queuing_delay_ms),
      value("loss (%)", 2, (group) => first(group)?.loss_percent),
    ],
    groups,
  );
}

function percent(ratio: number | null | undefined): number | null {
  return ratio === null || ratio === undefined ? null : ratio * 100;
}

/** Every change in words. The rows are made when the reader opens the list. */
function changeList(group: Group, flows: number): HTMLElement {
  const title = `${groupLabel(group, flows)}: ${group.events.length} rate changes with their reasons`;
  const details = el("details", {}, el("summary", {}, title));
  details.addEventListener(
    "toggle",
    () => {
      const signals = (event: Group["events"][number]) =>
        Object.entries(event.signals)
          .map(([name, value]) => `${name} ${formatNumber(value, 3)}`)
          .join(", ");
      const rows = table(
        title,
        [
          { head: "time (s)", kind: "number", cell: (it) => formatNumber(it.time_s, 2) },
          { head: "from (Mbit/s)", kind: "number", cell: (it) => formatNumber(it.from_mbps, 3) },
          { head: "to (Mbit/s)", kind: "number", cell: (it) => formatNumber(it.target_mbps, 3) },
          { head: "reason", cell: (it) => it.reason },
          { head: "state", cell: (it) => it.state },
          { head: "signals", kind: "prose", cell: signals },
        ],
        group.events,
      );
      details.append(rows);
    },
    { once: true },
  );
  return details;
}
