// How a participant joins the video room without waiting for a picture of the others: over a narrow link none may come.

export default async function enter(page, number) {
  await page.click("#start");
  await page.fill("#username", `p${number}`);
  await page.click("#register");
  await page.waitForSelector("#videolocal video");
}
