// The licences that a package brings.

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const LICENCE = /^(licen[cs]e|copying|copyright|notice|unlicense)/i;
/** Of a package under several licences, as one chooses, these go where there is the shorter MIT. */
const LONGER = /apache|copying|unlicense|llvm/i;

/** The texts of a package's licences and notices. `terms` is what its manifest says of them. */
export async function licences(folder, terms) {
  const entries = await readdir(folder, { withFileTypes: true });
  const files = [];
  for (const entry of entries.filter((entry) => LICENCE.test(entry.name))) {
    const path = join(folder, entry.name);
    const within = entry.isDirectory() ? await readdir(path) : [""];
    files.push(...within.map((name) => join(path, name)));
  }
  const hasChoice =
    / OR |\//.test(terms) && files.some((file) => /mit/i.test(file.slice(folder.length)));
  const kept = files.filter((file) => !hasChoice || !LONGER.test(file.slice(folder.length)));
  if (kept.length === 0) {
    throw new Error(`${folder} has no file with its licence`);
  }
  const texts = kept.sort().map((file) => readFile(file, "utf8"));
  return (await Promise.all(texts)).map(tidied);
}

/** Without what only differs in line ends and blanks at them. */
function tidied(text) {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  return lines
    .map((line) => line.trimEnd())
    .join("\n")
    .replace(/^\n+|\n+$/g, "");
}
