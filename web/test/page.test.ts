// The built page in headless Chromium: what it draws, in both themes and on a narrow screen.
//
// Screenshots land in screenshots/, to be looked at.

import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Locator, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Report } from "../src/format";
import { fill, fixture, hostile, withoutValues } from "./fixture";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const FLAGS = [
  // The tests may be root's, for whom Chromium has no sandbox. It opens only pages of these tests.
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const OUT = "screenshots";

const available = existsSync(CHROMIUM);
if (!available) {
  console.warn(`SKIPPED: page tests, no Chromium at ${CHROMIUM}: install it or set CHROMIUM`);
}

interface Look {
  name: string;
  report: Report;
  colorScheme: "light" | "dark";
  width: number;
}

interface Opened {
  page: Page;
  /** Errors, warnings and requests that the page made; all must stay empty. */
  complaints: string[];
}

let browser: Browser;

async function open(look: Look): Promise<Opened> {
  const file = `${OUT}/${look.name}.html`;
  await writeFile(file, fill(await readFile("dist/report.html", "utf8"), look.report));
  const url = pathToFileURL(file).href;
  const page = await browser.newPage({
    colorScheme: look.colorScheme,
    viewport: { width: look.width, height: 900 },
  });
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(`page error: ${error.message}`));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("request", (request) => {
    const own = request.url().split("#")[0] === url || /^(data|blob):/.test(request.url());
    if (!own) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  await page.evaluate(() => window.weirDrawAll());
  return { page, complaints };
}

interface Saved {
  name: string;
  base64: string;
}

/**
 * Keeps what the page hands to the reader instead of downloading it: Chromium may hold back a second
 * download that follows the first too soon, which is its own affair and not the page's.
 */
function catchDownloads(page: Page): Promise<void> {
  return page.evaluate(() => {
    const saved: Promise<{ name: string; base64: string }>[] = [];
    Object.assign(window, { saved });
    const blobs = new Map<string, Blob>();
    const create = URL.createObjectURL.bind(URL);
    URL.createObjectURL = (blob: Blob) => {
      const url = create(blob);
      blobs.set(url, blob);
      return url;
    };
    HTMLAnchorElement.prototype.click = function () {
      const name = this.download;
      const read = async () => {
        const content = new Uint8Array(await blobs.get(this.href)!.arrayBuffer());
        return { name, base64: btoa(Array.from(content, (b) => String.fromCharCode(b)).join("")) };
      };
      saved.push(read());
    };
  });
}

/** What was saved first and not yet taken. */
async function nextSaved(page: Page): Promise<Saved> {
  await page.waitForFunction(() => (window as unknown as { saved: unknown[] }).saved.length > 0);
  return page.evaluate(() => (window as unknown as { saved: Promise<Saved>[] }).saved.shift()!);
}

async function photograph(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: `${OUT}/${name}.png`, fullPage: true });
}

interface Drawn {
  title: string;
  /** Texts of the picture. */
  texts: string[];
  /** Pairs of texts that lie over each other, and texts that stick out of the picture. */
  faults: string[];
}

/** Reads every plot as it was laid out. */
function drawnPlots(page: Page): Promise<Drawn[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll("figure.plot")].map((figure) => {
      const frame = figure.querySelector(".surface")!.getBoundingClientRect();
      const boxes = [...figure.querySelectorAll("svg text")]
        .map((node) => ({ text: node.textContent ?? "", box: node.getBoundingClientRect() }))
        .filter(({ text }) => text.trim() !== "");
      const faults: string[] = [];
      boxes.forEach(({ text, box }, i) => {
        if (box.left < frame.left - 1 || box.right > frame.right + 1) faults.push(`out: ${text}`);
        for (const other of boxes.slice(i + 1)) {
          const x = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
          const y = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
          if (x > 1 && y > 2) faults.push(`over: ${text} | ${other.text}`);
        }
      });
      const title = figure.querySelector("h3")?.textContent ?? "";
      return { title, texts: boxes.map(({ text }) => text), faults };
    }),
  );
}

function overflow(page: Page): Promise<number> {
  return page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
}

/** Puts the pointer on the lowest panel at a share of the time axis. */
async function pointAt(surface: Locator, share: number): Promise<void> {
  await surface.scrollIntoViewIfNeeded();
  const box = (await surface.boundingBox())!;
  const position = { x: 60 + (box.width - 74) * share, y: box.height - 120 };
  await surface.hover({ position });
}

