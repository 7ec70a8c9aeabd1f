// Use of the channel of a Wi-Fi cell, as an SVG: reads the file that `weir run --airtime FILE`
// writes.
//
//     node scripts/results/frame-exchange.mjs FILE FROM_US LENGTH_US > PICTURE
//
// One lane for each node, one bar for each frame, labelled with packets that arrived over packets
// sent. Below are the times in which nobody sends, in microseconds. The figure has no background,
// and its colours suit light and dark pages.

import { readFileSync } from "node:fs";

const [LABEL, LANE, BAR, WIDTH, TOP] = [44, 34, 22, 960, 8];

const [file, fromText, lengthText] = process.argv.slice(2);
const [from, length] = [Number(fromText), Number(lengthText)];
const [head, ...lines] = readFileSync(file, "utf8").trim().split("\n");
const columns = head.split(",");
const frames = lines
  .map((line) => Object.fromEntries(line.split(",").map((cell, i) => [columns[i], cell])))
  .map((row) => ({ ...row, start: row.start_ns / 1e3 - from, end: row.end_ns / 1e3 - from }))
  .filter((frame) => frame.start >= 0 && frame.end <= length)
  .sort((a, b) => a.start - b.start);
const nodes = [...new Set(frames.map((frame) => frame.from))].sort();

const scale = (WIDTH - LABEL - 8) / length;
const x = (us) => (LABEL + us * scale).toFixed(1);
const laneY = (node) => TOP + nodes.indexOf(node) * LANE + LANE / 2;
const floor = TOP + nodes.length * LANE;

function kind(frame) {
  if (frame.decoded === "0") return "lost";
  return frame.kind === "data" ? "data" : "answer";
}

function bar(frame) {
  const [y, width] = [laneY(frame.from), (frame.end - frame.start) * scale];
  const words = frame.kind === "data" ? `${frame.decoded}/${frame.mpdus}` : "";
  return [
    `<rect class="${kind(frame)}" x="${x(frame.start)}" y="${y - BAR / 2}" width="${width.toFixed(1)}" height="${BAR}"/>`,
    words.length * 7 < width
      ? `<text class="on" x="${x((frame.start + frame.end) / 2)}" y="${y + 4}" text-anchor="middle">${words}</text>`
      : "",
  ].join("");
}

/** Times in which the channel is free, each before a frame that does not overlap an earlier one. */
function gaps() {
  const found = [];
  let end = null;
  for (const frame of frames) {
    if (end !== null && frame.start > end)
      found.push({ end: frame.start, us: Math.round(frame.start - end) });
    end = Math.max(end ?? 0, frame.end);
  }
  return found.filter((gap) => gap.us > 16);
}

const height = floor + 46;
const title = `Frames on the air of a Wi-Fi cell, ${length / 1000} ms`;
const ticks = Array.from({ length: Math.floor(length / 1000) + 1 }, (_, i) => i);
const legend = [
  ["data", "data"],
  ["lost", "nothing arrived"],
  ["answer", "BlockAck"],
];

console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}">
<title>${title}</title>
<style>
text { font: 12px system-ui, sans-serif; fill: #4b5563 }
.on { fill: #ffffff }
.gap { font-size: 10px }
.grid { stroke: #9ca3af; stroke-opacity: 0.5 }
.data { fill: #2563eb }
.lost { fill: #b91c1c }
.answer { fill: #047857 }
@media (prefers-color-scheme: dark) { text { fill: #9ca3af } .on { fill: #ffffff } .answer { fill: #34d399 } }
</style>
${ticks.map((ms) => `<path class="grid" d="M${x(ms * 1000)} ${TOP}V${floor}"/><text x="${x(ms * 1000)}" y="${floor + 26}" text-anchor="middle">${ms}</text>`).join("\n")}
${nodes.map((node) => `<text x="0" y="${laneY(node) + 4}">${node}</text><path class="grid" d="M${LABEL} ${laneY(node)}H${WIDTH - 8}"/>`).join("\n")}
${frames.map(bar).join("\n")}
${gaps()
  .map(
    (gap) =>
      `<text class="gap" x="${x(gap.end - gap.us / 2)}" y="${floor + 10}" text-anchor="middle">${gap.us}</text>`,
  )
  .join("\n")}
<text x="${WIDTH - 8}" y="${height - 4}" text-anchor="end">time (ms)</text>
${legend.map(([name, words], i) => `<rect class="${name}" x="${LABEL + 130 * i}" y="${height - 13}" width="12" height="10"/><text x="${LABEL + 130 * i + 17}" y="${height - 4}">${words}</text>`).join("\n")}
</svg>`);
