// The page of a sweep: for each scenario the maps over two parameters, the Pareto fronts, and the worst runs with the
// commands that make them again.

import { command, el, empty, table } from "../dom";
import { figure } from "../figure";
import type { FrontRow, SweepMetric, SweepReport, SweepScenario, WorstRun } from "../format";
import { linkTo, plural } from "../model";
import { scaleGradient, type Palette } from "../theme";
import {
  describeFront,
  describeHeat,
  frontData,
  heatData,
  named,
  short,
  spanOf,
  type HeatView,
} from "../sweep";
import { frontPlot } from "./front";
import { heatPlot } from "./heatmap";

export function sweepView(report: SweepReport, palette: Palette): HTMLElement[] {
  const links = report.scenarios.flatMap(({ id }, i) => [
    i === 0 ? "" : ", ",
    el("a", { href: linkTo(id) }, id),
  ]);
  const counts = `${plural(report.runs, "run")}, all simulated, of ${plural(report.scenarios.length, "scenario")} under ${plural(report.controllers.length, "controller")}.`;
  return [
    el(
      "header",
      {},
      el("h1", {}, report.title),
      el("p", { class: "summary" }, counts),
      el("p", {}, "Made with: ", command(report.command)),
      report.scenarios.length > 1 ? el("nav", { "aria-label": "Scenarios" }, ...links) : null,
    ),
    ...report.scenarios.map((scenario) => scenarioView(report, scenario, palette)),
    footer(report),
  ];
}

function scenarioView(report: SweepReport, scenario: SweepScenario, palette: Palette): HTMLElement {
  const { id, runs, seeds, points } = scenario;
  const counts = `${plural(runs, "run")}: ${plural(points, "combination")} of parameters, ${plural(seeds, "seed")}.`;
  return el(
    "section",
    { id, class: "scenario" },
    el("h2", {}, id),
    el("p", {}, counts),
    mapsView(report, scenario),
    fronts(report, scenario, palette),
    worstView(report, scenario),
  );
}

/** A choice with a label. */
function choice(name: string, options: string[], set: (index: number) => void): HTMLElement {
  const select = el("select", {}, ...options.map((text) => el("option", {}, text)));
  select.addEventListener("change", () => set(select.selectedIndex));
  return el("label", {}, `${name} `, select);
}

function mapsView(report: SweepReport, scenario: SweepScenario): HTMLElement {
  const { maps, parameters } = scenario;
  if (maps[0] === undefined) return empty("No map: no parameter of this scenario has two values.");
  const view: HeatView = { report, scenario, map: maps[0], metric: 0 };
  const legend = el("div", { class: "scale" });
  const explain = () => legend.replaceChildren(scaleBar(view));
  const name = (index: number) => parameters[index]?.name ?? "";
  const pairs = maps.map(({ x, y }) => (y === null ? name(x) : `${name(x)} and ${name(y)}`));
  const changed = () => {
    explain();
    plot.redraw();
  };
  const controls = el(
    "div",
    { class: "selectors" },
    choice("Metric", report.metrics.map(named), (i) => {
      view.metric = i;
      changed();
    }),
    choice("Parameters", pairs, (i) => {
      view.map = maps[i] ?? view.map;
      changed();
    }),
  );
  explain();
  const plot = figure({
    title: "Maps over parameters",
    subject: scenario.id,
    caption:
      "Each cell is the mean over all runs of a controller with these values of the parameters: over the seeds and over " +
      "the other parameters. A run counts with the mean over its media flows.",
    controls: el("div", {}, controls, legend),
    description: () => describeHeat(view),
    commands: () => [report.command],
    build: (surface) => heatPlot(view, surface),
    data: () => heatData(view),
  });
  return plot.element;
}

function scaleBar(view: HeatView): HTMLElement {
  const metric = view.report.metrics[view.metric] as SweepMetric;
  const span = spanOf(view);
  if (span === null) return empty(`No run has a value of ${metric.name}.`);
  const { low, high } = span;
  const ticks = [low, (low + high) / 2, high].map((tick) => el("span", {}, short(tick)));
  const side = metric.better === "" ? "" : `, ${metric.better} is better`;
  const label = `Colour scale, ${named(metric)}, ${short(low)} to ${short(high)}`;
  return el(
    "div",
    { class: "scale-bar", role: "img", "aria-label": label },
    el("span", { class: "gradient", style: `background:${scaleGradient()}` }),
    el("span", { class: "ticks" }, ...ticks),
    el("span", {}, `${named(metric)}${side}`),
  );
}

