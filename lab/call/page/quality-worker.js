// Reads the frames of one track and tells the page what it saw, and when. Of a received track it also
// sends whole pictures to the lab, which scores them after the call.

import { messageOf, PICTURE_INTERVAL, pixelsOf, sightingOf, since1970 } from "./frames.js";

self.addEventListener("message", async ({ data: { readable, pictures } }) => {
  const reader = readable.getReader();
  const socket = pictures === null ? null : new WebSocket(pictures);
  let next = 0;
  for (;;) {
    const { done, value: frame } = await reader.read();
    if (done) break;
    const now = performance.now();
    const sighting = await sightingOf(frame, since1970(now));
    const isDue = now >= next && socket?.readyState === WebSocket.OPEN;
    // A picture that waits means that the lab is busy: it gets fewer.
    if (isDue && socket.bufferedAmount === 0) {
      const pixels = await pixelsOf(frame);
      if (pixels !== null) socket.send(messageOf(sighting, pixels));
      next = now + PICTURE_INTERVAL;
    }
    frame.close();
    postMessage(sighting);
  }
  socket?.close(1000);
});
