// The whole page: what was run, the overview, a section per scenario, and the definitions.

import { command, el, empty, table } from "../dom";
import { figure } from "../figure";
import type { Report, Scenario } from "../format";
import { plural, scatterOf, seedPhrase, summary, unique, warningsOf } from "../model";
import type { Palette } from "../theme";
import { matrixView, scenarioLink } from "./matrix";
import { describeScatter, scatterPlot } from "./scatter";
import { scenarioView } from "./scenario";
import { errorsTable, participantsTable, thenAndNowTable, verdictTable } from "./tables";

export function pageView(report: Report, palette: Palette): HTMLElement[] {
  const bent = report.scenarios.filter((scenario) => warningsOf(scenario).length > 0);
  return [
    el(
      "header",
      {},
      el("h1", {}, report.title),
      el("p", { class: "summary" }, summary(report)),
      el("p", {}, "Made with: ", command(report.command)),
      bent.length === 0 ? null : bentNote(bent),
    ),
    el(
      "section",
      { id: "overview" },
      el("h2", {}, "Overview"),
      matrixView(report),
      overviewScatter(report, palette),
      report.verdicts.length === 0
        ? null
        : el("div", { class: "part" }, el("h3", {}, "Requirements of RFC 8836"), verdictTable(report)),
      report.participants.length === 0
        ? null
        : el(
            "div",
            { class: "part" },
            el("h3", {}, "Real calls"),
            participantsTable(report.participants),
          ),
      report.errors.length === 0
        ? null
        : el("div", { class: "part" }, el("h3", {}, "Simulated beside real"), errorsTable(report.errors)),
      report.then_and_now.length === 0 ? null : thenAndNow(report),
    ),
    ...report.scenarios.map((scenario) => scenarioView(scenario, palette)),
    footer(report),
  ];
}

function bentNote(scenarios: Scenario[]): HTMLElement {
  const links = scenarios.flatMap((scenario, i) => [
    i === 0 ? "" : ", ",
    el("a", { href: scenarioLink(scenario.id) }, scenario.id),
  ]);
  const text = `${plural(scenarios.length, "scenario")} with warnings: `;
  return el("p", { class: "warning" }, text, ...links);
}

function thenAndNow(report: Report): HTMLElement {
  return el(
    "div",
    { class: "part" },
    el("h3", {}, "What GCC changed since 2013"),
    el(
      "p",
      {},
      "The scenarios of bari under the algorithm that was measured there (gcc-2013) and under ",
      "today's (gcc), then → now.",
    ),
    thenAndNowTable(report.then_and_now),
  );
}

function overviewScatter(report: Report, palette: Palette): HTMLElement {
  const series = scatterOf(report.scenarios, "p95_queuing_delay_ms", "utilization", 100);
  if (series.length === 0) return empty("No run has both a utilization and a queuing delay.");
  const view = { series, yName: "Utilization (%)", yDigits: 1, palette };
  return figure({
    title: "Utilization against queuing delay, all runs",
    subject: report.title,
    caption:
      "A dot a run, over all scenarios. Circle: simulated; diamond: real call. " +
      "Better is up and to the left.",
    description: () => describeScatter(view),
    commands: () => [report.command],
    build: (surface) => scatterPlot(view, surface),
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
    {},
    el("h2", {}, "Definitions"),
    definitions.length === 0
      ? empty("The report defines no metric.")
      : el("dl", {}, ...definitions),
    el("h2", {}, "Seeds and revision"),
    report.scenarios.length === 0 ? empty("No scenario was run.") : seeds,
    el("p", {}, report.generator),
  );
}
