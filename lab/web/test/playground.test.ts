// The playground: its state, and the page with the simulator in it.

import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  DEFAULT,
  STEPS,
  capacitySteps,
  ofFragment,
  toCommand,
  toFragment,
  toScenario,
} from "../src/playground/state";
import { fault } from "../src/playground/field";
import { asDrawn, drawnCapacity, found } from "../src/playground/catalogue";
import { ABOUT, verdict } from "../src/playground/verdict";
import type { Group, Scenario } from "../src/format";
import { OUT, available } from "./chromium";

/** scripts/test/test-wasm.sh names the page of a quick build. */
const PAGE = process.env["PLAYGROUND"] ?? "dist/playground.html";

// scripts/test/test.sh runs this at the lowest priority, beside tests that have both processors at times.
const PATIENCE_MS = 300_000;
vi.setConfig({ testTimeout: 2 * PATIENCE_MS });

interface Look {
  width?: number;
  colorScheme?: "light" | "dark";
}

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
  expect(toCommand(DEFAULT)).toBe("weir run drawn.toml --controller gcc,sluice --seed 1");
});

test("a command has one word for each name that a link holds", () => {
  const of = (scenario: string, controllers = ["gcc"]) =>
    toCommand({ ...DEFAULT, scenario, controllers });
  const rest = "--controller gcc --seed 1";
  expect(of("x; touch written")).toBe(`weir run 'x; touch written' ${rest}`);
  expect(of("it's $(touch written)")).toBe(`weir run 'it'\\''s $(touch written)' ${rest}`);
  expect(of("--out=written")).toBe(`weir run ./--out=written ${rest}`);
  expect(of("a\nb\u202e'\\")).toBe(`weir run $'a\\u000ab\\u202e\\'\\\\' ${rest}`);
  expect(of("=ls")).toBe(`weir run '=ls' ${rest}`);
  expect(of("a", ["-x"])).toBe("weir run a --controller=-x --seed 1");
  expect(of("a", ["gcc;id"])).toBe("weir run a --controller 'gcc;id' --seed 1");
});

/** A controller's only flow: rate in Mbit/s, queuing delay in ms and loss in per cent. */
const outcome = (controller: string, mbps: number, delay: number, loss = 0) => {
  const point = { throughput_mbps: mbps, p95_queuing_delay_ms: delay, loss_percent: loss };
  return { controller, flow: "media", points: [point] } as unknown as Group;
};

test("who did best is said with its reasons, and a tie is one", () => {
  expect(verdict([])).toBe("");
  expect(verdict([outcome("gcc", 1, 50)])).toMatch(/^gcc received 1.00 Mbit\/s/);
  const both = verdict([outcome("gcc", 1, 100, 5), outcome("sluice", 2, 30)]);
  expect(both).toMatch(/^sluice did best: the higher rate.*shorter queue.*fewer losses/);
  const faster = verdict([outcome("gcc", 1, 30), outcome("sluice", 2, 31)]);
  expect(faster).toMatch(/^sluice did best: the higher rate.*delay is alike/);
  expect(verdict([outcome("gcc", 1, 30), outcome("nada", 2, 90)])).toMatch(
    /^Nobody did best.*nada received more.*gcc kept the queue shorter/,
  );
  expect(verdict([outcome("gcc", 1, 30), outcome("nada", 1.01, 32)])).toMatch(/did alike/);
  expect(verdict([outcome("gcc", 1, 30), outcome("nada", 2, 30, 8)])).toMatch(/^Nobody did best/);
});

test("what is wrong with a number is said, with its range", () => {
  const limits = { min: 0, max: 30 };
  for (const good of ["0", "30", "2.7"]) expect(fault(good, limits)).toBeNull();
  for (const bad of ["150", "-1", "", "x", "1e9"])
    expect(fault(bad, limits)).toBe("a number from 0 to 30");
  expect(fault("1.5", limits, true)).toBe("a whole number from 0 to 30");
});

test("a scenario of the catalogue is found by words, and becomes the reader's own network", () => {
  const known = [
    { id: "mobile/lte-walking", title: "A call over LTE" },
    { id: "demo/first-call", title: "First call" },
  ];
  expect(found(known, "CALL lte").map(({ id }) => id)).toEqual(["mobile/lte-walking"]);
  expect(found(known, "").length).toBe(2);
  const series = { time_s: [0, 30, 59], capacity_mbps: [2, 0.7, null] };
  const scenario = { duration_s: 60, groups: [{ series }] } as unknown as Scenario;
  const text = 'duration = "60s"\n[network.up]\nqueue = "150ms"\ndelay = "40ms"\nloss = "2%"\n';
  const drawn = asDrawn(scenario, text, { ...DEFAULT, scenario: "x", seed: 4 });
  expect(drawn).toMatchObject({
    scenario: "",
    delay: 40,
    queue: 150,
    loss: 2,
    tcp: false,
    seed: 4,
  });
  expect([0, 14, 15, 29].map((i) => drawn.capacity[i])).toEqual([2000, 2000, 700, 5000]);
  const radio = { duration_s: 60, groups: [{ series: { ...series, capacity_mbps: [null] } }] };
  expect(drawnCapacity(radio as unknown as Scenario)).toBeNull();
});

