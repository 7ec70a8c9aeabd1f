// The plot of the README as an SVG: what two senders received of a changing capacity, in one panel for
// each network. Reads the records of `weir run` and `weir call`.
//
//     node scripts/results/readme-plot.mjs FOLDER > docs/images/front-door.svg
//
// FOLDER is that of `--out`. Every scenario in it has a panel, and every controller a line. The number
// beside a line is its share of the capacity (`utilization` of the record). The figure has no
// background, and its colours suit light and dark pages.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const PANEL = { width: 560, height: 190 };
const MARGIN = { left: 52, top: 34, right: 138, bottom: 44, between: 54 };
/** Rates are means over this time, so that single frames do not show. */
const WINDOW_MS = 1000;
/** A colour for a controller, as in reports: for light pages, then for dark ones. */
const COLOURS = {
  chromium: ["#d55e00", "#e69f00"],
  gcc: ["#d55e00", "#e69f00"],
  sluice: ["#0072b2", "#56b4e9"],
};
const NAMES = { chromium: "Chromium's GCC" };

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error("usage: node scripts/results/readme-plot.mjs FOLDER > FILE.svg");
  process.exit(2);
}

/** The rows of a record by second: capacity and received rate in Mbit/s. */
function secondsOf(path) {
  const [head, ...lines] = readFileSync(path, "utf8").trim().split("\n");
  const names = head.split(",");
  const column = (name) => names.indexOf(name);
  const [time, flow, capacity, received] = [
    "time_ms",
    "flow",
    "capacity_bps",
    "received_bytes",
  ].map(column);
  const rows = lines.map((line) => line.split(","));
  const flows = new Set(rows.map((row) => row[flow]));
  const seconds = [];
  for (const row of rows) {
    const index = Math.ceil(Number(row[time]) / WINDOW_MS) - 1;
    seconds[index] ??= { capacity: 0, received: 0, rows: 0 };
    const second = seconds[index];
    second.received += (Number(row[received]) * 8) / 1000 / WINDOW_MS;
    second.capacity += Number(row[capacity]) / 1e6 / flows.size;
    second.rows += 1 / flows.size;
  }
  return seconds.map(({ capacity, received, rows }) => ({ capacity: capacity / rows, received }));
}

function recordsBelow(folder) {
  const records = [];
  for (const scenario of readdirSync(folder)) {
    for (const run of readdirSync(join(folder, scenario))) {
      const path = join(folder, scenario, run);
      const json = (name) => JSON.parse(readFileSync(join(path, name), "utf8"));
      const { controller, engine, scenario_text: text } = json("run.json");
      const share = json("summary.json").flows[0].utilization;
      const seconds = secondsOf(join(path, "series.csv"));
      records.push({
        scenario,
        title: /title = "(.*)"/.exec(text)[1],
        controller,
        engine,
        share,
        seconds,
      });
    }
  }
  return records;
}

const at = (value) => value.toFixed(1);

function panel(records, top) {
  const { title, seconds } = records[0];
  const most = Math.max(...seconds.map((second) => second.capacity));
  const ceiling = Math.ceil(most * 2) / 2;
  const x = (index) => (index / seconds.length) * PANEL.width;
  const y = (rate) => (1 - Math.min(rate / ceiling, 1)) * PANEL.height;
  const steps = seconds.map(({ capacity }, index) => `V${at(y(capacity))}H${at(x(index + 1))}`);
  const svg = [
    `<g transform="translate(${MARGIN.left} ${top})">`,
    `<text class="name" y="-12">${title}</text>`,
    `<path class="capacity" d="M0 ${PANEL.height}${steps.join("")}V${PANEL.height}Z"/>`,
  ];
  for (let rate = 0; rate <= ceiling; rate += ceiling > 1.5 ? 0.5 : 0.25) {
    svg.push(`<path class="grid" d="M0 ${at(y(rate))}h${PANEL.width}"/>`);
    svg.push(`<text x="-8" y="${at(y(rate) + 4)}" text-anchor="end">${rate}</text>`);
  }
  for (let second = 0; second <= seconds.length; second += 10) {
    svg.push(
      `<text x="${at(x(second))}" y="${PANEL.height + 17}" text-anchor="middle">${second}</text>`,
    );
  }
  const ordered = records.toSorted((a, b) => b.share - a.share);
  for (const [index, { controller, share, seconds }] of ordered.entries()) {
    const points = seconds.map(({ received }, i) => `${at(x(i + 0.5))},${at(y(received))}`);
    svg.push(`<polyline class="line ${controller}" points="${points.join(" ")}"/>`);
    const name = NAMES[controller] ?? controller;
    const left = PANEL.width + 12;
    svg.push(
      `<text class="label ${controller}" x="${left}" y="${40 + index * 46}">${name}</text>`,
      `<text class="share ${controller}" x="${left}" y="${59 + index * 46}">${share.toFixed(2)} of the link</text>`,
    );
  }
  svg.push("</g>");
  return svg.join("\n");
}

const records = recordsBelow(folder).toSorted((a, b) => a.title.localeCompare(b.title));
const scenarios = [...new Set(records.map((record) => record.scenario))];
const width = MARGIN.left + PANEL.width + MARGIN.right;
const step = PANEL.height + MARGIN.between;
const height = MARGIN.top + scenarios.length * step - MARGIN.between + MARGIN.bottom;
const panels = scenarios.map((scenario, index) =>
  panel(
    records.filter((record) => record.scenario === scenario),
    MARGIN.top + index * step,
  ),
);
const colour = (theme) =>
  Object.entries(COLOURS)
    .map(
      ([name, colours]) =>
        `.line.${name} { stroke: ${colours[theme]} } text.${name} { fill: ${colours[theme]} }`,
    )
    .join("\n");
const names = [...new Set(records.map(({ controller }) => NAMES[controller] ?? controller))];
const title = `Received rate of ${names.join(" and ")} against the capacity`;

console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">
<title>${title}</title>
<style>
text { font: 12px system-ui, sans-serif; fill: #4b5563 }
text.name { font-weight: 600; fill: #111827 }
text.label, text.share { font-weight: 600; font-size: 13px }
.grid { stroke: #9ca3af; stroke-opacity: 0.3; fill: none }
.capacity { fill: #9ca3af; fill-opacity: 0.25 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
${colour(0)}
@media (prefers-color-scheme: dark) {
text { fill: #9ca3af }
text.name { fill: #f3f4f6 }
${colour(1)}
}
</style>
${panels.join("\n")}
<text x="${MARGIN.left + PANEL.width / 2}" y="${height - 8}" text-anchor="middle">time (s); grey: the link's capacity</text>
<text transform="translate(14 ${height / 2}) rotate(-90)" text-anchor="middle">received (Mbit/s)</text>
</svg>`);
