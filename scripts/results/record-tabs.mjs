#!/usr/bin/env node
// Records the reports of a real call between two Chromium as a dump, in conditions that a page meets by itself:
//
//     scripts/results/record-tabs.mjs mtu FILE            packets of at most 1280 bytes, as in a tunnel
//     scripts/results/record-tabs.mjs hidden FILE         another tab in front from 7 s to 14 s; a camera sends
//     scripts/results/record-tabs.mjs hidden-canvas FILE  the same, but the page draws what it sends
//
// The call runs in `weir link` (WEIR names the program), 18 s long, on the known network FREE. The camera shows a moving
// zone plate, which fills a link; a canvas shows the same. Needs Chromium, gst-launch-1.0 and the rights of `weir link`. No driver is attached to the page: Playwright's keeps each page visible.

import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ME = fileURLToPath(import.meta.url);
const [PORT, DEBUGGED] = [9000, 9333];
const A = "10.45.0.1";
const [CALL_MS, HIDE_MS, SHOW_MS] = [18_000, 7_000, 14_000];
const FREE = `title = "A free path"
source = "scripts/results/record-tabs.mjs"
description = "20 Mbit/s each way, 20 ms."
duration = "60s"
network = { up = { capacity = "20Mbps", delay = "20ms" }, down = { capacity = "20Mbps", delay = "20ms" } }
flow = [{ direction = "up" }]
`;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The page's own code. `me` is `a` or `b`; only `a` sends its reports. */
async function call(me, isDrawn) {
  const other = me === "a" ? "b" : "a";
  const post = (path, value) => fetch(path, { method: "POST", body: JSON.stringify(value) });
  const say = (event, connection, value) =>
    me === "a" && post("/dump", [event, connection, value, Date.now()]);
  const connection = new RTCPeerConnection();
  say("create", "1", location.href);
  connection.onconnectionstatechange = () =>
    say("onconnectionstatechange", "1", connection.connectionState);
  document.onvisibilitychange = () => say("visibilitychange", null, document.visibilityState);
  const video = { width: 640, height: 360, frameRate: 30 };
  let stream = await navigator.mediaDevices.getUserMedia({ video });
  if (isDrawn) {
    const camera = document.createElement("video");
    camera.srcObject = stream;
    camera.muted = true;
    await camera.play();
    const canvas = Object.assign(document.createElement("canvas"), { width: 640, height: 360 });
    const draw = () => {
      canvas.getContext("2d").drawImage(camera, 0, 0);
      requestAnimationFrame(draw);
    };
    draw();
    stream = canvas.captureStream(30);
  }
  for (const track of stream.getTracks()) connection.addTrack(track, stream);
  connection.ontrack = ({ streams }) => {
    const seen = document.createElement("video");
    document.body.append(
      Object.assign(seen, { srcObject: streams[0], muted: true, autoplay: true }),
    );
  };
  const described = async () => {
    if (connection.iceGatheringState !== "complete")
      await new Promise((done) => {
        connection.onicegatheringstatechange = () =>
          connection.iceGatheringState === "complete" && done();
      });
    await post(`/to/${other}`, connection.localDescription);
  };
  const answer = async () => {
    for (;;) {
      const text = await (await fetch(`/for/${me}`)).text();
      if (text) return JSON.parse(text);
      await new Promise((done) => setTimeout(done, 200));
    }
  };
  if (me === "a") {
    await connection.setLocalDescription();
    await described();
    await connection.setRemoteDescription(await answer());
    setInterval(async () => {
      const objects = {};
      for (const [id, object] of await connection.getStats()) objects[id] = object;
      if (connection.connectionState === "connected") say("getStats", "1", objects);
    }, 1000);
  } else {
    await connection.setRemoteDescription(await answer());
    await connection.setLocalDescription();
    await described();
  }
}

const page = (isDrawn) => `<!doctype html><meta charset="utf-8"><body><script type="module">
${call}
call(location.search.slice(1), ${isDrawn}).catch((error) => { document.title = String(error); });
</script>`;

