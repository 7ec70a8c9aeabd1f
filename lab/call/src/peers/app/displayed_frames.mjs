// The driver's part of `--quality`: puts the watching script into the pages, and keeps what they see.
//
// Two files: lines of JSON with the frames of a video, and pictures, each behind its length in four bytes.

import { execFile } from "node:child_process";
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

/** The pictures of the camera's file, for a page that draws its own camera. */
async function pictures({ camera, fps }, place) {
  mkdirSync(place);
  const out = ["-q:v", "2", "-f", "image2", join(place, "%04d.jpg")];
  await promisify(execFile)("ffmpeg", ["-v", "error", "-i", camera, ...out]);
  const files = readdirSync(place).sort();
  const texts = files.map((name) => readFileSync(join(place, name), "base64"));
  rmSync(place, { recursive: true });
  return { fps, pictures: texts };
}

/** Watches all pages of a context. Returns a function that lets them tell the rest. */
export async function watchPages(context, { quality, browser, number, temporary }, name) {
  const { camera, frames, pictures: kept } = quality;
  writeFileSync(frames, "");
  writeFileSync(kept, "");
  // Several pages may ask: one before it goes to another address, for example.
  let made = null;
  const tell = async (_, what, value) => {
    if (what === "camera") {
      made ??= pictures(quality, join(temporary, `camera-${number}`));
      return made;
    }
    if (what === "frames") return appendFileSync(frames, `${JSON.stringify(value)}\n`);
    const message = Buffer.from(value, "base64");
    const length = Buffer.alloc(4);
    length.writeUInt32BE(message.length);
    appendFileSync(kept, Buffer.concat([length, message]));
  };
  const [binding, flush] = [`${name}s`, `${name}f`];
  await context.exposeBinding(binding, tell);
  const read = (file) => readFileSync(new URL(file, import.meta.url), "utf8");
  const shared = read("frames.js").replaceAll(/^export /gm, "");
  const settings = JSON.stringify({
    binding,
    flush,
    draws: browser === "firefox" && camera !== null,
  });
  const content = `(() => {\n${shared}\n${read("sight.js")}\nsight(${settings});\n})();`;
  await context.addInitScript({ content });
  return (frame) => frame.evaluate((name) => globalThis[name]?.(), flush);
}
