// How a participant joins the video room: by the buttons of Janus's own page.

export default async function join(page, number) {
  await page.click("#start");
  await page.fill("#username", `p${number}`);
  await page.click("#register");
  // The own picture, and somebody else's.
  await page.waitForSelector("#videolocal video");
  await page.waitForFunction(() => {
    const videos = [...document.querySelectorAll("[id^=videoremote] video")];
    return videos.some((video) => video.videoWidth > 0);
  });
}
