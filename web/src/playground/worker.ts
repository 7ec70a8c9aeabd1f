// Runs the simulator, beside the page.

interface Exports {
  memory: WebAssembly.Memory;
  weir_alloc: (length: number) => number;
  weir_free: (start: number, length: number) => void;
  weir_answer: (start: number, length: number) => bigint;
}

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

let exports: Exports | null = null;

async function ask(module: WebAssembly.Module, request: unknown): Promise<string> {
  exports ??= (await WebAssembly.instantiate(module, {})).exports as unknown as Exports;
  const { memory, weir_alloc, weir_free, weir_answer } = exports;
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const start = weir_alloc(bytes.length);
  new Uint8Array(memory.buffer).set(bytes, start);
  const place = BigInt.asUintN(64, weir_answer(start, bytes.length));
  const [from, length] = [Number(place >> 32n), Number(place & 0xffff_ffffn)];
  const text = new TextDecoder().decode(new Uint8Array(memory.buffer, from, length));
  weir_free(start, bytes.length);
  weir_free(from, length);
  return text;
}

self.addEventListener("message", async ({ data }: MessageEvent<Question>) => {
  const begin = performance.now();
  let answer: Answer["answer"];
  try {
    answer = JSON.parse(await ask(data.module, data.request));
  } catch (error) {
    exports = null;
    answer = { error: `the simulator stopped: ${error instanceof Error ? error.message : error}` };
  }
  const took_ms = performance.now() - begin;
  (self as unknown as Worker).postMessage({ id: data.id, took_ms, answer } satisfies Answer);
});
