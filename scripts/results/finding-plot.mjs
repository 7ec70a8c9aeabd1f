// The plot of a finding of the arena as an SVG: what a stack sent and what arrived, without and with a change. Beside it, on
// standard error, the rows of the finding's table.
//
//     node scripts/results/finding-plot.mjs BEFORE [AFTER] > ./arena/findings/NAME/plot.svg
//
// BEFORE and AFTER are folders of records. One of a forwarding server has `estimates.jsonl`, the log of its estimates for p2, too:
// then the plot shows the way to p2, and the server's target if that log has it. Without AFTER there is one panel. The figure has no
// background, and its colours suit light and dark pages.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const PANEL = { width: 560, height: 150 };
const MARGIN = { left: 52, top: 34, right: 100, bottom: 44, between: 54 };
/** Rates are means over this time, so that single frames do not show. */
const WINDOW_MS = 1000;
const ALL_LINES = [
  { key: "capacity", name: "capacity", colours: ["#888888", "#888888"], dash: "4 3" },
  { key: "sent", name: "sent", colours: ["#d55e00", "#e69f00"] },
  { key: "received", name: "received", colours: ["#0072b2", "#56b4e9"] },
  { key: "target", name: "target", colours: ["#007a5a", "#009e73"] },
];

const folders = process.argv.slice(2);
if (folders.length < 1 || folders.length > 2) {
  console.error("usage: node scripts/results/finding-plot.mjs BEFORE [AFTER] > FILE.svg");
  process.exit(2);
}

/** The rows of a record by second, in Mbit/s. */
function secondsOf(folder) {
  const [head, ...lines] = readFileSync(join(folder, "series.csv"), "utf8").trim().split("\n");
  const names = head.split(",");
  const seconds = [];
  for (const line of lines) {
    const cells = line.split(",");
    const row = Object.fromEntries(names.map((name, index) => [name, Number(cells[index])]));
    const index = Math.ceil(row.time_ms / WINDOW_MS) - 1;
    seconds[index] ??= { capacity: 0, sent: 0, received: 0, rows: 0 };
    const second = seconds[index];
    second.sent += (row.sent_bytes * 8) / 1e3 / WINDOW_MS;
    second.received += (row.received_bytes * 8) / 1e3 / WINDOW_MS;
    second.capacity += row.capacity_bps / 1e6;
    second.rows += 1;
  }
  for (const second of seconds) second.capacity /= second.rows;
  return seconds;
}

/** A schedule such as `"3Mbps"` or `[["0s", "3Mbps"], ["10s", "500kbps"]]` of p2's way down, in Mbit/s over s. */
function scheduleOf(text) {
  const table = text.split("[participant.p2.down]")[1];
  const [, value] = /^\s*capacity = (.*)/.exec(table);
  const steps = value.startsWith("[") ? JSON.parse(value) : [["0s", JSON.parse(value)]];
  const mbps = (rate) => Number.parseFloat(rate) / { M: 1, k: 1e3, b: 1e6 }[/[Mkb]/.exec(rate)[0]];
  return steps.map(([time, rate]) => ({ from: Number.parseFloat(time), capacity: mbps(rate) }));
}

/** The rows of the way from a server to p2, by second, in Mbit/s. */
function secondsToReceiver(folder) {
  const read = (name) => readFileSync(join(folder, name), "utf8").trim();
  const rows = read("estimates.jsonl")
    .split("\n")
    .map((line) => JSON.parse(line));
  const schedule = scheduleOf(JSON.parse(read("run.json")).scenario_text);
  const { peers } = JSON.parse(read("call.json"));
  // A connection may have streams of padding, too.
  const total = ({ intervals }) =>
    intervals.reduce((sum, { receive_bps }) => sum + (receive_bps ?? 0), 0);
  const [{ intervals }] = peers
    .filter(({ participant }) => participant.startsWith("p2"))
    .sort((a, b) => total(b) - total(a));
  // The server's log ends with the call.
  const offset = rows.at(-1).time - intervals.at(-1).time_s;
  const seconds = [];
  for (const { time_s, receive_bps } of intervals) {
    const index = Math.floor(time_s);
    const row = rows.find(({ time }) => time - offset >= index + 1) ?? rows.at(-1);
    seconds[index] = {
      capacity: schedule.findLast(({ from }) => from <= index).capacity,
      sent: row.sent / 1e6,
      received: (receive_bps ?? 0) / 1e6,
      ...(row.target === undefined || row.capacity !== undefined
        ? {}
        : { target: row.target / 1e6 }),
    };
  }
  return seconds;
}

