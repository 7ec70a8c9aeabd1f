#!/usr/bin/env node
// Rewrites the tables of docs/results and docs/reference with the output of the commands that they name.
//
// usage: scripts/results/results.mjs [--check] [--only PAGE]... [--command TEXT] [--calls] [--list]
//
// A table of a page is a block:
//
//   <!-- results: COMMAND -->
//   the table that the command printed
//   Command: ... Revision: ...
//   <!-- end -->
//
// The command runs in a shell in the root of the repository, where `weir` is the program that was
// built last (target/release/weir or target/debug/weir; WEIR names another one). Its output
// replaces the content of the block. A table that has not changed keeps its revision. In place of
// `results` a block may say
//
//   results text    the output goes into a block of code, since it is not Markdown
//   results calls   the table comes from real calls, the wall clock or other programs: it is not written anew
//                   unless --calls is given, and its revision says when it was measured
//
// --check       writes nothing, and the exit code is 1 if a table differs from what its command prints
// --only PAGE   this page only, such as `lund` or docs/results/lund.md; may be given several times
// --command TEXT  only the tables whose command contains this text
// --calls       also the blocks with `results calls`
// --list        prints the commands of the pages and runs none

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const script = fileURLToPath(import.meta.url);
const root = dirname(dirname(dirname(script)));
const block =
  /^<!-- results(?: (text|calls))?(?: (calls|text))?: (.+?) -->\n([\s\S]*?)^<!-- end -->$/gm;

const { values: options } = parseArgs({
  options: {
    check: { type: "boolean", default: false },
    only: { type: "string", multiple: true, default: [] },
    command: { type: "string", default: "" },
    calls: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (options.help) {
  const head = readFileSync(script, "utf8").split("\n").slice(1);
  const lines = head.slice(0, head.indexOf("")).map((line) => line.replace(/^\/\/ ?/, ""));
  console.log(lines.join("\n"));
  process.exit(0);
}

const only = options.only.map((page) => basename(page, ".md"));
// Names of pages are unique over these folders.
const folders = ["docs/results", "docs/reference", "docs/reference/controllers"];
const files = folders.flatMap((folder) => {
  const names = readdirSync(join(root, folder)).filter((name) => name.endsWith(".md"));
  return names.map((name) => join(root, folder, name));
});
const unknown = only.filter((page) => !files.some((file) => basename(file, ".md") === page));
if (unknown.length > 0) {
  console.error(`results: no such page: ${unknown.join(", ")}`);
  process.exit(2);
}

/** Returns a folder for PATH in which `weir` is the program to run. */
function folderOfProgram() {
  const built = ["release", "debug"].map((profile) => join(root, "target", profile, "weir"));
  const newest = built
    .filter((path) => existsSync(path))
    .sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs);
  const program = process.env.WEIR ?? newest[0];
  if (!program || !existsSync(program)) {
    console.error("results: no weir: `make build` first, or name the program in WEIR");
    process.exit(2);
  }
  const bin = join(root, "target/results-bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "weir"), `#!/bin/sh\nexec '${program}' "$@"\n`, { mode: 0o755 });
  return bin;
}

/** The commit, and a mark if files that the tables depend on have changes. */
function revision() {
  const git = (...args) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  const changed = git("status", "--porcelain", "--", "library", "lab", "scenarios", "Cargo.lock");
  return git("rev-parse", "--short=7", "HEAD") + (changed === "" ? "" : " with changes");
}

function output(command, path) {
  const result = spawnSync("bash", ["-o", "pipefail", "-c", command], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, PATH: path, LC_ALL: "C.UTF-8", COLUMNS: undefined },
    maxBuffer: 1 << 30,
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (result.status !== 0) {
    console.error(`results: exit code ${result.status}: ${command}`);
    process.exit(2);
  }
  return result.stdout.trim();
}

const run = { path: undefined, revision: undefined, outputs: new Map() };

/** Content of a block after its command has run: the same text if the table has not changed. */
function renewed(whole, marks, command, content) {
  const printed = run.outputs.get(command);
  if (printed === undefined) return whole;
  const table = marks.includes("text") ? `\`\`\`text\n${printed}\n\`\`\`` : printed;
  const old = content.slice(0, Math.max(content.lastIndexOf("\nCommand: "), 0)).trim();
  if (old === table) return whole;
  const head = `<!-- results${marks.map((mark) => ` ${mark}`).join("")}: ${command} -->`;
  const source = `Command: \`${command}\`. Revision: ${run.revision}.`;
  return `${head}\n${table}\n\n${source}\n<!-- end -->`;
}

const differing = [];
for (const file of files) {
  const page = basename(file, ".md");
  if (only.length > 0 && !only.includes(page)) continue;
  for (const [, first, second, command] of readFileSync(file, "utf8").matchAll(block)) {
    if (!command.includes(options.command)) continue;
    const marks = [first, second].filter(Boolean);
    if (options.list) console.log(`${page}: ${marks.concat(command).join(" ")}`);
    if (options.list || (marks.includes("calls") && !options.calls)) continue;
    console.error(`results: ${page}: ${command}`);
    run.path ??= `${folderOfProgram()}${delimiter}${process.env.PATH}`;
    run.revision ??= revision();
    if (!run.outputs.has(command)) run.outputs.set(command, output(command, run.path));
  }
  // Read again, because the page may have been edited while the commands ran.
  const before = readFileSync(file, "utf8");
  const after = before.replace(block, (whole, first, second, command, content) => {
    const marks = [first, second].filter(Boolean);
    const text = renewed(whole, marks, command, content);
    if (text !== whole) differing.push(`${page}: ${command}`);
    return text;
  });
  if (after !== before && !options.check) writeFileSync(file, after);
}
if (options.list) process.exit(0);
for (const line of differing) console.error(`results: differs: ${line}`);
console.error(`results: ${differing.length} tables differ${options.check ? "" : ", written anew"}`);
process.exit(options.check && differing.length > 0 ? 1 : 0);
