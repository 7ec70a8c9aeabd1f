// The server of `weir serve` as the page sees it. Addresses are relative, because the page's own has the token.

export interface Known {
  id: string;
  title: string;
  source: string;
  duration_s: number;
  /** Whether browsers can make it as a call. */
  callable: boolean;
}

export interface About {
  version: string;
  controllers: string[];
  scenarios: Known[];
  commands: string[];
  /** Folder of the records. */
  out: string;
}

export interface Way {
  capacity_mbps: number | null;
  /** Rate of the last second. */
  rate_mbps: number;
  loss_ratio: number;
  delay_ms: number;
  queuing_delay_ms: number;
}

export interface Status {
  time_s: number;
  round_trip_ms: number;
  hops: { up: Way; down: Way }[];
}

/** What getStats reported of the time between two reports; members are absent where there is no stream. */
export interface Stats {
  call: number;
  peer: string;
  time_s: number;
  estimated_bps?: number | null;
  target_bps?: number | null;
  send_bps?: number | null;
  rtt_ms?: number | null;
  sent_frame_rate?: number | null;
  sent_frame_size?: [number, number] | null;
  limitation?: string | null;
  receive_bps?: number | null;
  loss_ratio?: number | null;
  frame_rate?: number | null;
  frame_size?: [number, number] | null;
  jitter_buffer_ms?: number | null;
  freezes?: number | null;
}

export interface News {
  /** 0 if there was no run yet. */
  number: number;
  kind: "run" | "call" | "link";
  scenario: string;
  what: string;
  state: "running" | "done" | "failed";
  failure: string | null;
  statuses: Status[];
  next_status: number;
  stats: Stats[];
  next_stats: number;
  /** The last change of each property, such as `loss up`. */
  changes: Record<string, string>;
  said: string[];
  curves_version: number;
  finished: [number, number];
  records: string[];
}

export interface Checked {
  line?: number;
  error?: string;
  title?: string;
  duration_s?: number;
  network?: string[];
  /** Capacity up, in equal steps of the duration; null if nothing limits it. */
  capacity_kbps?: number[] | null;
}

export interface Recorded {
  name: string;
  scenario: string;
  controller: string;
  engine: string;
  seed: string;
}

/** The answer to a request. A refusal is an error with the server's words. */
export async function ask<T>(path: string, body?: unknown): Promise<T> {
  const post = {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetch(path, body === undefined ? {} : post);
  const text = await response.text();
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Error(text.slice(0, 300) || `the server answered ${response.status}`);
  }
  if (!response.ok) throw new Error((answer as { error?: string }).error ?? text);
  return answer as T;
}

/** The address of the report of these records. */
export function reportOf(names: string[]): string {
  return `report/${encodeURIComponent(names.join("\n"))}`;
}
