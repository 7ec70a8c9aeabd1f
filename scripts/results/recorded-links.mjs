#!/usr/bin/env node
// Runs controllers over recorded radio links, or compares how the links vary, as Markdown tables. All runs
// are simulated, but for the calls of `called`.
//
// usage: scripts/results/recorded-links.mjs results|held|waits|seen|statistics|called FOLDER [CONTROLLER,...]
//
// FOLDER holds mahimahi traces, such as `traces` of https://github.com/ravinet/mahimahi (Winstein and
// others, NSDI 2013). Every file whose name ends in .up or .down is one, or only those that `--only` names.
//
// results      the use of each link, the wait in its queue, and the wait in the sender. 120 s, 30 ms each way,
//              a queue of 500 ms of the mean rate, a flow of 50 kbit/s to 6 Mbit/s that starts at 300 kbit/s.
//              The filler has no chance in it; the encoder runs with the seeds 1 to 10.
// held         what holds the use: the first controller with the filler and reports every 20, 50 and 100 ms, means of ten start
//              bitrates, beside laws that know more than a sender (scripts/results/recorded-laws.mjs), at the p95 that it has with 50 ms
// waits        what holds the wait in the sender: its p95 under the first controller as it is, and with one thing changed;
//              then with other encoders and pictures, where no outage is longer than 0.1 s
// seen         what a viewer sees of a film of 720p over these links with at most 6 Mbit/s, as means over the
//              recordings, and how it compares with the first controller's
// statistics   how the recordings vary, beside 200 scenarios of the family `radio` of `weir research generate`
// called       real calls over the first 18 s of each link, one each, beside 10 simulated seeds of the same scenario.
//              The senders are Chromium with its own GCC (simulated: gcc) and our pipeline under the others. Needs
//              root, and the plugin in GST_PLUGIN_PATH. Three links take four minutes: choose them by --only.
//
// --only LIST   names of files, separated by commas
// --seeds N     seeds of the encoder (default: 10)
// --set C=V     a constant of sluice; may be given several times

import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { best, capacity, LAWS } from "./recorded-laws.mjs";

const WEIR = process.env.WEIR ?? "weir";
/** Longest output of a command, in bytes. */
const OUTPUT_MAX = 1 << 28;
/** Length of a run in s. */
const DURATION_S = 120;
/** Intervals of reports that `held` compares, and the usual one, which the laws assume. */
const INTERVALS_MS = [20, 50, 100];
const INTERVAL_MS = 50;
/** Seeds of the family `radio` that are compared with the recordings: those of the training. */
const RADIO_SEEDS = "1-200";

/**
 * The best use at a p95 of the queue of at most so many ms, where it is known: the best of 2000 laws that know
 * capacity and backlog 85 ms late, with constants fitted to the recording. At least this much is possible.
 */
const POSSIBLE = {
  "Verizon-EVDO-driving.up": [
    [100, 0.65],
    [150, 0.76],
    [200, 0.89],
    [250, 0.97],
    [300, 0.99],
  ],
  "TMobile-UMTS-driving.up": [
    [100, 0.58],
    [150, 0.73],
    [200, 0.8],
    [250, 0.89],
    [300, 0.92],
    [400, 0.95],
    [550, 0.98],
  ],
  "ATT-LTE-driving-2016.up": [
    [100, 0.2],
    [150, 0.38],
    [200, 0.52],
    [250, 0.62],
    [300, 0.69],
    [400, 0.81],
    [550, 0.86],
  ],
};

function fail(message) {
  console.error(`recorded-links: ${message}`);
  process.exit(2);
}

function help() {
  const lines = readFileSync(new URL(import.meta.url), "utf8")
    .split("\n")
    .slice(1);
  console.log(
    lines
      .slice(0, lines.indexOf(""))
      .map((line) => line.replace(/^\/\/ ?/, ""))
      .join("\n"),
  );
}

function weir(...args) {
  return JSON.parse(execFileSync(WEIR, args, { encoding: "utf8", maxBuffer: OUTPUT_MAX }));
}

/** A film whose picture is judged. */
const FILM = `quality = true
repair = { nack = true }

[call.video]
width = 1280
height = 720
content = "film"
`;

