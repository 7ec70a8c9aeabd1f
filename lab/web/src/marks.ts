// Which findings of a call are marked on its curves.

import type { FindingRow, Scenario } from "./format";

/** A span of the call, under the number that it has in the table of findings. */
export interface Mark {
  number: number;
  from_s: number;
  to_s: number;
  /** What was seen or heard, such as a freeze, and not what caused it. */
  isEffect: boolean;
  says: string;
  /** Height of its number: marks that overlap have different ones. */
  lane: number;
}

/** More marks than this hide the curves. The findings are sorted by their effect, so the first ones count most. */
export const MARKS_MAX = 12;
/** A finding of nearly the whole call says nothing about a time in it. */
const WHOLE_CALL = 0.95;
/** Share of the time axis that a mark takes at least, to be seen. */
const NARROWEST = 0.004;
const EFFECTS = ["audio", "video"];

/** The marks of a scenario with one real call. Others have none: the findings of several calls share no time. */
export function marksOf(scenario: Scenario): Mark[] {
  const findings = scenario.calls?.findings ?? [];
  const seeds = new Set(findings.map((row) => row.seed));
  return seeds.size > 1 ? [] : marksOfFindings(findings, scenario.duration_s);
}

export function marksOfFindings(findings: FindingRow[], duration_s: number): Mark[] {
  const marks: Mark[] = [];
  for (const [index, row] of findings.entries()) {
    const from_s = Math.max(0, row.from_s);
    const to_s = Math.min(duration_s, Math.max(row.to_s, from_s + NARROWEST * duration_s));
    const isOutside = from_s >= duration_s || to_s <= 0;
    if (isOutside || to_s - from_s >= WHOLE_CALL * duration_s) continue;
    const isEffect = EFFECTS.includes(row.part);
    const lane = freeLane(marks, from_s, to_s);
    marks.push({ number: index + 1, from_s, to_s, isEffect, says: row.says, lane });
    if (marks.length === MARKS_MAX) break;
  }
  return marks;
}

/** The lowest lane in which no other mark overlaps. */
function freeLane(marks: Mark[], from_s: number, to_s: number): number {
  let lane = 0;
  const isTaken = (mark: Mark) => mark.lane === lane && mark.from_s < to_s && from_s < mark.to_s;
  while (marks.some(isTaken)) lane += 1;
  return lane;
}

export function marksAt(marks: Mark[], time_s: number): Mark[] {
  return marks.filter((mark) => mark.from_s <= time_s && time_s <= mark.to_s);
}

/** Most that shading covers of the curves, where most marks overlap. */
const COVERED_MAX = 0.3;
/** Shading of a mark that no other overlaps; what was seen or heard is stronger. */
const OPACITY = { effect: 0.14, cause: 0.1 };

/** Opacity of each mark, so that the curves can be read where marks lie upon each other. */
export function markOpacity(mark: Mark, marks: Mark[]): number {
  const depth = 1 + Math.max(...marks.map(({ lane }) => lane));
  const most = 1 - (1 - COVERED_MAX) ** (1 / depth);
  return Math.min(mark.isEffect ? OPACITY.effect : OPACITY.cause, most);
}
