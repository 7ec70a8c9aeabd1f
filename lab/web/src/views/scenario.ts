// One scenario: its description, plots, tables and findings, in reading order.

import { boxData, latenessData, scatterData } from "../data";
import { el, empty } from "../dom";
import { figure, type Figure } from "../figure";
import type { Group, Scenario, SimReal } from "../format";
import { marksOf } from "../marks";
import {
  ENGINE_NAME,
  commandsOf,
  comparedGroups,
  describeSeries,
  flowsOf,
  groupLabel,
  hasSeries,
  isAnalyzed,
  plural,
  scatterOf,
  seedPhrase,
  selectGroups,
  unique,
  warningsOf,
  type Selection,
} from "../model";
import { lanesOf } from "../picture/lanes";
import { picture } from "../picture/picture";
import type { Palette } from "../theme";
import { boxGroups, boxPanels, boxPlot, describeBoxes } from "./box";
import { answerOfCalls, callsView, findingsOfCalls } from "./calls";
import { describeLateness, latenessPlot } from "./lateness";
import { explainMarks } from "./marks";
import { networkViews } from "./network";
import { pacerView } from "./pacer";
import { qualityView } from "./quality";
import { DOT, X_COLUMN, describeScatter, scatterPlot } from "./scatter";
import {
  errorTable,
  expectationsTable,
  fairnessTable,
  findingsList,
  loadsTable,
  paperTable,
  sectionsTable,
  videoTable,
  warningBox,
} from "./tables";
import {
  DELAY,
  LOSS,
  RATE,
  RECEIVED,
  steerByKeys,
  timeData,
  timePlot,
  type TimeView,
} from "./time";
import { shareView } from "./share";
import { splitView } from "./split";

/** How much of a scenario is open when the page is opened. */
export type Extent = "one call" | "open" | "folded";

/**
 * The curves first, the rest folded. A scenario of one call has no statistics over runs; a `folded` one has only its
 * heading in view.
 */
export function scenarioView(scenario: Scenario, palette: Palette, extent: Extent): HTMLElement {
  const section = el("section", { id: scenario.id, class: "scenario" });
  section.append(
    el("h2", {}, scenario.title, " ", el("code", {}, scenario.id)),
    el("p", { class: "source" }, source(scenario)),
    ...[scenario.description].filter((text) => text !== "").map((text) => el("p", {}, text)),
    ...[warningBox(warningsOf(scenario))].filter((box) => box !== null),
  );
  // Of one call, it stands at the page's top.
  const answer = extent === "one call" ? [] : answerOfCalls(scenario);
  const first = [
    timeView(scenario, palette, extent),
    ...findingsOfCalls(scenario),
    ...videoPart(scenario),
  ];
  const rest = detailsOf(scenario, palette, extent);
  const folded = rest.length === 0 ? [] : [more(headingsOf(rest), rest)];
  if (extent === "folded") {
    const whole = more(["Curves", ...headingsOf(rest)], [...answer, ...first, ...rest]);
    whole.classList.add("whole");
    section.append(whole);
  } else {
    section.append(...answer, ...first, ...folded);
  }
  if (extent === "open") {
    const back = el("a", { href: "#overview" }, "Back to the overview");
    section.append(el("p", { class: "back" }, back));
  }
  return section;
}

/** Everything below the curves. Parts without values are left out. */
function detailsOf(scenario: Scenario, palette: Palette, extent: Extent): HTMLElement[] {
  return [
    ...(scenario.network.length > 0 ? [part("Network", networkList(scenario))] : []),
    ...networkViews(scenario),
    ...shareView(scenario),
    ...(extent === "one call"
      ? []
      : [...boxView(scenario, palette), ...scatterView(scenario, palette)]),
    ...scenario.sim_real.map((pair) => compareView(scenario, pair, palette)),
    ...(scenario.paper.length > 0 ? [part("Published values", paperTable(scenario.paper))] : []),
    ...(scenario.findings.length > 0
      ? [part("Published findings", findingsList(scenario.findings))]
      : []),
    ...(scenario.expectations.length > 0
      ? [part("Expectations", expectationsTable(scenario.expectations))]
      : []),
    ...(scenario.fairness.length > 0 ? [part("Fairness", fairnessTable(scenario.fairness))] : []),
    ...(scenario.sections.length > 0 ? [part("Sections", sectionsTable(scenario.sections))] : []),
    ...(scenario.loads.length > 0 ? [part("Loads", loadsTable(scenario.loads))] : []),
    ...splitView(scenario),
    ...pacerView(scenario, palette),
    ...qualityView(scenario, palette),
    ...callsView(scenario),
    ...latenessViews(scenario, palette),
  ];
}

