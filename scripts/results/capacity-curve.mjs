// The capacity that a station measures against the arrival rate, as an SVG: reads the nodes.csv of
// a record.
//
//     weir run interdigital/capacity --controller gcc-2013 --out runs
//     node scripts/results/capacity-curve.mjs runs/*/*/nodes.csv > FILE
//
// A dot is 500 ms of station a. "By sums" is Equation 6 over all rows of a band of arrival rates:
// delivered bits over their transmit delay. "Mean" is the mean of the dots. The lines are Theorem
// 1. The table goes to stderr. The figure has no background, and its colours suit light and dark
// pages.

import { readFileSync } from "node:fs";

/** Size of a packet on the air, length and period of a burst in seconds [INTERDIGITAL §3.1.2]. */
const PACKET_BITS = 1224 * 8;
const BUSY_S = 0.01075;
const PERIOD_S = 0.033;
/** Mbit/s of such packets on an idle channel, 0.25 ms each. */
const CAPACITY = PACKET_BITS / 0.25e-3 / 1e6;
const BANDS = [0.1, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4];
const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [640, 312, 48, 30, 40];
const MOST = { arrival: 4.2, capacity: 40 };

const [head, ...lines] = readFileSync(process.argv[2], "utf8").trim().split("\n");
const columns = head.split(",");
const rows = lines
  .map((line) => Object.fromEntries(line.split(",").map((cell, i) => [columns[i], cell])))
  .filter((row) => row.node === "a" && Number(row.capacity_bps) > 0)
  .map((row) => ({
    arrival: (Number(row.offered_bytes) * 8) / 0.5 / 1e6,
    delivered: Number(row.delivered_bytes) * 8,
    capacity: Number(row.capacity_bps) / 1e6,
  }));

/** Equation 8 and the lower bound of Equation 7. */
function theorem(arrival) {
  const x = ((arrival * 1e6) / PACKET_BITS) * BUSY_S;
  const share = BUSY_S / PERIOD_S;
  const of = (factor) => (arrival / (arrival + share * CAPACITY * factor)) * CAPACITY;
  return { poisson: of((x + Math.exp(-x) - 1) / x), lower: of(1) };
}

const bands = BANDS.map((middle, i) => {
  const from = i === 0 ? 0 : (BANDS[i - 1] + middle) / 2;
  const to = i + 1 === BANDS.length ? Infinity : (middle + BANDS[i + 1]) / 2;
  const own = rows.filter((row) => row.arrival >= from && row.arrival < to);
  if (own.length === 0) return null;
  const sum = (value) => own.reduce((total, row) => total + value(row), 0);
  return {
    rows: own.length,
    arrival: sum((row) => row.arrival) / own.length,
    mean: sum((row) => row.capacity) / own.length,
    sums: sum((row) => row.delivered) / sum((row) => row.delivered / row.capacity),
  };
}).filter(Boolean);

console.error(
  "| arrives, Mbit/s | rows | mean of MC | by sums | Eq. 8 | lower bound |\n|---|---|---|---|---|---|",
);
for (const band of bands) {
  const { poisson, lower } = theorem(band.arrival);
  const cells = [
    band.arrival.toFixed(2),
    band.rows,
    ...[band.mean, band.sums, poisson, lower].map((v) => v.toFixed(1)),
  ];
  console.error(`| ${cells.join(" | ")} |`);
}

const x = (arrival) =>
  LEFT + (Math.min(arrival, MOST.arrival) / MOST.arrival) * (WIDTH - LEFT - 12);
const y = (capacity) =>
  TOP + (1 - Math.min(capacity, MOST.capacity) / MOST.capacity) * (HEIGHT - TOP - BOTTOM);
const at = (value) => value.toFixed(1);
const path = (points) =>
  points.map(([a, c], i) => `${i ? "L" : "M"}${at(x(a))} ${at(y(c))}`).join("");
const curve = (key) =>
  path(Array.from({ length: 80 }, (_, i) => [0.05 * (i + 1), theorem(0.05 * (i + 1))[key]]));
const title = "Capacity that a station measures beside a hidden terminal, over what arrives";
const legend = [
  ["mean", "by sums"],
  ["poisson", "Eq. 8"],
  ["lower", "lower bound, Eq. 7"],
];

console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}">
<title>${title}</title>
<style>
text { font: 12px system-ui, sans-serif; fill: #4b5563 }
path { fill: none; stroke-width: 2 }
.grid { stroke: #9ca3af; stroke-opacity: 0.35; stroke-width: 1 }
.dot { stroke: #2563eb; stroke-opacity: 0.35; stroke-width: 4.8; stroke-linecap: round }
.mean { stroke: #2563eb }
.poisson { stroke: #b91c1c }
.lower { stroke: #b91c1c; stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) {
text { fill: #9ca3af }
.dot { stroke: #60a5fa }
.mean { stroke: #60a5fa }
.poisson, .lower { stroke: #f87171 }
}
</style>
${[0, 10, 20, 30, 40].map((c) => `<path class="grid" d="M${LEFT} ${at(y(c))}H${WIDTH - 12}"/><text x="${LEFT - 6}" y="${at(y(c) + 4)}" text-anchor="end">${c}</text>`).join("\n")}
${[0, 1, 2, 3, 4].map((a) => `<text x="${at(x(a))}" y="${HEIGHT - BOTTOM + 16}" text-anchor="middle">${a}</text>`).join("\n")}
<path class="dot" d="${rows.map((row) => `M${at(x(row.arrival))} ${at(y(row.capacity))}h0`).join("")}"/>
<path class="mean" d="${path(bands.map((band) => [band.arrival, band.sums]))}"/>
<path class="poisson" d="${curve("poisson")}"/>
<path class="lower" d="${curve("lower")}"/>
${legend.map(([name, words], i) => `<path class="${name}" d="M${LEFT + 120 * i + 12} ${TOP - 19}h22"/><text x="${LEFT + 120 * i + 40}" y="${TOP - 15}">${words}</text>`).join("\n")}
<text x="${LEFT + (WIDTH - LEFT) / 2}" y="${HEIGHT - 8}" text-anchor="middle">arrives (Mbit/s)</text>
<text transform="translate(13 ${HEIGHT / 2}) rotate(-90)" text-anchor="middle">capacity measured (Mbit/s)</text>
</svg>`);
