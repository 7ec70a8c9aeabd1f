#!/usr/bin/env node
// Checks the links of the documentation without a network.
//
// usage: scripts/test/check-links.mjs [--book FOLDER]
//
// In every Markdown page of the repository, linked files, images and headings must exist. Pages
// below docs/ must be in docs/SUMMARY.md. They may link only to files below docs/, because the book
// contains no others. With --book FOLDER it checks the links and images of the built book in the
// same way. Links to the web are not followed. The exit code is 1 if a link is broken.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const args = process.argv.slice(2);
if (args.includes("--help") || args.includes("-h")) {
  const head = readFileSync(fileURLToPath(import.meta.url), "utf8")
    .split("\n")
    .slice(1);
  console.log(
    head
      .slice(0, head.indexOf(""))
      .map((line) => line.replace(/^\/\/ ?/, ""))
      .join("\n"),
  );
  process.exit(0);
}

const broken = [];
const isWeb = (target) => /^[a-z][a-z0-9+.-]*:/i.test(target);

/** Text without code, because code contains no links. */
const withoutCode = (text) =>
  text
    .replace(/^(```+|~~~+)[^\n]*\n[\s\S]*?^\1[^\n]*$/gm, "")
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, " "));

/** The ids that GitHub and mdBook derive from a page's headings. */
function headingIds(text) {
  const ids = new Set();
  const body = text.replace(/^(```+|~~~+)[^\n]*\n[\s\S]*?^\1[^\n]*$/gm, "");
  for (const [, heading] of body.matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const id = words.replace(/[^\p{L}\p{N}_\- ]/gu, "").replace(/ /g, "-");
    let unique = id;
    for (let count = 1; ids.has(unique); count++) unique = `${id}-${count}`;
    ids.add(unique);
  }
  for (const [, id] of body.matchAll(/<a (?:id|name)="([^"]+)"/g)) ids.add(id);
  return ids;
}

function checkPages() {
  const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "*.md"], {
    cwd: root,
    encoding: "utf8",
  });
  const pages = listed.split("\n").filter((page) => page && existsSync(join(root, page)));
  const summary = new Set();
  let links = 0;
  for (const page of pages) {
    const text = readFileSync(join(root, page), "utf8");
    for (const [, target] of withoutCode(text).matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g)) {
      if (isWeb(target)) continue;
      links++;
      const [file, id] = target.split("#");
      const path = file ? normalize(join(dirname(page), file)) : page;
      if (page === "docs/SUMMARY.md") summary.add(path);
      const whole = join(root, path);
      if (!existsSync(whole)) broken.push(`${page}: ${target}: no such file`);
      else if (page.startsWith("docs/") && relative("docs", path).startsWith(".."))
        broken.push(`${page}: ${target}: not below docs/, so the book does not have it`);
      else if (id && statSync(whole).isFile() && !headingIds(readFileSync(whole, "utf8")).has(id))
        broken.push(`${page}: ${target}: no such heading`);
    }
  }
  for (const page of pages)
    if (page.startsWith("docs/") && page !== "docs/SUMMARY.md" && !summary.has(page))
      broken.push(`${page}: not in docs/SUMMARY.md`);
  return `${links} links of ${pages.length} pages`;
}

function checkBook(book) {
  const pages = readdirSync(book, { recursive: true }).filter((file) => file.endsWith(".html"));
  const texts = new Map(pages.map((page) => [page, readFileSync(join(book, page), "utf8")]));
  let links = 0;
  for (const [page, text] of texts) {
    // The links of the page for missing pages are relative to the root of a server.
    if (page === "404.html") continue;
    for (const [, target] of text.matchAll(/\s(?:href|src)="([^"]*)"/g)) {
      if (target === "" || isWeb(target) || target.startsWith("//")) continue;
      links++;
      const [file, id] = decodeURI(target).split("#");
      const path = file ? normalize(join(dirname(page), file)) : page;
      if (!existsSync(join(book, path))) broken.push(`${book}/${page}: ${target}: no such file`);
      else if (id && texts.has(path) && !texts.get(path).includes(`id="${id}"`))
        broken.push(`${book}/${page}: ${target}: no such heading`);
    }
  }
  return `${links} links of ${pages.length} pages of the book`;
}

const checked = [checkPages()];
const at = args.indexOf("--book");
if (at >= 0) checked.push(checkBook(args[at + 1]));
for (const line of broken) console.error(`check-links: ${line}`);
console.log(`check-links: ${checked.join(", ")}: ${broken.length} broken`);
process.exit(broken.length > 0 ? 1 : 0);
