// A running call or link as the curves of a report: one group for each direction of the network, and one for each
// sender of a call.

import type { Group, Report, Scenario, Series } from "../format";
import type { Stats, Status, Way } from "./server";

const NO_BOX = {} as Group["box"];

function group(controller: string, flow: string, engine: Group["engine"], series: Series): Group {
  return {
    controller,
    engine,
    flow,
    seeds: ["1"],
    command: "",
    series,
    events: [],
    box: NO_BOX,
    points: [],
    warnings: [],
    lateness_us: null,
  };
}

/** The direction's links as one path: the narrowest, and the sum of the delays. */
function pathOf(status: Status, way: "up" | "down"): Way | null {
  const ways = status.hops.map((hop) => hop[way]);
  const [first] = ways;
  if (first === undefined) return null;
  const capacities = ways.map((it) => it.capacity_mbps).filter((it) => it !== null);
  const last = ways[ways.length - 1] as Way;
  const sum = (of: (way: Way) => number) => ways.reduce((total, it) => total + of(it), 0);
  return {
    capacity_mbps: capacities.length > 0 ? Math.min(...capacities) : null,
    rate_mbps: way === "up" ? last.rate_mbps : first.rate_mbps,
    loss_ratio: 1 - ways.reduce((kept, it) => kept * (1 - it.loss_ratio), 1),
    delay_ms: sum((it) => it.delay_ms),
    queuing_delay_ms: sum((it) => it.queuing_delay_ms),
  };
}

function directionSeries(statuses: Status[], way: "up" | "down"): Series {
  const paths = statuses.map((status) => pathOf(status, way));
  const nothing = statuses.map(() => null);
  return {
    time_s: statuses.map((status) => status.time_s),
    capacity_mbps: paths.map((path) => path?.capacity_mbps ?? null),
    possible_mbps: nothing,
    target_mbps: nothing,
    received_mbps: paths.map((path) => path?.rate_mbps ?? null),
    rtt_ms: statuses.map((status) => status.round_trip_ms),
    queuing_delay_ms: paths.map((path) => path?.queuing_delay_ms ?? null),
    loss_percent: paths.map((path) => (path === null ? null : path.loss_ratio * 100)),
  };
}

const mbps = (bps: number | null | undefined) => (bps == null ? null : bps / 1e6);

/** What the sender's browser says: its target, and what it sent. */
function senderSeries(stats: Stats[]): Series {
  const nothing = stats.map(() => null);
  return {
    time_s: stats.map((it) => it.time_s),
    capacity_mbps: nothing,
    possible_mbps: nothing,
    target_mbps: stats.map((it) => mbps(it.target_bps)),
    received_mbps: stats.map((it) => mbps(it.send_bps)),
    rtt_ms: stats.map((it) => it.rtt_ms ?? null),
    queuing_delay_ms: nothing,
    loss_percent: nothing,
  };
}

/**
 * The run so far, in the form that the report's plots draw. Directions and senders stand in the place of
 * controllers, so that each has a colour.
 */
export function liveReport(
  id: string,
  kind: "call" | "link",
  statuses: Status[],
  stats: Stats[],
): Report {
  const groups: Group[] = [];
  for (const way of ["up", "down"] as const) {
    groups.push(group(way, "network", kind, directionSeries(statuses, way)));
  }
  const senders = stats.filter((it) => it.send_bps != null);
  const names = [...new Set(senders.map((it) => `${it.call} ${it.peer}`))].sort();
  for (const name of names) {
    const own = senders.filter((it) => `${it.call} ${it.peer}` === name);
    const [call, peer] = name.split(" ");
    const sender = names.length > 2 ? `sent by ${peer} of call ${call}` : `sent by ${peer}`;
    groups.push(group(sender, "getStats", kind, senderSeries(own)));
  }
  const last = statuses[statuses.length - 1]?.time_s ?? 0;
  const scenario = { id, duration_s: Math.max(10, Math.ceil(last / 10) * 10), groups } as Scenario;
  return { scenarios: [scenario] } as Report;
}

/** The newest interval of each peer. */
export function newest(stats: Stats[]): Stats[] {
  const by = new Map(stats.map((it) => [`${it.call} ${it.peer}`, it]));
  return [...by.keys()].sort().map((key) => by.get(key) as Stats);
}
