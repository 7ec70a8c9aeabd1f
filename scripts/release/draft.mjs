#!/usr/bin/env node
// Makes an Internet-Draft in the form of kramdown-rfc from the page of sluice.
//
// usage: scripts/release/draft.mjs [--build] [--out FOLDER]
//
// Most of the draft is docs/reference/controllers/sluice.md, without the parts between the comments
// `draft: skip` and `draft: end`. scripts/release/draft-sluice.md has the rest: front matter, abstract,
// security. The draft is not in the repository, so it cannot be older than the page.
//
// --build        also text and HTML, with kramdown-rfc2629 (Debian: ruby-kramdown-rfc2629) and
//                xml2rfc (PyPI; XML2RFC names another one); any warning of theirs is a failure
// --out FOLDER   where to write (target/draft)

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const script = fileURLToPath(import.meta.url);
const ROOT = dirname(dirname(dirname(script)));
const PAGE = "docs/reference/controllers/sluice.md";
const REST = "scripts/release/draft-sluice.md";
const NAME = "draft-weir-rmcat-sluice";
/** What fits into a line of code in the text form of a draft. */
const WIDEST_CODE = 69;
/** What kramdown-rfc says about references that are written out, and about those of its cache. */
const EXPECTED = /explicit settings completely override|^\S*refcache\S*: (using|fetching)/;

const { values: options } = parseArgs({
  options: {
    build: { type: "boolean", default: false },
    out: { type: "string", default: join(ROOT, "target/draft") },
    help: { type: "boolean", short: "h", default: false },
  },
});

function fail(message) {
  console.error(`draft: ${message}`);
  process.exit(1);
}

/** Prose as kramdown-rfc has it: links of the book become plain text, names of RFCs references. */
function prose(text) {
  const unlinked = text
    .replace(/ \(\[figures\]\([^)]+\)\)/g, "")
    .replace(/\[([^\]]+)\]\([^)]+\)/g, "$1");
  // Each second part is code.
  const parts = unlinked.split("`").map((part, index) => {
    if (index % 2 === 1) return part;
    return part.replace(/\bRFC (\d+)\b/g, "{{RFC$1}}").replace(/\bTWCC\b/g, "TWCC, {{TWCC}}");
  });
  return parts.join("`");
}

/** A rule begins a section of its own, so that the table of contents lists it. */
function sections(text) {
  return text
    .replace(/^## Where it is weak$/m, "# Known Limitations {#limitations}")
    .replace(/^## (.+)$/gm, (_, title) => {
      return `# ${title} {#${title.toLowerCase().replaceAll(" ", "-")}}`;
    })
    .replace(/^\*\*(S-\d+), ([^*]+)\.\*\* /gm, (_, rule, title) => {
      return `## ${rule}: ${title} {#${rule.toLowerCase()}}\n\n`;
    });
}

