// How a participant joins: everybody opens a name, and the second one calls the first.

export default async function join(page, number) {
  await page.fill("#me", `p${number}`);
  await page.click("#open");
  await page.waitForFunction(() => document.getElementById("state").textContent === "open");
  if (number === 2) {
    // The first one may be later.
    for (;;) {
      await page.fill("#other", "p1");
      await page.click("#call");
      await page.waitForTimeout(2000);
      const state = await page.textContent("#state");
      if (state === "in a call") break;
    }
  }
  await page.waitForFunction(() => document.getElementById("state").textContent === "in a call");
}
