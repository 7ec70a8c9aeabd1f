// A Markdown table that compares simulated runs of interdigital/mac with real calls: node
// interdigital-calls.mjs RECORD... where RECORD is a folder with a summary.json. Rates are in
// Mbit/s. The three numbers of a cell are of the sections "nobody competes", "medium load" and
// "after the high load".
import { existsSync, readFileSync } from "node:fs";

const SECTIONS = ["nobody competes", "medium load", "after the high load"];
const json = (path) => JSON.parse(readFileSync(path, "utf8"));
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const text = (value, digits = 2) =>
  value == null || Number.isNaN(value) ? "-" : value.toFixed(digits);
const three = (of) => SECTIONS.map((name) => text(of(name))).join(", ");

// Reports of the browsers, by the end of the interval. The only flow of the scenario goes up, from
// a to b.
function browsers(folder) {
  if (!existsSync(`${folder}/call.json`)) return null;
  const [sender, receiver] = json(`${folder}/call.json`).peers.map((peer) => peer.intervals);
  return { sender, receiver };
}

function row(folder) {
  const summary = json(`${folder}/summary.json`);
  const [flow] = summary.flows;
  const told = browsers(folder);
  const section = (name) => flow.sections.find((part) => part.name === name);
  const cell = (name) => summary.sections.find((part) => part.name === name).cell;
  const within =
    (name) =>
    ({ time_s: at }) =>
      section(name).from_s < at && at <= section(name).to_s;
  const sum = (key) => told.receiver.reduce((total, interval) => total + (interval[key] ?? 0), 0);
  const video = (name) => {
    if (!told) return section(name).media_rate_mbps;
    const targets = told.sender.filter(within(name)).map((interval) => interval.target_bps);
    return mean(targets.filter((target) => target != null)) / 1e6;
  };
  return [
    `\`${summary.scenario}\``,
    summary.controller,
    three(video),
    three((name) => section(name).rate_mbps.mean),
    three((name) => section(name).target_rate_mbps),
    told ? sum("freezes") : flow.freeze_count,
    text(told ? sum("frozen_s") : flow.freeze_duration_s, 1),
    text(100 * summary.cell.a.loss_ratio, 1),
    text(cell("medium load").competitor.delivered_mbps, 1),
    text(cell("high load").competitor.delivered_mbps, 1),
  ];
}

const head = [
  "scenario",
  "",
  "video",
  "received",
  "estimate",
  "freezes",
  "frozen, s",
  "given up by a, %",
  "competitors, medium",
  "high",
];
const lines = [head, head.map(() => "---"), ...process.argv.slice(2).map(row)];
for (const line of lines) console.log(`| ${line.join(" | ")} |`);
