// The playground: its state, and the page with the simulator in it.

import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { expect, test } from "vitest";
import {
  DEFAULT,
  STEPS,
  capacitySteps,
  ofFragment,
  toCommand,
  toFragment,
  toScenario,
} from "../src/playground/state";
import { OUT, available } from "./chromium";

const PAGE = "dist/playground.html";

test("a fragment carries the whole state", () => {
  const drawn = { ...DEFAULT, delay: 80, queue: 150, loss: 2.5, tcp: true, seed: 7 };
  drawn.capacity = Array.from({ length: STEPS }, (_, i) => 500 + 50 * i);
  drawn.controllers = ["scream", "sluice"];
  expect(ofFragment(`#${toFragment(drawn)}`)).toEqual(drawn);
  const chosen = { ...DEFAULT, scenario: "lund/rmcat-ns3", seed: 3 };
  expect(ofFragment(`#${toFragment(chosen)}`)).toEqual(chosen);
});

test("what a fragment cannot mean has its default or its limit", () => {
  expect(ofFragment("")).toEqual(DEFAULT);
  const odd = ofFragment("#capacity=1+2&delay=x&loss=99&seed=-1&queue=");
  expect(odd).toEqual({ ...DEFAULT, loss: 30 });
});

test("equal steps are one step of the scenario", () => {
  expect(capacitySteps(DEFAULT)).toEqual([
    [0, 2500],
    [20, 700],
    [40, 2500],
  ]);
  expect(toScenario({ ...DEFAULT, tcp: true })).toContain('kind = "tcp"');
  expect(toCommand(DEFAULT)).toBe("weir run drawn.toml --controller gcc,nada --seed 1");
});

test.skipIf(!available || !existsSync(PAGE))(
  "the page simulates what is drawn, and says why a rate changed",
  async () => {
    await mkdir(OUT, { recursive: true });
    const args = ["--no-sandbox", "--disable-gpu"];
    const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
    const browser = await chromium.launch({ executablePath, args });
    try {
      const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
      const complaints: string[] = [];
      page.on("pageerror", (error) => complaints.push(error.message));
      page.on("console", (message) => complaints.push(message.text()));
      await page.goto(pathToFileURL(PAGE).href);
      const done = page.getByText(/simulated in/);
      await done.waitFor();
      const before = await page.locator(".results table").first().innerText();
      const sketch = page.getByRole("slider");
      await sketch.focus();
      for (const key of ["End", "Shift+ArrowDown", "Shift+ArrowDown"])
        await page.keyboard.press(key);
      expect(await sketch.getAttribute("aria-valuetext")).toBe("58.0 to 60.0 s: 1.50 Mbit/s");
      expect(before).toContain("Mbit/s");
      await page.waitForFunction((old) => {
        const now = document.querySelector<HTMLElement>(".results table")?.innerText;
        return location.hash.includes("1500") && now !== old;
      }, before);
      await page.locator(".results summary").first().click();
      expect(await page.locator(".results details table").innerText()).toContain("over-use");
      await page.locator(".surface").focus();
      for (let i = 0; i < 20; i += 1) await page.keyboard.press("ArrowLeft");
      expect(await page.locator(".spoken").innerText()).toContain("Mbit/s");
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  },
);
