// Bundles the viewer into one file, dist/report.html, with script and style inlined.
//
// The Rust side replaces the placeholder by the report's JSON, so it must occur exactly once.

import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";
import { licences } from "./licences.mjs";

const PLACEHOLDER = "/*WEIR_DATA*/";

const bundle = async (entry) => {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    legalComments: "eof",
    logLevel: "warning",
    metafile: true,
  });
  return { text: result.outputFiles[0].text, inputs: Object.keys(result.metafile.inputs) };
};

/** A comment with the licences of all packages that a file of the bundle is from. */
const notices = async (inputs) => {
  const folders = inputs.map((path) => path.match(/^node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0]);
  const parts = [];
  for (const folder of [...new Set(folders)].filter(Boolean).sort()) {
    const { name, version, license } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
    parts.push(`${name} ${version}, ${license}`, ...(await licences(folder, license)));
  }
  const text = ["This page contains:", ...parts].join("\n\n");
  if (/--!?>/.test(text)) {
    throw new Error("a licence holds what would end its comment");
  }
  return `<!--\n${text}\n-->\n`;
};

const { text: script, inputs } = await bundle("src/main.ts");
const { text: style } = await bundle("src/style.css");
if (/<\/(script|style)/i.test(script + style)) {
  throw new Error("the bundle holds a closing tag that would end its own element");
}

const template = await readFile("src/index.html", "utf8");
// Replacement functions, because "$&" in minified code is a pattern in a replacement string.
const comment = await notices(inputs);
const page = template
  .replace("</html>", (end) => comment + end)
  .replace("/*WEIR_STYLE*/", () => style.trim())
  .replace("/*WEIR_SCRIPT*/", () => script.trim());
if (page.split(PLACEHOLDER).length !== 2) {
  throw new Error(`${PLACEHOLDER} must occur exactly once in the page`);
}

await mkdir("dist", { recursive: true });
// The agent of the WIC, as a library and for the page of `weir call`. It is kept in the repository, so that the
// programs are built without Node; a test says when it is old.
await build({
  entryPoints: ["wic/index.ts"],
  bundle: true,
  outfile: "dist/wic.js",
  format: "esm",
  target: "es2022",
  banner: { js: "// Made from web/wic by `npm run build` in web. Do not change it here." },
  logLevel: "warning",
});
await copyFile("dist/wic.js", "../crates/call/page/wic.js");
await writeFile("dist/report.html", page);
console.log(`dist/report.html: ${Math.round(page.length / 1024)} KiB`);
