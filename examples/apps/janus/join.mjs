// How a participant joins the video room: by the buttons of Janus's own page.

import enter from "./enter.mjs";

export default async function join(page, number) {
  await enter(page, number);
  // Somebody else's picture.
  await page.waitForFunction(() => {
    const videos = [...document.querySelectorAll("[id^=videoremote] video")];
    return videos.some((video) => video.videoWidth > 0);
  });
}
