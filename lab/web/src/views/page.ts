// The whole page: the runs, the overview, a section for each scenario, and the definitions.

import { command, el, empty, table } from "../dom";
import { figure } from "../figure";
import type { Report, Scenario } from "../format";
import {
  freezesOf,
  isAnalyzed,
  isOpenLoop,
  linkTo,
  matrixOf,
  plural,
  scatterOf,
  seedPhrase,
  summary,
  unique,
  warningsOf,
} from "../model";
import { scatterData } from "../data";
import type { Palette } from "../theme";
import { dumpsView } from "./dumps";
import { verdictView } from "./expectations";
import { ladderView } from "./ladder";
import { matrixView } from "./matrix";
import { DOT, X_COLUMN, describeScatter, scatterPlot } from "./scatter";
import { inWords } from "../words";
import { scenarioView, type Extent } from "./scenario";
import {
  errorsTable,
  freezesTable,
  participantsTable,
  thenAndNowTable,
  verdictTable,
} from "./tables";

export function pageView(report: Report, palette: Palette): HTMLElement[] {
  const isOneAnalyzed = isOneCall(report) && report.scenarios.every(isAnalyzed);
  const warned = report.scenarios.filter((scenario) => warningsOf(scenario).length > 0);
  return [
    el(
      "header",
      {},
      el("h1", {}, report.title),
      verdictView(report),
      el("p", { class: "summary" }, summary(report)),
      ...inWords(report).map((text) =>
        el("p", { class: isOneAnalyzed ? "answer" : "in-words" }, text),
      ),
      el("p", {}, "Made with: ", command(report.command)),
      warned.length === 0 ? null : warningNote(warned),
    ),
    // A report of one call or of signalling alone has nothing to compare.
    ...(isOneCall(report) || (report.runs === 0 && report.signalling.length > 0)
      ? []
      : [overview(report, palette)]),
    ...report.scenarios.map((scenario, i) => scenarioView(scenario, palette, extentOf(report, i))),
    ...report.signalling.map(ladderView),
    footer(report),
  ];
}

/** Number of scenarios of a report of many that are open at first. */
const OPEN = 1;

function extentOf(report: Report, index: number): Extent {
  if (isOneCall(report)) return "one call";
  return index < OPEN || report.scenarios.length <= 2 ? "open" : "folded";
}

/** Whether the report shows one run: a call, or one simulation. */
function isOneCall(report: Report): boolean {
  return report.runs === 1 && report.scenarios.length === 1;
}

function overview(report: Report, palette: Palette): HTMLElement {
  return el(
    "section",
    { id: "overview" },
    el("h2", {}, "Overview"),
    dumpsView(report),
    freezesView(report),
    ...(hasNothingBeside(report) ? [] : [matrixView(report), overviewScatter(report, palette)]),
    report.verdicts.every(({ met }) => met === null)
      ? null
      : el(
          "div",
          { class: "part" },
          el("h3", {}, "Requirements of RFC 8836"),
          verdictTable(report),
          untested(report),
        ),
    participantsPart("Real calls", report, false),
    participantsPart(
      "Open loop: the feedback of recorded calls, played into controllers",
      report,
      true,
    ),
    report.errors.length === 0
      ? null
      : el(
          "div",
          { class: "part" },
          el("h3", {}, "Simulated beside real"),
          el("p", {}, SIGN),
          errorsTable(report.errors),
        ),
    report.then_and_now.length === 0 ? null : thenAndNow(report),
  );
}

/** Whether no two runs share a row or a column of the matrix, as with the dumps of several calls. */
export function hasNothingBeside(report: Report): boolean {
  const { columns, rows } = matrixOf(report);
  const isAlone = (count: number) => count <= 1;
  const known = (cell: unknown) => cell !== null;
  return (
    rows.length > 1 &&
    rows.every(({ cells }) => isAlone(cells.filter(known).length)) &&
    columns.every((_, i) => isAlone(rows.filter(({ cells }) => known(cells[i])).length))
  );
}

/** The one sign of errors on the page. */
const SIGN =
  "An error is simulated minus real: above zero, the simulation is too high. Headlines leave out disturbed calls.";

/** The requirements that no scenario of the report tests, in one line. */
function untested(report: Report): HTMLElement | null {
  const names = unique(report.verdicts.map(({ requirement }) => requirement)).filter((name) =>
    report.verdicts.every(({ requirement, met }) => requirement !== name || met === null),
  );
  if (names.length === 0) return null;
  return el("p", { class: "caption" }, `These scenarios do not test: ${names.join(", ")}.`);
}