/** The scenario of a recording, which lies beside it. */
function scenario(recording, source, isSeen = false) {
  return `title = "${recording}"
source = "mahimahi (Winstein and others, NSDI 2013)"
description = "A recorded radio link behind a queue of 500 ms of its mean rate, 30 ms each way."
duration = "${DURATION_S}s"

[network.up]
capacity = { trace = "${recording}" }
queue = "500ms"
delay = "30ms"

[network.down]
delay = "30ms"

[[flow]]
min_bitrate = "50kbps"
start_bitrate = "300kbps"
max_bitrate = "6Mbps"
source = { kind = "${source}", fps = 30 }
${isSeen ? FILM : ""}`;
}

function mean(values) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : undefined;
}

function fixed(value, digits) {
  return value === undefined || value === null ? "-" : value.toFixed(digits);
}

/** The possible use at this p95, between the known ones; `undefined` if the recording's is not known. */
function possible(recording, p95) {
  const known = POSSIBLE[recording];
  if (!known) return undefined;
  const above = known.findIndex(([ms]) => ms >= p95);
  if (above === -1) return known.at(-1)[1];
  const [ms, use] = known[above];
  const [msBelow, useBelow] = known[above - 1] ?? [0, 0];
  return useBelow + ((p95 - msBelow) / (ms - msBelow)) * (use - useBelow);
}

/** Use, p95 of the queue, loss and p95 of the wait in the sender, as means over the seeds. */
function measured(file, controller, seeds, constants) {
  const args = [file, "--controller", controller, "--seeds", String(seeds), ...constants, "--json"];
  const runs = weir("run", ...args).map((run) => run.flows[0]);
  const scores = weir("research", "score", ...args).runs;
  return {
    use: mean(runs.map((flow) => flow.utilization)),
    queue: mean(runs.map((flow) => flow.queuing_delay_ms.p95)),
    lost: mean(runs.map((flow) => flow.loss_ratio.mean)),
    waits: mean(scores.map((score) => score.waits_ms)),
  };
}

function results(folder, recordings, controllers, seeds, constants) {
  console.log(
    "| recording | controller | source | use | possible at this p95 | queue, p95 (ms) | lost (%) " +
      "| wait in the sender, p95 (ms) |\n|---|---|---|---:|---:|---:|---:|---:|",
  );
  for (const recording of recordings) {
    for (const controller of controllers) {
      for (const source of ["filler", "encoder"]) {
        const file = join(folder, `${recording}-${source}.toml`);
        writeFileSync(file, scenario(recording, source));
        const runs = source === "filler" ? 1 : seeds;
        const { use, queue, lost, waits } = measured(file, controller, runs, constants);
        console.log(
          `| ${recording} | ${controller} | ${source} | ${fixed(use, 2)} ` +
            `| ${fixed(possible(recording, queue), 2)} | ${fixed(queue, 0)} ` +
            `| ${fixed(100 * lost, 1)} | ${fixed(waits, 0)} |`,
        );
      }
    }
  }
}

/** The mean of ten runs, whose start bitrates differ: one run of the filler is a single sample. */
function sampled(folder, recording, controller, interval_ms, constants) {
  const file = join(folder, `${recording}-sampled.toml`);
  const text = scenario(recording, "filler");
  const runs = [];
  for (let start = 300; start < 400; start += 10) {
    writeFileSync(
      file,
      `feedback_interval = "${interval_ms}ms"\n${text.replace('"300kbps"', `"${start}kbps"`)}`,
    );
    runs.push(measured(file, controller, 1, constants));
  }
  return { use: mean(runs.map(({ use }) => use)), queue: mean(runs.map(({ queue }) => queue)) };
}

/** The controller's use with three intervals of reports, and what each law reaches at the p95 of the middle one. */
function held(folder, recordings, controller, constants) {
  const heads = INTERVALS_MS.map(
    (ms) => `${controller}, a report every ${ms} ms: use, queue p95 (ms)`,
  );
  heads.push(...LAWS.map(({ name }) => name));
  console.log(`| recording | ${heads.join(" | ")} |\n|---|${"---:|".repeat(heads.length)}`);
  for (const recording of recordings) {
    const runs = INTERVALS_MS.map((ms) => sampled(folder, recording, controller, ms, constants));
    const cells = runs.map(({ use, queue }) => `${fixed(use, 2)}, ${fixed(queue, 0)}`);
    const bits = capacity(readFileSync(join(folder, recording), "utf8"), DURATION_S);
    const p95 = runs[INTERVALS_MS.indexOf(INTERVAL_MS)].queue;
    cells.push(...LAWS.map((law) => fixed(best(bits, law, p95), 2)));
    console.log(`| ${recording} | ${cells.join(" | ")} |`);
  }
}

