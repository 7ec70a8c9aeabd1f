// Bundles the viewer into one file, dist/report.html, with script and style inlined.
//
// The Rust side replaces the placeholder by the report's JSON, so it must occur exactly once.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const PLACEHOLDER = "/*WEIR_DATA*/";

const bundle = async (entry) => {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
  });
  return result.outputFiles[0].text;
};

const script = await bundle("src/main.ts");
const style = await bundle("src/style.css");
if (/<\/(script|style)/i.test(script + style)) {
  throw new Error("the bundle holds a closing tag that would end its own element");
}

const template = await readFile("src/index.html", "utf8");
// Replacement functions, because "$&" in minified code is a pattern in a replacement string.
const page = template
  .replace("/*WEIR_STYLE*/", () => style.trim())
  .replace("/*WEIR_SCRIPT*/", () => script.trim());
if (page.split(PLACEHOLDER).length !== 2) {
  throw new Error(`${PLACEHOLDER} must occur exactly once in the page`);
}

await mkdir("dist", { recursive: true });
await writeFile("dist/report.html", page);
console.log(`dist/report.html: ${Math.round(page.length / 1024)} KiB`);
