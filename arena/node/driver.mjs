// The lines of JSON between the lab and a driver in Node (docs/guide/arena.md).

import { createInterface } from "node:readline";

const STARTED = performance.now();

/** Writes to the lab about one call. */
export class Reporter {
  #call;
  #setup = {};

  constructor(call) {
    this.#call = call;
  }

  /** Notes a step of the set-up, in ms since the driver began. */
  mark(step) {
    this.#setup[step] = performance.now() - STARTED;
  }

  ready() {
    this.#tell("ready");
  }

  offer(sdp) {
    this.#tell("offer", { sdp });
  }

  answer(sdp) {
    this.#tell("answer", { sdp });
  }

  candidate(candidate) {
    this.#tell("candidate", { candidate });
  }

  connected() {
    this.mark("ice");
    this.mark("connected");
    this.#tell("connected", { setup: this.#setup });
  }

  /** The first picture is there. */
  playing() {
    this.#tell("playing", { firstFrame: performance.now() - STARTED });
  }

  /** What a receiver counted, without the time. */
  inbound(counted) {
    const timestamp = performance.now() - STARTED;
    this.#tell("stats", { report: { inbound: { timestamp, ...counted } } });
  }

  failed(cause) {
    this.#tell("failed", { cause: String(cause).split("\n")[0] });
  }

  target(fromBps, targetBps) {
    // The clock of hrtime is CLOCK_MONOTONIC.
    const timeNs = Number(process.hrtime.bigint());
    const told = { reason: "told by the stack", state: "unknown", signals: {} };
    this.#write({ target: { timeNs, fromBps, targetBps, ...told } });
  }

  left() {
    this.#write({ left: {} });
  }

  #tell(type, members = {}) {
    this.#write({ message: { type, ...members } });
  }

  #write(content) {
    process.stdout.write(`${JSON.stringify({ call: this.#call, ...content })}\n`);
  }
}

/**
 * Serves the one call of the first line. `version` is the answer to `--version`. `open(settings, reporter)` makes an
 * object with the methods `start`, `answer(sdp)`, `candidate(candidate)` and `close`. That of a receiver has
 * `offer(sdp)` in place of `start` and `answer`, and `tell` for its last statistics.
 */
export async function serve(version, open) {
  if (process.argv.includes("--version")) {
    console.log(version);
    return;
  }
  let call;
  let reporter;
  for await (const line of createInterface({ input: process.stdin })) {
    if (!reporter) {
      const { calls } = JSON.parse(line);
      if (calls?.length !== 1) {
        console.error("the first line has not one call");
        process.exit(2);
      }
      reporter = new Reporter(calls[0].call);
      reporter.mark("joined");
      call = await open(calls[0].settings, reporter);
      continue;
    }
    try {
      if (!(await receive(call, reporter, JSON.parse(line).message))) break;
    } catch (error) {
      reporter.failed(error);
    }
  }
  process.exit(0);
}

/** Handles a message of the lab. Returns whether the call goes on. */
async function receive(call, reporter, message) {
  switch (message.type) {
    case "config":
      reporter.ready();
      break;
    case "start":
      reporter.mark("start");
      await call.start?.();
      break;
    case "offer":
      await call.offer(message.sdp);
      reporter.mark("described");
      break;
    case "answer":
      await call.answer(message.sdp);
      reporter.mark("described");
      break;
    case "candidate":
      await call.candidate(message.candidate);
      break;
    case "stop":
    case "refused":
      call.tell?.();
      reporter.left();
      await call.close();
      return false;
  }
  return true;
}