function videoPart(scenario: Scenario): HTMLElement[] {
  return scenario.video.length > 0 ? [part("Video", videoTable(scenario.video))] : [];
}

function headingsOf(views: HTMLElement[]): string[] {
  const headings = views.map((view) => view.querySelector("h3")?.textContent ?? "");
  return headings.filter((text) => text !== "");
}

/** Headings that a fold's line names. */
const NAMED = 4;

/** A fold that names what it holds. Find-in-page, links and print open it. */
function more(headings: string[], views: HTMLElement[]): HTMLDetailsElement {
  const count = headings.length - NAMED;
  const others = count > 0 ? ` and ${count} more` : "";
  const text = `${headings.slice(0, NAMED).join(", ")}${others}`;
  return el("details", { class: "more" }, el("summary", {}, text), ...views);
}

function source(scenario: Scenario): string {
  const engines = unique(scenario.groups.map((group) => ENGINE_NAME[group.engine]));
  const seeds = unique(scenario.groups.flatMap((group) => group.seeds));
  const facts = [
    scenario.source,
    `${scenario.duration_s} s`,
    engines.join(" and "),
    seeds.length === 0 || isAnalyzed(scenario)
      ? ""
      : `${seeds.length === 1 ? "seed" : "seeds"} ${seedPhrase(seeds)}`,
  ];
  return facts.filter((fact) => fact !== "").join(" · ");
}

function part(title: string, ...content: HTMLElement[]): HTMLElement {
  return el("div", { class: "part" }, el("h3", {}, title), ...content);
}

function networkList(scenario: Scenario): HTMLElement {
  return el("ul", {}, ...scenario.network.map((text) => el("li", {}, text)));
}

// Over time

const SEVERAL_RUNS =
  "Averages over the seeds. Solid: simulated. Dashed: real call or command. Choose one controller to " +
  "see the rate changes of its first seed as dots. ";
const TIME_TITLE = "Rate, delay and loss over time";

/** The curves; of one call with its moving picture above them. */
function timeView(scenario: Scenario, palette: Palette, extent: Extent): HTMLElement {
  const flows = flowsOf(scenario);
  if (!scenario.groups.some(hasSeries)) {
    return part(TIME_TITLE, empty("No values over time were recorded."));
  }
  const marks = marksOf(scenario);
  const controllers = unique(scenario.groups.map((group) => group.controller));
  const only = controllers.length === 1 ? (controllers[0] as string) : null;
  const selection: Selection = { controller: only, flow: flows[0] ?? "" };
  const chosen = () => selectGroups(scenario, selection);
  const view = (): TimeView => ({
    groups: chosen(),
    panels: [RATE, DELAY, LOSS],
    duration_s: scenario.duration_s,
    flows: flows.length,
    events: selection.controller !== null,
    marks,
    palette,
  });
  const moving = picture();
  const show = () => moving.show(lanesOf(scenario, chosen()), scenario.duration_s, palette);
  const plot: Figure = figure({
    title: TIME_TITLE,
    subject: scenario.id,
    caption:
      explainMarks(marks, scenario.calls?.findings.length ?? 0) +
      (extent === "one call" ? "" : SEVERAL_RUNS) +
      "Point at a dot, where the target changed, to see the reason and the signals. " +
      "Zoom with the slider, or with Ctrl and the mouse wheel. The arrow keys move the pointer.",
    controls: selectors(scenario, selection, () => {
      show();
      plot.redraw();
    }),
    description: () => describeTime(chosen(), flows.length, scenario.duration_s),
    commands: () => commandsOf(chosen()),
    build: (surface) => timePlot(view(), surface),
    data: (zoom) => timeData(scenario.id, view(), zoom),
    attach: (chart, surface) => {
      moving.follow(chart);
      steerByKeys(chart, surface, scenario.duration_s);
    },
  });
  if (extent !== "one call") return plot.element;
  show();
  return el("div", {}, moving.element, plot.element);
}

function describeTime(groups: Group[], flows: number, duration_s: number): string {
  const clauses = groups.map((group) => `${groupLabel(group, flows)}: ${describeSeries(group)}`);
  return `Rate against capacity, delay and loss over ${duration_s} s. ${clauses.join(". ")}.`;
}

function selectors(scenario: Scenario, selection: Selection, redraw: () => void): HTMLElement {
  const controllers = unique(scenario.groups.map((group) => group.controller));
  const flows = flowsOf(scenario);
  const all = el("option", { value: "" }, "all");
  const choose = (
    name: string,
    first: HTMLElement[],
    values: string[],
    set: (index: number) => void,
  ) => {
    const options = values.map((value) => el("option", {}, value));
    const select = el("select", {}, ...first, ...options);
    // Use the index, because a name from the data may equal the value of "all".
    select.addEventListener("change", () => {
      set(select.selectedIndex - first.length);
      redraw();
    });
    return el("label", {}, `${name} `, select);
  };
  const byController = choose("Controller", [all], controllers, (i) => {
    selection.controller = controllers[i] ?? null;
  });
  const byFlow = choose("Flow", [], flows, (i) => {
    selection.flow = flows[i] as string;
  });
  return el(
    "div",
    { class: "selectors" },
    controllers.length > 1 ? byController : null,
    flows.length > 1 ? byFlow : null,
  );
}

