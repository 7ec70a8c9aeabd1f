#!/usr/bin/env node
// compare.mjs FOLDER: prints a table of the calls below a folder that calls.sh of a server has made. `--log FILE` prints
// one call's estimates instead, LiveKit's and Weir's, second by second, from a file that WEIR_BWE_LOG named.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const [first, second] = process.argv.slice(2);
if (first === undefined || (first === "--log") !== (second !== undefined)) {
  console.error("compare.mjs FOLDER, or compare.mjs --log FILE");
  process.exit(2);
}

function scenarioOf(record) {
  return JSON.parse(readFileSync(join(record, "run.json"), "utf8")).scenario_text;
}

/** Who receives over the way that changes: in the scenarios of the simulated server the one behind [network]. */
function receiverOf(record) {
  if (/^topology = "sfu"/m.test(scenarioOf(record))) {
    return { name: "p1", table: "[network.down]" };
  }
  return { name: "p2", table: "[participant.p2.down]" };
}

/** The losses after a change, in s. */
const AFTER_S = 4;

const line = (cells) => `| ${cells.join(" | ")} |`;

function print(heads, rows) {
  for (const cells of [heads, heads.map(() => "---"), ...rows]) console.log(line(cells));
}

/** The scenarios, in the order of the tables: those beside this file, those in `small`, and those of the catalogue. */
const SCENARIOS = [
  ...["fall-and-return", "low-link", "outage", "loss-5", "steps", "meeting"],
  ...["fall-and-return", "low-link", "outage", "loss-5", "steps"].map((one) => `small-${one}`),
  ...["fall-and-return", "loss", "sixty", "steps", "thin-join"].map((one) => `sfu-${one}`),
];

/** A scenario as a page names it. */
function named(scenario) {
  if (scenario.startsWith("sfu-")) return `\`sfu/${scenario.slice(4)}\``;
  if (scenario === "meeting") return "`./examples/apps/livekit/meeting.toml`";
  return `\`./arena/sfu/${scenario.replace("small-", "small/")}.toml\``;
}

/** Scenario and server of a folder's name, such as `send-side-low-link`. */
function partsOf(name) {
  const matching = SCENARIOS.filter((one) => name.endsWith(`-${one}`));
  const scenario = matching.sort((a, b) => b.length - a.length)[0];
  if (scenario === undefined) return { scenario: name, server: "-" };
  return { scenario, server: name.slice(0, -scenario.length - 1) };
}

/** By scenario, then by server. */
function inOrder(a, b) {
  const [one, other] = [partsOf(a), partsOf(b)];
  const order = SCENARIOS.indexOf(one.scenario) - SCENARIOS.indexOf(other.scenario);
  return order || one.server.localeCompare(other.server);
}

/** Lines of JSON of a log. A last line may have been cut off. */
function logged(file) {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((text) => text.endsWith("}")).map((text) => JSON.parse(text));
}

/** The subscriber of a log with the most losses, or with the lowest target: it has the way that changes. */
function changing(rows) {
  const lasts = new Map(rows.map((row) => [row.subscriber, row]));
  const sorted = [...lasts.values()].sort((a, b) => b.lost - a.lost || a.received - b.received);
  return rows.filter((row) => row.subscriber === sorted[0]?.subscriber);
}

function seconds(file) {
  const rows = changing(logged(file));
  if (rows.length === 0) {
    console.error(`compare.mjs: ${file} has no lines`);
    process.exit(2);
  }
  const start = rows[0].time;
  const shown = new Map(rows.map((row) => [Math.floor(row.time - start), row]));
  const kbps = (value) => (value / 1e3).toFixed(0);
  const cells = [...shown].map(([second, row]) => [
    second,
    row.state,
    row.capacity === 0 ? "-" : kbps(row.capacity),
    kbps(row.target),
    row.reason,
    kbps(row.sent),
    row.lost,
  ]);
  const heads = [
    "s",
    "state",
    "capacity, kbit/s",
    "Weir's target",
    "because",
    "sent",
    "lost so far",
  ];
  print(heads, cells);
}

/** Folders with a record below a folder. */
function records(folder) {
  const paths = readdirSync(folder, { recursive: true }).map((path) => join(folder, `${path}`));
  return paths
    .filter((path) => basename(path) === "call.json")
    .map(dirname)
    .sort();
}

