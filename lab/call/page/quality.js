// Tells the lab which frames pass this page, and when.

import { messageOf, PICTURE_INTERVAL, pixelsOf, watchScreen } from "./frames.js";

/** How often the page tells, in ms, and the most frames of one message. */
const INTERVAL = 500;
const FRAMES_MAX = 50;
/** Whether the frames of a track can be read. In Firefox only those on screen can. */
const readsTracks = "MediaStreamTrackProcessor" in globalThis;

/** Collects the frames of each place and tells them to the lab. */
export class Sightings {
  #tell;
  #waiting = { camera: [], track: [], screen: [] };

  constructor(tell) {
    this.#tell = tell;
    setInterval(() => this.flush(), INTERVAL);
  }

  /** Tells all frames that the lab does not know yet. */
  flush() {
    for (const place of Object.keys(this.#waiting)) this.#flushPlace(place);
  }

  /** The page's own camera, before the encoder. */
  watchCamera(track) {
    if (readsTracks) this.#watchTrack("camera", track, null);
  }

  /** A received video: on its track, and on the screen. */
  watchReceived(track, video) {
    const pictures = new URL(`${location.pathname}/pictures`, location.href);
    pictures.protocol = "ws:";
    if (readsTracks) this.#watchTrack("track", track, pictures.href);
    const socket = readsTracks ? null : new WebSocket(pictures.href);
    let next = 0;
    watchScreen(video, async (frame, sighting) => {
      this.#add("screen", sighting);
      const now = performance.now();
      const isOpen = socket?.readyState === WebSocket.OPEN && socket.bufferedAmount === 0;
      if (!isOpen || now < next) return;
      next = now + PICTURE_INTERVAL;
      const pixels = await pixelsOf(frame);
      if (pixels !== null) socket.send(messageOf(sighting, pixels));
    });
  }

  #add(place, sighting) {
    this.#waiting[place].push(sighting);
    if (this.#waiting[place].length >= FRAMES_MAX) this.#flushPlace(place);
  }

  #flushPlace(place) {
    const frames = this.#waiting[place].splice(0);
    if (frames.length > 0) this.#tell({ type: "frames", place, frames });
  }

  // A worker reads the track, so that the page's own work delays no frame.
  #watchTrack(place, track, pictures) {
    const { readable } = new MediaStreamTrackProcessor({ track });
    const worker = new Worker(new URL("quality-worker.js", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }) => this.#add(place, data));
    worker.postMessage({ readable, pictures }, [readable]);
  }
}