// Over the seeds

function boxView(scenario: Scenario, palette: Palette): HTMLElement[] {
  const title = "Box plots over the seeds";
  const { shown, missing } = boxPanels(scenario);
  // Without several seeds there are no boxes.
  if (shown.length === 0) return [];
  const absent = missing.length === 0 ? "" : ` Not measured here: ${missing.join(", ")}.`;
  const plot = figure({
    title,
    subject: scenario.id,
    caption:
      "A box shows one flow under one controller, with one value for each seed. It extends from the " +
      "first to the third quartile, with a thick line at the median. The whiskers end at the last values " +
      `that are not outliers. Dots are outliers.${absent}`,
    description: () => describeBoxes(scenario),
    commands: () => commandsOf(boxGroups(scenario)),
    build: (surface) => boxPlot(scenario, palette, surface),
    data: () => boxData(scenario.id, boxGroups(scenario)),
  });
  return [plot.element];
}

function scatterView(scenario: Scenario, palette: Palette): HTMLElement[] {
  const title = "Throughput against queuing delay";
  const series = scatterOf([scenario], "p95_queuing_delay_ms", "throughput_mbps");
  if (series.length === 0) return [];
  const view = { series, yName: "Throughput (Mbit/s)", yDigits: 2, palette };
  const plot = figure({
    title,
    subject: scenario.id,
    caption: DOT,
    description: () => describeScatter(view),
    commands: () => commandsOf(scenario.groups),
    build: (surface) => scatterPlot(view, surface),
    data: () => scatterData(series, X_COLUMN, "throughput_mbps"),
  });
  return [plot.element];
}

// Simulated beside real

function compareView(scenario: Scenario, pair: SimReal, palette: Palette): HTMLElement {
  const title = `Simulated beside real: ${pair.sim_controller}, ${pair.flow}`;
  const words = `${pair.sim_controller} (simulated) beside ${pair.real_controller} (real call)`;
  const groups = comparedGroups(scenario, pair)
    .filter((group) => group !== null)
    .filter(hasSeries);
  if (groups.length < 2) {
    const missing = `${words}: at least one of them has no values over time.`;
    return part(title, empty(missing), errorTable(pair));
  }
  const view: TimeView = {
    groups,
    panels: [RECEIVED, DELAY],
    duration_s: scenario.duration_s,
    flows: 1,
    events: false,
    marks: [],
    palette,
  };
  const plot = figure({
    title,
    subject: scenario.id,
    caption: `${words}. Solid: simulated. Dashed: real. Both used the same network model.`,
    description: () => describeTime(groups, 1, scenario.duration_s),
    commands: () => commandsOf(groups),
    build: (surface) => timePlot(view, surface),
    data: (zoom) => timeData(scenario.id, view, zoom),
    attach: (chart, surface) => steerByKeys(chart, surface, scenario.duration_s),
  });
  return el("div", {}, plot.element, errorTable(pair));
}

// Lateness

/** One view for all flows of a run, because the same emulator released their packets. */
function latenessViews(scenario: Scenario, palette: Palette): HTMLElement[] {
  const first = (group: Group, i: number) =>
    scenario.groups.findIndex((other) => groupLabel(other, 1) === groupLabel(group, 1)) === i;
  return scenario.groups.filter(first).flatMap((group) => {
    const histogram = group.lateness_us;
    if (histogram === null) return [];
    const name = groupLabel(group, 1);
    const title = `Release lateness of the emulator, ${name}`;
    const packets = histogram.counts.reduce((a, b) => a + b, 0);
    if (packets === 0) return [part(title, empty("No packet was released."))];
    const latest = ", in the run with the highest 99th percentile";
    const which = group.seeds.length > 1 ? latest : "";
    const text = `${plural(packets, "packet")}. ${describeLateness(histogram)}`;
    return [
      figure({
        title,
        subject: scenario.id,
        caption: `How much later than planned each packet left the emulator${which}: ${text}`,
        description: () => `Histogram of the release lateness of ${name}. ${text}`,
        commands: () => [group.command],
        build: (surface) => latenessPlot(histogram, palette(group.controller), surface),
        data: () => latenessData(scenario.id, group, histogram),
      }).element,
    ];
  });
}