describe.skipIf(!available || !existsSync(PAGE))("the page", () => {
  let browser: Browser;
  const complaints: string[] = [];

  beforeAll(async () => {
    await mkdir(OUT, { recursive: true });
    const args = ["--no-sandbox", "--disable-gpu"];
    const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
    browser = await chromium.launch({ executablePath, args });
  });
  afterAll(async () => {
    await browser.close();
    expect(complaints).toEqual([]);
  });

  /** Opens the page, and waits for its curves. What is copied goes to `window.copied`. */
  const open = async (fragment = "", look: Look = {}): Promise<Page> => {
    const { width = 1000, colorScheme = "light" } = look;
    const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme });
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => complaints.push(message.text()));
    page.on("request", (request) => {
      if (!/^(file|data|blob):/.test(request.url())) complaints.push(request.url());
    });
    await page.addInitScript(() => {
      const writeText = async (copied: string) => Object.assign(window, { copied });
      Object.defineProperty(navigator, "clipboard", { value: { writeText } });
    });
    await page.goto(pathToFileURL(PAGE).href + fragment);
    await page.getByText(/simulated in \d/).waitFor();
    return page;
  };
  const shown = (page: Page) => page.locator(".results table").first().innerText();
  /** Waits until other values are shown than these. */
  const changed = (page: Page, before: string) =>
    page.waitForFunction(
      (old) => document.querySelector<HTMLElement>(".results table")?.innerText !== old,
      before,
    );

  test("on a phone it simulates what the keys draw, and says why a rate changed", async () => {
    const page = await open("", { width: 390 });
    const before = await shown(page);
    expect(before).toContain("Mbit/s");
    const sketch = page.locator(".sketch");
    await sketch.focus();
    for (const key of ["End", "Shift+ArrowDown", "Shift+ArrowDown"]) await page.keyboard.press(key);
    expect(await sketch.getAttribute("aria-valuetext")).toBe("58.0 to 60.0 s: 1.50 Mbit/s");
    await changed(page, before);
    expect(await page.evaluate(() => location.hash)).toContain("1500");
    await page.locator(".results summary").first().click();
    expect(await page.locator(".results details table").innerText()).toContain("over-use");
    await page.locator(".surface").focus();
    for (let i = 0; i < 20; i += 1) await page.keyboard.press("ArrowLeft");
    expect(await page.locator(".spoken").innerText()).toContain("Mbit/s");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    await page.screenshot({ path: `${OUT}/playground-phone.png`, fullPage: true });
    await page.close();
  });

  test("a mouse draws a capacity, and the pointer shows the reason of a change", async () => {
    const page = await open();
    const before = await shown(page);
    const box = (await page.locator(".sketch").boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.9);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 2, box.y + box.height * 0.9, { steps: 3 });
    await page.mouse.up();
    await changed(page, before);
    const drawn = ofFragment(await page.evaluate(() => location.hash)).capacity;
    expect(drawn.slice(0, 10)).toEqual(DEFAULT.capacity.slice(0, 10));
    expect(new Set(drawn.slice(15))).toEqual(new Set([500]));
    const surface = page.locator(".surface");
    await surface.scrollIntoViewIfNeeded();
    const plot = (await surface.boundingBox())!;
    // Some place has a dot: the targets fall when the capacity does.
    const tip = page.locator(".surface").getByText(/over-use/);
    for (let share = 0.5; share < 0.75 && (await tip.count()) === 0; share += 0.005)
      await surface.hover({ position: { x: 60 + (plot.width - 74) * share, y: 90 } });
    expect(await tip.first().innerText()).toContain("over-use");
    await page.close();
  });

  test("an error stands at its field, and what is shown is marked as old until it is mended", async () => {
    const page = await open();
    const loss = page.getByLabel("Loss, %");
    await loss.fill("150");
    await page.getByText("Not simulated").waitFor();
    expect(await page.getByRole("alert").filter({ hasText: "0 to 30" }).count()).toBe(1);
    expect(await loss.getAttribute("aria-invalid")).toBe("true");
    expect(await page.locator(".results.stale").count()).toBe(1);
    const before = await shown(page);
    await loss.fill("15");
    await changed(page, before);
    expect(await page.locator(".results.stale").count()).toBe(0);
    await page.close();
  });

  test("each controller has its line, and a scenario of the catalogue can be edited", async () => {
    const page = await open("", { width: 1280 });
    const names = await page
      .locator("input[type=checkbox][value]")
      .evaluateAll((boxes) => boxes.map((box) => (box as HTMLInputElement).value));
    expect(names.filter((name) => ABOUT[name] === undefined)).toEqual([]);
    expect(await page.locator(".best").innerText()).toMatch(/best|alike/);
    expect(await page.locator(".hint").isVisible()).toBe(true);
    await page.getByRole("searchbox").fill("first-call");
    await page.getByRole("listbox", { name: "Scenario" }).selectOption("demo/first-call");
    await page.screenshot({ path: `${OUT}/playground-catalogue.png` });
    await page.getByRole("button", { name: "Edit this network" }).click();
    await page.waitForFunction(() => location.hash.startsWith("#capacity="));
    expect(
      new Set(ofFragment(await page.evaluate(() => location.hash)).capacity).size,
    ).toBeGreaterThan(1);
    await page.close();
  });

  test("a link leads to the same curves, and the copied scenario is what was drawn", async () => {
    const state = { ...DEFAULT, delay: 80, loss: 1, tcp: true, controllers: ["scream"], seed: 7 };
    const [one, other] = await Promise.all([0, 1].map(() => open(`#${toFragment(state)}`)));
    expect(await shown(one!)).toBe(await shown(other!));
    await one!.getByRole("button", { name: "Copy as scenario" }).click();
    await one!.getByText("copied").waitFor();
    const copied = () => one!.evaluate(() => (window as unknown as { copied: string }).copied);
    expect(await copied()).toBe(toScenario(state));
    await one!.getByRole("button", { name: "Copy link" }).click();
    await one!.waitForFunction(() =>
      (window as unknown as { copied: string }).copied.startsWith("file:"),
    );
    expect(ofFragment(new URL(await copied()).hash)).toEqual(state);
    expect(await one!.locator(".commands").innerText()).toContain(toCommand(state));
    await Promise.all([one!.close(), other!.close()]);
  });

  test("a screen reader finds a name for each control and for the curves", async () => {
    const page = await open();
    const tree = await page.locator("body").ariaSnapshot();
    const controls = tree
      .split("\n")
      .map((line) => line.trim())
      .filter((line) =>
        /^- (button|checkbox|combobox|slider|spinbutton|textbox|img|link)\b/.test(line),
      );
    expect(controls.length).toBeGreaterThan(15);
    expect(controls.filter((line) => !/^- \w+ "[^"]+/.test(line))).toEqual([]);
    for (const role of [/combobox "Scenario/, /slider "Capacity over time/, /checkbox "nada"/])
      expect(tree).toMatch(role);
    expect(tree).toMatch(/group "gcc.*Mbit\/s/);
    expect(tree).toMatch(/status.*simulated in/);
    // The keyboard reaches each control.
    const reached = new Set<string>();
    for (let i = 0; i < 40; i += 1) {
      await page.keyboard.press("Tab");
      reached.add(
        await page.evaluate(
          () =>
            document.activeElement?.closest("label")?.textContent ??
            document.activeElement?.className ??
            "",
        ),
      );
    }
    for (const name of ["sketch", "surface", " nada", "Seed ", "Loss, % "]) {
      expect([...reached]).toContain(name);
    }
    await page.close();
  });

  test("in the dark its words stand out", async () => {
    const page = await open("", { colorScheme: "dark" });
    const contrasts = await page.evaluate(() => {
      const light = (colour: string) => {
        const parts = colour
          .match(/[\d.]+/g)!
          .slice(0, 3)
          .map((it) => Number(it) / 255);
        const [r, g, b] = parts.map((it) =>
          it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4,
        );
        return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
      };
      const ground = light(getComputedStyle(document.body).backgroundColor);
      const words = ["h1", "label", ".note", ".status", ".card h2", "figcaption"];
      const of = (selector: string) =>
        light(getComputedStyle(document.querySelector(selector)!).color);
      return { ground, least: Math.min(...words.map((it) => (of(it) + 0.05) / (ground + 0.05))) };
    });
    expect(contrasts.ground).toBeLessThan(0.05);
    // WCAG 2.2, 1.4.3.
    expect(contrasts.least).toBeGreaterThan(4.5);
    await page.screenshot({ path: `${OUT}/playground-dark.png`, fullPage: true });
    await page.close();
  });

  test("the page has turns while the simulator computes", async () => {
    const page = await open();
    const turns = await page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          const status = document.querySelector(".status")!;
          let turns = 0;
          const turn = () => {
            const words = status.textContent ?? "";
            if (words.startsWith("simulating")) turns += 1;
            else if (turns > 0) return resolve(turns);
            setTimeout(turn, 5);
          };
          turn();
          location.hash = "#scenario=demo/wifi-5&controllers=gcc+nada+scream&seed=1";
        }),
    );
    // Were the run computed in the page, it would have one.
    expect(turns).toBeGreaterThan(10);
    await page.close();
  });
});
