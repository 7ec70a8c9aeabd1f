// Reads the frames of one track and tells the page what it saw, and when.

import { sightingOf, since1970 } from "./quality.js";

self.addEventListener("message", async ({ data: readable }) => {
  const reader = readable.getReader();
  for (;;) {
    const { done, value: frame } = await reader.read();
    if (done) return;
    const sighting = await sightingOf(frame, since1970(performance.now()));
    frame.close();
    postMessage(sighting);
  }
});
