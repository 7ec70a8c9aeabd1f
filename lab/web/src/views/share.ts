// How the flows of a scenario share its path: one controller at a time, one curve for each flow.

import { el } from "../dom";
import { figure, type Figure } from "../figure";
import type { Group, Scenario } from "../format";
import { commandsOf, describeSeries, flowsOf, hasSeries, unique } from "../model";
import { paletteOf } from "../theme";
import { DELAY, RECEIVED, steerByKeys, timeData, timePlot, type TimeView } from "./time";

const TITLE = "How the flows share";

/** Empty if no flows share a path. */
export function shareView(scenario: Scenario): HTMLElement[] {
  const flows = flowsOf(scenario);
  const groups = scenario.groups.filter((group) => group.engine === "sim" && hasSeries(group));
  const controllers = unique(groups.map((group) => group.controller));
  const shares = scenario.fairness.length > 0 || flows.some((flow) => flow.startsWith("tcp"));
  if (!shares || flows.length < 2 || controllers.length === 0) return [];
  let chosen = controllers[0] as string;
  const shown = () => groups.filter((group) => group.controller === chosen);
  // Curves are coloured and named by their flow, because all are of one controller.
  const byFlow = (): Group[] => shown().map((group) => ({ ...group, controller: group.flow }));
  const view = (): TimeView => ({
    groups: byFlow(),
    panels: [RECEIVED, DELAY],
    duration_s: scenario.duration_s,
    flows: 1,
    events: false,
    marks: [],
    palette: paletteOf(flows),
  });
  const options = controllers.map((controller) => el("option", {}, controller));
  const select = el("select", {}, ...options);
  const plot: Figure = figure({
    title: TITLE,
    subject: scenario.id,
    caption: "Averages over the seeds, a curve per flow.",
    controls: el("div", { class: "selectors" }, el("label", {}, "Sharing under ", select)),
    description: () => {
      const clauses = byFlow().map((group) => `${group.controller}: ${describeSeries(group)}`);
      return `Received rates and delays of each flow under ${chosen}. ${clauses.join(". ")}.`;
    },
    commands: () => commandsOf(byFlow()),
    build: (surface) => timePlot(view(), surface),
    data: (zoom) => timeData(scenario.id, { ...view(), groups: shown() }, zoom),
    attach: (chart, surface) => steerByKeys(chart, surface, scenario.duration_s),
  });
  select.addEventListener("change", () => {
    chosen = controllers[select.selectedIndex] as string;
    plot.redraw();
  });
  return [plot.element];
}
