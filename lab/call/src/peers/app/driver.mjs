// Drives one participant of an application under test. Runs on the participant's host, beside its
// browser, and speaks lines: a JSON object with the settings in, one JSON array a report out.
//
// Each RTCPeerConnection is found before the page's own code runs, in every frame: the constructor
// is wrapped by a script that the browser runs in each new document. Workers have no
// RTCPeerConnection [WEBRTC: Exposed=Window].
//
// Chromium is driven over its own protocol, Firefox over WebDriver BiDi.
//
// Output, as in an rtcstats dump: [name, connection, value, time in ms since 1970].

import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createInterface } from "node:readline";

import { watchPages } from "./displayed_frames.mjs";

/** How long the browser may take to start, and the page to answer, in ms. */
const PATIENCE_MS = 30_000;
const RETRY_MS = 200;
/** Time between two looks for the first frame, in ms. Chromium answers anew after as long. */
const FRAME_WAIT_MS = 50;
/** Reports of a page that are later than this are told, in ms. */
const STALL_MS = 2_000;
/** How long a page may take to answer at the end, in ms. */
const END_MS = 5_000;

// The dump has only this driver's lines: what a script prints goes to the terminal.
const writeLine = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
const write = (event) => writeLine(`${JSON.stringify(event)}\n`);
const say = (...event) => write([...event, Date.now()]);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Tries until it works, or until the patience ends. */
async function patiently(attempt) {
  for (const end = Date.now() + PATIENCE_MS; ; ) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(RETRY_MS);
    }
  }
}

/** Playwright, from the folder of the script, from here, or from the folder that is named. */
async function playwright(settings) {
  const bases = [settings.playwright, settings.join, settings.folder].filter(Boolean);
  for (const base of bases) {
    for (const name of ["playwright-core", "playwright"]) {
      try {
        const place = createRequire(base.endsWith("/") ? `${base}x.js` : base).resolve(name);
        const found = await import(pathToFileURL(place).href);
        return found.chromium ? found : found.default;
      } catch {
        // The next place.
      }
    }
  }
  throw new Error(
    "no playwright-core found: npm install playwright-core beside the script, or name its folder in WEIR_PLAYWRIGHT",
  );
}

