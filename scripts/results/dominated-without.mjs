#!/usr/bin/env node
// Reads a table of scripts/results/dominated.jq on its standard input and prints how many of its scenarios are left without each box of
// sluice: those in which a controller of the table is still better in rate and in delay at once. All runs are simulated.
//
// usage: scripts/results/dominated-without.mjs < TABLE
//
// "Better" is as in dominated.jq. Seed 1. WEIR names the program (default: weir).

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const BOXES = [
  ["nothing", []],
  ["the drain", ["cut_max=0"]],
  ["growth that doubles", ["t_double=1000000000"]],
  ["the packet time", ["k_packet=0"]],
  ["the noise", ["k_noise=0"]],
  ["competition", ["t_rival=1000000000"]],
  ["losses", ["loss_excess=1", "loss_max=1"]],
  ["the own part", ["share_fair=2"]],
];
const KINDS = [
  ["beside TCP", /tcp|^rfc8867\/5\.6|wired-4|cubic|reno|bbr/],
  ["beside another controller", /rivals/],
  ["others", /./],
];

const rows = readFileSync(0, "utf8").matchAll(/^\| `(.+?)` \| .+? \| (.+) \|$/gm);
const beaten = [...rows].map(([, scenario, better]) => ({
  scenario,
  kind: KINDS.find(([, pattern]) => pattern.test(scenario))[0],
  better: better.split("; ").map((text) =>
    text
      .match(/ ([\d.]+), (\d+)$/)
      .slice(1)
      .map(Number),
  ),
}));
if (beaten.length === 0) {
  console.error(
    "dominated-without: no table on the standard input; pipe the output of dominated.jq into it",
  );
  process.exit(2);
}

function run(settings) {
  const sets = settings.flatMap((setting) => ["--set", `sluice.${setting}`]);
  const scenarios = beaten.map((row) => row.scenario);
  const command = ["research", "score", ...scenarios, "--controller", "sluice", "--json", ...sets];
  const text = execFileSync(process.env.WEIR ?? "weir", command, { maxBuffer: 2 ** 28 });
  const runs = JSON.parse(text).runs.map((own) => [own.scenario, own]);
  return new Map(runs);
}

console.log(`| without | ${KINDS.map(([kind]) => `${kind} |`).join(" ")} all |`);
console.log(`|---|${"---:|".repeat(KINDS.length + 1)}`);
for (const [name, settings] of BOXES) {
  const runs = run(settings);
  const left = beaten.filter(({ scenario, better }) => {
    const own = runs.get(scenario);
    const delay = own.network_ms + own.sender_ms;
    return better.some(([rate, ms]) => rate > own.rate_mbps * 1.01 && ms < delay - 1);
  });
  const counts = KINDS.map(([kind]) => left.filter((row) => row.kind === kind).length);
  console.log(`| ${name} | ${[...counts, left.length].join(" | ")} |`);
}
