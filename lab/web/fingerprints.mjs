// Asks the simulator in WebAssembly the requests on the standard input, one a line, and prints its answers. Then
// it prints the time that this took to the standard error.
//
//     node fingerprints.mjs FILE.wasm       in Node
//     node fingerprints.mjs playground.html in Chromium
//
// With `--page playground.html` it asks nothing, and prints how long the page takes from a change to its curves, and
// the longest task of the page itself in that time.

import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { bundle } from "./bundle.mjs";

const words = process.argv.slice(2);
const file = words.at(-1);
if (file === undefined)
  throw new Error("usage: node fingerprints.mjs [--page] FILE.wasm|PAGE.html");
const requests = () =>
  readFileSync(0, "utf8")
    .split("\n")
    .filter((line) => line !== "");

const inNode = async () => {
  // Node 20 reads no TypeScript.
  const source = fileURLToPath(new URL("src/playground/ask.ts", import.meta.url));
  const { text } = await bundle(source, "esm");
  const { simulator } = await import(`data:text/javascript,${encodeURIComponent(text)}`);
  const ask = await simulator(await WebAssembly.compile(await readFile(file)));
  return timed(async (request) => ask(request));
};

/** Opens the page in Chromium, and closes it when `use` is done with it. */
const inPage = async (use) => {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu"],
  });
  const page = await browser.newPage();
  await page.goto(pathToFileURL(resolve(file)).href);
  await page.waitForFunction(() => window.weirAsk !== undefined, null, { timeout: 120_000 });
  try {
    return await use(page);
  } finally {
    await browser.close();
  }
};

const inChromium = (page) =>
  timed((request) =>
    page.evaluate(
      async (it) => JSON.stringify({ ok: await window.weirAsk(JSON.parse(it)) }),
      request,
    ),
  );

/** How often the page draws curves anew for their time. */
const CHANGES = 5;

const curves = async (page) => {
  await page.getByText(/simulated in \d/).waitFor();
  await page.getByRole("slider").focus();
  await page.evaluate(() => {
    window.longest = 0;
    const watch = (list) => {
      for (const { duration } of list.getEntries())
        window.longest = Math.max(window.longest, duration);
    };
    new PerformanceObserver(watch).observe({ entryTypes: ["longtask"] });
  });
  const times = [];
  for (let i = 0; i < CHANGES; i += 1) {
    const took = page.evaluate(
      () =>
        new Promise((resolve) => {
          const begin = performance.now();
          let simulates = false;
          new MutationObserver((_, observer) => {
            const words = document.querySelector(".status").textContent;
            simulates ||= words.startsWith("simulating");
            if (!simulates || !words.includes("simulated in")) return;
            observer.disconnect();
            resolve(performance.now() - begin);
          }).observe(document.querySelector(".status"), { childList: true });
        }),
    );
    await page.keyboard.press("ArrowDown");
    times.push(await took);
  }
  times.sort((a, b) => a - b);
  const [least, most] = [times[0], times.at(-1)].map((ms) => (ms / 1000).toFixed(2));
  const what = await page.locator(".results code").first().innerText();
  // Browsers report tasks of 50 ms and more.
  const longest = await page.evaluate(() => window.longest);
  const stall = longest === 0 ? "none of 50 ms or more" : `the longest of ${longest} ms`;
  console.log(
    `From a change to the curves of \`${what}\` (60 s): ${least} to ${most} s in ${times.length} changes. Tasks of the page itself in that time: ${stall}.`,
  );
};

const timed = async (ask) => {
  const begin = performance.now();
  for (const request of requests()) console.log(await ask(request));
  console.error(`${((performance.now() - begin) / 1000).toFixed(2)} s`);
};

if (words[0] === "--page") await inPage(curves);
else await (file.endsWith(".html") ? inPage(inChromium) : inNode());
