// Throughput against delay of each controller beside what is possible, as an SVG. Reads the output of
// `weir research score --json`.
//
//     weir research score PATH... --controller all --json | node scripts/results/oracle-frontier.mjs > FILE
//
// Only wired scenarios count. A dot is a controller: the median over the scenarios of the p95 of its
// delay (network and sender together), and the mean of its rate over the available rate. The line is
// the oracle with standing queues of several lengths. The figure has no background, and its colours
// suit light and dark pages.

import { readFileSync } from "node:fs";

const PLOT = { left: 56, top: 14, width: 600, height: 330 };
const SIZE = { width: 730, height: 400 };
const DELAY_TICKS_MS = [1, 3, 10, 30, 100, 300, 1000];
const SHARE_TICKS = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

const { runs, oracle } = JSON.parse(readFileSync(0, "utf8"));
const wired = new Set(oracle.map((point) => point.scenario));

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2;
}

/** Groups entries by a key, in the order of the first occurrence. */
function grouped(entries, key) {
  const groups = new Map();
  for (const entry of entries) {
    const name = key(entry);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(entry);
  }
  return groups;
}

const dots = [];
for (const [controller, own] of grouped(
  runs.filter((run) => wired.has(run.scenario)),
  (run) => run.controller,
)) {
  const scenarios = [...grouped(own, (run) => run.scenario).values()];
  dots.push({
    name: controller,
    share: mean(
      scenarios.map((seeds) => mean(seeds.map((run) => run.rate_mbps / run.available_mbps))),
    ),
    delay: median(
      scenarios.map((seeds) => mean(seeds.map((run) => run.network_ms + run.sender_ms))),
    ),
  });
}
const line = [...grouped(oracle, (point) => point.hold_ms).values()].map((points) => ({
  name: `${points[0].hold_ms} ms`,
  share: mean(points.map((point) => point.utilization)),
  delay: median(points.map((point) => point.delay_ms)),
}));

const [least, most] = [DELAY_TICKS_MS[0], DELAY_TICKS_MS.at(-1)].map(Math.log10);
const [low, high] = [SHARE_TICKS[0], SHARE_TICKS.at(-1)];
const clamp = (value, from, to) => Math.min(Math.max(value, from), to);
const x = (delay) =>
  PLOT.left +
  ((Math.log10(clamp(delay, DELAY_TICKS_MS[0], DELAY_TICKS_MS.at(-1))) - least) / (most - least)) *
    PLOT.width;
const y = (share) => PLOT.top + (1 - (clamp(share, low, high) - low) / (high - low)) * PLOT.height;
const at = (value) => value.toFixed(1);

/** Heights of the labels, moved apart where they would overlap. */
const labels = dots.toSorted((a, b) => y(a.share) - y(b.share));
const taken = [];
for (const label of labels) {
  label.text = y(label.share) + 4;
  for (const other of taken) {
    if (Math.abs(x(other.delay) - x(label.delay)) < 80 && label.text < other.text + 13) {
      label.text = other.text + 13;
    }
  }
  taken.push(label);
}

const title = `Rate against delay on ${wired.size} generated scenarios, and what is possible`;
const path = line.map(
  (point, index) => `${index ? "L" : "M"}${at(x(point.delay))} ${at(y(point.share))}`,
);
console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE.width} ${SIZE.height}" role="img" aria-label="${title}">
<title>${title}</title>
<style>
text { font: 12px system-ui, sans-serif; fill: #4b5563 }
.name { font-weight: 600; fill: #111827 }
.grid { stroke: #9ca3af; stroke-opacity: 0.35; fill: none }
.dot { fill: #2563eb }
.line { stroke: #b91c1c; stroke-width: 2; fill: none }
.mark { fill: #b91c1c }
.red { fill: #b91c1c }
@media (prefers-color-scheme: dark) {
text { fill: #9ca3af }
.name { fill: #f3f4f6 }
.dot { fill: #60a5fa }
.line { stroke: #f87171 }
.mark, .red { fill: #f87171 }
}
</style>
${DELAY_TICKS_MS.map((tick) => `<path class="grid" d="M${at(x(tick))} ${PLOT.top}v${PLOT.height}"/><text x="${at(x(tick))}" y="${PLOT.top + PLOT.height + 16}" text-anchor="middle">${tick}</text>`).join("\n")}
${SHARE_TICKS.map((tick) => `<path class="grid" d="M${PLOT.left} ${at(y(tick))}h${PLOT.width}"/><text x="${PLOT.left - 7}" y="${at(y(tick) + 4)}" text-anchor="end">${tick.toFixed(1)}</text>`).join("\n")}
<path class="line" d="${path.join("")}"/>
${line.map((point) => `<circle class="mark" cx="${at(x(point.delay))}" cy="${at(y(point.share))}" r="3"/>`).join("\n")}
<text class="red" x="${at(x(line[0].delay) + 8)}" y="${at(y(line[0].share) + 16)}">oracle, queues of ${line[0].name} to ${line.at(-1).name}</text>
${dots.map((dot) => `<circle class="dot" cx="${at(x(dot.delay))}" cy="${at(y(dot.share))}" r="4.5"/><text class="name" x="${at(x(dot.delay) + 9)}" y="${at(dot.text)}">${dot.name}</text>`).join("\n")}
<text x="${PLOT.left + PLOT.width / 2}" y="${SIZE.height - 8}" text-anchor="middle">p95 of the delay in network and sender, median over the scenarios (ms)</text>
<text transform="translate(14 ${PLOT.top + PLOT.height / 2}) rotate(-90)" text-anchor="middle">received rate over available rate</text>
</svg>`);
