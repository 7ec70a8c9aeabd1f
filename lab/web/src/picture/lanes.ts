// The flows of a scenario that the picture of a call can show.

import type { Group, Scenario } from "../format";
import { groupLabel, unique } from "../model";
import type { Lane } from "./moment";

/** One lane for each flow whose way through the network is known. */
export function lanesOf(scenario: Scenario, groups: Group[]): Lane[] {
  const flows = unique(groups.map((group) => group.flow)).length;
  const engines = unique(groups.map((group) => group.engine)).length;
  const lanes: Lane[] = [];
  for (const group of groups) {
    const { capacity_mbps, queuing_delay_ms } = group.series;
    if (![...capacity_mbps, ...queuing_delay_ms].some((value) => value !== null)) continue;
    const { controller, flow, series } = group;
    const name = flows > 1 ? `${controller}, ${flow}` : controller;
    lanes.push({
      name: engines > 1 ? groupLabel(group, flows) : name,
      controller,
      series,
      sender: senderQueueOf(scenario, group),
      isNetwork: flow === "network",
    });
  }
  return lanes;
}

function senderQueueOf(scenario: Scenario, { controller, engine }: Group): Lane["sender"] {
  if (engine !== "call") return null;
  return scenario.calls?.pacers.find((plot) => plot.controller === controller) ?? null;
}
