// The calls of several dumps, each with what limited it: a report of many calls starts with this.

import { el, table } from "../dom";
import type { FindingRow, Report, Scenario } from "../format";
import { clockSpan, linkTo, plural } from "../model";
import { ANALYZED, NO_LIMIT } from "../words";

/** Findings of a call that are listed here; its own part of the page has all. */
const LISTED = 3;

/** Null for a report without several calls that were made elsewhere. */
export function dumpsView(report: Report): HTMLElement | null {
  const analyzed = report.scenarios.filter((it) => it.id.startsWith(ANALYZED));
  if (analyzed.length < 2) return null;
  return el(
    "div",
    { class: "part dumps" },
    el("h3", {}, "Each call, and what limited it"),
    ...analyzed.map(callView),
    ...sideBySide(analyzed),
  );
}

/** A finding with the call that has it, and the ms since 1970 from which its times count. */
interface Placed {
  row: FindingRow;
  call: string;
  began: number;
}

/** The findings of calls that went on at one time, such as the two ends of one, on one clock. */
function sideBySide(scenarios: Scenario[]): HTMLElement[] {
  const all: Placed[] = scenarios.flatMap((it) => {
    const began = it.calls?.began_ms ?? null;
    if (began === null) return [];
    const call = it.id.slice(ANALYZED.length);
    return (it.calls?.findings ?? []).map((row) => ({ row, call, began }));
  });
  const calls = new Set(all.map((it) => it.call));
  if (calls.size < 2) return [];
  const time = ({ row, began }: Placed) => began + row.from_s * 1e3;
  all.sort((a, b) => time(a) - time(b));
  return [
    el("h3", {}, "All of them on one clock"),
    el("p", { class: "muted" }, "Each time is that of the device that wrote the dump."),
    table<Placed>(
      "Findings of all calls by their time of day",
      [
        { head: "Time of day, UTC", cell: ({ row, began }) => clockSpan(row, began) },
        { head: "Call", cell: ({ call }) => call },
        { head: "Stream", cell: ({ row }) => row.stream },
        { head: "What", cell: ({ row }) => row.says, kind: "prose" },
      ],
      all,
    ),
  ];
}

function callView(scenario: Scenario): HTMLElement {
  const findings = scenario.calls?.findings ?? [];
  const more = findings.length - LISTED;
  const items = findings.slice(0, LISTED).map((row) => el("li", {}, findingInWords(row)));
  if (more > 0) items.push(el("li", {}, `and ${plural(more, "more finding")}`));
  const name = scenario.id.slice(ANALYZED.length);
  return el(
    "article",
    {},
    el("h4", {}, el("a", { href: linkTo(scenario.id) }, name)),
    el("p", {}, scenario.calls?.verdict ?? NO_LIMIT),
    items.length === 0 ? null : el("ul", {}, ...items),
  );
}

/** `4 to 13 s, a video up: the path was full`. */
export function findingInWords({ from_s, to_s, stream, says }: FindingRow): string {
  return `${from_s.toFixed(0)} to ${to_s.toFixed(0)} s, ${stream}: ${says}`;
}
