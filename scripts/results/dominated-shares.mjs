#!/usr/bin/env node
// Reads a table of scripts/results/dominated.jq on its standard input and prints, for its scenarios beside TCP, what TCP has
// under sluice and under each controller that is better in rate and in delay at once. All runs are simulated.
//
// usage: scripts/results/dominated-shares.mjs < TABLE
//
// Rates are means of the whole run in Mbit/s of one flow of each kind. A row is the price of leaving TCP its share if
// under every better controller a TCP flow has less than one under the controller. Seed 1. WEIR names the program
// (default: weir).

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const rows = [...readFileSync(0, "utf8").matchAll(/^\| `(.+?)` \| .+? \| (.+) \|$/gm)].map(
  ([, scenario, better]) => ({
    scenario,
    better: better.split("; ").map((text) => text.split(" ")[0]),
  }),
);
if (rows.length === 0) {
  console.error(
    "dominated-shares: no table on the standard input; pipe the output of dominated.jq into it",
  );
  process.exit(2);
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);
}

/** Mean rates of a flow under a controller and of a TCP flow. */
function shares(scenario, controller) {
  const command = ["run", scenario, "--controller", controller, "--seed", "1", "--json"];
  const text = execFileSync(process.env.WEIR ?? "weir", command, { maxBuffer: 2 ** 28 });
  const { flows } = JSON.parse(text)[0];
  const rates = { media: [], tcp: [] };
  for (const flow of flows) {
    rates[flow.kind === "tcp" ? "tcp" : "media"].push(flow.rate_mbps?.mean ?? 0);
  }
  return { media: mean(rates.media), tcp: mean(rates.tcp) };
}

console.log(
  "| scenario | sluice; TCP | better: rate; TCP | price of TCP's share |\n|---|---|---|---|",
);
let prices = 0;
let besideTcp = 0;
for (const { scenario, better } of rows) {
  const own = shares(scenario, "sluice");
  if (own.tcp === 0) continue;
  besideTcp++;
  const others = better.map((controller) => ({ controller, ...shares(scenario, controller) }));
  const isPrice = others.every((other) => other.tcp < other.media);
  if (isPrice) prices++;
  const cells = others.map(
    (other) => `${other.controller} ${other.media.toFixed(2)}; ${other.tcp.toFixed(2)}`,
  );
  console.log(
    `| \`${scenario}\` | ${own.media.toFixed(2)}; ${own.tcp.toFixed(2)} | ${cells.join(" / ")} ` +
      `| ${isPrice ? "yes" : "no"} |`,
  );
}
console.log(`\n${besideTcp} scenarios beside TCP; ${prices} are the price of TCP's share.`);