const UNITS = /\(([Mk]bit\/s|ms|s|%|µs|count, log scale)\)$/;
const AXES: [title: RegExp, names: string[]][] = [
  [/^How the flows share/, ["Rate (Mbit/s)", "Delay (ms)", "Time (s)"]],
  [/^Rate, delay/, ["Rate (Mbit/s)", "Delay (ms)", "Loss (%)", "Time (s)"]],
  [/^Box plots/, ["Utilization (%)", "RTT (ms)", "Responsiveness (s)", "Loss (%)"]],
  [/^Utilization against/, ["Utilization (%)", "95th percentile of queuing delay (ms)"]],
  [/^Utilization by/, ["Utilization (%)"]],
  [/^Throughput against/, ["Throughput (Mbit/s)", "95th percentile of queuing delay (ms)"]],
  [/^Simulated beside/, ["Rate (Mbit/s)", "Delay (ms)", "Time (s)"]],
  [/^getStats beside/, ["Rate (kbit/s)", "Rate (kbit/s)", "Time (s)"]],
  [/^One-way delay/, ["Packets (%)", "One-way delay (ms)"]],
  [/^Lateness/, ["Lateness (µs)", "Packets (count, log scale)"]],
];

function expectComplete(plot: Drawn): void {
  const names = AXES.find(([title]) => title.test(plot.title))?.[1];
  expect(names, `axes of ${plot.title}`).toBeDefined();
  expect(plot.texts.filter((text) => UNITS.test(text)).sort()).toEqual([...names!].sort());
  const legend = plot.texts.filter((text) => /, (simulated|real call)|^(released|captured|packets|video)/.test(text));
  expect(legend, `legend of ${plot.title}`).not.toEqual([]);
  expect(plot.faults, plot.title).toEqual([]);
}

