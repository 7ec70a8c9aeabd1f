// Tells the lab which frames pass this page, and when. Each frame of the lab's camera has a tag in
// its top rows: 40 blocks from edge to edge. The page measures their luma, and the lab reads them.

const BLOCKS = 40;
/** How often the page tells, in ms, and the most frames of one message. */
const INTERVAL = 500;
const FRAMES_MAX = 50;

/** Milliseconds since 1970. */
export const since1970 = (now) => performance.timeOrigin + now;

/** Pixels at each edge of a block that are not measured, because the codec blurs them. */
const edgeOf = (length) => (length === 3 ? 1 : Math.floor(length / 4));

/** Mean luma of the middle of each block, as hexadecimal digits. Empty if the frame is too small. */
export async function blocksOf(frame) {
  const { x, y, width } = frame.visibleRect;
  const side = Math.floor(width / BLOCKS);
  if (side === 0) return "";
  // Copies need an even number of rows, because two rows share their chroma.
  const rect = { x, y, width, height: side + (side % 2) };
  const bytes = new Uint8Array(frame.allocationSize({ rect }));
  // Planes of luma, or pixels of four bytes. The tag has no colour, so green is its luma.
  const [step, first] = /^(RGB|BGR)/.test(frame.format) ? [4, 1] : [1, 0];
  const [{ offset, stride }] = await frame.copyTo(bytes, { rect });
  const top = edgeOf(side);
  const bottom = side - top;
  let text = "";
  for (let block = 0; block < BLOCKS; block += 1) {
    const start = Math.ceil((block * width) / BLOCKS);
    const end = Math.ceil(((block + 1) * width) / BLOCKS);
    const left = start + edgeOf(end - start);
    const right = end - edgeOf(end - start);
    let sum = 0;
    for (let row = top; row < bottom; row += 1) {
      for (let column = left; column < right; column += 1) {
        sum += bytes[offset + row * stride + column * step + first];
      }
    }
    const mean = Math.floor(sum / ((bottom - top) * (right - left)));
    text += mean.toString(16).padStart(2, "0");
  }
  return text;
}

const sizeOf = (frame) => ({
  width: Math.round(frame.visibleRect.width),
  height: Math.round(frame.visibleRect.height),
});

/** What the lab is told of a frame. A frame that cannot be copied has no blocks. */
export async function sightingOf(frame, atMs) {
  const size = sizeOf(frame);
  const blocks = await blocksOf(frame).catch(() => "");
  return { atMs, timestampUs: frame.timestamp, ...size, blocks };
}

/**
 * Luma of each pixel, row by row, and behind it both planes of chroma, if the frame has them apart;
 * null if the frame has pixels of another kind.
 */
export async function pixelsOf(frame) {
  if (!/^(I420|NV12)/.test(frame.format ?? "")) return null;
  const { width, height } = sizeOf(frame);
  const half = [Math.ceil(width / 2), Math.ceil(height / 2)];
  const sizes = frame.format === "I420" ? [[width, height], half, half] : [[width, height]];
  const bytes = new Uint8Array(frame.allocationSize());
  const planes = await frame.copyTo(bytes);
  const pixels = new Uint8Array(sizes.reduce((sum, [columns, rows]) => sum + columns * rows, 0));
  let end = 0;
  for (const [index, [columns, rows]] of sizes.entries()) {
    const { offset, stride } = planes[index];
    for (let row = 0; row < rows; row += 1) {
      const start = offset + row * stride;
      pixels.set(bytes.subarray(start, start + columns), end);
      end += columns;
    }
  }
  return pixels;
}

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
    this.#watchTrack("camera", track, null);
  }

  /** A received video: on its track, and on the screen. */
  watchReceived(track, video) {
    const pictures = new URL(`${location.pathname}/pictures`, location.href);
    pictures.protocol = "ws:";
    this.#watchTrack("track", track, pictures.href);
    this.#watchScreen(video);
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

  #watchScreen(video) {
    const onPicture = (_, { presentationTime, presentedFrames }) => {
      video.requestVideoFrameCallback(onPicture);
      this.#see(video, since1970(presentationTime), presentedFrames);
    };
    video.requestVideoFrameCallback(onPicture);
  }

  async #see(video, atMs, presented) {
    let frame = null;
    try {
      frame = new VideoFrame(video);
    } catch {
      // Chromium has no frame yet at the first callback.
      return;
    }
    const sighting = await sightingOf(frame, atMs);
    frame.close();
    this.#add("screen", { ...sighting, presented });
  }
}
