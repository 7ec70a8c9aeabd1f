// Opens reports in headless Chromium, and reads what the page draws and saves.

import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Locator, type Page } from "playwright-core";
import { expect } from "vitest";
import type { Report, SweepReport } from "../src/format";
import { fill } from "./fixture/altered";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const FLAGS = [
  // Root may run the tests, and Chromium has no sandbox for root. It opens only pages of these
  // tests.
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
export const OUT = "screenshots";

export const available = existsSync(CHROMIUM);
if (!available) {
  console.warn(`SKIPPED: page tests, no Chromium at ${CHROMIUM}: install it or set CHROMIUM`);
}

export interface Look {
  name: string;
  report: Report | SweepReport;
  colorScheme: "light" | "dark";
  width: number;
}

export interface Opened {
  page: Page;
  /** Errors, warnings and requests that the page made; all must stay empty. */
  complaints: string[];
}

let browser: Browser;

/** Starts the browser. `stop` ends it. */
export async function start(): Promise<void> {
  await mkdir(OUT, { recursive: true });
  browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

export function stop(): Promise<void> {
  return browser.close();
}

/** Opens the built page as it is, without a report. */
export async function openEmpty(): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(pathToFileURL("dist/report.html").href);
  return page;
}

export async function open(look: Look): Promise<Opened> {
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
 * Keeps the files that the page offers, instead of downloading them: Chromium may delay a second
 * download that follows the first too soon.
 */
export function catchDownloads(page: Page): Promise<void> {
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

/** The oldest saved file that was not taken yet. */
export async function nextSaved(page: Page): Promise<Saved> {
  await page.waitForFunction(() => (window as unknown as { saved: unknown[] }).saved.length > 0);
  return page.evaluate(() => (window as unknown as { saved: Promise<Saved>[] }).saved.shift()!);
}

export async function photograph(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: `${OUT}/${name}.png`, fullPage: true });
}

interface Drawn {
  title: string;
  /** Texts of the picture. */
  texts: string[];
  /** Pairs of texts that overlap, and texts that extend beyond the picture. */
  faults: string[];
}

/** Reads the layout of every plot. */
export function drawnPlots(page: Page): Promise<Drawn[]> {
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

export function overflow(page: Page): Promise<number> {
  return page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
}

/** Puts the pointer on the lowest panel at a share of the time axis. */
export async function pointAt(surface: Locator, share: number): Promise<void> {
  await surface.scrollIntoViewIfNeeded();
  const box = (await surface.boundingBox())!;
  const position = { x: 60 + (box.width - 74) * share, y: box.height - 120 };
  await surface.hover({ position });
}

const UNITS = /\((dB|kB|[Mk]bit\/s|ms|s|%|µs|0 to 100|count, log scale)\)$/;
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
  [/^Target, reasons/, ["Rate (Mbit/s)", "Wait (ms)", "Time (s)"]],
  [/^From the camera/, ["Delay (ms)", "Time (s)"]],
  [/^VMAF of/, ["VMAF (0 to 100)", "Time (s)"]],
  [/^Bearers/, ["Rate (Mbit/s)", "Queue (kB)", "Share (%)", "SINR (dB)", "HARQ (%)", "Time (s)"]],
  [/^Release lateness/, ["Lateness (µs)", "Packets (count, log scale)"]],
];

export function expectComplete(plot: Drawn): void {
  const names = AXES.find(([title]) => title.test(plot.title))?.[1];
  expect(names, `axes of ${plot.title}`).toBeDefined();
  expect(plot.texts.filter((text) => UNITS.test(text)).sort()).toEqual([...names!].sort());
  const legend = plot.texts.filter((text) =>
    /, (simulated|real call)|^(released|captured|packets|video|pc3)/.test(text),
  );
  expect(legend, `legend of ${plot.title}`).not.toEqual([]);
  expect(plot.faults, plot.title).toEqual([]);
}
