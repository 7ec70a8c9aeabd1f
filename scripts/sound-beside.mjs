// Prints what is heard in simulated runs beside what was heard in calls, as a Markdown table:
//
//     weir run 'audio/*' --controller gcc --seeds 5 --json | node scripts/sound-beside.mjs
//
// The calls are those of the table of docs/results/quality.md. A cell is "called / simulated", the mean
// over the runs after their first 5 s.

import { readFileSync } from "node:fs";

const PAGE = new URL("../docs/results/quality.md", import.meta.url);
/** Column of the page, how a section of a summary has it, and decimals. */
const COLUMNS = [
  ["mouth to ear, median (ms)", (flow) => flow.mouth_to_ear_ms?.p50, 0],
  ["target (ms)", (flow) => flow.speech_target_ms, 0],
  ["concealed (%)", (flow) => 100 * flow.concealed_ratio, 1],
  ["concealments", (flow) => flow.concealments, 0],
];

function cellsOf(line) {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

/** The rows of the page's table of calls, by scenario. */
function called() {
  const lines = readFileSync(PAGE, "utf8").split("\n");
  const head = lines.findIndex((line) => line.startsWith("| scenario | runs | mouth"));
  const names = cellsOf(lines[head]);
  const rows = new Map();
  for (let index = head + 2; lines[index].startsWith("|"); index += 1) {
    const cells = cellsOf(lines[index]);
    rows.set(cells[0], Object.fromEntries(names.map((name, at) => [name, cells[at]])));
  }
  return rows;
}

const groups = new Map();
for (const run of JSON.parse(readFileSync(0, "utf8"))) {
  const flow = run.flows.find(({ kind }) => kind === "audio");
  groups.set(run.scenario, [...(groups.get(run.scenario) ?? []), flow.sections[0]]);
}
console.log(`| scenario | ${COLUMNS.map(([name]) => name).join(" | ")} |`);
console.log(`|---|${COLUMNS.map(() => "---|").join("")}`);
const calls = called();
for (const [scenario, group] of [...groups].sort()) {
  const call = calls.get(scenario);
  if (call === undefined) continue;
  const cells = COLUMNS.map(([name, value, digits]) => {
    const mean = group.reduce((sum, flow) => sum + value(flow), 0) / group.length;
    return `${call[name] ?? "-"} / ${mean.toFixed(digits)}`;
  });
  console.log(`| ${[scenario, ...cells].join(" | ")} |`);
}
