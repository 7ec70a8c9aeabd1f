// The simulator as the page sees it: requests, of which a newer one ends an older one.

import type { Answer, Question } from "./worker";

export interface Result {
  value: unknown;
  took_ms: number;
}

export class Simulator {
  private worker: Worker | null = null;
  private waiting: ((answer: Answer) => void) | null = null;
  private id = 0;

  constructor(
    private readonly module: WebAssembly.Module,
    private readonly script: string,
  ) {}

  /** The answer; null if a newer request took this one's place. */
  async ask(request: unknown): Promise<Result | null> {
    if (this.waiting !== null) this.stop();
    this.worker ??= this.start();
    this.id += 1;
    const question: Question = { module: this.module, id: this.id, request };
    const answer = await new Promise<Answer | null>((resolve) => {
      this.waiting = resolve;
      this.stopped = () => resolve(null);
      this.worker?.postMessage(question);
    });
    if (answer === null) return null;
    this.waiting = null;
    if (answer.answer.error !== undefined) throw new Error(answer.answer.error);
    return { value: answer.answer.ok, took_ms: answer.took_ms };
  }

  private stopped: () => void = () => {};

  private start(): Worker {
    const url = URL.createObjectURL(new Blob([this.script], { type: "text/javascript" }));
    const worker = new Worker(url);
    worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => {
      if (data.id === this.id) this.waiting?.(data);
    });
    return worker;
  }

  private stop(): void {
    this.worker?.terminate();
    this.worker = null;
    this.waiting = null;
    this.stopped();
  }
}

/** The module in the page: gzip, as base64. */
export async function unpacked(base64: string): Promise<WebAssembly.Module> {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}
