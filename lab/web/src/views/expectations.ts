// The verdict on what was expected: the first thing in a report of runs that were judged.

import { el } from "../dom";
import type { Report } from "../format";
import { formatSignal, linkTo } from "../model";
import { expectedInWords } from "../words";

/** Failures that are listed; the others are counted. */
const LISTED = 5;

/** Null if nothing was expected. */
export function verdictView(report: Report): HTMLElement | null {
  const verdict = expectedInWords(report);
  if (verdict === null) return null;
  const { passed, text, failed } = verdict;
  const items = failed.slice(0, LISTED).map((it) => {
    const measured = it.measured === null ? "not measured" : formatSignal(it.measured);
    return el(
      "li",
      {},
      `${it.text}: ${measured}, ${it.limit} (${it.controller} in `,
      el("a", { href: linkTo(it.scenario) }, it.scenario),
      it.outcome === "fails" ? ")" : "); it was a known miss and holds now",
    );
  });
  const more = failed.length - items.length;
  if (more > 0) items.push(el("li", {}, `and ${more} more`));
  return el(
    "div",
    { class: `expected ${passed ? "holds" : "differs"}` },
    el("p", {}, el("b", { class: "verdict" }, passed ? "Passed" : "Failed"), text),
    items.length === 0 ? null : el("ul", {}, ...items),
  );
}
