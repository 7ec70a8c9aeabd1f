// The report's sentences.

import { expect, test } from "vitest";
import type { Report } from "../src/format";
import { inWords } from "../src/words";
import { fixture } from "./fixture/report";

test("the sentences carry the numbers that they rest on", () => {
  const report = fixture();
  const words = inWords(report);
  const [first] = words;
  expect(first).toMatch(/^Media flows, simulated: .*by controller: \w[\w-]* \d+ % and \d+ ms, /);
  const counted = report.scenarios.flatMap((it) => it.expectations).length;
  if (counted > 0) expect(words.join(" ")).toContain(`of ${counted} hold`);
  expect(words.some((text) => text.includes("real call"))).toBe(true);
});

test("a report without runs says nothing", () => {
  const report = { scenarios: [], participants: [], errors: [] } as unknown as Report;
  expect(inWords(report)).toEqual([]);
});

test("a failure is named with its place", () => {
  const report = fixture();
  const scenario = report.scenarios[0]!;
  scenario.expectations = [
    {
      controller: "gcc",
      text: "t",
      measured: 1,
      confidence: null,
      limit: "at least 2",
      outcome: "fails",
      why: "",
    },
  ];
  for (const other of report.scenarios.slice(1)) other.expectations = [];
  expect(inWords(report)).toContain(
    `Expectations: 0 of 1 hold; in doubt: 0; known misses: 0; failed: 1: gcc in ${scenario.id}.`,
  );
});
