#!/usr/bin/env node
// Runs the applications of examples/apps in the networks of examples/apps/networks, and prints one table.
//
// usage: scripts/applications.mjs [--runs DIR] [--only APPLICATION/NETWORK] [--table]
//
// Records go below DIR (a new temporary folder without it). A run whose record is there is not made again. --only makes
// one run, and --table makes none. A run takes about 35 s. Needs what `weir call --app` needs, the packages of
// examples/apps/peerjs (`make npm-deps`), and Debian's janus and janus-demos.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values: options } = parseArgs({
  options: {
    runs: { type: "string" },
    only: { type: "string" },
    table: { type: "boolean", default: false },
  },
});
const runs = options.runs ?? mkdtempSync(join(tmpdir(), "weir-applications-"));
const APPLICATIONS = {
  peerjs: ["http://{server}:9000/", "exec node server.mjs"],
  janus: ["http://{server}:9000/videoroomtest.html", "exec node server.mjs"],
};
const NETWORKS = ["drop", "loss", "hand-over"];
/** The network is another one from the first to the second, in s. A value is of the second half of a part. */
const PARTS = [
  [3.5, 7],
  [10.5, 14],
  [17.5, 21],
];

function play(application, network) {
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
    [...words, "--attempts", "1", "--out", out],
    {
      cwd: join(root, "examples/apps", application),
      env: { WEIR_PLAYWRIGHT: join(root, "web/node_modules/playwright-core"), ...process.env },
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

/** Mean of a member in each part of the run, as text. */
function parts(peer, member, scale, digits) {
  return PARTS.map(([from, to]) => {
    const inside = peer.intervals.filter(({ time_s }) => time_s > from && time_s <= to);
    const values = inside
      .map((interval) => interval[member])
      .filter((value) => typeof value === "number");
    return values.length === 0 ? "–" : (mean(values) * scale).toFixed(digits);
  }).join("; ");
}

const rows = [];
for (const application of Object.keys(APPLICATIONS)) {
  for (const network of NETWORKS) {
    play(application, network);
    const file = found(join(runs, application, network), "call.json");
    if (file === null) continue;
    const call = JSON.parse(readFileSync(file, "utf8"));
    if (call.bent) {
      rows.push([application, network, "disturbed by this machine", "", "", "", ""]);
      continue;
    }
    const sender = call.peers.find(
      (peer) => peer.participant.startsWith("p1") && peer.intervals.some((it) => it.send_bps > 0),
    );
    const receiver = call.peers.find(
      (peer) =>
        peer.participant.startsWith("p2") && peer.intervals.some((it) => it.receive_bps > 0),
    );
    const sum = (member) => receiver.intervals.reduce((total, it) => total + (it[member] ?? 0), 0);
    rows.push([
      application,
      network,
      parts(sender, "send_bps", 1e-3, 0),
      parts(receiver, "receive_bps", 1e-3, 0),
      parts(receiver, "frame_rate", 1, 0),
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
const line = (cells) => `| ${cells.join(" | ")} |`;
console.log([line(heads), line(heads.map(() => "---")), ...rows.map(line)].join("\n"));
