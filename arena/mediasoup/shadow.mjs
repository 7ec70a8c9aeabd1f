// shadow.mjs LOG [PARTICIPANT] [SECONDS]: what the worker's controller and ours said in the last call of a log that
// WEIR_SHADOW named, for what went to a participant (p3), in rows of so many seconds (5). Bitrates are in kbit/s,
// without the headers of IP, UDP and SRTP, as the worker counts. `shadow.mjs --estimates LOG [PARTICIPANT]` prints lines of
// JSON for scripts/results/finding-plot.mjs: what was sent in the last second, and both targets, in bit/s over s.

import { readFileSync } from "node:fs";

const words = process.argv.slice(2);
const forPlot = words[0] === "--estimates";
const [file, who = "p3", step = "5"] = words.slice(Number(forPlot));
const stepMs = Number(step) * 1000;
if (file === undefined || file.startsWith("-") || !(stepMs > 0)) {
  console.error("usage: node shadow.mjs [--estimates] LOG [PARTICIPANT] [SECONDS]");
  process.exit(file === "--help" ? 0 : 2);
}

const kbps = (bps) => Math.round(bps / 1000);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The lines of the last call: a server says first that it starts. */
function lastCall() {
  const lines = readFileSync(file, "utf8").trim().split("\n");
  const parsed = lines.map((line) => JSON.parse(line));
  return parsed.slice(parsed.findLastIndex(({ started }) => started));
}

/** A row of the table: from one line of each interval to the first of the next one. */
function row(samples, next, startMs) {
  const first = samples[0];
  const last = next ?? samples.at(-1);
  const sent = ((last.sent_bytes - first.sent_bytes) * 8000) / (last.time_ms - first.time_ms);
  return [
    ((first.time_ms - startMs) / 1000).toFixed(0),
    kbps(sent),
    kbps(mean(samples.map((one) => one.arrived_bps))),
    kbps(mean(samples.map((one) => one.theirs_bps))),
    kbps(mean(samples.map((one) => one.ours_bps))),
    kbps(mean(samples.map((one) => one.max_bps))),
    samples.at(-1).reason,
  ];
}

const call = lastCall();
const transport = call.find((line) => line.to === who && line.transport)?.transport;
const samples = call.filter(
  (line) => line.transport === transport && line.theirs_bps !== undefined,
);
if (transport === undefined || samples.length < 2) {
  console.error(`shadow.mjs: ${file} has nothing that went to ${who}`);
  process.exit(1);
}
const startMs = samples[0].time_ms;
if (forPlot) {
  for (const [index, sample] of samples.entries()) {
    const begin = samples.find(({ time_ms }) => time_ms > sample.time_ms - 1000);
    const ms = sample.time_ms - begin.time_ms;
    if (index === 0 || ms === 0) continue;
    const sent = ((sample.sent_bytes - begin.sent_bytes) * 8000) / ms;
    const { theirs_bps: target, ours_bps: ours } = sample;
    const time = (sample.time_ms - startMs) / 1000;
    console.log(JSON.stringify({ time, sent: Math.round(sent), target, ours }));
  }
  process.exit();
}
const parts = [];
for (const sample of samples) {
  const index = Math.floor((sample.time_ms - startMs) / stepMs);
  parts[index] ??= [];
  parts[index].push(sample);
}
const columns = ["s", "sent", "arrived", "theirs", "ours", "highest allowed", "ours because of"];
console.log(`| ${columns.join(" | ")} |\n|${"---:|".repeat(columns.length - 1)}---|`);
const full = parts.filter((part) => part.length > 1);
for (const [index, part] of full.entries()) {
  console.log(`| ${row(part, full[index + 1]?.[0], startMs).join(" | ")} |`);
}
const layers = call.filter((line) => line.to === who && line.layer !== undefined);
for (const from of new Set(layers.map((line) => line.from))) {
  const changes = layers.filter((line) => line.from === from);
  const texts = changes.map((line) => {
    const at = ((line.time_ms - startMs) / 1000).toFixed(1);
    return `${line.layer ?? "none"} at ${at}`;
  });
  console.log(`\nlayers of ${from}: ${texts.join(", ")}`);
}
