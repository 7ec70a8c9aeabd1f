// Asks the simulator in WebAssembly the requests on the standard input, one a line, and prints its answers. Then
// it prints the time that this took to the standard error.
//
//     node fingerprints.mjs FILE.wasm       in Node
//     node fingerprints.mjs playground.html in Chromium

import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { bundle } from "./bundle.mjs";

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error("usage: node fingerprints.mjs FILE.wasm|PAGE.html");
const requests = readFileSync(0, "utf8")
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

const inChromium = async () => {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu"],
  });
  const page = await browser.newPage();
  await page.goto(pathToFileURL(resolve(file)).href);
  await page.waitForFunction(() => window.weirAsk !== undefined, null, { timeout: 120_000 });
  const ask = (request) =>
    page.evaluate(
      async (it) => JSON.stringify({ ok: await window.weirAsk(JSON.parse(it)) }),
      request,
    );
  try {
    return await timed(ask);
  } finally {
    await browser.close();
  }
};

const timed = async (ask) => {
  const begin = performance.now();
  for (const request of requests) console.log(await ask(request));
  console.error(`${((performance.now() - begin) / 1000).toFixed(2)} s`);
};

await (file.endsWith(".html") ? inChromium() : inNode());