/** A row of the finding's table. */
function rowOf(folder) {
  const read = (name) => JSON.parse(readFileSync(join(folder, name), "utf8"));
  const [flow] = read("summary.json").flows;
  const { peers, disturbed } = read("call.json");
  const intervals = peers.flatMap((peer) => peer.intervals);
  const seen = intervals.filter(({ frame_rate }) => typeof frame_rate === "number");
  const rates = seen.map(({ frame_rate }) => frame_rate);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  return [
    flow.utilization.toFixed(2),
    flow.queuing_delay_ms.p95.toFixed(0),
    (100 * flow.loss_ratio.mean).toFixed(1),
    (sum(rates) / Math.max(rates.length, 1)).toFixed(1),
    sum(seen.map(({ frozen_s }) => frozen_s ?? 0)).toFixed(1),
    disturbed ? "yes" : "no",
  ];
}

const isServer = existsSync(join(folders[0], "estimates.jsonl"));
const runs = folders.map(isServer ? secondsToReceiver : secondsOf);
const LINES = ALL_LINES.filter(({ key }) => runs.every((run) => run[0][key] !== undefined));
const top = Math.max(...runs.flat().flatMap((second) => LINES.map(({ key }) => second[key])));
const scale = Math.ceil(top * 2) / 2;
const length = Math.max(...runs.map((seconds) => seconds.length));
const x = (index) => MARGIN.left + (PANEL.width * index) / length;

/** The path of a line in the panel that begins at `y0`. */
function path(seconds, key, y0) {
  const points = seconds.map((second, index) => {
    const y = y0 + PANEL.height * (1 - second[key] / scale);
    return `${x(index + 0.5).toFixed(1)},${y.toFixed(1)}`;
  });
  return `M${points.join("L")}`;
}

function panel(seconds, index) {
  const y0 = MARGIN.top + index * (PANEL.height + MARGIN.between);
  const parts = [
    `<text class="title" x="${MARGIN.left}" y="${y0 - 12}">${["before", "after"][index]}</text>`,
  ];
  for (let rate = 0; rate <= scale; rate += scale > 3 ? 1 : 0.5) {
    const y = y0 + PANEL.height * (1 - rate / scale);
    parts.push(`<path class="grid" d="M${MARGIN.left},${y}h${PANEL.width}"/>`);
    parts.push(`<text x="${MARGIN.left - 8}" y="${y + 4}" text-anchor="end">${rate}</text>`);
  }
  for (let time = 0; time <= length; time += 5)
    parts.push(
      `<text x="${x(time)}" y="${y0 + PANEL.height + 18}" text-anchor="middle">${time}</text>`,
    );
  for (const [line, { key, dash }] of LINES.entries()) {
    const dashes = dash ? ` stroke-dasharray="${dash}"` : "";
    parts.push(`<path class="line l${line}"${dashes} d="${path(seconds, key, y0)}"/>`);
  }
  if (index === 0)
    for (const [line, { name }] of LINES.entries()) {
      const y = y0 + 14 + 20 * line;
      parts.push(
        `<text class="l${line} label" x="${MARGIN.left + PANEL.width + 12}" y="${y}">${name}</text>`,
      );
    }
  return parts.join("\n");
}

const width = MARGIN.left + PANEL.width + MARGIN.right;
const panels = runs.length * (PANEL.height + MARGIN.between) - MARGIN.between;
const height = MARGIN.top + panels + MARGIN.bottom;
const colours = (which) =>
  LINES.map(
    ({ colours }, line) =>
      `.l${line}{stroke:${colours[which]}}.label.l${line}{fill:${colours[which]};stroke:none}`,
  ).join("");
console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<title>Sent and received, ${runs.length === 2 ? "before and after" : "before"}</title>
<style>text{font:12px sans-serif;fill:#444}.title{font-weight:bold}.grid{stroke:#8886;stroke-width:1}
.line{fill:none;stroke-width:2}${colours(0)}
@media(prefers-color-scheme:dark){text{fill:#bbb}${colours(1)}}</style>
${runs.map(panel).join("\n")}
<text x="${MARGIN.left}" y="${height - 8}">Mbit/s over seconds</text>
</svg>`);
for (const [index, folder] of isServer ? [] : folders.entries())
  console.error(`| ${["before", "after"][index]} | ${rowOf(folder).join(" | ")} |`);