/** A recording whose gaps without a packet are at most this long: what follows a longer one comes earlier. */
function shortened(packets, longest_ms) {
  const lines = [];
  let earlier = 0;
  let last = 0;
  for (const line of packets.trim().split("\n")) {
    const at = Number(line);
    earlier += Math.max(at - last - longest_ms, 0);
    last = at;
    lines.push(at - earlier);
  }
  return `${lines.join("\n")}\n`;
}

/** What `waits` changes: heading, constants of sluice, longest gap of the recording in ms, lowest bitrate. */
const CHANGES = [
  ["as it is", [], undefined, "50kbps"],
  ["no window", ["S-31=0"], undefined, "50kbps"],
  ["no radio link", ["radio_variation=100"], undefined, "50kbps"],
  ["5 kbit/s at least", [], undefined, "5kbps"],
  ["outages of 1 s at most", [], 1000, "50kbps"],
  ["outages of 0.1 s at most", [], 100, "50kbps"],
];

/** What `waits` puts on the link in place of the usual encoder: heading, source, the call's video. */
const SENT = [
  ["filler", 'kind = "filler"'],
  ["noise, 640x360", 'kind = "encoder"', 'width = 640\nheight = 360\ncontent = "noise"'],
  ["noise, 320x180", 'kind = "encoder"', 'width = 320\nheight = 180\ncontent = "noise"'],
  ["film, 1280x720", 'kind = "encoder"', 'width = 1280\nheight = 720\ncontent = "film"'],
  ["film, 640x360", 'kind = "encoder"', 'width = 640\nheight = 360\ncontent = "film"'],
  [
    "film, 640x360, a pipeline's encoder",
    'kind = "encoder", driver = "pipeline"',
    'width = 640\nheight = 360\ncontent = "film"',
  ],
];
/** The longest outage that is left for it, in ms. */
const SHORT_MS = 100;

/** p95 of the wait in the sender, p95 of the queue, and use, in a cell. */
function waitCell(file, controller, seeds, constants) {
  const { use, queue, waits } = measured(file, controller, seeds, constants);
  return `${fixed(waits, 0)}; ${fixed(queue, 0)}; ${fixed(use, 2)}`;
}

/** What `waits` has of other encoders and pictures. */
function waitsOfSources(folder, recordings, controller, seeds) {
  const heads = SENT.map(([head]) => head);
  console.log(`\n| recording | ${heads.join(" | ")} |\n|---|${"---|".repeat(heads.length)}`);
  for (const recording of recordings) {
    const packets = readFileSync(join(folder, recording), "utf8");
    writeFileSync(join(folder, "changed"), shortened(packets, SHORT_MS));
    const file = join(folder, `${recording}-sent.toml`);
    const cells = [];
    for (const [, source, video] of SENT) {
      const text = scenario("changed", "filler").replace('kind = "filler"', source);
      writeFileSync(file, video ? `${text}\n[call.video]\n${video}\n` : text);
      cells.push(waitCell(file, controller, video ? seeds : 1, []));
    }
    console.log(`| ${recording} | ${cells.join(" | ")} |`);
  }
}

/** The p95 of the wait in the sender and that of the queue, in ms, and the use, with each change. */
function waits(folder, recordings, controller, seeds) {
  const heads = CHANGES.map(([head]) => head);
  console.log(
    `| recording | source | ${heads.join(" | ")} |\n|---|---|${"---|".repeat(heads.length)}`,
  );
  for (const recording of recordings) {
    const packets = readFileSync(join(folder, recording), "utf8");
    for (const source of ["filler", "encoder"]) {
      const file = join(folder, `${recording}-waits.toml`);
      const runs = source === "filler" ? 1 : seeds;
      const cells = [];
      for (const [, settings, longest, lowest] of CHANGES) {
        writeFileSync(join(folder, "changed"), longest ? shortened(packets, longest) : packets);
        writeFileSync(file, scenario("changed", source).replace('"50kbps"', `"${lowest}"`));
        const constants = settings.flatMap((setting) => ["--set", `sluice.${setting}`]);
        cells.push(waitCell(file, controller, runs, constants));
      }
      console.log(`| ${recording} | ${source} | ${cells.join(" | ")} |`);
    }
  }
  waitsOfSources(folder, recordings, controller, seeds);
}

