// Throughput against p95 queuing delay as an SVG, one panel for each controller. Reads the output
// of `weir run --json`.
//
//     weir run PATTERN... --controller all --json | node scripts/results/throughput-delay.mjs > FILE
//
// A dot is a media flow of a scenario whose link has a capacity. The cross is the median of both
// values. The figure has no background, and its colours suit light and dark pages.

import { readFileSync } from "node:fs";

const COLUMNS = 3;
const PANEL = { width: 232, height: 168 };
const GAP = { x: 20, y: 50 };
const MARGIN = { left: 52, top: 28, right: 8, bottom: 44 };
/** Ticks of the logarithmic axis of queuing delays. Smaller values count as the first tick. */
const DELAY_TICKS_MS = [1, 10, 100, 1000];
const SHARE_TICKS = [0, 0.25, 0.5, 0.75, 1];

const runs = JSON.parse(readFileSync(0, "utf8"));
const controllers = [...new Set(runs.map((run) => run.controller))];
const isDot = (flow) => flow.kind === "media" && flow.utilization !== null && flow.queuing_delay_ms;
const scenarios = new Set(runs.filter((run) => run.flows.some(isDot)).map((run) => run.scenario))
  .size;

function dotsOf(controller) {
  return runs
    .filter((run) => run.controller === controller)
    .flatMap((run) => run.flows)
    .filter(isDot)
    .map((flow) => ({ delay: flow.queuing_delay_ms.p95, share: flow.utilization }));
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2;
}

const [least, most] = [DELAY_TICKS_MS[0], DELAY_TICKS_MS.at(-1)].map(Math.log10);
const x = (delay) =>
  ((Math.log10(Math.max(delay, DELAY_TICKS_MS[0])) - least) / (most - least)) * PANEL.width;
const y = (share) => (1 - Math.min(share, 1)) * PANEL.height;
const at = (value) => value.toFixed(1);

/** Keeps the first and the last label within their panel. */
function anchor(tick) {
  if (tick === DELAY_TICKS_MS[0]) return "start";
  return tick === DELAY_TICKS_MS.at(-1) ? "end" : "middle";
}

function panel(controller, index) {
  const dots = dotsOf(controller);
  const middle = {
    delay: median(dots.map((dot) => dot.delay)),
    share: median(dots.map((dot) => dot.share)),
  };
  const column = index % COLUMNS;
  const left = MARGIN.left + column * (PANEL.width + GAP.x);
  const top = MARGIN.top + Math.floor(index / COLUMNS) * (PANEL.height + GAP.y);
  const cross = `M${at(x(middle.delay) - 7)} ${at(y(middle.share))}h14m-7-7v14`;
  return [
    `<g transform="translate(${left} ${top})">`,
    `<text class="name" y="-9">${controller}</text>`,
    `<text x="${PANEL.width}" y="-9" text-anchor="end">median ${middle.share.toFixed(2)}, ${Math.round(middle.delay)} ms</text>`,
    ...DELAY_TICKS_MS.map((tick) => `<path class="grid" d="M${at(x(tick))} 0v${PANEL.height}"/>`),
    ...SHARE_TICKS.map((tick) => `<path class="grid" d="M0 ${at(y(tick))}h${PANEL.width}"/>`),
    ...DELAY_TICKS_MS.map(
      (tick) =>
        `<text x="${at(x(tick))}" y="${PANEL.height + 15}" text-anchor="${anchor(tick)}">${tick}</text>`,
    ),
    ...(column === 0
      ? SHARE_TICKS.map(
          (tick) => `<text x="-7" y="${at(y(tick) + 4)}" text-anchor="end">${tick}</text>`,
        )
      : []),
    // Lines of no length with round ends, since a circle each would be four times as much text.
    `<path class="dot" d="${dots.map((dot) => `M${at(x(dot.delay))} ${at(y(dot.share))}h0`).join("")}"/>`,
    `<path class="cross" d="${cross}"/>`,
    "</g>",
  ].join("\n");
}

const rows = Math.ceil(controllers.length / COLUMNS);
const width = MARGIN.left + COLUMNS * PANEL.width + (COLUMNS - 1) * GAP.x + MARGIN.right;
const height = MARGIN.top + rows * PANEL.height + (rows - 1) * GAP.y + MARGIN.bottom;
const middleY = MARGIN.top + (height - MARGIN.top - MARGIN.bottom) / 2;
const title = `Throughput against 95th percentile of the queuing delay: the media flows of ${scenarios} scenarios`;

console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">
<title>${title}</title>
<style>
text { font: 12px system-ui, sans-serif; fill: #4b5563 }
.name { font-weight: 600; fill: #111827 }
.grid { stroke: #9ca3af; stroke-opacity: 0.35; fill: none }
.dot { stroke: #2563eb; stroke-opacity: 0.4; stroke-width: 4; stroke-linecap: round }
.cross { stroke: #b91c1c; stroke-width: 2.5; fill: none }
@media (prefers-color-scheme: dark) {
text { fill: #9ca3af }
.name { fill: #f3f4f6 }
.dot { stroke: #60a5fa }
.cross { stroke: #f87171 }
}
</style>
${controllers.map(panel).join("\n")}
<text x="${MARGIN.left + (width - MARGIN.left) / 2}" y="${height - 8}" text-anchor="middle">95th percentile of the queuing delay (ms)</text>
<text transform="translate(14 ${middleY}) rotate(-90)" text-anchor="middle">received rate over capacity</text>
</svg>`);
