// What the pages have in common: one file each, with script and style inlined, and the licences of what it holds.

import { readFile } from "node:fs/promises";
import { build } from "esbuild";
import { licences } from "./licences.mjs";

/** A minified script or style, and the files that it is from. */
export const bundle = async (entry, format = "iife") => {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format,
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

/**
 * The template with style and script in their places, and the licences at its end. `parts` are other texts by
 * the names of their places.
 */
export const pageOf = async (template, { script, style, inputs }, parts = {}) => {
  if (/<\/(script|style)/i.test(script + style + Object.values(parts).join(""))) {
    throw new Error("the bundle holds a closing tag that would end its own element");
  }
  const comment = await notices(inputs);
  // Replacement functions, because "$&" in minified code is a pattern in a replacement string.
  let page = (await readFile(template, "utf8"))
    .replace("</html>", (end) => comment + end)
    .replace("/*WEIR_STYLE*/", () => style.trim())
    .replace("/*WEIR_SCRIPT*/", () => script.trim());
  for (const [name, text] of Object.entries(parts)) page = page.replace(name, () => text);
  return page;
};