/** What is seen: heading, value of a flow, decimals. */
const SEEN = [
  ["rate (Mbit/s)", (flow) => flow.rate_mbps?.mean, 2],
  ["VMAF, modelled", (flow) => flow.vmaf?.mean, 1],
  ["to the screen, mean (ms)", (flow) => flow.shown_delay_ms?.mean, 0],
  ["95 % (ms)", (flow) => flow.shown_delay_ms?.p95, 0],
  ["stalled (%)", (flow) => 100 * flow.stalled_ratio, 1],
  ["good time (%)", (flow) => 100 * flow.good_ratio, 0],
];

/** A row for each controller: means over the recordings, and beside them their ratio to the first one's. */
function seen(folder, recordings, controllers, seeds) {
  const heads = SEEN.map(([head]) => head);
  console.log(`| controller | ${heads.join(" | ")} |\n|---|${"---:|".repeat(heads.length)}`);
  let first;
  for (const controller of controllers) {
    const flows = [];
    for (const recording of recordings) {
      const file = join(folder, `${recording}-seen.toml`);
      writeFileSync(file, scenario(recording, "encoder", true));
      const args = [file, "--controller", controller, "--seeds", String(seeds), "--json"];
      const runs = weir("run", ...args).map((run) => run.flows[0]);
      flows.push(...runs);
    }
    const values = SEEN.map(([, value]) => mean(flows.map(value).filter((it) => it >= 0)));
    first ??= values;
    const cells = values.map((value, index) => {
      const ratio = value / first[index];
      return `${fixed(value, SEEN[index][2])} (${fixed(ratio, 2)})`;
    });
    console.log(`| ${controller} | ${cells.join(" | ")} |`);
  }
}

/**
 * Makes the recording that the simulation of a pipeline's call plays: the same with one packet at its
 * beginning. The first packets of such a call leave before time zero, over an idle link, so its sender knows
 * the delay of the path. Without that packet, a simulated sender takes a beginning without capacity for the path's delay.
 */
function knownFrom(folder, recording) {
  const known = `${recording}-known`;
  const packets = readFileSync(join(folder, recording), "utf8");
  writeFileSync(join(folder, known), `1\n${packets}`);
  return known;
}

/** The senders of `called`. */
const SENDERS = ["chromium", "scream-v2", "sluice"];

/** The scenario of a call over a recording: a film in 360p, for 18 s. */
function callScenario(recording) {
  return scenario(recording, "encoder")
    .replace(`duration = "${DURATION_S}s"`, 'duration = "18s"')
    .replace('"6Mbps"', '"2500kbps"')
    .replace("[[flow]]", '[call.video]\nwidth = 640\nheight = 360\ncontent = "film"\n\n[[flow]]');
}

function called(folder, recordings, senders, seeds) {
  console.log(
    "| recording | sender | rate, Mbit/s: called; simulated | error | queue, p95 (ms): called; simulated " +
      "| error | within 10 % and 30 ms |\n|---|---|---|---:|---|---:|---|",
  );
  for (const recording of recordings) {
    const file = join(folder, `${recording}-call.toml`);
    writeFileSync(file, callScenario(recording));
    const known = join(folder, `${recording}-known.toml`);
    writeFileSync(known, callScenario(knownFrom(folder, recording)));
    const calls = weir("call", file, "--controller", senders.join(","), "--quick", "--json");
    for (const [index, sender] of senders.entries()) {
      const args = ["--controller", sender, "--seeds", String(seeds), "--as-called", "--json"];
      // Chromium's first packet leaves after time zero, those of pipelines leave before it.
      const runs = weir("run", sender === "chromium" ? file : known, ...args).map(
        (run) => run.flows[0],
      );
      const flow = calls[index].flows[0];
      const rate = flow.rate_mbps?.mean;
      if (rate === undefined)
        fail(`the call of ${sender} over ${recording} was disturbed or failed`);
      const simulatedRate = mean(runs.map((run) => run.rate_mbps.mean));
      const queue = flow.queuing_delay_ms.p95;
      const simulatedQueue = mean(runs.map((run) => run.queuing_delay_ms.p95));
      const rateError = simulatedRate / rate - 1;
      const queueError = simulatedQueue - queue;
      const met = [Math.abs(rateError) <= 0.1 && "rate", Math.abs(queueError) <= 30 && "queue"];
      console.log(
        `| ${recording} | ${sender} | ${fixed(rate, 2)}; ${fixed(simulatedRate, 2)} ` +
          `| ${fixed(100 * rateError, 0)} % | ${fixed(queue, 0)}; ${fixed(simulatedQueue, 0)} ` +
          `| ${fixed(queueError, 0)} | ${met.filter(Boolean).join(", ") || "neither"} |`,
      );
    }
  }
}

