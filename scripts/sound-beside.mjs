// Prints what is heard in simulated runs beside what was heard in calls, as a Markdown table:
//
//     weir run 'audio/*' --controller gcc --seeds 5 --json | node scripts/sound-beside.mjs
//
// The calls are those of the table of docs/results/quality.md. A cell is "called / simulated", the mean
// over the runs after their first 5 s.

import { readFileSync } from "node:fs";
import { called } from "./beside.mjs";

/** Column of the page, how a section of a summary has it, and decimals. */
const COLUMNS = [
  ["mouth to ear, median (ms)", (flow) => flow.mouth_to_ear_ms?.p50, 0],
  ["target (ms)", (flow) => flow.speech_target_ms, 0],
  ["concealed (%)", (flow) => 100 * flow.concealed_ratio, 1],
  ["concealments", (flow) => flow.concealments, 0],
];

const groups = new Map();
for (const run of JSON.parse(readFileSync(0, "utf8"))) {
  const flow = run.flows.find(({ kind }) => kind === "audio");
  groups.set(run.scenario, [...(groups.get(run.scenario) ?? []), flow.sections[0]]);
}
console.log(`| scenario | ${COLUMNS.map(([name]) => name).join(" | ")} |`);
console.log(`|---|${COLUMNS.map(() => "---|").join("")}`);
const calls = called("| scenario | runs | mouth", 1);
for (const [scenario, group] of [...groups].sort()) {
  const call = calls.get(scenario);
  if (call === undefined) continue;
  const cells = COLUMNS.map(([name, value, digits]) => {
    const mean = group.reduce((sum, flow) => sum + value(flow), 0) / group.length;
    return `${call[name] ?? "-"} / ${mean.toFixed(digits)}`;
  });
  console.log(`| ${[scenario, ...cells].join(" | ")} |`);
}
