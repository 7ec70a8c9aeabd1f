#!/usr/bin/env node
// Prints what `weir analyze` finds out about ten known networks, from event logs of calls over them.
//
// usage: scripts/results/analyzed-networks.mjs [capacity|rate|delay|calls DIR]
//
// capacity  the estimated capacity beside the known one
// rate      the rate of the call beside that of `weir run --controller gcc` on the estimated network, and on the
//           known one with the same simulated browser
// delay     the round-trip times of the call beside those of the same two runs
// calls     rate and round-trip times of the call beside those of a real call on the estimated network, for the records in
//           DIR. For the network `loss`: weir analyze .../loss.log.gz --scenario loss.toml && weir call loss.toml --out DIR
//
// `weir` is the program on the PATH; scripts/results/results.mjs puts the one that was built last there.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const folder = join(root, "lab/analyze/tests/networks");
const table = process.argv[2] ?? "capacity";
const ways = ["up", "down"];
const records = process.argv[3];

const weir = (...args) =>
  JSON.parse(execFileSync("weir", [...args, "--json"], { encoding: "utf8" }));

// Mean received rate of each way in kbit/s, and median and 95 % of its round-trip times in ms.
function values(run) {
  const of = (way) => run.flows.find((it) => it.flow === `media-1-${way}`);
  const both = (way) => [1000 * of(way).rate_mbps.mean, of(way).rtt_ms];
  return Object.fromEntries(ways.map((way) => [way, both(way)]));
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.floor(middle)] + sorted[Math.ceil(middle) - 1]) / 2;
}

const simulated = (scenario) => values(weir("run", scenario, "--controller", "gcc")[0]);

// The summary of the dump's own record, which is beside those of the open loop.
function summaryBelow(folder) {
  const all = readdirSync(folder, { recursive: true });
  const own = all.find((it) => it.endsWith("summary.json") && !it.includes("open_loop"));
  return JSON.parse(readFileSync(join(folder, own), "utf8"));
}

