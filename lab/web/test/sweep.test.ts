// The page of a sweep in headless Chromium, and its tables.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeHeat, frontData, heatData, short, spanOf } from "../src/sweep";
import { available, drawnPlots, open, overflow, photograph, start, stop } from "./chromium";
import { sweepFixture } from "./fixture/sweep";

const report = sweepFixture();
const scenario = report.scenarios[0]!;
const view = { report, scenario, map: scenario.maps[0]!, metric: 0 };

test("all maps have one scale, from the lowest to the highest cell", () => {
  expect(spanOf(view)!.low).toBeCloseTo(0.6, 9);
  expect(spanOf(view)!.high).toBeCloseTo(0.9, 9);
  expect(spanOf({ ...view, map: { x: 0, y: 1, cells: [] } })).toBeNull();
});

test("three digits of a number count", () => {
  expect([0.93456, 12.345, 145.67, 0, 0.00012345, null].map(short)).toEqual([
    "0.935",
    "12.3",
    "146",
    "0",
    "0.00012",
    "–",
  ]);
});

test("readers without the picture get the ends of each map", () => {
  expect(describeHeat(view)).toContain(
    "gcc: lowest 0.700 at network.up.delay: 200ms, network.up.loss: 0%; highest 0.900",
  );
});

test("the files have a row for each cell and each dot", () => {
  const heat = heatData(view);
  expect(heat.head).toEqual([
    "scenario",
    "controller",
    "network.up.delay",
    "network.up.loss",
    "runs",
    "utilization",
    "queuing_delay_ms.p95",
  ]);
  expect(heat.rows.length).toBe(12);
  expect(heat.rows.at(-1)!.slice(2, 6)).toEqual(["200ms", "1%", 2, null]);
  expect(frontData(report, scenario).rows.length).toBe(12);
});

describe.skipIf(!available)("the page of a sweep", () => {
  beforeAll(start);
  afterAll(stop);

  const looks = [
    { name: "sweep", report, colorScheme: "light" as const, width: 1280 },
    { name: "sweep-dark", report, colorScheme: "dark" as const, width: 1280 },
    { name: "sweep-narrow", report, colorScheme: "light" as const, width: 390 },
  ];
  test.each(looks)("draws maps and fronts, and lists the worst runs: $name", async (look) => {
    const { page, complaints } = await open(look);
    await photograph(page, look.name);
    const plots = await drawnPlots(page);
    expect(plots.length).toBe(2);
    for (const { title, faults } of plots) expect(faults, title).toEqual([]);
    expect(plots[0]!.texts).toEqual(
      expect.arrayContaining(["gcc", "nada", "network.up.delay", "0.900"]),
    );
    expect(await overflow(page)).toBeLessThanOrEqual(0);
    await page.getByRole("combobox", { name: "Metric" }).selectOption("queuing_delay_ms.p95 (ms)");
    expect(await page.locator(".scale-bar").getAttribute("aria-label")).toBe(
      "Colour scale, queuing_delay_ms.p95 (ms), 20.0 to 120",
    );
    const worst = page.getByRole("region", { name: "The worst runs" });
    await page.getByRole("combobox", { name: "By" }).selectOption("queuing_delay_ms.p95 (ms)");
    await page.getByRole("combobox", { name: "Controller" }).selectOption("nada");
    expect(await worst.locator(".command code").allInnerTexts()).toEqual([
      "weir sweep --replay 1f1 --out sweep",
    ]);
    // The command does not run into the next column.
    const [button, cell] = await Promise.all([
      worst.locator(".command").boundingBox(),
      worst.locator("td", { has: page.locator(".command") }).boundingBox(),
    ]);
    expect(button!.x + button!.width).toBeLessThanOrEqual(cell!.x + cell!.width);
    expect(complaints).toEqual([]);
    await page.close();
  });
});
