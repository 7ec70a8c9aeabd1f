// Two windows of `weir serve` with one link: a slider of the first slows the packets down, and the second shows it.
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
const roundTrip = (page, least) =>
  page.waitForFunction((ms) => {
    const now = document.querySelector(".now")?.textContent ?? "";
    const shown = Number(/round trip (\d+) ms/.exec(now)?.[1] ?? Number.NaN);
    return shown >= ms ? shown : false;
  }, least);
try {
  const [first, second] = [await open(), await open()];
  await first.getByRole("searchbox").fill("first-call");
  await first.getByRole("listbox", { name: "Scenarios" }).selectOption("demo/first-call");
  const text = first.getByRole("textbox", { name: "Text of the scenario" });
  await first.getByText("First call").first().waitFor({ state: "attached" });
  const good = await text.inputValue();
  await text.fill(good.replace("duration", "duratoin"));
  const wrong = await first.locator(".numbers .wrong").innerText();
  const line = good.split("\n").findIndex((it) => it.startsWith("duration")) + 1;
  await first.screenshot({ path: `${pictures}/serve-error.png` });
  await text.fill(good);
  await first.getByRole("button", { name: "Link", exact: true }).click();
  const before = await (await roundTrip(second, 1)).jsonValue();
  await first.getByText(/time=\d/).waitFor();
  await first.getByRole("slider", { name: "Delay, one way" }).fill("0.4");
  const after = await (await roundTrip(second, 400)).jsonValue();
  await second.getByText(/time=4\d\d/).waitFor();
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
  console.log(JSON.stringify({ wrong: Number(wrong), line, before, after, told, title, complaints }));
} finally {
  await browser.close();
}
