// Prints a Markdown table of what was heard in calls, means over their runs after the first 5 s:
//
//     weir call 'audio/*' --quality --out calls && node scripts/sound-table.mjs calls

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error("sound-table: name the folder with the records of the calls");
  process.exit(2);
}

const percent = (ratio) => (ratio === undefined ? undefined : 100 * ratio);
/** Heading, value of an audio flow and its speech, and decimals. */
const COLUMNS = [
  ["mouth to ear, median (ms)", (flow) => flow.mouth_to_ear_ms?.p50, 0],
  ["95 % (ms)", (flow) => flow.mouth_to_ear_ms?.p95, 0],
  ["target (ms)", (flow) => flow.speech_target_ms, 0],
  ["concealed (%)", (flow) => percent(flow.concealed_ratio), 1],
  ["concealments", (flow) => flow.concealments, 0],
  ["slowed (%)", (flow) => percent(flow.slowed_ratio), 1],
  ["hurried (%)", (flow) => percent(flow.hurried_ratio), 1],
  ["R", (flow) => flow.speech_rating, 0],
  ["jumps of the delay", (_, speech) => speech.jumps, 0],
  ["redundant packets", (_, speech) => speech.fec_packets, 0],
  ["gaps at the speaker (ms)", (_, speech) => speech.gaps_ms, 0],
];

const runs = new Map();
for (const scenario of readdirSync(folder)) {
  for (const run of readdirSync(join(folder, scenario))) {
    const read = (name) => JSON.parse(readFileSync(join(folder, scenario, run, name), "utf8"));
    const [info, call, summary] = ["run.json", "call.json", "summary.json"].map(read);
    const flow = summary.flows.find(({ kind }) => kind === "audio");
    const [speech] = call.speech ?? [];
    if (flow === undefined || speech === undefined) continue;
    const key = info.scenario.id ?? info.scenario;
    runs.set(key, [...(runs.get(key) ?? []), [flow.sections[0] ?? flow, speech]]);
  }
}

console.log(`| scenario | runs | ${COLUMNS.map(([head]) => head).join(" | ")} |`);
console.log(`|---|---|${COLUMNS.map(() => "---|").join("")}`);
for (const [scenario, own] of [...runs].sort()) {
  const cells = COLUMNS.map(([, value, digits]) => {
    const known = own.map((run) => value(...run)).filter((it) => it !== undefined && it !== null);
    if (known.length === 0) return "-";
    return (known.reduce((sum, it) => sum + it, 0) / known.length).toFixed(digits);
  });
  console.log(`| ${scenario} | ${own.length} | ${cells.join(" | ")} |`);
}
