// Prints the software bill of materials of the program and of the report's page: CycloneDX 1.5, from the lock files.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const cargo = JSON.parse(
  execFileSync(
    "cargo",
    ["metadata", "--format-version=1", "--locked", "--filter-platform=x86_64-unknown-linux-musl"],
    { maxBuffer: 1 << 28 },
  ),
);
const byId = new Map(cargo.packages.map((it) => [it.id, it]));
const nodes = new Map(cargo.resolve.nodes.map((it) => [it.id, it]));
const root = cargo.packages.find((it) => it.name === "weir-cli");

// What the program links: no tools of the build, no tests.
const linked = new Set();
const follow = (id) => {
  if (linked.has(id)) return;
  linked.add(id);
  for (const { pkg, dep_kinds } of nodes.get(id).deps) {
    if (dep_kinds.some(({ kind }) => kind === null)) follow(pkg);
  }
};
follow(root.id);

const purl = (it) => `pkg:cargo/${it.name}@${it.version}`;
const crates = [...linked]
  .map((id) => byId.get(id))
  .filter((it) => it !== root)
  .map((it) => ({
    type: "library",
    "bom-ref": purl(it),
    name: it.name,
    version: it.version,
    purl: purl(it),
    ...(it.license === null
      ? {}
      : { licenses: [{ expression: it.license.replaceAll("/", " OR ") }] }),
  }));
const lock = JSON.parse(readFileSync("lab/web/package-lock.json", "utf8"));
const modules = Object.entries(lock.packages)
  .filter(([path, it]) => path !== "" && it.dev !== true && it.devOptional !== true)
  .map(([path, it]) => {
    const name = path.replace(/^.*node_modules\//, "");
    const ref = `pkg:npm/${name}@${it.version}`;
    const licenses = it.license === undefined ? {} : { licenses: [{ expression: it.license }] };
    return {
      type: "library",
      "bom-ref": ref,
      name,
      version: it.version,
      purl: ref,
      ...licenses,
    };
  });
const byName = (a, b) => (a.purl < b.purl ? -1 : 1);
const dependencies = [...linked].map((id) => ({
  ref: purl(byId.get(id)),
  dependsOn: nodes
    .get(id)
    .deps.filter(({ pkg }) => linked.has(pkg))
    .map(({ pkg }) => purl(byId.get(pkg)))
    .sort(),
}));

const bom = {
  bomFormat: "CycloneDX",
  specVersion: "1.5",
  version: 1,
  metadata: {
    component: {
      type: "application",
      "bom-ref": purl(root),
      name: "weir",
      version: root.version,
      licenses: [{ expression: root.license }],
    },
  },
  components: [...crates.sort(byName), ...modules.sort(byName)],
  dependencies: dependencies.sort((a, b) => (a.ref < b.ref ? -1 : 1)),
};
console.log(JSON.stringify(bom, null, 2));