/** Runs in every frame, before the page's own code. */
function watch({ binding, interval, frameWait, stall }) {
  const tell = globalThis[binding];
  const Native = globalThis.RTCPeerConnection;
  if (!Native || !tell) return;
  const report = (event, name, value) => tell(event, name, value, Date.now());
  const frame = Math.random().toString(36).slice(2, 8);
  /** Those that are not closed. */
  const names = new Map();
  let count = 0;
  const sample = async (pc, name) => {
    const objects = {};
    for (const [id, object] of await pc.getStats()) objects[id] = object;
    report("getStats", name, objects);
  };
  /** When the first frame of a received video was decoded, to one poll. */
  const awaitFrame = (pc, name, { receiver, transceiver }) => {
    let isKnown = false;
    const poll = setInterval(async () => {
      if (isKnown || pc.connectionState === "closed") return clearInterval(poll);
      for (const object of (await receiver.getStats()).values()) {
        if (isKnown || object.type !== "inbound-rtp" || !(object.framesDecoded > 0)) continue;
        isKnown = true;
        report("firstFrame", name, { mid: transceiver.mid, ssrc: object.ssrc });
      }
    }, frameWait);
  };
  const observe = (pc) => {
    count += 1;
    const name = `${frame}-${count}`;
    names.set(pc, name);
    report("create", name, location.href);
    const states = {
      connectionstatechange: "connectionState",
      iceconnectionstatechange: "iceConnectionState",
      signalingstatechange: "signalingState",
    };
    for (const [event, state] of Object.entries(states))
      pc.addEventListener(event, () => report(`on${event}`, name, pc[state]));
    pc.addEventListener("negotiationneeded", () => report("onnegotiationneeded", name, null));
    pc.addEventListener("track", (event) => {
      report("ontrack", name, event.track.kind);
      if (event.track.kind === "video") awaitFrame(pc, name, event);
    });
    let wasConnected = false;
    let last = performance.now();
    const timer = setInterval(() => {
      const late = performance.now() - last - interval;
      if (late > stall) report("stalled", name, Math.round(late));
      last = performance.now();
      wasConnected ||= pc.connectionState === "connected";
      if (pc.connectionState === "closed") {
        clearInterval(timer);
        names.delete(pc);
        // An outage is a part of the call: its reports have no bytes.
      } else if (wasConnected) sample(pc, name).catch(() => {});
    }, interval);
  };
  const encoding = ({
    rid,
    active,
    maxBitrate,
    maxFramerate,
    scaleResolutionDownBy,
    scalabilityMode,
  }) => ({
    rid,
    active,
    maxBitrate,
    maxFramerate,
    scaleResolutionDownBy,
    scalabilityMode,
  });
  /** What an argument is, without what it contains of the user's. */
  const kind = (value) => {
    if (value === null || value === undefined) return null;
    if (typeof value !== "object") return String(value).slice(0, 40);
    const encodings = value.encodings ?? value.sendEncodings;
    if (Array.isArray(encodings)) return encodings.map(encoding);
    if (typeof value.candidate === "string")
      return value.candidate === "" ? "end of candidates" : "candidate";
    if (typeof value.sdp === "string" || value.type === "rollback") return value.type;
    if (value.kind === "audio" || value.kind === "video") return `${value.kind} track`;
    return value.constructor?.name ?? "object";
  };
  const wrap = (prototype, methods, connectionOf) => {
    for (const method of methods.filter((name) => typeof prototype?.[name] === "function"))
      prototype[method] = new Proxy(prototype[method], {
        apply(target, self, values) {
          const name = names.get(connectionOf(self));
          if (name)
            report(method, name, [...values].filter((it) => typeof it !== "function").map(kind));
          return Reflect.apply(target, self, values);
        },
      });
  };
  const some = (list) => (self) => [...names.keys()].find((pc) => list(pc).includes(self));
  wrap(
    Native.prototype,
    // biome-ignore format: one line is easier to read
    ["createOffer", "createAnswer", "setLocalDescription", "setRemoteDescription", "addIceCandidate", "addTrack", "removeTrack", "addTransceiver", "createDataChannel", "restartIce", "setConfiguration", "close"],
    (pc) => pc,
  );
  const senders = some((pc) => pc.getSenders());
  wrap(globalThis.RTCRtpSender?.prototype, ["replaceTrack", "setParameters"], senders);
  const transceivers = some((pc) => pc.getTransceivers());
  wrap(globalThis.RTCRtpTransceiver?.prototype, ["stop", "setCodecPreferences"], transceivers);
  const construct = (target, values, wanted) => {
    const pc = Reflect.construct(target, values, wanted);
    observe(pc);
    return pc;
  };
  globalThis.RTCPeerConnection = new Proxy(Native, { construct });
  if (globalThis.webkitRTCPeerConnection)
    globalThis.webkitRTCPeerConnection = globalThis.RTCPeerConnection;
}

/** What Firefox answers to a command of WebDriver BiDi that it does not have yet. */
const UNKNOWN_COMMAND = /^\{"type":"error","id":(\d+),"error":"unknown command"/;

/**
 * Takes what a WebSocket's server sends, and gives it on with a success in place of each unknown command. Frames of a
 * server are not masked [RFC 6455 §5.2].
 */
function forgiving() {
  let held = Buffer.alloc(0);
  return (bytes) => {
    held = Buffer.concat([held, bytes]);
    const out = [];
    while (held.length >= 2) {
      const short = held[1] & 0x7f;
      const head = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (held.length < head) break;
      let length = short;
      if (short === 126) length = held.readUInt16BE(2);
      if (short === 127) length = Number(held.readBigUInt64BE(2));
      if (held.length < head + length) break;
      const frame = held.subarray(0, head + length);
      const unknown = UNKNOWN_COMMAND.exec(frame.toString("utf8", head, head + 80));
      if (frame[0] === 0x81 && unknown) {
        const text = `{"type":"success","id":${unknown[1]},"result":{}}`;
        out.push(Buffer.from([0x81, text.length]), Buffer.from(text));
      } else out.push(frame);
      held = held.subarray(head + length);
    }
    return Buffer.concat(out);
  };
}

/** Listens for Playwright, in front of Firefox's WebDriver BiDi at `port`. Resolves to its own port. */
function goBetween(port) {
  const server = createServer((client) => {
    const firefox = connect(port, "127.0.0.1");
    const forgive = forgiving();
    let heading = Buffer.alloc(0);
    client.once("data", (request) => {
      // Firefox answers only to requests for its own port.
      const own = `127.0.0.1:${server.address().port}`;
      const text = request.toString("latin1").replaceAll(own, `127.0.0.1:${port}`);
      firefox.write(text, "latin1");
      client.pipe(firefox);
    });
    firefox.on("data", (bytes) => {
      if (heading === undefined) return void client.write(forgive(bytes));
      heading = Buffer.concat([heading, bytes]);
      const end = heading.indexOf("\r\n\r\n") + 4;
      if (end < 4) return;
      client.write(heading.subarray(0, end));
      client.write(forgive(heading.subarray(end)));
      heading = undefined;
    });
    for (const [one, other] of [
      [client, firefox],
      [firefox, client],
    ])
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(server.address().port));
  });
}