const STATISTICS = [
  ["mean (Mbit/s)", "mean_mbps", 2],
  ["cv, 50 ms", "cv_50ms", 2],
  ["cv, 200 ms", "cv_200ms", 2],
  ["cv, 1 s", "cv_1s", 2],
  ["outages, share", "outage_share", 3],
  ["outages a minute", "outages_per_min", 1],
  ["median outage (s)", "outage_median_s", 2],
  ["longest outage (s)", "outage_longest_s", 2],
];

/** Least, median and largest of a member of these, leaving out those that lack it. */
function range(all, member) {
  const known = all.map((one) => one[member]).filter((value) => typeof value === "number");
  known.sort((a, b) => a - b);
  return [known[0], known[Math.floor((known.length - 1) / 2)], known.at(-1)];
}

function statistics(folder, recordings) {
  const recorded = weir(
    "research",
    "capacity",
    ...recordings.map((name) => join(folder, name)),
    "--json",
  );
  const out = join(folder, "generated");
  execFileSync(WEIR, ["research", "generate", RADIO_SEEDS, "--family", "radio", "--out", out]);
  const files = readdirSync(join(out, "radio")).map((name) => join(out, "radio", name));
  const drawn = weir("research", "capacity", ...files, "--json");
  const names = STATISTICS.map(([name]) => name);
  console.log(`| recording | ${names.join(" | ")} |\n|---|${"---:|".repeat(names.length)}`);
  for (const [index, recording] of recordings.entries()) {
    const cells = STATISTICS.map(([, member, digits]) => fixed(recorded[index][member], digits));
    console.log(`| ${recording} | ${cells.join(" | ")} |`);
  }
  console.log(
    `\n| least, median, largest | ${names.join(" | ")} |\n|---|${"---:|".repeat(names.length)}`,
  );
  for (const [name, all] of [
    [`${recordings.length} recordings`, recorded],
    [`${files.length} scenarios of \`radio\``, drawn],
  ]) {
    const cells = STATISTICS.map(([, member, digits]) =>
      range(all, member)
        .map((value) => fixed(value, digits))
        .join(", "),
    );
    console.log(`| ${name} | ${cells.join(" | ")} |`);
  }
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: "string" },
    seeds: { type: "string", default: "10" },
    set: { type: "string", multiple: true, default: [] },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (options.help) {
  help();
  process.exit(0);
}
const [what, from, list] = positionals;
const controllers = (list ?? (what === "called" ? SENDERS.join() : "sluice")).split(",");
if (!["results", "held", "waits", "seen", "statistics", "called"].includes(what) || !from) {
  fail(
    "write recorded-links.mjs results|held|waits|seen|statistics|called FOLDER; --help says more",
  );
}
if (!/^[1-9][0-9]*$/.test(options.seeds)) fail("--seeds wants a number of 1 or more");
const wanted = options.only?.split(",");
const recordings = readdirSync(from)
  .filter((name) => /\.(up|down)$/.test(name) && (!wanted || wanted.includes(name)))
  .sort();
if (recordings.length === 0) {
  fail(
    `no recording in ${from}: git clone https://github.com/ravinet/mahimahi and name its folder traces`,
  );
}
const folder = mkdtempSync(join(tmpdir(), "recorded-links-"));
try {
  for (const name of recordings) copyFileSync(join(from, name), join(folder, name));
  if (what === "results") {
    const constants = options.set.flatMap((constant) => ["--set", constant]);
    results(folder, recordings, controllers, Number(options.seeds), constants);
  } else if (what === "held") {
    const constants = options.set.flatMap((constant) => ["--set", constant]);
    held(folder, recordings, controllers[0], constants);
  } else if (what === "waits") {
    waits(folder, recordings, controllers[0], Number(options.seeds));
  } else if (what === "seen") {
    seen(folder, recordings, controllers, Number(options.seeds));
  } else if (what === "called") {
    const unknown = controllers.find((sender) => !SENDERS.includes(sender));
    if (unknown) fail(`no sender ${unknown}: write ${SENDERS.join(", ")}`);
    called(folder, recordings, controllers, Number(options.seeds));
  } else {
    statistics(folder, recordings);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
