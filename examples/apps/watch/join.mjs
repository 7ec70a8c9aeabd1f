// How a participant joins: the two name each other.

export default async function join(page, number) {
  await page.fill("#me", `p${number}`);
  await page.fill("#other", `p${3 - number}`);
  await page.click("#join");
  await page.waitForFunction(() => document.getElementById("state").textContent === "connected");
}
