#!/usr/bin/env node
// Counts the marks that a media flow of a fixed rate gets beside a TCP flow of Prague, and compares what an answer to them
// takes with what growth gives back, as a Markdown table. All runs are simulated, with seed 1.
//
// usage: scripts/marks.mjs
//
// The scenario is l4s/beside-prague with a media flow whose least and largest bitrates are equal, and at last the flow as it is. Seconds
// 20 to 60 count. p is the share of the flow's packets that are marked, n its packets in a round trip. An answer comes in each round trip with
// a mark and takes p / 2 of the rate, so a round trip takes (1 - (1 - p)^n) p / 2. Half a packet of 1500 bytes in a round trip (A_MARKED of
// sluice), or a whole one (Prague), gives back that part of what is in flight. At most 0.9 a second gives back 0.9 round-trip times,
// which was the bound of sluice until it had G_MARKED, of 6 a second.
//
// WEIR names the program (default: weir).

import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The time that counts, in ms, and the size of a packet by which growth counts, in bits. */
const [FROM_MS, TO_MS] = [20e3, 60e3];
const SEGMENT_BITS = 1500 * 8;
/** Fixed bitrates of the media, and the flow as it is. */
const RATES = ["300kbps", "1Mbps", "3Mbps", "5Mbps", undefined];
/** Growth of sluice a second: before and now. */
const [BEFORE_PER_S, NOW_PER_S] = [0.9, 6];
/** Packets in a round trip that sluice adds. */
const ADDS = 0.5;

if (process.argv.length > 2) {
  const lines = readFileSync(new URL(import.meta.url), "utf8")
    .split("\n")
    .slice(1);
  const head = lines.slice(0, lines.indexOf(""));
  console.log(head.map((line) => line.replace(/^\/\/ ?/, "")).join("\n"));
  process.exit(/^(--help|-h)$/.test(process.argv[2]) ? 0 : 2);
}

/** Mean rate in bit/s, packets a second, share of marked packets, and mean round-trip time in s of the flow of this name. */
function measured(file, flow) {
  const [head, ...lines] = readFileSync(file, "utf8").trim().split("\n");
  const names = head.split(",");
  const sum = { bits: 0, packets: 0, marked: 0, rtt_s: 0, rtts: 0 };
  for (const line of lines) {
    const cells = line.split(",");
    const row = Object.fromEntries(names.map((name, index) => [name, cells[index]]));
    const time = Number(row.time_ms);
    if (row.flow !== flow || time <= FROM_MS || time > TO_MS) continue;
    sum.bits += Number(row.received_bytes) * 8;
    sum.packets += Number(row.sent_packets);
    sum.marked += Number(row.marked_packets);
    sum.rtt_s += Number(row.rtt_us) / 1e6;
    sum.rtts += row.rtt_us === "" ? 0 : 1;
  }
  const time_s = (TO_MS - FROM_MS) / 1e3;
  return {
    rate: sum.bits / time_s,
    packets: sum.packets / time_s,
    share: sum.marked / sum.packets,
    rtt_s: sum.rtt_s / sum.rtts,
  };
}

/** The row of a scenario, or of the same with a fixed rate. */
function row(folder, rate) {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  let text = readFileSync(join(root, "scenarios/l4s/beside-prague.toml"), "utf8");
  if (rate) text = text.replace(/^(min|start|max)_bitrate = .*$/gm, `$1_bitrate = "${rate}"`);
  const name = rate ?? "free";
  const file = join(folder, `${name}.toml`);
  writeFileSync(file, text);
  const out = join(folder, name);
  const command = ["run", file, "--controller", "sluice", "--seed", "1", "--out", out];
  execFileSync(process.env.WEIR ?? "weir", command, { stdio: ["ignore", "ignore", "inherit"] });
  const [scenario] = readdirSync(out);
  const [run] = readdirSync(join(out, scenario));
  const series = join(out, scenario, run, "series.csv");
  const media = measured(series, "media-1");
  const tcp = measured(series, "tcp-1");
  const any = 1 - (1 - media.share) ** (media.packets * media.rtt_s);
  const takes = (any * media.share) / 2;
  const adds = ADDS / ((media.rate * media.rtt_s) / SEGMENT_BITS);
  const cells = [
    rate ?? "as it is",
    `${(media.rate / 1e6).toFixed(2)}; ${(tcp.rate / 1e6).toFixed(2)}`,
    (100 * media.share).toFixed(1),
    (100 * tcp.share).toFixed(1),
    ...[takes, adds, 2 * adds, BEFORE_PER_S * media.rtt_s, NOW_PER_S * media.rtt_s].map((part) =>
      (100 * part).toFixed(1),
    ),
  ];
  return `| ${cells.join(" | ")} |`;
}

const folder = mkdtempSync(join(tmpdir(), "marks-"));
try {
  console.log(
    "| media | media; TCP, Mbit/s | media marked (%) | TCP marked (%) | marks take (% in a round trip) " +
      "| half a packet gives (%) | a packet gives (%) | 0.9 a second gives (%) | 6 a second gives (%) |\n" +
      "|---|---|---:|---:|---:|---:|---:|---:|---:|",
  );
  for (const rate of RATES) console.log(row(folder, rate));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
