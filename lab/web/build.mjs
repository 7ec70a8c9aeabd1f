// Bundles the viewer into one file, dist/report.html, and the page of `weir serve` into dist/serve.html, with script
// and style inlined.
//
// The Rust side replaces the placeholder by the report's JSON, so it must occur exactly once.

import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { build } from "esbuild";
import { bundle, pageOf } from "./bundle.mjs";

const PLACEHOLDER = "/*WEIR_DATA*/";

const { text: script, inputs } = await bundle("src/main.ts");
const { text: style } = await bundle("src/style.css");
const page = await pageOf("src/index.html", { script, style, inputs });
if (page.split(PLACEHOLDER).length !== 2) {
  throw new Error(`${PLACEHOLDER} must occur exactly once in the page`);
}

await mkdir("dist", { recursive: true });
// The agent of the WIC, as a library and for the page of `weir call`. It is kept in the repository, so that the
// programs are built without Node; a test says when it is old.
await build({
  entryPoints: ["../../ims/agent/index.ts"],
  bundle: true,
  outfile: "dist/wic.js",
  format: "esm",
  target: "es2022",
  minifySyntax: true,
  minifyWhitespace: true,
  banner: { js: "// Made from ims/agent by `npm run build` in lab/web. Do not change it here." },
  logLevel: "warning",
});
await copyFile("dist/wic.js", "../call/page/wic.js");
await writeFile("dist/report.html", page);
const live = await bundle("src/serve/main.ts");
const styles = [style];
for (const file of ["src/ui/style.css", "src/playground/style.css", "src/serve/style.css"])
  styles.push((await bundle(file)).text);
const served = { script: live.text, style: styles.join(""), inputs: live.inputs };
await writeFile("dist/serve.html", await pageOf("src/serve.html", served));
console.log(`dist/report.html: ${Math.round(page.length / 1024)} KiB`);