/** A page in the Chromium that runs beside this. */
async function pageOfChromium(settings, { chromium }) {
  const browser = await patiently(() =>
    chromium.connectOverCDP(`http://127.0.0.1:${settings.port}`),
  );
  const context = browser.contexts()[0];
  return context.pages()[0] ?? (await context.newPage());
}

/** Whether something listens on a port here. */
function listens(port) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket.destroy()));
    socket.on("error", reject);
  });
}

/**
 * A page in the Firefox that runs beside this. Playwright speaks WebDriver BiDi only with a Firefox that it has started,
 * so it starts a stand-in that tells it where the Firefox is.
 */
async function pageOfFirefox(settings, { firefox }) {
  await patiently(() => listens(settings.port));
  const port = await goBetween(settings.port);
  const executablePath = join(settings.temporary, `firefox-${settings.number}`);
  const told = `WebDriver BiDi listening on ws://127.0.0.1:${port}`;
  writeFileSync(executablePath, `#!/bin/sh\necho '${told}' >&2\nexec sleep 1000000\n`, {
    mode: 0o755,
  });
  const browser = await firefox.launch({ channel: "moz-firefox", executablePath });
  const context = await browser.newContext({
    viewport: null,
    ignoreHTTPSErrors: settings.ignoreCertificates,
  });
  return context.newPage();
}

/** Tells what becomes of a page. */
function follow(page) {
  page.on("crash", () => say("failed", null, "its page crashed"));
  page.on("close", () => say("closed", null, page.url()));
  page.on("pageerror", (error) => say("pageerror", null, String(error).slice(0, 300)));
  page.on("framenavigated", (frame) => {
    if (frame === page.mainFrame()) say("navigated", null, frame.url());
  });
}

let context;
/** Lets a frame tell what it has not told yet, and resolves then. */
let finish = (frame) => frame.evaluate("0");

/** Waits for what the pages have reported: it comes before their answers. */
async function end() {
  const frames = context?.pages().flatMap((page) => page.frames()) ?? [];
  const answers = frames.map((frame) => finish(frame).catch(() => {}));
  const late = sleep(END_MS).then(() => "late");
  if ((await Promise.race([Promise.all(answers), late])) === "late")
    say("failed", null, "its page did not answer at the end");
}

async function main(settings) {
  const open = settings.browser === "firefox" ? pageOfFirefox : pageOfChromium;
  const page = await open(settings, await playwright(settings));
  context = page.context();
  const binding = `__${Math.random().toString(36).slice(2)}`;
  await context.exposeBinding(binding, (_, ...event) => write(event));
  const { interval } = settings;
  await context.addInitScript(watch, {
    binding,
    interval,
    frameWait: FRAME_WAIT_MS,
    stall: STALL_MS,
  });
  if (settings.quality) finish = await watchPages(context, settings, binding);
  follow(page);
  context.on("page", follow);
  await patiently(() => page.goto(settings.url, { waitUntil: "load", timeout: PATIENCE_MS }));
  say("opened", null, page.url());
  if (settings.join) {
    const script = await import(pathToFileURL(settings.join).href).catch((error) => {
      throw new Error(`cannot load ${settings.join}: ${error.message}`);
    });
    if (typeof script.default !== "function")
      throw new Error("the script has no default export that is a function");
    await script.default(page, settings.number, settings);
  }
  say("joined", null, settings.number);
}

function fail(error) {
  const [first] = String(error?.message ?? `the script threw ${error}`).split("\n");
  say("failed", null, first.slice(0, 300));
}

// A script goes on after its function has ended, in timers for example.
process.on("uncaughtException", fail);
const told = (code) => fail(new Error(`the script ended its driver with exit code ${code}`));
process.on("exit", told);
process.stdin.on("end", async () => {
  await end();
  process.off("exit", told).exit(0);
});
const lines = createInterface({ input: process.stdin });
lines.once("line", (line) => {
  main(JSON.parse(line)).catch(fail);
});
