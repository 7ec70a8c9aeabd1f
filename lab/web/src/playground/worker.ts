// Runs the simulator, beside the page.

import { simulator } from "./ask";

export interface Question {
  module: WebAssembly.Module;
  id: number;
  request: unknown;
}

export interface Answer {
  id: number;
  /** Time that the simulator took, ms. */
  took_ms: number;
  answer: { ok?: unknown; error?: string };
}

let ask: ((request: string) => string) | null = null;

self.addEventListener("message", async ({ data }: MessageEvent<Question>) => {
  const begin = performance.now();
  let answer: Answer["answer"];
  try {
    ask ??= await simulator(data.module);
    answer = JSON.parse(ask(JSON.stringify(data.request)));
  } catch (error) {
    ask = null;
    answer = { error: `the simulator stopped: ${error instanceof Error ? error.message : error}` };
  }
  const took_ms = performance.now() - begin;
  (self as unknown as Worker).postMessage({ id: data.id, took_ms, answer } satisfies Answer);
});
