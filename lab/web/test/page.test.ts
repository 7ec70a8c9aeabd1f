// The built page in headless Chromium: its plots and tables, in both themes and on a narrow screen.
// Screenshots are saved in screenshots/ for inspection.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Scenario } from "../src/format";
import {
  OUT,
  available,
  drawnPlots,
  expectComplete,
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

  test("draws what is open without scrolling, and a large report as it is scrolled", async () => {
    const report = fixture();
    const { page } = await open({ ...looks[0]!, name: "idle", report });
    await page.reload();
    const undrawn = () =>
      page.evaluate(
        () =>
          [...document.querySelectorAll("figure.plot .surface")].filter(
            (it) => it.checkVisibility() && it.querySelector("svg") === null,
          ).length,
      );
    await expect.poll(undrawn, { timeout: 20_000 }).toBe(0);
    // A fold is drawn when it is opened and comes near the view.
    const last = page.locator("figure.plot").last();
    expect(await last.locator("svg").count()).toBe(0);
    for (const fold of await page.locator("details.more").all())
      await fold.evaluate((it) => it.setAttribute("open", ""));
    await last.scrollIntoViewIfNeeded();
    await last.locator("svg").waitFor();
    await page.close();
    const many = Array.from({ length: 12 }, (_, i) => ({ ...report.scenarios[0]!, id: `x/${i}` }));
    const large = await open({
      ...looks[0]!,
      name: "lazy",
      report: { ...report, scenarios: many },
    });
    await large.page.reload();
    for (const fold of await large.page.locator("details.more").all())
      await fold.evaluate((it) => it.setAttribute("open", ""));
    expect(await large.page.locator("figure.plot").last().locator("svg").count()).toBe(0);
    await large.page.close();
  });

  test("begins with what was expected, and lists the calls of several dumps", async () => {
    const report = fixture();
    const { page } = await open({ ...looks[0]!, name: "expected", report });
    const verdict = page.locator("header .expected");
    expect(await verdict.locator("p").innerText()).toMatch(/^Failed\d+ failed, \d+ of \d+ exp/);
    expect(await verdict.locator("li").count()).toBeGreaterThan(0);
    expect(await page.locator(".dumps").count()).toBe(0);
    await page.close();
    const called = report.scenarios.find((it) => it.calls !== null)!;
    const finding = {
      seed: "1",
      stream: "a video up",
      part: "network",
      rule: "capacity",
      says: "the path was full",
      from_s: 4,
      to_s: 13,
      samples: 3,
    };
    const began_ms = Date.UTC(2026, 10, 23, 4, 32, 47);
    const said = { verdict: "The uplink was full.", began_ms, findings: [finding] };
    const calls = { ...called.calls!, ...said };
    const dumps = ["a.gz", "b.gz", "c.gz"].map((name) => ({
      ...called,
      id: `analyzed/${name}`,
      calls,
      expectations: [],
      sim_real: [],
      groups: [{ ...called.groups.find((it) => it.engine === "call")!, controller: name }],
    }));
    const several = await open({
      ...looks[0]!,
      name: "dumps",
      report: { ...report, runs: 3, errors: [], participants: [], scenarios: dumps },
    });
    const listed = several.page.locator("#overview .dumps article");
    expect(await listed.count()).toBe(3);
    expect(await listed.first().innerText()).toContain("4 to 13 s, a video up: the path was full");
    const clock = await several.page.locator("#overview .dumps table").innerText();
    expect(clock).toContain("04:32:51 to 04:33:00");
    // Nothing to lay beside each other.
    expect(await several.page.locator(".matrix").count()).toBe(0);
    expect(await several.page.locator(".expected").count()).toBe(0);
    await several.page.close();
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
    // Below the title, the verdict and the summary in words, on the first screen.
    expect(above!.y).toBeLessThan(700);
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