function fronts(report: SweepReport, scenario: SweepScenario, palette: Palette): HTMLElement {
  if (scenario.dots.length === 0)
    return empty("No Pareto front: no run has both a utilization and a queuing delay.");
  const name = (row: FrontRow) => report.controllers[row.controller] ?? "";
  const ofPoints = (count: number, row: FrontRow) =>
    `${count} (${((100 * count) / Math.max(1, row.points)).toFixed(0)} %)`;
  const rows = table<FrontRow>(
    "Combinations of parameters in which a controller is on the front",
    [
      { head: "Controller", cell: name },
      { head: "Combinations", cell: (row) => String(row.points), kind: "number" },
      { head: "On the front", cell: (row) => ofPoints(row.on_front, row), kind: "number" },
      { head: "Alone on it", cell: (row) => ofPoints(row.alone, row), kind: "number" },
    ],
    scenario.fronts,
  );
  const plot = figure({
    title: "Pareto fronts",
    subject: scenario.id,
    caption:
      "Each dot is a controller at one combination of the parameters, as the mean over the seeds. The line is the " +
      "controller's front: no other of its dots has more utilization and less queuing delay. Dots further up and to the " +
      "left are better.",
    description: () => describeFront(report, scenario),
    commands: () => [report.command],
    build: (surface) => frontPlot(report, scenario, palette, surface),
    data: () => frontData(report, scenario),
  }).element;
  const text =
    "In each combination of the parameters, a controller is on the front if no other has at least its utilization and at " +
    "most its queuing delay, and one of them better.";
  return el("div", {}, plot, el("p", {}, text), rows);
}

function worstView(report: SweepReport, scenario: SweepScenario): HTMLElement {
  const { worst, parameters } = scenario;
  if (worst.length === 0) return empty("No run has a metric whose better side is known.");
  const metrics = [...new Set(worst.map(({ metric }) => metric))];
  const controllers = [...new Set(worst.map(({ controller }) => controller))];
  const chosen = { metric: metrics[0] as number, controller: controllers[0] as number };
  const holder = el("div", { class: "worst" });
  const draw = () => {
    const found = worst.find(
      (it) => it.metric === chosen.metric && it.controller === chosen.controller,
    );
    holder.replaceChildren(
      table<WorstRun>(
        "The worst runs",
        [
          ...parameters.map(({ name }, i) => ({
            head: name,
            cell: (run: WorstRun) => run.at[i] ?? "",
          })),
          { head: "Seed", cell: (run) => run.seed, kind: "number" },
          { head: "Make it again", cell: (run) => command(run.command) },
          ...report.metrics.map((metric, i) => ({
            head: named(metric),
            cell: (run: WorstRun) => short(run.values[i]),
            kind: "number" as const,
          })),
        ],
        found?.runs ?? [],
      ),
    );
  };
  draw();
  const controls = el(
    "div",
    { class: "selectors" },
    choice(
      "By",
      metrics.map((i) => named(report.metrics[i] as SweepMetric)),
      (i) => {
        chosen.metric = metrics[i] as number;
        draw();
      },
    ),
    choice(
      "Controller",
      controllers.map((i) => report.controllers[i] ?? ""),
      (i) => {
        chosen.controller = controllers[i] as number;
        draw();
      },
    ),
  );
  return el("div", { class: "part" }, el("h3", {}, "Worst runs"), controls, holder);
}

function footer(report: SweepReport): HTMLElement {
  const definitions = report.metrics.flatMap((metric) => [
    el("dt", {}, named(metric)),
    el("dd", {}, metric.meaning),
  ]);
  return el(
    "footer",
    { id: "definitions" },
    el("h2", {}, "Definitions"),
    el("dl", {}, ...definitions),
    el("p", {}, report.generator),
  );
}
