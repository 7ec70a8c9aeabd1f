// Two windows of `weir serve` with one link: sliders of the first make its packets slow, late, uneven and lost, and the
// second shows it. At the end another link is left running.
//
// Arguments: the page's address, the folder of playwright-core, and a folder for pictures. The last line of the output
// is JSON.

import { createRequire } from "node:module";

const [address, packages, pictures] = process.argv.slice(2);
const { chromium } = createRequire(`${packages}/`)("playwright-core");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu"],
});
const complaints = [];
const open = async () => {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  page.setDefaultTimeout(40_000);
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => complaints.push(message.text()));
  await page.goto(address);
  return page;
};
/** The round trip that the page shows, once it is in the range. The first one on a busy machine may be out of it. */
const roundTrip = async (page, least, below) => {
  const shown = await page.waitForFunction((range) => {
    const now = document.querySelector(".now")?.textContent ?? "";
    const ms = Number(/round trip (\d+) ms/.exec(now)?.[1] ?? Number.NaN);
    return ms >= range.least && ms < range.below ? ms : false;
  }, { least, below });
  return shown.jsonValue();
};
/** The round-trip times in ms that ping has told, once they fit. */
const pings = async (page, fit) => {
  const end = Date.now() + 40_000;
  for (;;) {
    const said = await page.locator(".said").innerText();
    const times = [...said.matchAll(/time=([\d.]+)/g)].map((it) => Number(it[1]));
    if (fit(times)) return times;
    if (Date.now() > end) throw new Error(`ping said ${times}`);
    await page.waitForTimeout(50);
  }
};
/** How far the last three times are apart. */
const apart = (times) => Math.max(...times.slice(-3)) - Math.min(...times.slice(-3));
try {
  const [first, second] = [await open(), await open()];
  await first.getByRole("searchbox").fill("first-call");
  await first.getByRole("listbox", { name: "Scenarios" }).selectOption("demo/first-call");
  // Before the first run, the network is drawn.
  await first.getByRole("img", { name: "Capacity from 0.50 to 2.00 Mbit/s" }).waitFor();
  await first.getByText("Edit the scenario").click();
  const text = first.getByRole("textbox", { name: "Text of the scenario" });
  await first.getByText("First call").first().waitFor({ state: "attached" });
  const good = await text.inputValue();
  await text.fill(good.replace("duration", "duratoin"));
  const wrong = await first.locator(".numbers .wrong").innerText();
  const line = good.split("\n").findIndex((it) => it.startsWith("duration")) + 1;
  await first.screenshot({ path: `${pictures}/serve-error.png` });
  await text.fill(good);
  await first.getByRole("tab", { name: "Link" }).click();
  await first.getByRole("button", { name: "Link", exact: true }).click();
  const before = await roundTrip(second, 1, 200);
  await first.getByText(/time=\d/).waitFor();
  const slide = (name, position) => first.getByRole("slider", { name }).fill(position);
  // The shorter of two: an emulator that has just started may be late.
  const unhurried = Math.min(...(await pings(second, (times) => times.length > 1)));
  // 84 bytes take 13 ms each way at 50 kbit/s, and nothing on the scenario's link.
  await slide("Capacity", "0");
  const slow = (await pings(second, (times) => times.at(-1) > unhurried + 20)).at(-1);
  await slide("One-way delay", "0.4");
  const after = await roundTrip(second, 400, 1000);
  await second.getByText(/time=4\d\d/).waitFor();
  await slide("Jitter", "1");
  const uneven = await pings(second, (times) => times.at(-1) > 400 && apart(times) > 40);
  await slide("Loss", "1");
  const lost = await (await second.waitForFunction(() => {
    const ratios = document.querySelector(".now")?.textContent.matchAll(/([\d.]+) % lost/g) ?? [];
    return Math.max(...[...ratios].map((it) => Number(it[1])));
  })).jsonValue();
  const plot = await second.locator(".stage .surface:visible").boundingBox();
  const sliders = await second.locator(".sliders").boundingBox();
  if (Math.max(plot.y, sliders.y) > 500) throw new Error("sliders and curves are not in one view");
  const told = await second.locator(".slider output").nth(1).innerText();
  await first.screenshot({ path: `${pictures}/serve-link.png`, fullPage: true });
  await second.getByRole("button", { name: "Stop" }).click();
  await first.getByText("the record is written").waitFor();
  const [report] = await Promise.all([
    first.waitForEvent("popup"),
    first.getByRole("link", { name: "Open the report" }).click(),
  ]);
  await report.getByRole("heading", { level: 1 }).waitFor();
  const title = await report.title();
  await first.getByRole("button", { name: "Link", exact: true }).click();
  await second.getByRole("button", { name: "Stop" }).waitFor();
  // Until its command speaks, a link is being set up and has no record.
  await second.locator(".said", { hasText: /time=\d/ }).waitFor();
  const moved = { unhurried, slow, uneven: apart(uneven), lost };
  const seen = { wrong: Number(wrong), line, before, after, told, title, sliders: moved };
  console.log(JSON.stringify({ ...seen, complaints }));
} finally {
  await browser.close();
}
