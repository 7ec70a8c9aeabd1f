// What the lab is told of a frame. Each frame of the lab's camera has a tag in its top rows: 40 blocks
// from edge to edge. A page measures their luma, and the lab reads them. The pages of applications under
// test get this file as a script without modules, so `export` begins a line and nothing is imported.

const BLOCKS = 40;
/** Between two pictures of a video that are sent whole, in ms. */
export const PICTURE_INTERVAL = 500;

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

/** A track that plays pictures in a loop, `fps` a second. `shown` hears the time and the index of each. */
export function canvasCamera(bitmaps, fps, shown = () => {}) {
  const canvas = document.createElement("canvas");
  const { width, height } = bitmaps[0];
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  const start = performance.now();
  let last = -1;
  const draw = () => {
    const now = performance.now();
    const number = Math.floor(((now - start) * fps) / 1000);
    if (number === last) return;
    last = number;
    const index = number % bitmaps.length;
    context.drawImage(bitmaps[index], 0, 0);
    shown(now, index);
  };
  draw();
  setInterval(draw, 1000 / fps / 4);
  return canvas.captureStream().getVideoTracks()[0];
}

/** What the lab is told of a frame. A frame that cannot be copied has no blocks. */
export async function sightingOf(frame, atMs) {
  const size = sizeOf(frame);
  const blocks = await blocksOf(frame).catch(() => "");
  return { atMs, timestampUs: frame.timestamp, ...size, blocks };
}

/** Luma of pixels of four bytes, of limited range (ITU-R BT.601). `isBgr` tells the order of the colours. */
function lumaOf(bytes, { offset, stride }, { width, height }, isBgr) {
  const luma = new Uint8Array(width * height);
  const [red, blue] = isBgr ? [2, 0] : [0, 2];
  for (let row = 0; row < height; row += 1) {
    for (let column = 0; column < width; column += 1) {
      const at = offset + row * stride + 4 * column;
      const sum = 65.738 * bytes[at + red] + 129.057 * bytes[at + 1] + 25.064 * bytes[at + blue];
      luma[row * width + column] = Math.round(16 + sum / 256);
    }
  }
  return luma;
}

/**
 * Luma of each pixel, row by row, and behind it both planes of chroma, if the frame has them apart;
 * null if the frame has pixels of another kind.
 */
export async function pixelsOf(frame) {
  if (/^(RGB|BGR)/.test(frame.format ?? "")) {
    const bytes = new Uint8Array(frame.allocationSize());
    const [plane] = await frame.copyTo(bytes);
    return lumaOf(bytes, plane, sizeOf(frame), frame.format.startsWith("BGR"));
  }
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

/** Length of the sighting in 4 bytes, the sighting, and the pixels. */
export function messageOf(sighting, pixels) {
  const text = new TextEncoder().encode(JSON.stringify(sighting));
  const message = new Uint8Array(4 + text.length + pixels.length);
  new DataView(message.buffer).setUint32(0, text.length);
  message.set(text, 4);
  message.set(pixels, 4 + text.length);
  return message;
}

/** Passes each picture that a video shows to `see`, with the time of showing and the browser's count. */
export function watchScreen(video, see) {
  const onPicture = async (_, { presentationTime, presentedFrames, rtpTimestamp }) => {
    video.requestVideoFrameCallback(onPicture);
    let frame = null;
    try {
      frame = new VideoFrame(video);
    } catch {
      // Chromium has no frame yet at the first callback.
      return;
    }
    const told = { presented: presentedFrames };
    // Only received pictures have one.
    if (rtpTimestamp !== undefined) told.rtp = rtpTimestamp;
    await see(frame, { ...(await sightingOf(frame, since1970(presentationTime))), ...told });
    frame.close();
  };
  video.requestVideoFrameCallback(onPicture);
}
