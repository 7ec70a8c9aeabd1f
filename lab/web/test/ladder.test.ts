// The signalling of a call through an IMS in headless Chromium, with the messages of a real call.

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Report, Signalling, SignallingMessage } from "../src/format";
import { available, open, overflow, photograph, start, stop, type Look } from "./chromium";
import { fixture } from "./fixture/report";

/** A call of alice and bob through Kamailio, as `weir ims call alice bob --out` left it. */
const CALL = new URL("../../../ims/testbed/tests/data/call.jsonl", import.meta.url);

function recorded(): Signalling {
  const lines = readFileSync(CALL, "utf8").trim().split("\n");
  const all = lines.map((line) => JSON.parse(line) as SignallingMessage & { time_ns: string });
  const start = BigInt(all[0]!.time_ns);
  const messages = all.map(({ time_ns, ...message }) => {
    return { ...message, time_ms: Number(BigInt(time_ns) - start) / 1e6 };
  });
  const parts = [...new Set(messages.flatMap(({ from, to }) => [from, to]))];
  const phases = [{ name: "registration", duration_ms: 12.94 }];
  return { title: "alice calls bob", parts, phases, messages };
}

function ofSignalling(): Report {
  return { ...fixture(), scenarios: [], controllers: [], runs: 0, signalling: [recorded()] };
}

describe.skipIf(!available)("the ladder diagram", () => {
  beforeAll(start);
  afterAll(stop);

  const looks: Look[] = [
    { name: "ladder-light", report: ofSignalling(), colorScheme: "light", width: 1280 },
    { name: "ladder-dark-narrow", report: ofSignalling(), colorScheme: "dark", width: 390 },
  ];
  test.each(looks)(
    "has an arrow for each message, which opens to its text: $name",
    async (look) => {
      const { page, complaints } = await open(look);
      const { messages } = recorded();
      const section = page.locator("#signalling-1");
      expect(await section.locator("h2").innerText()).toContain("Signalling: alice calls bob");
      expect(await section.locator("tbody tr").first().innerText()).toMatch(/registration\s+12\.9/);
      const lines = section.locator(".ladder details");
      expect(await lines.count()).toBe(messages.length);
      const first = lines.first();
      expect(await first.locator("pre").isVisible()).toBe(false);
      await first.locator("summary").click();
      expect(await first.locator("pre").textContent()).toBe(messages[0]!.text);
      expect(await first.locator("pre").isVisible()).toBe(true);
      await photograph(page, look.name);
      expect(await page.locator(".summary").innerText()).toContain("1 call through an IMS");
      expect(await page.locator("#overview").count()).toBe(0);
      expect(await overflow(page)).toBeLessThanOrEqual(0);
      expect(complaints).toEqual([]);
      await page.close();
    },
  );

  test("leaves a part out with its messages, and takes it back", async () => {
    const { page } = await open({ ...looks[0]!, name: "parts" });
    const { messages, parts } = recorded();
    const lines = page.locator(".ladder details");
    await page.getByLabel("hss", { exact: true }).uncheck();
    const rest = messages.filter(({ from, to }) => from !== "hss" && to !== "hss");
    expect(await lines.count()).toBe(rest.length);
    expect(await page.locator(".ladder-part").allInnerTexts()).toEqual(
      parts.filter((part) => part !== "hss"),
    );
    const count = page.locator(".ladder-count");
    expect(await count.innerText()).toBe(`${rest.length} of ${messages.length} messages`);
    await page.getByLabel("hss", { exact: true }).check();
    expect(await lines.count()).toBe(messages.length);
    expect(await count.innerText()).toBe("");
    await page.close();
  });

  test("keeps the names of the parts in sight in a long diagram, which does not make the page long", async () => {
    const { page } = await open({ ...looks[0]!, name: "long" });
    const region = page.locator(".ladder-region");
    const heads = page.locator(".ladder-heads");
    const top = async () => (await heads.boundingBox())!.y - (await region.boundingBox())!.y;
    await region.evaluate((element) => element.scrollTo(0, 1000));
    expect(await region.evaluate((element) => element.scrollTop)).toBe(1000);
    expect(await top()).toBe(0);
    const beyond = () => document.documentElement.scrollHeight - document.body.scrollHeight;
    expect(await page.evaluate(beyond)).toBeLessThanOrEqual(0);
    await page.close();
  });

  // The box of an arrow includes half of its stroke and the joints.
  test("draws an arrow from the sender's column to the receiver's", async () => {
    const { page } = await open({ ...looks[0]!, name: "arrow" });
    const { messages, parts } = recorded();
    const columns = page.locator(".ladder-part");
    expect(await columns.allInnerTexts()).toEqual(parts);
    const middle = async (part: string) => {
      const box = await columns.nth(parts.indexOf(part)).boundingBox();
      return box!.x + box!.width / 2;
    };
    const { from, to } = messages[0]!;
    const box = await page.locator(".ladder details .ladder-stroke").first().boundingBox();
    const ends = [await middle(from), await middle(to)];
    expect(Math.abs(box!.x - Math.min(...ends))).toBeLessThan(5);
    expect(Math.abs(box!.x + box!.width - Math.max(...ends))).toBeLessThan(5);
    await page.close();
  });
});
