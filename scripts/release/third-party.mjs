// Writes target/THIRD-PARTY.md: the code of others in the program and its reports, with the licences. What is installed and
// published carries it. It fails if a package brings no licence.
//
//     node scripts/release/third-party.mjs
//
// Needs lab/web/node_modules and the sources that cargo has fetched. `make third-party` provides both.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { licences } from "../../lab/web/licences.mjs";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
const FILE = resolve(ROOT, process.env.CARGO_TARGET_DIR ?? "target", "THIRD-PARTY.md");
/** What is installed: the program, and the Python package beside it. */
const INSTALLED = ["weir-cli", "weir-python"];

/** Crates from which these are built on Linux, without those of tests and benches. */
function crates() {
  const args = [
    "metadata",
    "--format-version",
    "1",
    "--locked",
    "--filter-platform",
    "x86_64-unknown-linux-gnu",
  ];
  const options = { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 28 };
  const { packages, resolve } = JSON.parse(execFileSync("cargo", args, options));
  const node = new Map(resolve.nodes.map((node) => [node.id, node]));
  const own = packages.filter(({ name }) => INSTALLED.includes(name));
  const needed = new Set(own.map(({ id }) => id));
  for (const id of needed) {
    const normal = node
      .get(id)
      .deps.filter(({ dep_kinds }) => dep_kinds.some(({ kind }) => kind === null));
    normal.forEach(({ pkg }) => needed.add(pkg));
  }
  const foreign = packages.filter(({ id, source }) => needed.has(id) && source !== null);
  return foreign.map(({ name, version, license, repository, manifest_path }) => {
    return { name, version, terms: license, home: repository, folder: dirname(manifest_path) };
  });
}

/** Packages whose code is in the report's page. */
function npmPackages() {
  const { packages } = JSON.parse(readFileSync(join(ROOT, "lab/web/package-lock.json"), "utf8"));
  const bundled = Object.entries(packages).filter(([path, { dev }]) => path !== "" && !dev);
  return bundled.map(([path, { version, license }]) => {
    const name = path.replace("node_modules/", "");
    const folder = join(ROOT, "lab/web", path);
    return { name, version, terms: license, home: `https://www.npmjs.com/package/${name}`, folder };
  });
}

const title = ({ name, version }) => `${name} ${version}`;
const byTitle = (a, b) => (title(a) < title(b) ? -1 : 1);

function table(packages) {
  const rows = packages.sort(byTitle).map((one) => {
    return `| [${one.name}](${one.home ?? `https://crates.io/crates/${one.name}`}) | ${one.version} | ${one.terms} |`;
  });
  return ["| package | version | licence |", "|---|---|---|", ...rows].join("\n");
}

/** Each licence text once, below the packages that have it. */
async function texts(packages) {
  const holders = new Map();
  for (const one of packages) {
    for (const text of await licences(one.folder, one.terms)) {
      holders.set(text, [...(holders.get(text) ?? []), title(one)]);
    }
  }
  const parts = [...holders].map(
    ([text, names]) => `### ${names.join(", ")}\n\n~~~~text\n${text}\n~~~~`,
  );
  return parts.join("\n\n");
}

/** What NOTICE.md says, without its head. */
const notice = readFileSync(join(ROOT, "NOTICE.md"), "utf8").replace(/^[^]*?(?=^## )/m, "");
const [rust, npm] = [crates(), npmPackages()];
const page = `# Third-party software

What the program \`weir\` and its reports carry of others. \`make third-party\` writes this page from Cargo.lock and
lab/web/package-lock.json. Where a package lets one choose, its MIT licence is given.
The program also contains the standard library of [Rust](https://www.rust-lang.org) (MIT or Apache-2.0), and built for musl
the [musl](https://musl.libc.org) C library (MIT).

## In the program and the Python package

${table(rust)}

## In its reports

${table(npm)}

${notice}
## Licences

${await texts([...rust, ...npm].sort(byTitle))}
`;

mkdirSync(dirname(FILE), { recursive: true });
writeFileSync(FILE, page);
