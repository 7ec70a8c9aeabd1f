// Tables as comma-separated text [RFC 4180]: for a spreadsheet, pandas or R, without a library.

export type Cell = string | number | null;

/** The names of columns end with their unit, as in the records: `time_s`, `rtt_ms`. */
export interface CsvTable {
  head: string[];
  rows: Cell[][];
}

export function csvText({ head, rows }: CsvTable): string {
  return [head, ...rows].map((row) => `${row.map(cellText).join(",")}\r\n`).join("");
}

/** Significant digits. More digits would show rounding errors of multiplications. */
const DIGITS = 12;

function cellText(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "number") {
    return Number.isFinite(cell) ? String(Number(cell.toPrecision(DIGITS))) : "";
  }
  // A spreadsheet would run such a text as a formula, and names come from records of unknown
  // origin.
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
