// The picture of the report in the book: one scenario of a report, as a browser shows it.
//
//     weir run demo/first-call lund/rmcat-ns3 lund/sudden-reduction rfc8867/5.1 --controller gcc,nada,sluice \
//         --seed 1 --out runs
//     weir report runs -o report.html
//     node scripts/results/report-picture.mjs report.html demo/first-call > full.png
//     ffmpeg -i full.png -vf 'split[a][b];[a]palettegen=max_colors=128[p];[b][p]paletteuse=dither=none' \
//         docs/images/report.png
//
// docs/images/explained.png is made likewise, of the page that `weir analyze
// lab/analyze/tests/dumps/drop.internals.gz -o call.html` writes.
//
// It needs Chromium, and playwright-core of lab/web/ (`make web` installs it).

import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const VIEW = { width: 1340, height: 1020 };

const { chromium } = createRequire(new URL("../../lab/web/package.json", import.meta.url))(
  "playwright-core",
);
const [file, scenario] = process.argv.slice(2);
if (scenario === undefined) {
  console.error("usage: node scripts/results/report-picture.mjs REPORT.html SCENARIO > FILE.png");
  process.exit(2);
}
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: process.getuid() === 0 ? ["--no-sandbox"] : [],
});
const page = await browser.newPage({ viewport: VIEW, colorScheme: "light" });
await page.goto(`${pathToFileURL(resolve(file))}#${encodeURIComponent(scenario)}`);
await page.locator(`[id='${scenario}'] figure svg`).first().waitFor();
process.stdout.write(await page.screenshot());
await browser.close();