/** The draft from the page and the rest. */
function draft(page, rest) {
  const kept = page.replace(/^<!-- draft: skip -->\n[\s\S]*?^<!-- draft: end -->\n/gm, "");
  if (kept.includes("<!--")) fail(`${PAGE}: a comment is left: a skip without an end?`);
  const body = kept.replace(/^# .+\n/, "## Overview\n");
  const parts = body.split(/^```(?:text)?\n/m);
  const converted = parts.map((part, index) => {
    if (index % 2 === 0) return sections(prose(part));
    const wide = part.split("\n").find((line) => line.length > WIDEST_CODE);
    if (wide !== undefined) fail(`${PAGE}: wider than ${WIDEST_CODE} columns: ${wide}`);
    return `~~~ ascii-art\n${part.trimEnd()}\n~~~\n`;
  });
  const [before, after] = rest.split("<!-- page -->\n");
  if (after === undefined) fail(`${REST}: no line for the page`);
  return before + converted.join("").trim() + "\n" + after;
}

/** What must hold for any draft, with or without the tools that build it. */
function check(text, page) {
  const rules = [...page.matchAll(/^\*\*(S-\d+)\b/gm)].map(([, rule]) => rule);
  const missing = rules.filter((rule) => !text.includes(`\n## ${rule}: `));
  if (missing.length > 0) fail(`${PAGE}: a rule without a title: ${missing.join(", ")}`);
  const listed = new Set([...text.matchAll(/^ {2}([A-Z]+\d*):$/gm)].map(([, name]) => name));
  const named = [...text.matchAll(/\{\{([A-Z]+\d*)\}\}/g)].map(([, name]) => name);
  const unknown = named.filter((name) => !listed.has(name));
  if (unknown.length > 0) fail(`${REST}: no reference for ${[...new Set(unknown)].join(", ")}`);
  const unused = [...listed].filter((name) => !named.includes(name));
  if (unused.length > 0) fail(`${REST}: nothing names ${unused.join(", ")}`);
}

/** The program if it runs; `undefined` if it is not there. */
function program(...names) {
  return names.find((name) => spawnSync(name, ["--version"]).error === undefined);
}

/** Runs a tool, which must succeed without a complaint. Returns what it printed. */
function run(command, args, env = {}) {
  const settings = { encoding: "utf8", maxBuffer: 1 << 26, env: { ...process.env, ...env } };
  const result = spawnSync(command, args, settings);
  const lines = result.stderr.split("\n").filter((line) => line !== "" && !EXPECTED.test(line));
  if (result.status !== 0 || lines.length > 0) {
    fail(`${command} ${args.join(" ")}\n${lines.join("\n")}`);
  }
  return result.stdout;
}

/**
 * The references that the boilerplate of BCP 14 needs. kramdown-rfc would fetch them; here it finds
 * them in the folder of its cache, so that the draft builds without a network.
 */
function cacheReferences(folder) {
  const references = [
    [
      2119,
      "1997",
      "March",
      "S.",
      "Bradner",
      "Key words for use in RFCs to Indicate Requirement Levels",
    ],
    [
      8174,
      "2017",
      "May",
      "B.",
      "Leiba",
      "Ambiguity of Uppercase vs Lowercase in RFC 2119 Key Words",
    ],
  ];
  mkdirSync(folder, { recursive: true });
  for (const [number, year, month, initials, surname, title] of references) {
    const xml = `<reference anchor="RFC${number}" target="https://www.rfc-editor.org/info/rfc${number}">
<front><title>${title}</title>
<author initials="${initials}" surname="${surname}" fullname="${initials} ${surname}"/>
<date year="${year}" month="${month}"/></front>
<seriesInfo name="BCP" value="14"/><seriesInfo name="RFC" value="${number}"/>
<seriesInfo name="DOI" value="10.17487/RFC${number}"/>
</reference>
`;
    writeFileSync(join(folder, `reference.RFC.${number}.xml`), xml);
  }
}

function build(source, folder) {
  const kramdown = program("kramdown-rfc2629");
  const python = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "python/bin/xml2rfc");
  const xml2rfc = program(process.env.XML2RFC ?? "xml2rfc", python);
  const reasons = [];
  if (kramdown === undefined)
    reasons.push("kramdown-rfc2629 (apt-get install ruby-kramdown-rfc2629)");
  if (xml2rfc === undefined) reasons.push("xml2rfc (pip install xml2rfc)");
  if (reasons.length > 0) {
    console.log(`draft: skipped: text and HTML: needs ${reasons.join(" and ")}`);
    return;
  }
  const xml = join(folder, `${NAME}.xml`);
  const cache = join(folder, "refcache");
  cacheReferences(cache);
  const offline = { KRAMDOWN_REFCACHEDIR: cache, KRAMDOWN_OFFLINE: "1" };
  writeFileSync(xml, run(kramdown, ["--v3", source], offline));
  for (const form of ["text", "html"]) {
    const made = join(folder, `${NAME}.${form === "text" ? "txt" : form}`);
    run(xml2rfc, ["--quiet", "--no-network", `--${form}`, "--out", made, xml]);
    console.log(made);
  }
}

if (options.help) {
  const head = readFileSync(script, "utf8").split("\n").slice(1);
  const lines = head.slice(0, head.indexOf("")).map((line) => line.replace(/^\/\/ ?/, ""));
  console.log(lines.join("\n"));
  process.exit(0);
}

const page = readFileSync(join(ROOT, PAGE), "utf8");
const text = draft(page, readFileSync(join(ROOT, REST), "utf8"));
check(text, page);
mkdirSync(options.out, { recursive: true });
const source = join(options.out, `${NAME}.md`);
writeFileSync(source, text);
console.log(source);
if (options.build) build(source, options.out);
