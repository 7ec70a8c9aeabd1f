// Calls the simulator in WebAssembly: a request and its answer are texts in its memory. The page's worker and the test
// of equal records use it.

interface Exports {
  memory: WebAssembly.Memory;
  weir_alloc: (length: number) => number;
  weir_free: (start: number, length: number) => void;
  weir_answer: (start: number, length: number) => bigint;
}

/** Returns a function that answers requests. Both are JSON. */
export async function simulator(module: WebAssembly.Module): Promise<(request: string) => string> {
  const instance = await WebAssembly.instantiate(module, {});
  const { memory, weir_alloc, weir_free, weir_answer } = instance.exports as unknown as Exports;
  return (request) => {
    const bytes = new TextEncoder().encode(request);
    const start = weir_alloc(bytes.length);
    new Uint8Array(memory.buffer).set(bytes, start);
    const place = BigInt.asUintN(64, weir_answer(start, bytes.length));
    const [from, length] = [Number(place >> 32n), Number(place & 0xffff_ffffn)];
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, from, length));
    weir_free(start, bytes.length);
    weir_free(from, length);
    return text;
  };
}
