// A meeting: all join, then the first shows a screen, and the third turns the camera off for ten seconds.

import join from "./join.mjs";

/** When the first shows a screen, and when the third turns the camera off and on again, in ms after joining. */
const SCREEN_MS = 5_000;
const CAMERA_OFF_MS = 15_000;
const CAMERA_ON_MS = 25_000;

export default async function meet(page, number, context) {
  await join(page, number, context);
  if (number === 1) await page.evaluate(showSlides, SCREEN_MS);
  if (number === 3) await page.evaluate(hideFor, [CAMERA_OFF_MS, CAMERA_ON_MS]);
}

/** Publishes slides of text, a new one each three seconds, as a screen. Runs in the page. */
function showSlides(after) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [1280, 720];
  const pen = canvas.getContext("2d");
  let slide = 0;
  const draw = () => {
    pen.fillStyle = "white";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = "black";
    pen.font = "24px sans-serif";
    for (let line = 1; line < 22; line++) {
      pen.fillText(`Slide ${slide}, line ${line}: ${"words of a slide ".repeat(5)}`, 40, 32 * line);
    }
    slide += 1;
  };
  const publish = async () => {
    draw();
    setInterval(draw, 3_000);
    const [track] = canvas.captureStream(5).getVideoTracks();
    const options = { source: "screen_share", simulcast: false };
    await window.room.localParticipant.publishTrack(track, options);
  };
  setTimeout(publish, after);
}

/** Turns the camera off, and on again. Runs in the page. */
function hideFor([off, on]) {
  const me = window.room.localParticipant;
  setTimeout(() => me.setCameraEnabled(false), off);
  setTimeout(() => me.setCameraEnabled(true), on);
}
