#!/usr/bin/env node
// Runs the applications of examples/apps in the networks of examples/apps/networks, and prints one table.
//
// usage: scripts/results/applications.mjs [--runs DIR] [--only APPLICATION/NETWORK] [--table] [--streams]
//
// Records go below DIR (a new temporary folder without it). A run whose record is there is not made again. --only makes
// one run, and --table makes none. --streams prints every stream of LiveKit's three participants instead. A run takes about 35 s. Needs what `weir call --app` needs, the packages of
// examples/apps/peerjs and examples/apps/livekit (`make npm-deps`), Debian's janus and janus-demos, and LiveKit's server
// (examples/apps/livekit/get-server.sh, or LIVEKIT_SERVER).

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const { values: options } = parseArgs({
  options: {
    runs: { type: "string" },
    only: { type: "string" },
    table: { type: "boolean", default: false },
    streams: { type: "boolean", default: false },
  },
});
const runs = resolve(options.runs ?? mkdtempSync(join(tmpdir(), "weir-applications-")));
const APPLICATIONS = {
  peerjs: ["http://{server}:9000/", "exec node server.mjs"],
  janus: ["http://{server}:9000/videoroomtest.html", "exec node server.mjs"],
  livekit: ["http://{server}:9000/", "exec node server.mjs"],
};
const NETWORKS = ["drop", "loss", "hand-over"];
/** The network is another one from the first to the second, in s. A value is of the second half of a part. */
const PARTS = [
  [3.5, 7],
  [10.5, 14],
  [17.5, 21],
];

function play(application, network, more = []) {
  const [url, serve] = APPLICATIONS[application];
  const out = join(runs, application, network);
  if (options.table || existsSync(out)) return;
  if (options.only !== undefined && options.only !== `${application}/${network}`) return;
  const packages = join(root, "examples/apps", application);
  if (existsSync(join(packages, "package.json")) && !existsSync(join(packages, "node_modules"))) {
    console.error(`applications: ${application} is left out: make npm-deps`);
    return;
  }
  const scenario = join(root, "examples/apps/networks", `${network}.toml`);
  const words = [
    "call",
    scenario,
    "--app",
    url,
    "--join",
    "join.mjs",
    "--serve-app",
    serve,
    "--seed",
    "1",
  ];
  const { status } = spawnSync(
    process.env.WEIR ?? "weir",
    [...words, ...more, "--attempts", "1", "--out", out],
    {
      cwd: join(root, "examples/apps", application),
      env: { WEIR_PLAYWRIGHT: join(root, "lab/web/node_modules/playwright-core"), ...process.env },
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  if (status !== 0) process.exit(status ?? 2);
}

/** The only file of this name below a folder; null without one. */
function found(folder, name) {
  if (!existsSync(folder)) return null;
  const path = readdirSync(folder, { recursive: true }).find((path) => path.endsWith(name));
  return path === undefined ? null : join(folder, path);
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Mean of a member from one time to another; null without a value. */
function within(peer, member, [from, to]) {
  const inside = peer.intervals.filter(({ time_s }) => time_s > from && time_s <= to);
  const values = inside
    .map((interval) => interval[member])
    .filter((value) => typeof value === "number");
  return values.length === 0 ? null : mean(values);
}

/** Mean of a member in each part of the run, as text. Of several streams, such as layers, it is the sum. */
function parts(peers, member, scale, digits) {
  return PARTS.map((part) => {
    const values = peers
      .map((peer) => within(peer, member, part))
      .filter((value) => value !== null);
    const sum = values.reduce((total, value) => total + value, 0);
    return values.length === 0 ? "–" : (sum * scale).toFixed(digits);
  }).join("; ");
}

const line = (cells) => `| ${cells.join(" | ")} |`;
const print = (heads, rows) =>
  console.log([line(heads), line(heads.map(() => "---")), ...rows.map(line)].join("\n"));
const isOf = (participant) => (peer) =>
  peer.participant === participant || peer.participant.startsWith(`${participant}/`);

/** Every stream of the room with one narrow participant, in the second half of the run. */
function streams() {
  play("livekit", "narrow-receiver", ["--participants", "3"]);
  const file = found(join(runs, "livekit", "narrow-receiver"), "call.json");
  if (file === null) return;
  const call = JSON.parse(readFileSync(file, "utf8"));
  const rows = call.peers.map((peer) => {
    const half = [10, 20];
    const inside = peer.intervals.filter(({ time_s }) => time_s > half[0]);
    const is = inside.some((it) => typeof it.send_bps === "number") ? "sent" : "received";
    const sizes = inside.map((it) => (is === "sent" ? it.sent_frame_size : it.frame_size));
    const last = sizes.filter(Array.isArray).at(-1);
    const rate = within(peer, is === "sent" ? "send_bps" : "receive_bps", half);
    const frames = within(peer, is === "sent" ? "sent_frame_rate" : "frame_rate", half);
    const reasons = [...new Set(inside.map((it) => it.limitation).filter(Boolean))];
    return [
      peer.participant.split("/")[0],
      is,
      last === undefined ? "none" : last.join("x"),
      rate === null ? "0" : (rate / 1e3).toFixed(0),
      frames === null ? "0" : frames.toFixed(0),
      reasons.join(", "),
    ];
  });
  // The layers of a participant by their rate, then what it receives.
  rows.sort((a, b) => a[0].localeCompare(b[0]) || b[1].localeCompare(a[1]) || b[3] - a[3]);
  if (call.disturbed ?? call.bent) console.error("applications: this machine disturbed the run");
  print(["participant", "video", "last picture", "kbit/s", "frames/s", "limited by"], rows);
}

if (options.streams) {
  streams();
  process.exit(0);
}

const rows = [];
for (const application of Object.keys(APPLICATIONS)) {
  for (const network of NETWORKS) {
    play(application, network);
    const file = found(join(runs, application, network), "call.json");
    if (file === null) continue;
    const call = JSON.parse(readFileSync(file, "utf8"));
    if (call.disturbed ?? call.bent) {
      rows.push([application, network, "disturbed by this machine", "", "", "", ""]);
      continue;
    }
    const senders = call.peers
      .filter(isOf("p1"))
      .filter((peer) => peer.intervals.some((it) => it.send_bps > 0));
    const receiver = call.peers
      .filter(isOf("p2"))
      .find((peer) => peer.intervals.some((it) => it.receive_bps > 0));
    const sum = (member) => receiver.intervals.reduce((total, it) => total + (it[member] ?? 0), 0);
    rows.push([
      application,
      network,
      parts(senders, "send_bps", 1e-3, 0),
      parts([receiver], "receive_bps", 1e-3, 0),
      parts([receiver], "frame_rate", 1, 0),
      `${sum("freezes")}`,
      sum("frozen_s").toFixed(1),
    ]);
  }
}
const heads = [
  "application",
  "network",
  "sent by p1, kbit/s",
  "received by p2, kbit/s",
  "shown at p2, frames/s",
  "freezes",
  "frozen, s",
];
print(heads, rows);
