// Asks the simulator in WebAssembly the requests on the standard input, one a line, and prints its answers. Then
// it prints the time that this took to the standard error.
//
//     node fingerprints.mjs FILE.wasm       in Node
//     node fingerprints.mjs playground.html in Chromium

import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error("usage: node fingerprints.mjs FILE.wasm|PAGE.html");
const requests = readFileSync(0, "utf8")
  .split("\n")
  .filter((line) => line !== "");

const inNode = async () => {
  const { instance } = await WebAssembly.instantiate(await readFile(file), {});
  const { memory, weir_alloc, weir_free, weir_answer } = instance.exports;
  const ask = (request) => {
    const bytes = new TextEncoder().encode(request);
    const start = weir_alloc(bytes.length);
    new Uint8Array(memory.buffer).set(bytes, start);
    const place = BigInt.asUintN(64, weir_answer(start, bytes.length));
    const [from, length] = [Number(place >> 32n), Number(place & 0xffff_ffffn)];
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, from, length));
    weir_free(start, bytes.length);
    weir_free(from, length);
    return text;
  };
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
