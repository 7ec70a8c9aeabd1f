// The congestion level that station a measures over time, as an SVG: reads the nodes.csv of a record.
//
//     weir run interdigital/mac/fec-off/rex7 --controller gcc-2013 --out runs
//     node scripts/congestion-level.mjs runs/*/*/nodes.csv > FILE
//
// A dot is 500 ms: excess delivery rate over capacity, on a logarithmic axis whose lowest line also
// stands for zero. The dashed line is the threshold of 0.1. The times of medium and of high load
// are shaded. A table of the share of dots above the threshold goes to stderr. The figure has no
// background, and its colours suit light and dark pages.

import { readFileSync } from "node:fs";

const THRESHOLD = 0.1;
/** Parts of the scenario: name, start and end in seconds. */
const PARTS = [
  ["ramp-up", 0, 100],
  ["nobody competes", 100, 180],
  ["medium load", 180, 210],
  ["nobody competes again", 210, 240],
  ["high load", 240, 250],
  ["afterwards", 250, 400],
];
const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [640, 250, 56, 12, 40];
const SECONDS = 400;
/** Range of the axis in powers of ten. */
const [LOWEST, HIGHEST] = [-4, 2];

const [head, ...lines] = readFileSync(process.argv[2], "utf8").trim().split("\n");
const columns = head.split(",");
const dots = lines
  .map((line) => Object.fromEntries(line.split(",").map((cell, i) => [columns[i], cell])))
  .filter((row) => row.node === "a" && Number(row.capacity_bps) > 0)
  .map((row) => ({
    s: Number(row.time_ms) / 1e3,
    level: Number(row.excess_bps) / Number(row.capacity_bps),
  }));

console.error("| time | 500 ms above the threshold | median level |\n|---|---|---|");
for (const [name, from, to] of PARTS) {
  const own = dots
    .filter((dot) => from < dot.s && dot.s <= to)
    .map((dot) => dot.level)
    .sort((a, b) => a - b);
  const above = own.filter((level) => level >= THRESHOLD).length;
  console.error(
    `| ${name}, ${from} to ${to} s | ${above} of ${own.length} | ${own[own.length >> 1].toPrecision(2)} |`,
  );
}

const x = (s) => (LEFT + (s / SECONDS) * (WIDTH - LEFT - 12)).toFixed(1);
const y = (level) => {
  const power = Math.min(HIGHEST, Math.max(LOWEST, Math.log10(Math.max(level, Number.MIN_VALUE))));
  return (TOP + ((HIGHEST - power) / (HIGHEST - LOWEST)) * (HEIGHT - TOP - BOTTOM)).toFixed(1);
};
const title =
  "Congestion level that a station measures over time, beside a hidden terminal and under load";
const powers = Array.from({ length: HIGHEST - LOWEST + 1 }, (_, i) => LOWEST + i);
const shades = PARTS.filter(([name]) => name.endsWith("load"));
const bottom = HEIGHT - BOTTOM;

console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}">
<title>${title}</title>
<style>
text { font: 12px system-ui, sans-serif; fill: #4b5563 }
path { fill: none; stroke-width: 1 }
.grid { stroke: #9ca3af; stroke-opacity: 0.35 }
.load { fill: #9ca3af; fill-opacity: 0.25 }
.dot { fill: #2563eb; fill-opacity: 0.5 }
.threshold { stroke: #b91c1c; stroke-width: 2; stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) {
text { fill: #9ca3af }
.dot { fill: #60a5fa }
.threshold { stroke: #f87171 }
}
</style>
${shades.map(([, from, to]) => `<rect class="load" x="${x(from)}" y="${TOP}" width="${(x(to) - x(from)).toFixed(1)}" height="${bottom - TOP}"/>`).join("\n")}
${powers.map((p) => `<path class="grid" d="M${LEFT} ${y(10 ** p)}H${WIDTH - 12}"/><text x="${LEFT - 6}" y="${(Number(y(10 ** p)) + 4).toFixed(1)}" text-anchor="end">${Number((10 ** p).toPrecision(1))}</text>`).join("\n")}
${[0, 100, 200, 300, 400].map((s) => `<text x="${x(s)}" y="${bottom + 16}" text-anchor="middle">${s}</text>`).join("\n")}
${dots.map((dot) => `<circle class="dot" cx="${x(dot.s)}" cy="${y(dot.level)}" r="2"/>`).join("\n")}
<path class="threshold" d="M${LEFT} ${y(THRESHOLD)}H${WIDTH - 12}"/>
<text x="${LEFT + (WIDTH - LEFT) / 2}" y="${HEIGHT - 8}" text-anchor="middle">time (s)</text>
<text transform="translate(13 ${HEIGHT / 2 - 10}) rotate(-90)" text-anchor="middle">congestion level</text>
</svg>`);
