// The picture of the report in the README: one scenario of a report, as a browser shows it.
//
//     weir run demo/first-call lund/rmcat-ns3 lund/sudden-reduction lund/sweden-china lund/no-jitter rfc8867/5.1 \
//         --controller gcc,nada,scream --seed 1 --out runs
//     weir call demo/first-call --out runs && weir report runs -o report.html
//     node scripts/report-picture.mjs report.html demo/first-call > full.png
//     ffmpeg -i full.png -vf 'split[a][b];[a]palettegen=max_colors=128[p];[b][p]paletteuse=dither=none' \
//         docs/images/report.png
//
// It needs Chromium, and playwright-core of web/ (`make web` installs it).

import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const VIEW = { width: 1340, height: 1020 };

const { chromium } = createRequire(new URL("../web/package.json", import.meta.url))(
  "playwright-core",
);
const [file, scenario] = process.argv.slice(2);
if (scenario === undefined) {
  console.error("usage: node scripts/report-picture.mjs REPORT.html SCENARIO > FILE.png");
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
