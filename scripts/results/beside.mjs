// The table of calls on docs/results/quality.md, for the scripts that print simulated runs beside it.

import { readFileSync } from "node:fs";

const PAGE = new URL("../../docs/results/quality.md", import.meta.url);

function cellsOf(line) {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

/**
 * The rows of the page's table whose head begins with `start`: by their first `keys` cells, joined by a
 * space, the cells by the names of their columns.
 */
export function called(start, keys) {
  const lines = readFileSync(PAGE, "utf8").split("\n");
  const head = lines.findIndex((line) => line.startsWith(start));
  const names = cellsOf(lines[head]);
  const rows = new Map();
  for (let index = head + 2; lines[index].startsWith("|"); index += 1) {
    const cells = cellsOf(lines[index]);
    const row = Object.fromEntries(names.map((name, at) => [name, cells[at]]));
    rows.set(cells.slice(0, keys).join(" "), row);
  }
  return rows;
}