/** Packets of the received video that were lost so far, at times of getStats in s: the last one is `end`. */
function losses(record, end) {
  const found = [];
  const file = join(record, `${receiverOf(record).name}.rtcstats`);
  for (const text of readFileSync(file, "utf8").split("\n")) {
    if (!text.startsWith('["getStats"')) continue;
    const [, , stats, at] = JSON.parse(text);
    for (const one of Object.values(stats)) {
      if (one.packetsLost !== undefined && one.type === "inbound-rtp") {
        found.push({ at: at / 1e3, lost: one.packetsLost });
      }
    }
  }
  const last = found.at(-1)?.at ?? 0;
  return found.map(({ at, lost }) => ({ at: at - last + end, lost }));
}

/** How many of them were lost between two times. */
function between(found, from, to) {
  const inside = found.filter(({ at }) => at >= from && at <= to);
  return inside.length === 0 ? 0 : inside.at(-1).lost - inside[0].lost;
}

/** How often the size of the picture changed, after the first two seconds. */
function switches(intervals) {
  let [count, before] = [0, null];
  for (const { time_s, frame_size } of intervals) {
    if (frame_size == null) continue;
    if (time_s > 2 && before !== null && before[1] !== frame_size[1]) count += 1;
    before = frame_size;
  }
  return count;
}

/** The first time at which the receiver's way down changes, in s; null if it does not. */
function change(record) {
  const table = scenarioOf(record).split(receiverOf(record).table)[1] ?? "";
  const times = /^\s*capacity = \[\["0s", "[^"]*"\], \["([0-9.]+)s"/.exec(table);
  return times === null ? null : Number.parseFloat(times[1]);
}

/** All packets that feedback called lost, repeats included; "-" where there is no such feedback. */
function allLost(log) {
  const rows = existsSync(log) ? logged(log).filter(({ lost }) => lost !== undefined) : [];
  return rows.length > 0 ? (changing(rows).at(-1)?.lost ?? 0) : "-";
}

/** What padding took of the bytes, in per cent; "-" where the log does not say. */
function padding(log) {
  const rows = existsSync(log) ? logged(log).filter(({ padding }) => padding !== undefined) : [];
  const last = rows.length > 0 ? changing(rows).at(-1) : undefined;
  return last?.sent > 0 ? ((100 * last.padding) / last.sent).toFixed(1) : "-";
}

function row(record, name) {
  const call = JSON.parse(readFileSync(join(record, "call.json"), "utf8"));
  // A connection has streams of padding, too.
  const received = ({ intervals }) =>
    intervals.reduce((total, it) => total + (it.receive_bps ?? 0), 0);
  const [peer] = call.peers
    .filter(({ participant }) => participant.startsWith(receiverOf(record).name))
    .sort((a, b) => received(b) - received(a));
  const sum = (member) => peer.intervals.reduce((total, it) => total + (it[member] ?? 0), 0);
  const mean = (member) => sum(member) / peer.intervals.length;
  const sizes = peer.intervals.map((it) => it.frame_size?.[1]).filter((size) => size !== undefined);
  const height = sizes.reduce((total, size) => total + size, 0) / sizes.length;
  const found = losses(record, peer.intervals.at(-1).time_s);
  const from = change(record);
  const { scenario, server } = partsOf(name);
  return [
    named(scenario),
    server,
    // Those before the call's time began, while the receiver joined, count too.
    found.at(-1)?.lost ?? "-",
    from === null ? "-" : between(found, from, from + AFTER_S),
    allLost(join(first, `${name}.jsonl`)),
    padding(join(first, `${name}.jsonl`)),
    (mean("receive_bps") / 1e3).toFixed(0),
    mean("frame_rate").toFixed(1),
    height.toFixed(0),
    switches(peer.intervals),
    sum("frozen_s").toFixed(1),
    call.disturbed ? "yes" : "no",
  ];
}

if (first === "--log") {
  seconds(second);
} else {
  const calls = records(first).map((record) => [
    record.slice(first.length + 1).split("/")[0],
    record,
  ]);
  const rows = calls.sort(([a], [b]) => inOrder(a, b)).map(([name, record]) => row(record, name));
  const heads = [
    "scenario",
    "server",
    "lost",
    "of these in 4 s after the change",
    "with repeats",
    "padding, %",
    "received, kbit/s",
    "pictures/s",
    "height",
    "switches",
    "frozen, s",
    "disturbed",
  ];
  print(heads, rows);
}
