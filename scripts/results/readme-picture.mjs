// The picture of the README that shows the same second of two calls: what the viewer of each had on screen,
// and how old it was.
//
//     weir call quality/steps --controller chromium,sluice --quick --quality --picture-at 20 --out calls
//     node scripts/results/readme-picture.mjs calls/quality__steps 20 chromium sluice > docs/images/same-second.jpg
//
// It needs Chromium, and playwright-core of lab/web/ (`make web` installs it). The film is Big Buck Bunny,
// (c) Blender Foundation, CC BY 3.0; whoever shows the picture says so.

import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const SIZE = { width: 1000, height: 356 };
const QUALITY = 78;
const NAMES = { chromium: "Chromium's GCC", "chromium-scream-v2": "Chromium's SCReAM v2" };

const [folder, second, ...senders] = process.argv.slice(2);
if (senders.length !== 2) {
  console.error(
    "usage: node scripts/results/readme-picture.mjs FOLDER SECOND SENDER SENDER > FILE.jpg",
  );
  process.exit(2);
}

/** The rows of a CSV file, each with its cells by name. */
function rowsOf(path) {
  const [head, ...lines] = readFileSync(path, "utf8").trim().split("\n");
  const names = head.split(",");
  return lines.map((line) => {
    const cells = line.split(",");
    return Object.fromEntries(names.map((name, index) => [name, cells[index]]));
  });
}

/** Age in ms of what is on screen at this second. */
function ageOf(record) {
  const now = 1000 * Number(second);
  let newest = null;
  for (const row of rowsOf(join(record, "frames.csv"))) {
    if (row.shown_ms !== "" && Number(row.shown_ms) <= now) newest = row;
  }
  return newest === null ? null : now - Number(newest.captured_ms);
}

function figureOf(name) {
  const run = readdirSync(folder).find((entry) => entry.startsWith(`${name}-call-`));
  if (run === undefined) {
    console.error(`readme-picture: ${folder} has no call of ${name}`);
    process.exit(2);
  }
  const label = NAMES[name] ?? `${name} in a pipeline`;
  const record = join(folder, run);
  const picture = readFileSync(join(record, `at-${second}-1-a-b.png`)).toString("base64");
  const age = ageOf(record);
  const old = age === null ? "nothing shown yet" : `${(age / 1000).toFixed(1)} s old`;
  return `<figure><div><img src="data:image/png;base64,${picture}"></div>
    <figcaption><b>${label}</b> <span>picture ${old}</span></figcaption></figure>`;
}

const figures = senders.map(figureOf);
// The tag's row is cut off.
const html = `<style>
  body { margin: 0; background: #111827; color: #f3f4f6; font: 17px system-ui, sans-serif }
  main { display: flex; gap: 12px; padding: 12px }
  figure { margin: 0; width: 482px }
  div { overflow: hidden; height: 259px; border-radius: 4px }
  img { width: 482px; height: 271px; margin-top: -12px }
  figcaption { display: flex; justify-content: space-between; padding: 10px 2px 0 }
  span { color: #d1d5db }
  p { margin: 0 14px; font-size: 13px; color: #9ca3af }
</style><main>${figures.join("")}</main>
<p>Second ${second} of a call whose link has 300 kbit/s for ten seconds. Big Buck Bunny, © Blender Foundation, CC BY 3.0</p>`;
const { chromium } = createRequire(new URL("../../lab/web/package.json", import.meta.url))(
  "playwright-core",
);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: process.getuid() === 0 ? ["--no-sandbox"] : [],
});
const page = await browser.newPage({ viewport: SIZE });
await page.setContent(html);
process.stdout.write(await page.screenshot({ type: "jpeg", quality: QUALITY }));
await browser.close();
