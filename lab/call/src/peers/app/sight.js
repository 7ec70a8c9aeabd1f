// Runs in every frame of an application's pages, before their own code and behind `page/frames.js`,
// also where a policy of the page forbids workers and scripts from elsewhere. It watches the page's
// camera, the videos that it receives, and those that it shows.

/** How often a page tells the driver, in ms. */
const TELL_INTERVAL = 500;
/** Bytes that become text at once. */
const PIECE = 0x8000;

function base64Of(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += PIECE)
    text += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  return btoa(text);
}

/** What the page saw and has not told yet. */
class Told {
  #tell;
  #videos = 0;
  #waiting = [];
  #frame = Math.random().toString(36).slice(2, 8);

  constructor(tell) {
    this.#tell = tell;
    setInterval(() => this.flush(), TELL_INTERVAL);
  }

  /** Where the sightings of one more video go. */
  video(place) {
    this.#videos += 1;
    const told = { place, video: `${this.#frame}-${this.#videos}`, frames: [] };
    this.#waiting.push(told);
    return told;
  }

  flush() {
    for (const told of this.#waiting) {
      const frames = told.frames.splice(0);
      if (frames.length > 0) this.#tell("frames", { ...told, frames });
    }
  }

  /** Tells a whole picture every half second. A picture that waits means that the driver is busy. */
  pictures() {
    let next = 0;
    let isBusy = false;
    return async (frame, sighting) => {
      const now = performance.now();
      if (now < next || isBusy) return;
      next = now + PICTURE_INTERVAL;
      isBusy = true;
      const pixels = await pixelsOf(frame);
      // The driver needs the luma alone.
      const luma = pixels?.subarray(0, sighting.width * sighting.height);
      if (luma) await this.#tell("picture", base64Of(messageOf(sighting, luma)));
      isBusy = false;
    };
  }
}

/** Reads a copy of a track, which the page does not know. Returns the copy. */
function watchTrack(track, see) {
  const copy = track.clone();
  const reader = new MediaStreamTrackProcessor({ track: copy }).readable.getReader();
  const read = async () => {
    for (;;) {
      const { done, value: frame } = await reader.read();
      if (done) return;
      const at = since1970(performance.now());
      await see(frame, await sightingOf(frame, at));
      frame.close();
    }
  };
  read();
  return copy;
}

/** A camera that a canvas plays: the pictures of the lab's camera, with their tags, in a loop. */
async function drawnCamera({ fps, pictures }, seen) {
  const bitmaps = [];
  const blocks = [];
  for (const text of pictures) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/jpeg" }));
    const frame = new VideoFrame(bitmap, { timestamp: 0 });
    blocks.push(await blocksOf(frame));
    frame.close();
    bitmaps.push(bitmap);
  }
  const { width, height } = bitmaps[0];
  return canvasCamera(bitmaps, fps, (now, index) => {
    const sighting = { atMs: since1970(now), timestampUs: 1000 * now, width, height };
    seen.frames.push({ ...sighting, blocks: blocks[index] });
  });
}

/** Passes each new object of a class to `see`. */
function onNew(name, see) {
  const construct = (target, values, wanted) => {
    const object = Reflect.construct(target, values, wanted);
    see(object);
    return object;
  };
  if (globalThis[name]) globalThis[name] = new Proxy(globalThis[name], { construct });
}

/** Watches the page. `draws` says that the browser's own camera cannot play a file. */
function sight({ binding, flush, draws }) {
  const tell = globalThis[binding];
  const devices = globalThis.MediaDevices?.prototype;
  if (!tell || !devices || !globalThis.VideoFrame) return;
  const told = new Told(tell);
  Object.defineProperty(globalThis, flush, { value: () => told.flush() });
  const hasProcessor = "MediaStreamTrackProcessor" in globalThis;
  const own = new WeakSet();
  const watchCamera = (track) => {
    own.add(track);
    if (draws) return;
    const { frames } = told.video("camera");
    const copy = watchTrack(track, (_, sighting) => frames.push(sighting));
    const stop = track.stop.bind(track);
    // The camera would stay open.
    track.stop = () => {
      copy.stop();
      stop();
    };
  };
  let drawn = null;
  const open = async (target, self, [wanted = {}]) => {
    const { video, ...others } = wanted;
    const isDrawn = draws && video;
    const media =
      isDrawn && !others.audio
        ? new MediaStream()
        : await Reflect.apply(target, self, [isDrawn ? others : wanted]);
    if (isDrawn) {
      drawn ??= tell("camera").then((camera) => drawnCamera(camera, told.video("camera")));
      media.addTrack((await drawn).clone());
    }
    for (const track of media.getVideoTracks()) watchCamera(track);
    return media;
  };
  devices.getUserMedia = new Proxy(devices.getUserMedia, { apply: open });
  if (hasProcessor)
    onNew("RTCPeerConnection", (connection) =>
      connection.addEventListener("track", ({ track }) => {
        if (track.kind !== "video") return;
        const { frames } = told.video("track");
        const picture = told.pictures();
        watchTrack(track, async (frame, sighting) => {
          frames.push(sighting);
          await picture(frame, sighting);
        });
      }),
    );
  const watched = new WeakSet();
  const watchElement = (element, stream) => {
    const isOwn = stream.getVideoTracks?.().some((track) => own.has(track));
    if (isOwn || watched.has(element)) return;
    watched.add(element);
    const { frames } = told.video("screen");
    const picture = hasProcessor ? null : told.pictures();
    watchScreen(element, async (frame, sighting) => {
      frames.push(sighting);
      await picture?.(frame, sighting);
    });
  };
  const media = HTMLMediaElement.prototype;
  const source = Object.getOwnPropertyDescriptor(media, "srcObject");
  Object.defineProperty(media, "srcObject", {
    ...source,
    set(stream) {
      source.set.call(this, stream);
      if (stream && this instanceof HTMLVideoElement) watchElement(this, stream);
    },
  });
}
