// The camera of a browser that plays no file: a canvas shows the pictures that the lab has of it.

import { canvasCamera } from "./frames.js";

/** Where each JPEG of a row of them ends: its end mark comes before the next one's start, or at the end. */
function endsOf(bytes) {
  const ends = [];
  for (let at = 1; at < bytes.length; at += 1) {
    const isEnd = bytes[at - 1] === 0xff && bytes[at] === 0xd9;
    const isNext = bytes[at + 1] === 0xff && bytes[at + 2] === 0xd8;
    if (isEnd && (isNext || at === bytes.length - 1)) ends.push(at + 1);
  }
  return ends;
}

/** A track with the pictures of the lab's camera in a loop. */
export async function drawnCamera(fps) {
  const response = await fetch(new URL("camera", location.href));
  if (!response.ok) throw new Error("The lab has no pictures for this camera.");
  const bytes = new Uint8Array(await response.arrayBuffer());
  const bitmaps = [];
  let start = 0;
  for (const end of endsOf(bytes)) {
    const jpeg = new Blob([bytes.subarray(start, end)], { type: "image/jpeg" });
    bitmaps.push(await createImageBitmap(jpeg));
    start = end;
  }
  return canvasCamera(bitmaps, fps);
}
