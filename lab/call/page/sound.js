// Records the sound of this page's microphone and of the received speech, in a worker each, so that the
// page's own work loses no block.

/** `place` is "microphone" or "speaker". */
export function record(track, place) {
  // Firefox lets no page read a track. What its buffer did is in getStats.
  if (!("MediaStreamTrackProcessor" in globalThis)) return;
  const address = new URL(`${location.pathname}/sound/${place}`, location.href);
  address.protocol = "ws:";
  const { readable } = new MediaStreamTrackProcessor({ track, maxBufferSize: 100 });
  const worker = new Worker(new URL("sound-worker.js", import.meta.url), { type: "module" });
  worker.postMessage({ readable, address: address.href }, [readable]);
}
