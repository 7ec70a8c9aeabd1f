import { describe, expect, it } from "vitest";
import type { FindingRow } from "../src/format";
import { MARKS_MAX, markOpacity, marksAt, marksOfFindings } from "../src/marks";

function finding(from_s: number, to_s: number, part = "network"): FindingRow {
  return { seed: "1", stream: "a", part, rule: "capacity", says: "says", from_s, to_s, samples: 3 };
}

describe("marks of findings", () => {
  it("keep the number of their row, and stay within the call", () => {
    const marks = marksOfFindings([finding(-2, 5), finding(4, 30, "video")], 20);
    expect(marks.map(({ number, from_s, to_s }) => [number, from_s, to_s])).toEqual([
      [1, 0, 5],
      [2, 4, 20],
    ]);
    expect(marks.map((mark) => mark.isEffect)).toEqual([false, true]);
  });

  it("leave out what holds for the whole call or lies outside", () => {
    const marks = marksOfFindings([finding(0, 20), finding(25, 30), finding(5, 6)], 20);
    expect(marks.map((mark) => mark.number)).toEqual([3]);
    expect(marksOfFindings([], 20)).toEqual([]);
  });

  it("are wide enough to be seen", () => {
    const [mark] = marksOfFindings([finding(5, 5)], 100);
    expect(mark?.to_s).toBeCloseTo(5.4);
  });

  it("have lanes of their own where they overlap, and share one where they do not", () => {
    const marks = marksOfFindings(
      [finding(0, 10), finding(5, 15), finding(11, 19), finding(6, 7)],
      20,
    );
    expect(marks.map((mark) => mark.lane)).toEqual([0, 1, 0, 2]);
    expect(marksAt(marks, 6.5).map((mark) => mark.number)).toEqual([1, 2, 4]);
  });

  it("leave the curves readable where twenty findings hold at once", () => {
    const marks = marksOfFindings(
      Array.from({ length: 20 }, (_, i) => finding(i, 40 + i)),
      80,
    );
    const kept = marks.reduce((share, mark) => share * (1 - markOpacity(mark, marks)), 1);
    expect(1 - kept).toBeLessThanOrEqual(0.301);
    const [alone] = marksOfFindings([finding(0, 10)], 20);
    expect(markOpacity(alone!, [alone!])).toBe(0.1);
  });

  it("are not more than leave the curves readable", () => {
    const many = Array.from({ length: 40 }, (_, i) => finding(i, i + 0.5));
    expect(marksOfFindings(many, 50)).toHaveLength(MARKS_MAX);
  });
});
