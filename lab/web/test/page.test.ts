// The built page in headless Chromium: its plots and tables, in both themes and on a narrow screen.
// Screenshots are saved in screenshots/ for inspection.

import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Scenario } from "../src/format";
import {
  OUT,
  available,
  catchDownloads,
  drawnPlots,
  expectComplete,
  nextSaved,
  open,
  openEmpty,
  overflow,
  photograph,
  pointAt,
  start,
  stop,
  type Look,
} from "./chromium";
import { hostile, withoutValues } from "./fixture/altered";
import { fixture } from "./fixture/report";

/** A column of a CSV file: words and counts, or a name that ends with its unit. */
const COLUMN =
  /^((scenario|engine|controller|flow|peer|stream|reason|seed|runs|packets|terminal|bearer|direction|mcs|vmaf|publisher|layer)|\w+_(s|ms|us|mbps|kbps|percent|kb|db)(\.\w+)?)$/;

describe.skipIf(!available)("the page", () => {
  beforeAll(start);
  afterAll(stop);

  const looks: Look[] = [
    { name: "light", report: fixture(), colorScheme: "light", width: 1280 },
    { name: "dark", report: fixture(), colorScheme: "dark", width: 1280 },
    { name: "narrow", report: fixture(), colorScheme: "light", width: 390 },
  ];
  test.each(looks)("draws every plot complete and without overlap: $name", async (look) => {
    const { page, complaints } = await open(look);
    await photograph(page, look.name);
    const plots = await drawnPlots(page);
    // One plot for all runs, three for each scenario, one where flows share a path, one for the
    // bearers of a cell. For the call: two comparisons, the parts of its rate, its rates, its delays,
    // its pacer, one histogram, the delay to the screen and the scores of the pictures.
    expect(plots.length).toBe(1 + 6 * 3 + 1 + 1 + 2 + 5 + 1 + 1);
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
    // The folds of the last scenario, opened without drawing everything.
    for (const fold of await page.locator("details.more").all())
      await fold.evaluate((it) => it.setAttribute("open", ""));
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

  test("exports the plot of each kind as SVG, PNG and CSV", async () => {
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
      const [head, ...rows] = (await save("CSV")).toString().trimEnd().split("\r\n");
      for (const column of head!.split(",")) expect(column).toMatch(COLUMN);
      expect(rows.length).toBeGreaterThan(0);
      for (const row of rows) expect(row.split(",").length).toBe(head!.split(",").length);
    }
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("exports the frames on the air with their colours", async () => {
    const { page } = await open({ ...looks[0]!, name: "air" });
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
    const { page, complaints } = await open({ ...looks[0]!, name: "bearers" });
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
    const { page, complaints } = await open({ ...looks[0]!, name: "resources" });
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
    const { page, complaints } = await open({ ...looks[0]!, report, name: "no-blocks" });
    const part = page.locator(".part", { hasText: "Resource blocks" });
    expect(await part.innerText()).toContain("No block was on the air");
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("saves as CSV what is drawn: the chosen controller in the time that is zoomed to", async () => {
    const { page, complaints } = await open({ ...looks[0]!, name: "csv" });
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
    const { page } = await open({ ...looks[0]!, name: "dots" });
    const captions = page.locator("figure.plot", { hasText: "against queuing delay" });
    const texts = await captions.locator("figcaption").allInnerTexts();
    expect(texts.length).toBe(1 + 6);
    for (const text of texts) expect(text).toContain("Each dot is one media flow in one run.");
    const series = await captions.first().locator(".surface").getAttribute("aria-label");
    expect(series).toContain("gcc-draft, simulated, 35 dots: mean");
    await page.close();
  });

  test("has no part for what no paper published", async () => {
    const report = fixture();
    const [own, cited] = report.scenarios as [Scenario, Scenario];
    Object.assign(own, { paper: [], findings: [] });
    Object.assign(cited, { findings: [] });
    const { page } = await open({ ...looks[0]!, name: "own", report });
    const heads = (i: number) =>
      page.locator("section.scenario").nth(i).locator("h3").allInnerTexts();
    const published = async (i: number) => (await heads(i)).filter((it) => /publish/i.test(it));
    expect(await published(0)).toEqual([]);
    expect(await published(1)).toEqual(["Published values"]);
    expect(await published(2)).toEqual(["Published values", "Published findings"]);
    await page.close();
  });

  test("shows freezes at the top, the longest first", async () => {
    const { page } = await open({ ...looks[0]!, name: "freezes" });
    const part = page.locator("#overview .freezes");
    expect(await part.locator("tbody tr").first().locator("td").allInnerTexts()).toEqual([
      "demo/first-call",
      "scream",
      "5.0",
      "4.0",
      "media-1-down",
      "simulated",
      "5",
    ]);
    expect(await part.locator("p").first().innerText()).toContain("froze in 7 of 8 videos");
    expect(await part.locator("tbody tr").count()).toBe(7);
    const [above, below] = await Promise.all([
      part.boundingBox(),
      page.locator(".matrix").boundingBox(),
    ]);
    expect(above!.y + above!.height).toBeLessThan(below!.y);
    // Below the title and the summary in words, on the first screen.
    expect(above!.y).toBeLessThan(600);
    await part.getByRole("link").first().click();
    expect(page.url()).toContain("#demo%2Ffirst-call");
    await page.close();
    const report = fixture();
    for (const scenario of report.scenarios) Object.assign(scenario, { video: [], calls: null });
    const none = await open({ ...looks[0]!, name: "no-freezes", report });
    expect(await none.page.locator(".freezes").count()).toBe(0);
    await none.page.close();
  });

  test("keeps the contents at the side and says where the reader is", async () => {
    const { page, complaints } = await open({ ...looks[0]!, name: "contents" });
    const nav = page.getByRole("navigation", { name: "Contents" });
    const top = nav.locator(".panel > ol > li > a");
    const ids = fixture().scenarios.map(({ id }) => id);
    expect(await top.allInnerTexts()).toEqual(["Overview", ...ids, "Definitions"]);
    const current = nav.locator("[aria-current=location]");
    await expect.poll(() => current.innerText()).toBe("Overview");
    await page.evaluate(() => document.getElementById("rfc8867/5.1")!.scrollIntoView());
    await expect.poll(() => current.innerText()).toBe("rfc8867/5.1");
    const [side, main] = await Promise.all([nav.boundingBox(), page.locator("main").boundingBox()]);
    expect([side!.y, side!.height]).toEqual([0, 900]);
    expect(side!.x + side!.width).toBeLessThanOrEqual(main!.x);
    const parts = nav.locator("ol ol a");
    const heads = page.locator("[id='rfc8867/5.1'] h3");
    expect(await parts.allInnerTexts()).toEqual(await heads.allInnerTexts());
    await parts.getByText("Published findings").click();
    await expect.poll(() => current.innerText()).toBe("Published findings");
    const head = heads.getByText("Published findings");
    await expect.poll(async () => Math.abs((await head.boundingBox())!.y)).toBeLessThan(20);
    // A reload keeps the position.
    await page.reload();
    await expect.poll(() => current.innerText()).toBe("Published findings");
    await expect.poll(async () => Math.abs((await head.boundingBox())!.y)).toBeLessThan(20);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("leads through the contents by keyboard", async () => {
    const { page } = await open({ ...looks[0]!, name: "contents-keys" });
    const focused = () => page.evaluate(() => document.activeElement!.textContent);
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Skip the contents");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Overview");
    await page.keyboard.press("End");
    expect(await focused()).toBe("Definitions");
    await page.keyboard.press("ArrowUp");
    expect(await focused()).toBe("demo/first-call");
    await page.keyboard.press("Enter");
    const current = page.locator(".contents [aria-current=location]");
    await expect.poll(() => current.innerText()).toBe("demo/first-call");
    // The next Tab moves into the scenario.
    await page.keyboard.press("Tab");
    const section = await page.evaluate(() => document.activeElement!.closest("section")?.id);
    expect(section).toBe("demo/first-call");
    await page.close();
  });

  test("folds the contents on a narrow screen", async () => {
    const { page, complaints } = await open({ ...looks[2]!, name: "contents-narrow" });
    const panel = page.locator(".contents .panel");
    expect(await panel.isVisible()).toBe(false);
    const bar = page.locator(".contents summary");
    expect(await bar.innerText()).toBe("Contents Overview");
    await bar.focus();
    await page.keyboard.press("Enter");
    expect(await panel.isVisible()).toBe(true);
    await page.screenshot({ path: `${OUT}/contents-narrow.png` });
    await page.keyboard.press("Escape");
    expect(await panel.isVisible()).toBe(false);
    await bar.click();
    await panel.getByRole("link", { name: "lund/no-jitter" }).click();
    expect(await panel.isVisible()).toBe(false);
    await expect.poll(() => bar.innerText()).toBe("Contents lund/no-jitter");
    // The bar does not cover the heading that the link led to.
    const below = await bar.boundingBox();
    const heading = await page.locator("[id='lund/no-jitter'] h2").boundingBox();
    expect(heading!.y).toBeGreaterThanOrEqual(below!.y + below!.height);
    expect(await overflow(page)).toBeLessThanOrEqual(0);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("keeps the contents of hundreds of scenarios short and filtered", async () => {
    const report = withoutValues(fixture());
    const [first] = report.scenarios as [Scenario];
    report.scenarios = Array.from({ length: 400 }, (_, i) => {
      return { ...first, id: `many/${i}`, title: i % 100 === 7 ? "A rare one" : "A common one" };
    });
    const { page, complaints } = await open({ ...looks[0]!, name: "many", report });
    const nav = page.getByRole("navigation", { name: "Contents" });
    // Only the current section shows its parts.
    expect(await nav.getByRole("link").count()).toBeLessThan(402 + 15);
    await page.evaluate(() => document.getElementById("many/399")!.scrollIntoView());
    const current = nav.locator("[aria-current=location]");
    await expect.poll(() => current.innerText()).toBe("many/399");
    const box = await current.boundingBox();
    expect(box!.y).toBeGreaterThan(0);
    expect(box!.y + box!.height).toBeLessThan(900);
    const top = nav.locator(".panel > ol > li > a:visible");
    await nav.getByRole("searchbox").fill("RARE many");
    expect(await top.allInnerTexts()).toEqual(["many/7", "many/107", "many/207", "many/307"]);
    expect(await nav.getByRole("status").innerText()).toBe("4 of 402 shown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await expect.poll(() => current.innerText()).toBe("many/7");
    await nav.getByRole("searchbox").fill("nowhere");
    expect(await nav.locator(".empty").isVisible()).toBe(true);
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
    expect(notes).toEqual(["No values over time were recorded."]);
    expect(await page.locator("main").innerText()).not.toMatch(/\b(null|NaN|undefined)\b/);
    expect(await overflow(page)).toBeLessThanOrEqual(0);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("opens folded: one scenario's curves, no empty parts, and less than 8,000 px", async () => {
    const report = fixture();
    const one = report.scenarios[0]!;
    report.scenarios = [1, 2, 3, 4, 5, 6, 7].map((n) => ({ ...one, id: `${one.id}-${n}` }));
    const { page } = await open({ ...looks[0]!, name: "tall", report });
    await page.reload();
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    expect(height).toBeLessThan(8000);
    const curves = page.getByRole("heading", { name: "Rate, delay and loss over time" });
    expect(await curves.filter({ visible: true }).count()).toBe(1);
    expect(await page.getByText("not tested").filter({ visible: true }).count()).toBe(0);
    // A link from the matrix opens the scenario.
    await page.locator(".matrix td a").last().click();
    await expect.poll(() => curves.filter({ visible: true }).count()).toBe(2);
    await page.close();
  });

  test("marks the findings of one call on its curves, under their numbers in the table", async () => {
    const report = fixture();
    const call = report.scenarios.find((it) => it.calls !== null)!;
    const finding = { seed: "1", stream: "s", rule: "r", says: "why it was so", samples: 3 };
    const half = call.duration_s / 2;
    call.calls!.findings = [
      { ...finding, part: "video", from_s: half - 2, to_s: half + 2 },
      { ...finding, part: "network", from_s: half - 1, to_s: half + 5 },
    ];
    call.calls!.verdict = "The picture froze.";
    call.id = "analyzed/call.gz";
    report.scenarios = [{ ...call, groups: call.groups.slice(0, 1) }];
    report.runs = 1;
    const { page, complaints } = await open({ ...looks[0]!, name: "one-call-marked", report });
    await photograph(page, "one-call-marked");
    expect(await page.locator("header .answer").allInnerTexts()).toContain("The picture froze.");
    const surface = page.locator(".surface").first();
    const texts = await surface.locator("text").allTextContents();
    expect(texts.filter((text) => text === "1" || text === "2")).toEqual(
      expect.arrayContaining(["1", "2"]),
    );
    await pointAt(surface, 0.53);
    await expect.poll(() => page.locator(".tip-body .mark").count()).toBe(2);
    const rows = page.locator("table", { hasText: "why it was so" }).locator("tbody tr");
    expect(await rows.locator(":scope > :first-child").allInnerTexts()).toEqual(["1", "2"]);
    // The contents list the page's sections alone.
    expect(await page.locator("nav.contents > details ol > li > a").allInnerTexts()).not.toContain(
      "",
    );
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("shows one call without comparisons", async () => {
    const report = fixture();
    const one = report.scenarios[0]!;
    const group = { ...one.groups[0]!, seeds: ["1"], points: one.groups[0]!.points.slice(0, 1) };
    report.scenarios = [{ ...one, groups: [group] }];
    report.runs = 1;
    const { page, complaints } = await open({ ...looks[0]!, name: "one-call", report });
    await photograph(page, "one-call");
    expect(await page.locator("#overview, .matrix").count()).toBe(0);
    const heads = await page.locator("section.scenario h3").allInnerTexts();
    expect(heads[0]).toBe("Rate, delay and loss over time");
    expect(heads).not.toContain("Box plots over the seeds");
    expect(heads).not.toContain("Throughput against queuing delay");
    // The picture of the call follows the pointer, and plays.
    const picture = page.getByRole("region", { name: "The call at one moment" });
    const clock = picture.locator(".clock");
    // It opens where media waits longest, not at the start.
    expect(Number.parseFloat(await clock.innerText())).toBeGreaterThan(0);
    await pointAt(page.locator(".surface").first(), 0.5);
    await expect.poll(() => clock.innerText()).toMatch(/^(9[89]|10[0-2])\.\d of 200 s$/);
    expect(await picture.locator(".words").innerText()).toMatch(/^gcc-draft: /);
    expect(await picture.locator(".value").allInnerTexts()).toHaveLength(4);
    await picture.getByLabel("Speed").selectOption("50");
    await picture.getByRole("button", { name: "Play" }).click();
    await expect.poll(async () => Number.parseFloat(await clock.innerText())).toBeGreaterThan(120);
    await picture.getByRole("button", { name: "Pause" }).click();
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("says that a report without scenarios is empty", async () => {
    const report = { ...fixture(), scenarios: [], definitions: [], runs: 0 };
    const { page, complaints } = await open({ ...looks[0]!, name: "empty", report });
    expect(await page.locator(".empty").allInnerTexts()).toEqual([
      "No runs: the report has no scenario with results.",
      "No media flow has both a utilization and a queuing delay.",
      "The report defines no metric.",
      "No scenario was run.",
    ]);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("says what to do when the file holds no data", async () => {
    const page = await openEmpty();
    expect(await page.getByRole("alert").innerText()).toContain("weir report DIR");
    await page.close();
  });
});