describe.skipIf(!available)("the page", () => {
  beforeAll(async () => {
    await mkdir(OUT, { recursive: true });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  });
  afterAll(() => browser.close());

  const looks: Look[] = [
    { name: "light", report: fixture(), colorScheme: "light", width: 1280 },
    { name: "dark", report: fixture(), colorScheme: "dark", width: 1280 },
    { name: "narrow", report: fixture(), colorScheme: "light", width: 390 },
  ];
  test.each(looks)("draws every plot complete and without overlap: $name", async (look) => {
    const { page, complaints } = await open(look);
    await photograph(page, look.name);
    const plots = await drawnPlots(page);
    // One for all runs, three per scenario and one where flows share, and of the call two
    // comparisons, what its rate was, its rates, its delays and one histogram.
    expect(plots.length).toBe(1 + 6 * 3 + 1 + 2 + 3 + 1);
    for (const plot of plots) expectComplete(plot);
    expect(await overflow(page)).toBeLessThanOrEqual(0);
    const dark = look.colorScheme === "dark";
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(background).toBe(dark ? "rgb(21, 24, 28)" : "rgb(255, 255, 255)");
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("draws only what comes near the view", async () => {
    const { page } = await open({ ...looks[0]!, name: "lazy" });
    await page.reload();
    const last = page.locator("figure.plot").last();
    expect(await last.locator("svg").count()).toBe(0);
    await last.scrollIntoViewIfNeeded();
    await last.locator("svg").waitFor();
    await page.close();
  });

  test("shows the rate changes of the chosen controller under the pointer", async () => {
    const { page, complaints } = await open({ ...looks[0]!, name: "hover" });
    const scenario = page.locator("section.scenario").first();
    await scenario.getByLabel("Controller").selectOption("nada");
    const surface = scenario.locator(".surface").first();
    await pointAt(surface, 40.4 / 200);
    const tip = surface.locator(".tip-body");
    await tip.waitFor();
    const text = await tip.innerText();
    expect(text).toContain("capacity");
    expect(text).toMatch(/(over-use|ramp-up) \d\.\d\d → \d\.\d\d Mbit\/s, state/);
    expect(text).toContain("gradient_ms");
    await page.screenshot({ path: `${OUT}/hover.png` });
    const commands = scenario.locator("figure.plot").first().locator(".command code");
    expect(await commands.allInnerTexts()).toEqual([
      "weir run lund/rmcat-ns3 --controller nada --seeds 5",
    ]);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("moves the pointer by the arrow keys and says what it shows", async () => {
    const { page } = await open({ ...looks[0]!, name: "keys" });
    const surface = page.locator("section.scenario .surface").first();
    await surface.focus();
    await page.keyboard.press("ArrowRight");
    const spoken = page.locator("section.scenario .spoken").first();
    expect(await spoken.innerText()).toMatch(/^10[01]\.\d\d s capacity/);
    await page.close();
  });

  test("zooms all panels of a plot together", async () => {
    const { page, complaints } = await open({ ...looks[0]!, name: "zoom" });
    const surface = page.locator("section.scenario .surface").first();
    const thickCurves = () =>
      surface
        .locator("path[fill=none][stroke-width='2']")
        .evaluateAll((paths) => paths.map((path) => path.getAttribute("d")));
    const whole = await thickCurves();
    expect(whole.length).toBe(3 * 3);
    await pointAt(surface, 0.5);
    await page.keyboard.down("Control");
    for (let i = 0; i < 10; i++) await page.mouse.wheel(0, -200);
    await page.keyboard.up("Control");
    const texts = () => surface.locator("svg text").allTextContents();
    await expect.poll(texts).not.toContain("200");
    const zoomed = await thickCurves();
    expect(zoomed.length).toBe(whole.length);
    expect(zoomed.filter((curve) => whole.includes(curve))).toEqual([]);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("shows how the flows share under the chosen controller", async () => {
    const { page, complaints } = await open({ ...looks[0]!, name: "share" });
    const scenario = page.locator("section.scenario", { hasText: "rfc8867/5.1" }).first();
    const plot = scenario.locator("figure.plot", { hasText: "How the flows share" });
    const texts = () => plot.locator("svg text").allTextContents();
    expect(await texts()).toContain("tcp-1, simulated");
    await plot.getByLabel("Sharing under").selectOption("scream");
    await expect
      .poll(() => plot.locator(".command code").allInnerTexts())
      .toEqual(["weir run rfc8867/5.1 --controller scream --seeds 5"]);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("copies the command that reproduces a plot", async () => {
    const { page } = await open({ ...looks[0]!, name: "copy" });
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const commands = page.locator("section.scenario figure").first().locator(".commands");
    await commands.getByText("Reproduce this plot: 3 commands").click();
    await commands.getByRole("button").nth(1).click();
    await commands.getByText("copied").waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
      "weir run lund/rmcat-ns3 --controller nada --seeds 5",
    );
    await page.close();
  });

  test("leads from a cell of the matrix to its scenario", async () => {
    const { page } = await open({ ...looks[0]!, name: "link" });
    await page.locator(".matrix td a").nth(4).click();
    const top = await page.evaluate(() => {
      return document.getElementById("lund/sudden-reduction")!.getBoundingClientRect().top;
    });
    expect(Math.abs(top)).toBeLessThan(20);
    await page.close();
  });

  test("exports the plot of each kind as SVG and PNG with its command", async () => {
    const { page, complaints } = await open({ ...looks[1]!, name: "export" });
    await catchDownloads(page);
    const kinds = new Map((await drawnPlots(page)).map(({ title }, i) => [title.slice(0, 8), i]));
    for (const index of kinds.values()) {
      const plot = page.locator("figure.plot").nth(index);
      const save = async (kind: string) => {
        await plot.getByRole("button", { name: `as ${kind}` }).click();
        const { name, base64 } = await nextSaved(page);
        expect(name).toMatch(new RegExp(`\\.${kind.toLowerCase()}$`));
        const bytes = Buffer.from(base64, "base64");
        await writeFile(`${OUT}/export-${index}.${kind.toLowerCase()}`, bytes);
        return bytes;
      };
      const svg = (await save("SVG")).toString();
      expect(svg).toMatch(/^<svg [^>]*width="960"/);
      expect(svg).toMatch(/weir (run|call|report) /);
      const png = await save("PNG");
      expect(png.subarray(1, 4).toString()).toBe("PNG");
      expect(png.readUInt32BE(16)).toBe(2 * 960);
    }
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("shows markup in the data as text", async () => {
    const look = { name: "hostile", report: hostile(fixture()), width: 1280 } as const;
    const { page, complaints } = await open({ ...look, colorScheme: "light" });
    const scenario = page.locator("section.scenario").first();
    await scenario.getByLabel("Controller").selectOption({ index: 1 });
    const surface = scenario.locator(".surface").first();
    await pointAt(surface, 40.4 / 200);
    await surface.locator(".tip-body .changes").waitFor();
    await photograph(page, "hostile");
    expect(await page.locator("img, main script").count()).toBe(0);
    expect(await page.evaluate(() => "attacked" in window)).toBe(false);
    expect(await page.locator("h1").innerText()).toContain("</script><b>bold</b><img src=x");
    expect(await overflow(page)).toBeLessThanOrEqual(0);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("says what is missing where there are no values", async () => {
    const report = withoutValues(fixture());
    const { page, complaints } = await open({ ...looks[2]!, name: "missing", report });
    await photograph(page, "missing");
    expect(await page.locator("figure.plot").count()).toBe(0);
    const notes = await page.locator("section.scenario").first().locator(".empty").allInnerTexts();
    expect(notes).toEqual([
      "No values over time were recorded.",
      "No box: each controller ran with one seed, or nothing was measured.",
      "No run has both a throughput and a queuing delay.",
    ]);
    expect(await page.locator("main").innerText()).not.toMatch(/\b(null|NaN|undefined)\b/);
    expect(await overflow(page)).toBeLessThanOrEqual(0);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("says that a report without scenarios is empty", async () => {
    const report = { ...fixture(), scenarios: [], definitions: [], runs: 0 };
    const { page, complaints } = await open({ ...looks[0]!, name: "empty", report });
    expect(await page.locator(".empty").allInnerTexts()).toEqual([
      "No runs: the report has no scenario with results.",
      "No run has both a utilization and a queuing delay.",
      "The report defines no metric.",
      "No scenario was run.",
    ]);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("says what to do when the file holds no data", async () => {
    const page = await browser.newPage();
    await page.goto(pathToFileURL("dist/report.html").href);
    expect(await page.getByRole("alert").innerText()).toContain("weir report DIR");
    await page.close();
  });
});
