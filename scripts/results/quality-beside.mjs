// Prints what is seen in simulated runs beside what was seen in calls, as a Markdown table:
//
//     weir run 'quality/*' --controller gcc,scream-v2,sluice --seeds 5 --json | node scripts/results/quality-beside.mjs
//
// The calls are those of the first table of docs/results/quality.md. A cell is "called / simulated",
// the mean over the runs.

import { readFileSync } from "node:fs";
import { called } from "./beside.mjs";

const SENDERS = { gcc: "chromium", "scream-v2": "chromium-scream-v2" };
/** Column of the page, how the summary has it, and decimals. */
const COLUMNS = [
  ["to the screen, median (ms)", (flow) => flow.shown_delay_ms?.p50, 0],
  ["95 % (ms)", (flow) => flow.shown_delay_ms?.p95, 0],
  ["pictures a second", (flow) => flow.frame_rate, 1],
  ["stalled (%)", (flow) => percent(flow.stalled_ratio), 1],
  ["VMAF", (flow) => flow.vmaf?.mean, 1],
  ["good time (%)", (flow) => percent(flow.good_ratio), 0],
  ["late (%)", (flow) => percent(flow.late_ratio), 0],
  ["bad picture (%)", (flow) => percent(flow.bad_picture_ratio), 0],
];

function percent(ratio) {
  return ratio === undefined ? undefined : 100 * ratio;
}

function mean(values, digits) {
  const known = values.filter((value) => value !== undefined && value !== null);
  if (known.length === 0) return "-";
  return (known.reduce((sum, value) => sum + value, 0) / known.length).toFixed(digits);
}

const runs = JSON.parse(readFileSync(0, "utf8"));
const calls = called("| scenario | sender |", 2);
const head = ["scenario", "controller", ...COLUMNS.map(([name]) => name)];
console.log(`| ${head.join(" | ")} |\n|${"---|".repeat(head.length)}`);
const groups = new Map();
for (const run of runs) {
  const key = `${run.scenario} ${run.controller}`;
  groups.set(key, [...(groups.get(key) ?? []), run]);
}
for (const [key, group] of [...groups].sort()) {
  const [scenario, controller] = key.split(" ");
  const call = calls.get(`${scenario} ${SENDERS[controller] ?? controller}`) ?? {};
  const cells = COLUMNS.map(([name, value, digits]) => {
    const simulated = mean(
      group.map((run) => value(run.flows[0])),
      digits,
    );
    return `${call[name] ?? "-"} / ${simulated}`;
  });
  console.log(`| ${[scenario, controller, ...cells].join(" | ")} |`);
}
