// Plots of the built page in headless Chromium: pointer, zoom, choice of a controller, and the files that they save.

import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  OUT,
  available,
  catchDownloads,
  drawnPlots,
  nextSaved,
  open,
  pointAt,
  start,
  stop,
} from "./chromium";
import { withoutValues } from "./fixture/altered";
import { fixture } from "./fixture/report";

/** A column of a CSV file: words and counts, or a name that ends with its unit. */
const COLUMN =
  /^((scenario|engine|controller|flow|peer|stream|reason|seed|runs|packets|terminal|bearer|direction|mcs|vmaf|publisher|layer)|\w+_(s|ms|us|mbps|kbps|percent|kb|db)(\.\w+)?)$/;

describe.skipIf(!available)("the plots", () => {
  beforeAll(start);
  afterAll(stop);

  const light = { report: fixture(), colorScheme: "light", width: 1280 } as const;
  const dark = { ...light, colorScheme: "dark" } as const;

  test("shows the rate changes of the chosen controller under the pointer", async () => {
    const { page, complaints } = await open({ ...light, name: "hover" });
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
    const { page } = await open({ ...light, name: "keys" });
    const surface = page.locator("section.scenario .surface").first();
    await surface.focus();
    await page.keyboard.press("ArrowRight");
    const spoken = page.locator("section.scenario .spoken").first();
    expect(await spoken.innerText()).toMatch(/^10[01]\.\d\d s capacity/);
    await page.close();
  });

  test("zooms all panels of a plot together", async () => {
    const { page, complaints } = await open({ ...light, name: "zoom" });
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
    const { page, complaints } = await open({ ...light, name: "share" });
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
    const { page } = await open({ ...light, name: "copy" });
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
    const { page } = await open({ ...light, name: "link" });
    await page.locator(".matrix td a").nth(4).click();
    const top = await page.evaluate(() => {
      return document.getElementById("lund/sudden-reduction")!.getBoundingClientRect().top;
    });
    expect(Math.abs(top)).toBeLessThan(20);
    await page.close();
  });

  test("exports the plot of each kind as SVG, PNG and CSV", async () => {
    const { page, complaints } = await open({ ...dark, name: "export" });
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
      const [head, ...rows] = (await save("CSV")).toString().trimEnd().split("\r\n");
      for (const column of head!.split(",")) expect(column).toMatch(COLUMN);
      expect(rows.length).toBeGreaterThan(0);
      for (const row of rows) expect(row.split(",").length).toBe(head!.split(",").length);
    }
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("exports the frames on the air with their colours", async () => {
    const { page } = await open({ ...light, name: "air" });
    await catchDownloads(page);
    const air = page.locator(".part", { hasText: "On the air" });
    const save = async (kind: string) => {
      await air.getByRole("button", { name: `as ${kind}` }).click();
      return Buffer.from((await nextSaved(page)).base64, "base64");
    };
    const svg = (await save("SVG")).toString();
    // Colours in the style sheet: some packets arrived, an acknowledgement, none arrived.
    for (const fill of ["230, 159, 0", "0, 158, 115", "179, 71, 0"])
      expect(svg).toContain(`rgb(${fill})`);
    expect(svg).toContain("weir run rfc8867/5.1 --controller nada --seed 1");
    expect((await save("PNG")).readUInt32BE(16)).toBe(2 * 960);
    expect((await save("CSV")).toString().split("\r\n")[1]).toBe(
      "rfc8867/5.1,nada,caller-1,data,30000000,30000180,4,3,data to ap",
    );
    await page.close();
  });

  test("draws the bearers of a cell for one direction and one terminal", async () => {
    const { page, complaints } = await open({ ...light, name: "bearers" });
    await catchDownloads(page);
    const plot = page.locator("figure.plot", { hasText: "Bearers over time" });
    const texts = () => plot.locator("svg text").allTextContents();
    expect(await texts()).toEqual(expect.arrayContaining(["pc3", "pc4 video", "SINR (dB)"]));
    await plot.getByLabel("Terminal").selectOption("pc4");
    await expect.poll(texts).not.toContain("pc3");
    await plot.getByLabel("Direction").selectOption("up");
    const surface = plot.locator(".surface");
    await pointAt(surface, 0.5);
    await surface.locator(".tip-body").waitFor();
    const tip = await surface.locator(".tip-body").innerText();
    expect(tip).toContain("HARQ %");
    // The radio link is the terminal's, so the row of its second bearer has no values for it.
    const rows = await surface.locator(".tip-body tr").allInnerTexts();
    expect(rows.map((row) => row.split("\t")[0]!.trim())).toEqual(["", "pc4", "pc4 video"]);
    await plot.getByRole("button", { name: "as CSV" }).click();
    const saved = Buffer.from((await nextSaved(page)).base64, "base64").toString();
    const [head, ...lines] = saved.trimEnd().split("\r\n");
    expect(head).toMatch(
      /^scenario,controller,terminal,bearer,direction,time_s,rate_mbps,queue_kb/,
    );
    const kinds = new Set(lines.map((line) => line.split(",").slice(2, 5).join(" ")));
    expect([...kinds]).toEqual(["pc4 default up", "pc4 video up"]);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("draws who had which resource blocks, on the page and in a file", async () => {
    const { page, complaints } = await open({ ...light, name: "resources" });
    await catchDownloads(page);
    const part = page.locator(".part", { hasText: "Resource blocks" });
    const shapes = () =>
      part.locator(".resource-grid .block").evaluateAll((blocks) =>
        blocks.map((block) => ({
          title: block.querySelector("title")!.textContent,
          fills: [...block.querySelectorAll("rect")].map((rect) => rect.getAttribute("fill")!),
        })),
      );
    const found = await shapes();
    expect(found.map(({ title }) => title)).toContain(
      "pc4, PRB 12-15 20-24, MCS 12, 700 B, not decoded",
    );
    const again = found.find(({ title }) => title!.includes("transmission 2"))!;
    // Two ranges, each in the terminal's colour under the hatching.
    expect(again.fills.length).toBe(4);
    expect(again.fills[1]).toMatch(/^url\(#hatch-\d+\)$/);
    expect(new Set(found.map(({ fills }) => fills[0])).size).toBe(3);
    await part.getByRole("button", { name: "as SVG" }).click();
    const svg = Buffer.from((await nextSaved(page)).base64, "base64").toString();
    expect(svg).toContain("■ walker");
    expect(svg).toContain("Hatched: retransmission");
    expect(svg).toContain("weir run rfc8867/5.1 --controller nada --seed 1");
    await part.getByRole("button", { name: "as CSV" }).click();
    const csv = Buffer.from((await nextSaved(page)).base64, "base64").toString();
    expect(csv.split("\r\n")[1]).toBe("rfc8867/5.1,nada,pc3,down,30,0-11,12,700,1,1");
    // The colours of the other theme replace these.
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(async () => (await shapes())[0]!.fills).not.toEqual(found[0]!.fills);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("says so where no block was recorded", async () => {
    const report = withoutValues(fixture());
    const { page, complaints } = await open({ ...light, report, name: "no-blocks" });
    const part = page.locator(".part", { hasText: "Resource blocks" });
    expect(await part.innerText()).toContain("No block was on the air");
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("saves as CSV what is drawn: the chosen controller in the time that is zoomed to", async () => {
    const { page, complaints } = await open({ ...light, name: "csv" });
    await catchDownloads(page);
    const scenario = page.locator("section.scenario").first();
    await scenario.getByLabel("Controller").selectOption("nada");
    const surface = scenario.locator(".surface").first();
    await pointAt(surface, 0.5);
    await page.keyboard.down("Control");
    for (let i = 0; i < 10; i++) await page.mouse.wheel(0, -200);
    await page.keyboard.up("Control");
    await expect.poll(() => surface.locator("svg text").allTextContents()).not.toContain("200");
    await scenario.getByRole("button", { name: "as CSV" }).first().click();
    const { name, base64 } = await nextSaved(page);
    expect(name).toBe("lund-rmcat-ns3-rate-delay-and-loss-over-time.csv");
    const lines = Buffer.from(base64, "base64").toString().trimEnd().split("\r\n");
    expect(lines[0]).toBe(
      "scenario,engine,controller,flow,runs,time_s,capacity_mbps,possible_mbps,target_mbps,received_mbps," +
        "queuing_delay_ms,rtt_ms,loss_percent,from_mbps,reason,state,signals",
    );
    const rows = lines.slice(1).map((line) => line.split(","));
    expect(new Set(rows.map((row) => row[2]))).toEqual(new Set(["nada"]));
    const times = rows.map((row) => Number(row[5]));
    expect(Math.min(...times)).toBeGreaterThan(0);
    expect(Math.max(...times)).toBeLessThan(200);
    expect(rows.some((row) => row[14] === "ramp-up")).toBe(true);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("says what a dot of a scatter is: a flow and a run", async () => {
    const { page } = await open({ ...light, name: "dots" });
    const captions = page.locator("figure.plot", { hasText: "against queuing delay" });
    const texts = await captions.locator("figcaption").allInnerTexts();
    expect(texts.length).toBe(1 + 6);
    for (const text of texts) expect(text).toContain("Each dot is one media flow in one run.");
    const series = await captions.first().locator(".surface").getAttribute("aria-label");
    expect(series).toContain("gcc-draft, simulated, 35 dots: mean");
    await page.close();
  });
});
