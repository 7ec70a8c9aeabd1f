// Joins, and makes sure that the page's policy holds: it refuses workers and code from text.
export default async function join(page, number) {
  await page.goto(`${page.url()}?me=p${number}`);
  const refused = await page.evaluate(
    () =>
      new Promise((resolve) => {
        document.addEventListener("securitypolicyviolation", () => resolve(true));
        setTimeout(() => resolve(false), 2000);
        new Worker("app.js").onerror = () => {};
      }).catch(() => true),
  );
  if (!refused) throw new Error("the page's policy does not hold");
  await page.locator("#state").filter({ hasText: /^connected$/ }).waitFor();
}
