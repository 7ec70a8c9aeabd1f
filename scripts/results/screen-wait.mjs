// Prints a Markdown table of how long pictures of calls wait between the received track and the screen:
//
//     weir call 'accuracy/delay*' --quality --out calls && node scripts/results/screen-wait.mjs calls
//
// A browser hands a picture to the screen at a refresh, 60 times a second. "On the refresh" is the length of
// the mean of all times on screen as points on a circle of 1/60 s: 1 if all are at one place in it, 0 if
// they are spread evenly. Pictures of the first two seconds do not count.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const REFRESH_MS = 1000 / 60;
const SETTLED_MS = 2000;

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error("screen-wait: name the folder with the records of the calls");
  process.exit(2);
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The frames of a file that were seen on both, as numbers by the names of their columns. */
function framesOf(path) {
  const [head, ...lines] = readFileSync(path, "utf8").trim().split("\n");
  const names = head.split(",");
  const frames = [];
  for (const line of lines) {
    const cells = line.split(",");
    const frame = Object.fromEntries(names.map((name, at) => [name, cells[at]]));
    if (frame.received_ms === "" || frame.shown_ms === "") continue;
    const [captured, received, shown] = ["captured_ms", "received_ms", "shown_ms"].map((name) =>
      Number(frame[name]),
    );
    if (captured >= SETTLED_MS) frames.push({ captured, received, shown });
  }
  return frames;
}

function onRefresh(frames) {
  const angles = frames.map(({ shown }) => (2 * Math.PI * shown) / REFRESH_MS);
  return Math.hypot(mean(angles.map(Math.cos)), mean(angles.map(Math.sin)));
}

console.log(
  "| scenario | pictures | to the track, mean (ms) | to the screen, mean (ms) | wait, mean (ms) | wait, 5 to 95 % (ms) | on the refresh |",
);
console.log("|---|---:|---:|---:|---:|---:|---:|");
for (const scenario of readdirSync(folder).sort()) {
  for (const run of readdirSync(join(folder, scenario)).sort()) {
    const frames = framesOf(join(folder, scenario, run, "frames.csv"));
    if (frames.length === 0) continue;
    const waits = frames.map(({ received, shown }) => shown - received).sort((a, b) => a - b);
    const at = (share) => waits[Math.floor(share * (waits.length - 1))].toFixed(1);
    const cells = [
      scenario.replaceAll("__", "/"),
      frames.length,
      mean(frames.map(({ captured, received }) => received - captured)).toFixed(1),
      mean(frames.map(({ captured, shown }) => shown - captured)).toFixed(1),
      mean(waits).toFixed(1),
      `${at(0.05)} to ${at(0.95)}`,
      onRefresh(frames).toFixed(2),
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}
