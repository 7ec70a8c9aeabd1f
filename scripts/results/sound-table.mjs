// Prints a Markdown table of what was heard in calls, means over their runs after the first 5 s:
//
//     weir call 'audio/*' --quality --out calls && node scripts/results/sound-table.mjs calls
//
// With --senders, a row for each sender of a scenario, and what the video beside the speech had.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const words = process.argv.slice(2);
const isBySender = words.includes("--senders");
const [folder] = words.filter((word) => !word.startsWith("--"));
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

/** The same of the video flow beside it. */
const VIDEO = [
  ["speech and video (kbit/s)", (flow) => flow.rate_mbps?.mean * 1e3, 0],
  ["pictures a second", (flow) => flow.frame_rate, 1],
];

const runs = new Map();
for (const scenario of readdirSync(folder)) {
  for (const run of readdirSync(join(folder, scenario))) {
    const read = (name) => JSON.parse(readFileSync(join(folder, scenario, run, name), "utf8"));
    const [info, call, summary] = ["run.json", "call.json", "summary.json"].map(read);
    const flow = summary.flows.find(({ kind }) => kind === "audio");
    const [speech] = call.speech ?? [];
    if (flow === undefined || speech === undefined) continue;
    const name = info.scenario.id ?? info.scenario;
    const key = isBySender ? `${name} | ${summary.controller}` : name;
    const video = summary.flows.find(({ kind }) => kind === "media") ?? {};
    const seen = { ...(video.sections?.[0] ?? video), frame_rate: call.quality?.[0]?.frame_rate };
    runs.set(key, [...(runs.get(key) ?? []), [flow.sections[0] ?? flow, speech, seen]]);
  }
}

const columns = isBySender
  ? [
      ...COLUMNS,
      ...VIDEO.map(([head, value, digits]) => [head, (_, __, seen) => value(seen), digits]),
    ]
  : COLUMNS;
console.log(
  `| scenario |${isBySender ? " sender |" : ""} runs | ${columns.map(([head]) => head).join(" | ")} |`,
);
console.log(`|${isBySender ? "---|" : ""}---|---|${columns.map(() => "---|").join("")}`);
for (const [scenario, own] of [...runs].sort()) {
  const cells = columns.map(([, value, digits]) => {
    const known = own
      .map((run) => value(...run))
      .filter((it) => it !== undefined && it !== null && !Number.isNaN(it));
    if (known.length === 0) return "-";
    return (known.reduce((sum, it) => sum + it, 0) / known.length).toFixed(digits);
  });
  console.log(`| ${scenario} | ${own.length} | ${cells.join(" | ")} |`);
}
