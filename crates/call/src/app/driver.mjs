// Drives one participant of an application under test. Runs on the participant's host, beside its
// Chromium, and speaks lines: a JSON object with the settings in, one JSON array a report out.
//
// Each RTCPeerConnection is found before the page's own code runs, in every frame: the constructor
// is wrapped by a script that the browser runs in each new document.
//
// Output, as in an rtcstats dump: [name, connection, value, time in ms since 1970].

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { createInterface } from "node:readline";

/** How long the browser may take to start, and the page to answer, in ms. */
const PATIENCE_MS = 30_000;
const RETRY_MS = 200;

const say = (...event) => process.stdout.write(`${JSON.stringify([...event, Date.now()])}\n`);
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
        return found.chromium ?? found.default.chromium;
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
function watch({ binding, interval }) {
  const report = globalThis[binding];
  const Native = globalThis.RTCPeerConnection;
  if (!Native || !report) return;
  const frame = Math.random().toString(36).slice(2, 8);
  let count = 0;
  const sample = async (pc, name) => {
    const objects = {};
    for (const [id, object] of await pc.getStats()) objects[id] = object;
    report("getStats", name, objects);
  };
  const observe = (pc) => {
    count += 1;
    const name = `${frame}-${count}`;
    report("create", name, location.href);
    for (const event of [
      "connectionstatechange",
      "iceconnectionstatechange",
      "signalingstatechange",
    ]) {
      const state =
        {
          connectionstatechange: "connectionState",
          iceconnectionstatechange: "iceConnectionState",
        }[event] ?? "signalingState";
      pc.addEventListener(event, () => report(`on${event}`, name, pc[state]));
    }
    const timer = setInterval(() => {
      if (pc.connectionState === "closed") clearInterval(timer);
      else if (pc.connectionState === "connected") sample(pc, name).catch(() => {});
    }, interval);
  };
  const construct = (target, values, wanted) => {
    const pc = Reflect.construct(target, values, wanted);
    observe(pc);
    return pc;
  };
  globalThis.RTCPeerConnection = new Proxy(Native, { construct });
  if (globalThis.webkitRTCPeerConnection)
    globalThis.webkitRTCPeerConnection = globalThis.RTCPeerConnection;
}

async function main(settings) {
  const chromium = await playwright(settings);
  const browser = await patiently(() =>
    chromium.connectOverCDP(`http://127.0.0.1:${settings.port}`),
  );
  const context = browser.contexts()[0];
  const page = context.pages()[0] ?? (await context.newPage());
  const binding = `__${Math.random().toString(36).slice(2)}`;
  await context.exposeBinding(binding, (_, name, connection, value) =>
    say(name, connection, value),
  );
  await context.addInitScript(watch, { binding, interval: settings.interval });
  page.on("crash", () => say("failed", null, "its page crashed"));
  page.on("pageerror", (error) => say("pageerror", null, String(error).slice(0, 300)));
  await patiently(() => page.goto(settings.url, { waitUntil: "load", timeout: PATIENCE_MS }));
  say("opened", null, page.url());
  if (settings.join) {
    const script = await import(pathToFileURL(settings.join).href);
    if (typeof script.default !== "function")
      throw new Error("the script has no default export that is a function");
    await script.default(page, settings.number, settings);
  }
  say("joined", null, settings.number);
}

process.stdin.on("end", () => process.exit(0));
const lines = createInterface({ input: process.stdin });
lines.once("line", (line) => {
  main(JSON.parse(line)).catch((error) => {
    const first = String(error?.message ?? error).split("\n")[0];
    say("failed", null, first.slice(0, 300));
  });
});
