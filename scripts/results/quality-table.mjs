// Prints a Markdown table of what was seen in the calls of a report, means over their runs:
//
//     weir call 'quality/*' --quality --out calls && weir report calls -o calls.html
//     node scripts/results/quality-table.mjs calls.html

import { readFileSync } from "node:fs";

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error("quality-table: name the report, as `weir report` wrote it");
  process.exit(2);
}
const start = /<script[^>]*type="application\/json"[^>]*>/;
const page = readFileSync(file, "utf8");
const found = start.exec(page);
const text = found && page.slice(found.index + found[0].length).split("</script>")[0];
if (!text) {
  console.error(`quality-table: ${file} is not a report`);
  process.exit(2);
}
const report = JSON.parse(text);

const COLUMNS = [
  ["to the screen, median (ms)", "shown_p50_ms", 0],
  ["95 % (ms)", "shown_p95_ms", 0],
  ["pictures a second", "frame_rate", 1],
  ["stalled (%)", "stalled_percent", 1],
  ["VMAF", "vmaf", 1],
  ["VMAF, 5 %", "vmaf_p5", 1],
  ["good time (%)", "good_percent", 0],
  ["late (%)", "late_percent", 0],
  ["bad picture (%)", "bad_picture_percent", 0],
];

/** Mean of what was measured. */
function mean(rows, key, digits) {
  const values = rows.map((row) => row[key]).filter((value) => value !== null);
  if (values.length === 0) return "-";
  return (values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(digits);
}

console.log(`| scenario | sender | runs | ${COLUMNS.map(([head]) => head).join(" | ")} |`);
console.log(`|---|---|---|${COLUMNS.map(() => "---|").join("")}`);
for (const scenario of report.scenarios) {
  const rows = scenario.calls?.quality ?? [];
  for (const controller of [...new Set(rows.map((row) => row.controller))].sort()) {
    const own = rows.filter((row) => row.controller === controller);
    const cells = COLUMNS.map(([, key, digits]) => mean(own, key, digits));
    // A scenario in a file of its own has the name of the file.
    const id = scenario.id.replace(".toml", "");
    console.log(`| ${id} | ${controller} | ${own.length} | ${cells.join(" | ")} |`);
  }
}
