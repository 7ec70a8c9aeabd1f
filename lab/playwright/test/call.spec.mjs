import { expect, test } from "../src/index.mjs";

test.use({ scenario: "demo/first-call", server: { command: "node test/server.mjs", port: 9000 } });

test("pictures come through the link in both directions", async ({ page, far }) => {
  await Promise.all([page.goto("/?me=b"), far.goto("/?me=a")]);
  await expect(far.locator("#pictures")).toHaveText(/^\d{2,}$/);
  await expect(page.locator("#pictures")).toHaveText(/^\d{2,}$/);
});

test("an outage stops the pictures, and they return after it", async ({ page, far, network }) => {
  const pictures = async () => Number(await far.locator("#pictures").textContent());
  await Promise.all([page.goto("/?me=b"), far.goto("/?me=a")]);
  await expect.poll(pictures).toBeGreaterThan(10);
  await network.change("capacity up 0bps");
  await page.waitForTimeout(2_000);
  const before = await pictures();
  await page.waitForTimeout(2_000);
  expect(await pictures()).toBe(before);
  await network.change("capacity up 2Mbps");
  await expect.poll(pictures).toBeGreaterThan(before + 30);
});

test("what the media meets is what the scenario says", async ({ page, far, network }) => {
  await Promise.all([page.goto("/?me=b"), far.goto("/?me=a")]);
  await expect(far.locator("#pictures")).toHaveText(/^\d{2,}$/);
  await network.change("delay up 300ms");
  const roundTrip = async () => {
    const reports = await page.evaluate(async () => [...(await globalThis.pc.getStats()).values()]);
    const pair = reports.find(({ type, nominated }) => type === "candidate-pair" && nominated);
    return pair.currentRoundTripTime;
  };
  await expect.poll(roundTrip).toBeGreaterThan(0.3);
});

test("a change that nobody understands fails in one line", async ({ network }) => {
  await expect(network.change("speed 5")).rejects.toThrow(/capacity/);
});
