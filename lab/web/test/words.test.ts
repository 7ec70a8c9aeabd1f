// The report's sentences.

import { expect, test } from "vitest";
import type { Report } from "../src/format";
import { expectedInWords, inWords } from "../src/words";
import { fixture } from "./fixture/report";

test("the sentences carry the numbers that they rest on", () => {
  const report = fixture();
  const words = inWords(report);
  const [first] = words;
  expect(first).toMatch(/^Media flows, simulated: .*by controller: \w[\w-]* \d+ % and \d+ ms, /);
  expect(words.some((text) => text.includes("real call"))).toBe(true);
});

test("a report without runs says nothing", () => {
  const report = { scenarios: [], participants: [], errors: [] } as unknown as Report;
  expect(inWords(report)).toEqual([]);
});

test("an analyzed call says what happened, and not that it succeeded", () => {
  const report = fixture();
  const scenario = report.scenarios.find((it) => it.calls !== null)!;
  scenario.calls!.verdict = "Uplink fell to 0.4 Mbit/s from 5 to 15 s.";
  scenario.id = "analyzed/a/b.gz";
  report.scenarios = [scenario];
  for (const it of report.participants) it.scenario = scenario.id;
  expect(inWords(report)).toContain("Uplink fell to 0.4 Mbit/s from 5 to 15 s.");
  // Of several, each has its part of the page.
  report.scenarios = [scenario, { ...scenario, id: "analyzed/c.gz", calls: null }];
  const words = inWords(report);
  expect(words.some((text) => text.includes("Uplink fell"))).toBe(false);
  expect(words.some((text) => text.includes("real call succeeded"))).toBe(false);
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
  const verdict = expectedInWords(report)!;
  expect(verdict.passed).toBe(false);
  expect(verdict.text).toBe("1 failed, 0 of 1 expectation hold.");
  expect(verdict.failed.map((it) => `${it.controller} in ${it.scenario}`)).toEqual([
    `gcc in ${scenario.id}`,
  ]);
  scenario.expectations[0]!.outcome = "known miss";
  expect(expectedInWords(report)).toMatchObject({
    passed: true,
    text: "0 of 1 expectation hold, 1 known miss.",
  });
  scenario.expectations = [];
  expect(expectedInWords(report)).toBeNull();
});

test("the headline on the model leaves out disturbed calls, and says how many and why", () => {
  const report = fixture();
  const row = { ...report.errors[0]!, is_disturbed: false };
  report.errors = [
    { ...row, error_percent: -4 },
    { ...row, error_percent: 8 },
    { ...row, error_percent: -42.6, is_disturbed: true },
  ];
  const said = inWords(report).find((text) => text.startsWith("Simulated beside real"));
  expect(said).toContain("within 10 % in 2 of 2 pairs; the median error is 6.0 %.");
  expect(said).toContain("1 pair left out, because the machine disturbed the real call");
  report.errors = [{ ...row, error_percent: -42.6, is_disturbed: true }];
  const none = inWords(report).find((text) => text.startsWith("Simulated beside real"));
  expect(none).toContain("no comparison. 1 pair left out");
  expect(none).not.toContain("42.6");
});