// The scenario of the call with the simulated browser in place of the plain source.
function withBrowser(text) {
  const browser = [
    'source = { kind = "encoder", fps = 30, reaction = "0s" }',
    "repair = { nack = true }",
    "probe_when_limited = false",
  ];
  return text.replace(/^source = \{.*$/m, browser.join("\n"));
}

// Steps of the known capacity as [start in s, kbit/s]; none if it is not a number.
function known(text, way) {
  const part = text.split(`[network.${way}]`)[1] ?? "";
  const value = /^capacity = (.*)$/m.exec(part.split("\n[")[0]);
  if (!value) {
    return [];
  }
  const unit = { kbps: 1, Mbps: 1000 };
  const rates = [...value[1].matchAll(/(?:"(\d+)s", )?"([\d.]+)(kbps|Mbps)"/g)];
  return rates.map(([, at, rate, of]) => [Number(at ?? 0), Number(rate) * unit[of]]);
}

// Largest error of an estimate inside a step, away from its ends by a second, and the time that was tested.
function worst(steps, capacity, duration) {
  let [error, tested, all] = [0, 0, 0];
  steps.forEach(([start, rate], at) => {
    const from = at === 0 ? start : start + 1;
    const to = at + 1 < steps.length ? steps[at + 1][0] - 1 : duration;
    for (let time = from; time < to; time += 0.5) {
      all += 1;
      const span = capacity.find((it) => it.from_s <= time && time < it.to_s);
      if (span) {
        tested += 1;
        // Beside others the call is carried by a part of it.
        const found = (span.kbps + (span.rivals_kbps ?? 0)) / rate - 1;
        error = Math.abs(found) > Math.abs(error) ? found : error;
      }
    }
  });
  return { error, share: all ? tested / all : 0 };
}

const percent = (ratio) => `${ratio >= 0 ? "+" : "-"}${Math.abs(100 * ratio).toFixed(0)} %`;
const rows = [];
const place = mkdtempSync(join(tmpdir(), "weir-networks-"));
const names = readdirSync(folder).filter((name) => name.endsWith(".toml"));
for (const name of names.map((file) => file.replace(".toml", ""))) {
  const text = readFileSync(join(folder, `${name}.toml`), "utf8");
  const title = /^title = "(.*)"$/m.exec(text)[1];
  const met = join(place, `${name}-met.toml`);
  const log = join(folder, `${name}.log.gz`);
  const out = join(place, name);
  const [found] = weir("analyze", log, "--scenario", met, "--out", out);
  found.flows = summaryBelow(out).flows;
  const row = { name, title, found };
  if (table === "calls") {
    const summary = join(records, `${name}.toml/chromium-call-seed1/summary.json`);
    if (!existsSync(summary)) {
      continue;
    }
    row.met = values(JSON.parse(readFileSync(summary, "utf8")));
  } else if (table !== "capacity") {
    const real = join(place, `${name}-known.toml`);
    writeFileSync(real, withBrowser(text));
    Object.assign(row, { met: simulated(met), known: simulated(real) });
  } else {
    row.errors = ways.map((way) => {
      const steps = known(text, way);
      return steps.length ? worst(steps, found.network[way].capacity, found.duration_s) : undefined;
    });
  }
  rows.push(row);
}
rmSync(place, { recursive: true });

const within = (found, call) => (Math.abs(found / call - 1) <= 0.15 ? "yes" : "no");
const times = (rtt) => (rtt ? `${rtt.p50.toFixed(0)} / ${rtt.p95.toFixed(0)}` : "-");
if (table === "calls") {
  console.log(
    "| network | way | call, kbit/s | call on the estimated network | difference | within 15 % | round trips of the call, ms (median / 95 %) | on the estimated network |",
  );
  console.log("|---|---|---|---|---|---|---|---|");
  for (const { name, found, met } of rows) {
    for (const way of ways) {
      const [call, rtt] = values(found)[way];
      const [rate, again] = met[way];
      const cells = [name, way, call.toFixed(0), rate.toFixed(0), percent(rate / call - 1)];
      cells.push(within(rate, call), times(rtt), times(again));
      console.log(`| ${cells.join(" | ")} |`);
    }
  }
} else if (table === "delay") {
  console.log(
    "| network | way | round trips of the call, ms (median / 95 %) | `gcc` on the estimated network | `gcc` on the known network |",
  );
  console.log("|---|---|---|---|---|");
  for (const { name, found, met, known: real } of rows) {
    for (const way of ways) {
      const cells = [values(found), met, real].map((it) => times(it[way][1]));
      console.log(`| ${[name, way, ...cells].join(" | ")} |`);
    }
  }
} else if (table === "rate") {
  console.log(
    "| network | way | call, kbit/s | `gcc` on the estimated network | difference | `gcc` on the known network | difference | within 15 % |",
  );
  console.log("|---|---|---|---|---|---|---|---|");
  const off = { met: [], known: [] };
  for (const { name, found, met, known: real } of rows) {
    for (const way of ways) {
      const call = found.network[way].mean_kbps;
      const [rate, own] = [met[way][0], real[way][0]];
      off.met.push(Math.abs(rate / call - 1));
      off.known.push(Math.abs(own / call - 1));
      const cells = [name, way, call, rate.toFixed(0), percent(rate / call - 1), own.toFixed(0)];
      cells.push(percent(own / call - 1), within(rate, call));
      console.log(`| ${cells.join(" | ")} |`);
    }
  }
  const [estimated, own] = [off.met, off.known].map((it) => `${(100 * median(it)).toFixed(1)} %`);
  console.log(`| median | both | | | ${estimated} | | ${own} | |`);
} else {
  console.log(
    "| network | what it is | largest error up | largest error down | share of the time tested | within 10 % |",
  );
  console.log("|---|---|---|---|---|---|");
  for (const { name, title, errors } of rows) {
    const known = errors.filter((it) => it);
    const shown = errors.map((it) => (it ? percent(it.error) : "-"));
    const share = known.map((it) => it.share.toFixed(2)).join("; ") || "-";
    const holds = known.length
      ? known.every((it) => Math.abs(it.error) <= 0.1)
        ? "yes"
        : "no"
      : "-";
    console.log(`| ${[name, title, ...shown, share, holds].join(" | ")} |`);
  }
}