/** Serves the page, passes descriptions on, and writes the lines of the dump. */
function serve(kind, file, onConnected) {
  const waiting = new Map();
  return createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const [, what, name] = request.url.split("/");
    if (what === "to") waiting.set(name, body);
    else if (what === "for") response.write(waiting.get(name) ?? "");
    else if (what === "dump") {
      appendFileSync(file, `${body}\n`);
      if (body.startsWith('["onconnectionstatechange","1","connected"')) onConnected();
    } else response.setHeader("content-type", "text/html").write(page(kind === "hidden-canvas"));
    response.end();
  }).listen(PORT, "0.0.0.0");
}

/** Writes what the camera shows, for 3 s that repeat: in the browser's own picture little moves. */
function film(file) {
  const pattern = "pattern=zone-plate kx2=20 ky2=20 kt=1 num-buffers=90";
  const form = "video/x-raw,format=I420,width=640,height=360,framerate=30/1";
  const words = `-q videotestsrc ${pattern} ! ${form} ! y4menc ! filesink location=${file}`;
  const { status } = spawnSync("gst-launch-1.0", words.split(" "), { stdio: "inherit" });
  if (status !== 0) throw new Error("gst-launch-1.0 cannot make the camera's film");
}

/** Starts Chromium at an address. Returns what ends it. */
function browse(address, ...options) {
  const profile = mkdtempSync(join(tmpdir(), "record-tabs-"));
  const camera = join(profile, "camera.y4m");
  film(camera);
  const media = ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream"];
  media.push(`--use-file-for-fake-video-capture=${camera}`);
  const words = ["--headless=new", "--no-sandbox", "--no-first-run", `--user-data-dir=${profile}`];
  const browser = spawn("chromium", [...words, ...media, ...options, address], { stdio: "ignore" });
  return async () => {
    const ended = new Promise((resolve) => browser.once("exit", resolve));
    browser.kill();
    await ended;
    rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  };
}

/** Packets of at most 1280 bytes leave this host. */
function narrow(kind) {
  if (kind !== "mtu") return;
  const { status } = spawnSync("ip", ["link", "set", "dev", "weir0", "mtu", "1280"]);
  if (status !== 0) throw new Error("cannot set the MTU of weir0");
}

/** Puts another tab in front for a while. */
async function hide() {
  const ask = (path, method = "GET") =>
    fetch(`http://127.0.0.1:${DEBUGGED}/json/${path}`, { method });
  const tabs = await (await ask("list")).json();
  const own = tabs.find((it) => it.type === "page" && it.url.includes(`:${PORT}`));
  await sleep(HIDE_MS);
  const front = await (await ask("new?about:blank", "PUT")).json();
  await ask(`activate/${front.id}`);
  await sleep(SHOW_MS - HIDE_MS);
  await ask(`activate/${own.id}`);
}

async function atA(kind, file) {
  narrow(kind);
  writeFileSync(file, 'RTCStatsDump\n{"fileFormat":3}\n');

  const connected = new Promise((resolve) => {
    serve(kind, file, resolve);
  });
  const end = browse(`http://127.0.0.1:${PORT}/?a`, `--remote-debugging-port=${DEBUGGED}`);
  const late = sleep(30_000).then(() => "late");
  const isLate = (await Promise.race([connected, late])) === "late";
  if (!isLate) await Promise.all([sleep(CALL_MS), kind.startsWith("hidden") && hide()]);
  await end();
  process.exit(isLate ? 1 : 0);
}

async function atB(kind) {
  narrow(kind);
  await sleep(3_000);
  const origin = `http://${A}:${PORT}`;
  browse(`${origin}/?b`, `--unsafely-treat-insecure-origin-as-secure=${origin}`);
}

function main([kind, file, host]) {
  if (host === "a") return atA(kind, file);
  if (host === "b") return atB(kind);
  if (!["mtu", "hidden", "hidden-canvas"].includes(kind) || !file) {
    console.error("usage: scripts/results/record-tabs.mjs mtu|hidden|hidden-canvas FILE");
    process.exit(2);
  }
  const place = mkdtempSync(join(tmpdir(), "record-tabs-"));
  const network = join(place, "free.toml");
  writeFileSync(network, FREE);
  const peer = `${process.execPath} ${ME} ${kind} - b`;
  const words = ["link", network, "--peer", peer, "--", process.execPath, ME, kind, file, "a"];
  const { status } = spawnSync(process.env.WEIR ?? "weir", words, { stdio: "inherit" });
  rmSync(place, { recursive: true });
  process.exit(status ?? 1);
}

main(process.argv.slice(2));