/** The participants of real calls, or those of the open loop, which are no calls of their own. */
function participantsPart(title: string, report: Report, openLoop: boolean): HTMLElement | null {
  const rows = report.participants.filter((row) => isOpenLoop(row.controller) === openLoop);
  if (rows.length === 0) return null;
  return el("div", { class: "part" }, el("h3", {}, title), participantsTable(rows));
}

function warningNote(scenarios: Scenario[]): HTMLElement {
  const links = scenarios.flatMap((scenario, i) => [
    i === 0 ? "" : ", ",
    el("a", { href: linkTo(scenario.id) }, scenario.id),
  ]);
  const text = `${plural(scenarios.length, "scenario")} with warnings: `;
  return el("p", { class: "warning" }, text, ...links);
}

/** Number of rows that are shown at first; a click shows the others. */
const WORST_FREEZES = 8;

/** Null if no picture froze. The tables of each scenario show zero freezes. */
function freezesView(report: Report): HTMLElement | null {
  const videos = freezesOf(report);
  const frozen = videos.filter(({ freezes }) => freezes > 0);
  if (frozen.length === 0) return null;
  const text =
    `The picture froze in ${frozen.length} of ${plural(videos.length, "video")}. A video is one flow ` +
    "under one controller in one scenario. Number and duration are means per run; the longest are first. " +
    "The time between two shown frames is a freeze if it is at least three times the mean of the last " +
    "30 such times and at least 150 ms longer than this mean.";
  const [worst, others] = [frozen.slice(0, WORST_FREEZES), frozen.slice(WORST_FREEZES)];
  const more = el("summary", {}, `${others.length} more`);
  return el(
    "div",
    { class: "part freezes" },
    el("h3", {}, "Freezes"),
    el("p", {}, text),
    freezesTable(worst),
    others.length === 0 ? null : el("details", {}, more, freezesTable(others)),
  );
}

function thenAndNow(report: Report): HTMLElement {
  return el(
    "div",
    { class: "part" },
    el("h3", {}, "What GCC changed since 2013"),
    el(
      "p",
      {},
      "The scenarios with published values of the algorithm of 2013, under it (gcc-2013) and under ",
      "today's algorithm (gcc). Each cell shows the value of gcc-2013 → the value of gcc.",
    ),
    thenAndNowTable(report.then_and_now),
  );
}

function overviewScatter(report: Report, palette: Palette): HTMLElement {
  const series = scatterOf(report.scenarios, "p95_queuing_delay_ms", "utilization", 100);
  if (series.length === 0)
    return empty("No media flow has both a utilization and a queuing delay.");
  const view = { series, yName: "Utilization (%)", yDigits: 1, palette };
  return figure({
    title: "Utilization against queuing delay, all runs",
    subject: report.title,
    caption: `All scenarios. ${DOT}`,
    description: () => describeScatter(view),
    commands: () => [report.command],
    build: (surface) => scatterPlot(view, surface),
    data: () => scatterData(series, X_COLUMN, "utilization_percent"),
  }).element;
}

function footer(report: Report): HTMLElement {
  const definitions = report.definitions.flatMap(({ term, text }) => [
    el("dt", {}, term),
    el("dd", {}, text),
  ]);
  const seeds = table<Scenario>(
    "Seeds of each scenario",
    [
      { head: "Scenario", cell: (scenario) => scenario.id },
      {
        head: "Seeds",
        cell: (scenario) => seedPhrase(unique(scenario.groups.flatMap((group) => group.seeds))),
      },
    ],
    report.scenarios,
  );
  return el(
    "footer",
    { id: "definitions" },
    el("h2", {}, "Definitions"),
    definitions.length === 0
      ? empty("The report defines no metric.")
      : el(
          "details",
          { class: "more" },
          el("summary", {}, `What ${plural(report.definitions.length, "term")} mean`),
          el("dl", {}, ...definitions),
        ),
    el("h2", {}, "Seeds and revision"),
    report.scenarios.length === 0
      ? empty("No scenario was run.")
      : el("details", { class: "more" }, el("summary", {}, "Seeds of each scenario"), seeds),
    el("p", {}, report.generator),
  );
}
