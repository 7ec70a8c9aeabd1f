#!/usr/bin/env node
// How long a report takes to its first picture in headless Chromium: three times, from the start of the navigation.
//
// usage: scripts/first-picture.mjs REPORT.html
//
// `first paint` is Chromium's first contentful paint. `first plot` is when the first plot is there, unless it is below the
// screen, where it is drawn only when somebody scrolls. The processor time is that of the page's main thread until both, which other programs on the machine hardly change. Needs Chromium and the
// viewer's packages (`make web`), or WEIR_PLAYWRIGHT.

import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const web = join(dirname(dirname(fileURLToPath(import.meta.url))), "lab/web/");
const { chromium } = createRequire(process.env.WEIR_PLAYWRIGHT ?? web)("playwright-core");
const file = resolve(process.argv[2] ?? "report.html");
const ROUNDS = 3;
/** After this time, the first plot is not on the first screen. */
const PLOT_MS = 3_000;

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
console.log(`${(statSync(file).size / 1e6).toFixed(1)} MB`);
for (let round = 0; round < ROUNDS; round += 1) {
  const page = await browser.newPage();
  await page.addInitScript(() => {
    const look = () => {
      if (document.querySelector("svg, canvas")) globalThis.weirPlot = performance.now();
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
  await page.waitForFunction(() => performance.getEntriesByType("paint").length > 1);
  const paint = await page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint")[0].startTime,
  );
  const plot = await page
    .waitForFunction(() => globalThis.weirPlot, null, { timeout: PLOT_MS })
    .then(
      async (time) => `${Math.round(await time.jsonValue())} ms`,
      () => "below the screen",
    );
  const { metrics } = await devtools.send("Performance.getMetrics");
  const processor = metrics.find(({ name }) => name === "TaskDuration").value;
  console.log(
    `first paint ${Math.round(paint)} ms, first plot ${plot}, processor time ${Math.round(1000 * processor)} ms`,
  );
  await page.close();
}
await browser.close();
