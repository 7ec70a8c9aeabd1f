// Bundles the playground into one file. The arguments are the simulator, weir_wasm.wasm, and the file to write
// (dist/playground.html).

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { gzipSync } from "node:zlib";
import { bundle, pageOf } from "./bundle.mjs";

const [file, out = "dist/playground.html"] = process.argv.slice(2);
if (file === undefined) throw new Error("usage: node playground.mjs weir_wasm.wasm [PAGE.html]");

const { text: script, inputs } = await bundle("src/playground/main.ts");
const { text: worker } = await bundle("src/playground/worker.ts");
const { text: viewer } = await bundle("src/style.css");
const { text: own } = await bundle("src/playground/style.css");
const { text: forms } = await bundle("src/ui/style.css");
const wasm = gzipSync(await readFile(file), { level: 9 }).toString("base64");
const parts = { "/*WEIR_WASM*/": wasm, "/*WEIR_WORKER*/": worker.trim() };
const page = await pageOf(
  "src/playground.html",
  { script, style: viewer + forms + own, inputs },
  parts,
);

await mkdir(dirname(out), { recursive: true });
await writeFile(out, page);
console.log(`${out}: ${Math.round(page.length / 1024)} KiB`);
