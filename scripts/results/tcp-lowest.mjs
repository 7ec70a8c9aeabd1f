#!/usr/bin/env node
// Says of each scenario of goals/tcp without `aqm-` in which sluice falls below 250 kbit/s whether another controller
// stays above it, and what TCP has beside that one, as a Markdown table. All runs are simulated, with seed 1.
//
// usage: scripts/results/tcp-lowest.mjs [--controller LIST]
//
// "Lowest" is the lowest mean over a second from 30 to 120 s. Rates are means of that time in Mbit/s. Of the controllers that
// stay at 250 kbit/s or above, the one that leaves TCP most is shown. A cell is the price of TCP's share if each of them leaves TCP
// less than a third of its own rate, which is the limit of these scenarios. "Then" is the state in which sluice changes its target
// most in the seconds below 250 kbit/s and half a second before each.
//
// --controller LIST   the others (default: all of the library and the newest peers)
//
// WEIR names the program (default: weir).

import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

/** What a flow should always have, in bit/s, and the part of its rate that it should leave TCP. */
const LEAST_BPS = 250e3;
const LEAST_PART = 1 / 3;
/** The seconds that count. */
const [FROM, TO] = [30, 120];

const { values: options } = parseArgs({
  options: {
    controller: { type: "string", default: "all,peers" },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (options.help) {
  const lines = readFileSync(new URL(import.meta.url), "utf8")
    .split("\n")
    .slice(1);
  const head = lines.slice(0, lines.indexOf(""));
  console.log(head.map((line) => line.replace(/^\/\/ ?/, "")).join("\n"));
  process.exit(0);
}

/** The state with most changes of the target in the seconds `low`, and its share of them. */
function stateIn(low, record) {
  const counts = new Map();
  for (const line of readFileSync(join(record, "events.jsonl"), "utf8").trim().split("\n")) {
    const { time_us, state } = JSON.parse(line);
    const time = time_us / 1e6;
    if (!low.some((second) => time >= second - 0.5 && time < second + 1)) continue;
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const [most] = [...counts].sort((one, other) => other[1] - one[1]);
  return most ? `${most[0]} ${((100 * most[1]) / all).toFixed(0)} %` : "-";
}

/** Mean rates of the media and of TCP, and the lowest second of the media, in bit/s; and the seconds below what it should have. */
function measured(record) {
  const [head, ...lines] = readFileSync(join(record, "series.csv"), "utf8").trim().split("\n");
  const names = head.split(",");
  const [time, flow, received] = ["time_ms", "flow", "received_bytes"].map((it) =>
    names.indexOf(it),
  );
  const seconds = new Array(TO - FROM).fill(0);
  let tcp = 0;
  for (const line of lines) {
    const cells = line.split(",");
    const second = Math.floor((Number(cells[time]) - 1) / 1e3);
    if (second < FROM || second >= TO) continue;
    const bits = Number(cells[received]) * 8;
    if (cells[flow].startsWith("media")) seconds[second - FROM] += bits;
    else tcp += bits;
  }
  const media = seconds.reduce((sum, bits) => sum + bits, 0);
  const low = [...seconds.keys()]
    .filter((second) => seconds[second] < LEAST_BPS)
    .map((second) => second + FROM);
  const rates = { media: media / seconds.length, tcp: tcp / seconds.length };
  return { ...rates, lowest: Math.min(...seconds), low };
}

/** The runs of one command by scenario: controller and what was measured. */
function runs(controllers) {
  const folder = mkdtempSync(join(tmpdir(), "tcp-lowest-"));
  try {
    const command = [
      "run",
      "goals/tcp/*",
      "--controller",
      controllers,
      "--seed",
      "1",
      "--out",
      folder,
    ];
    execFileSync(process.env.WEIR ?? "weir", command, { stdio: ["ignore", "ignore", "inherit"] });
    const all = new Map();
    const states = controllers === "sluice";
    for (const name of readdirSync(folder)) {
      const scenario = name.replaceAll("__", "/");
      if (scenario.includes("/aqm-")) continue;
      const under = [];
      for (const run of readdirSync(join(folder, name))) {
        const controller = run.replace(/-sim-seed.*$/, "");
        const record = join(folder, name, run);
        const of = measured(record);
        under.push({ controller, ...of, state: states ? stateIn(of.low, record) : "" });
      }
      all.set(scenario, under);
    }
    return all;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function mbps(bps) {
  return (bps / 1e6).toFixed(2);
}

function row({ controller, media, tcp, lowest }) {
  return `${controller} ${mbps(lowest)}, ${mbps(media)}; ${mbps(tcp)}`;
}

const own = runs("sluice");
const others = runs(options.controller);
console.log(
  "| scenario | sluice: lowest, rate; TCP | seconds below; then | the others that stay above: lowest, rate; TCP | price of TCP's share |\n|---|---|---|---|---|",
);
const counts = { kept: 0, price: 0, nobody: 0, mendable: 0 };
for (const [scenario, [sluice]] of [...own].sort()) {
  if (sluice.lowest >= LEAST_BPS) {
    counts.kept++;
    continue;
  }
  const above = others
    .get(scenario)
    .filter((other) => other.controller !== "sluice" && other.lowest >= LEAST_BPS)
    .sort((one, other) => other.tcp / other.media - one.tcp / one.media);
  const fair = above.filter((other) => other.tcp >= other.media * LEAST_PART);
  let verdict = "no";
  if (above.length === 0) verdict = "nobody stays above";
  else if (fair.length === 0) verdict = "yes";
  counts[{ no: "mendable", yes: "price" }[verdict] ?? "nobody"]++;
  const shown = (fair.length ? fair : above.slice(0, 1)).map(row).join(" / ");
  console.log(
    `| \`${scenario}\` | ${row(sluice).replace("sluice ", "")} | ${sluice.low.length}; ${sluice.state} | ${shown || "-"} | ${verdict} |`,
  );
}
console.log(
  `\n${own.size} cells: sluice stays above 250 kbit/s in ${counts.kept}. Of the others, ${counts.price} are the price of ` +
    `TCP's share, in ${counts.nobody} nobody stays above, and in ${counts.mendable} another controller does and leaves TCP a third.`,
);
