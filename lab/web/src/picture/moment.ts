// What a call does at one moment, from its curves: numbers and words, no DOM.

import type { Series } from "../format";
import { nearestIndex } from "../model";

/** The times for which media waited in the sender, if they were recorded. */
export interface SenderQueue {
  time_s: number[];
  queue_ms: (number | null)[];
}

/** One flow through the network. */
export interface Lane {
  name: string;
  /** Gives the colour. */
  controller: string;
  series: Series;
  sender: SenderQueue | null;
  /** A direction of a network with any traffic: there is no video that could freeze. */
  isNetwork?: boolean;
}

/** `null` where nothing was recorded. */
export interface Moment {
  /** What the controller lets the encoder make. */
  target_mbps: number | null;
  /** Time for which media waits in the sender. */
  sender_ms: number | null;
  /** Time for which packets wait in the network. */
  queue_ms: number | null;
  capacity_mbps: number | null;
  received_mbps: number | null;
  loss_percent: number | null;
}

/** What fills a vessel and a pipe; the same for all lanes, so that they can be compared. */
export interface Scale {
  mbps: number;
  queue_ms: number;
}

/** A queue that people notice, ms. */
const QUEUE_MS = 60;
/** Losses that people notice, per cent. */
const LOSS_PERCENT = 2;
/** A flow below this share of the capacity leaves much of it unused. */
const LITTLE = 0.7;
/** Below this rate a video is at a standstill, Mbit/s. */
const STANDSTILL_MBPS = 0.02;
/** Shortest queue that fills a vessel, ms: a short queue must look short. */
const LEAST_QUEUE_MS = 200;
/** Share of the values that a scale covers; single peaks overflow. */
const COVERED = 0.99;

export function momentOf({ series, sender }: Lane, time: number): Moment | null {
  const i = nearestIndex(series.time_s, time);
  if (i < 0) return null;
  const waiting = sender === null ? -1 : nearestIndex(sender.time_s, time);
  return {
    target_mbps: series.target_mbps[i] ?? null,
    sender_ms: sender?.queue_ms[waiting] ?? null,
    queue_ms: series.queuing_delay_ms[i] ?? null,
    capacity_mbps: series.capacity_mbps[i] ?? null,
    received_mbps: series.received_mbps[i] ?? null,
    loss_percent: series.loss_percent[i] ?? null,
  };
}

/** The time at which media waits longest, in network and sender together: the moment that says most; 0 without any. */
export function longestWait(lanes: Lane[]): number {
  let [time, longest] = [0, 0];
  for (const lane of lanes) {
    for (const at of lane.series.time_s) {
      const moment = momentOf(lane, at);
      const wait = (moment?.queue_ms ?? 0) + (moment?.sender_ms ?? 0);
      if (wait > longest) [time, longest] = [at, wait];
    }
  }
  return time;
}

export function scaleOf(lanes: Lane[]): Scale {
  const rates: number[] = [];
  const queues: number[] = [LEAST_QUEUE_MS];
  for (const { series, sender } of lanes) {
    const known = series.capacity_mbps.some((value) => value !== null);
    rates.push(most(known ? series.capacity_mbps : series.received_mbps));
    queues.push(most(series.queuing_delay_ms), most(sender?.queue_ms ?? []));
  }
  return { mbps: Math.max(0.1, ...rates), queue_ms: Math.max(...queues) };
}

/** The value below which nearly all others are; zero without values. */
function most(values: (number | null)[]): number {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) * COVERED)] ?? 0;
}

/** What happens, in one sentence for somebody who has never heard of a bottleneck. */
export function sentence(name: string, moment: Moment, isNetwork = false): string {
  const { target_mbps, sender_ms, queue_ms, capacity_mbps, received_mbps, loss_percent } = moment;
  if (received_mbps === null) return `${name}: nothing was recorded here.`;
  if (isNetwork && received_mbps < STANDSTILL_MBPS) return `${name}: next to nothing is sent.`;
  if (received_mbps < STANDSTILL_MBPS) return `${name}: nothing arrives, and the picture freezes.`;
  const causes: string[] = [];
  const isAbove = target_mbps !== null && capacity_mbps !== null && target_mbps > capacity_mbps;
  if (queue_ms !== null && queue_ms >= QUEUE_MS) {
    const why = isAbove ? "more is sent than the network carries, and " : "";
    causes.push(`${why}packets wait ${queue_ms.toFixed(0)} ms in the network`);
  }
  if (sender_ms !== null && sender_ms >= QUEUE_MS) {
    causes.push(`media waits ${sender_ms.toFixed(0)} ms in the sender`);
  }
  if (loss_percent !== null && loss_percent >= LOSS_PERCENT) {
    causes.push(`${loss_percent.toFixed(0)} % of the packets are lost`);
  }
  if (causes.length > 0) return `${name}: ${causes.join("; ")}.`;
  if (capacity_mbps !== null && received_mbps < LITTLE * capacity_mbps) {
    const part = ((100 * received_mbps) / capacity_mbps).toFixed(0);
    const who = isNetwork ? "traffic" : "the call";
    return `${name}: ${who} uses ${part} % of what the network carries, and its queue is short.`;
  }
  return `${name}: ${isNetwork ? "traffic" : "the call"} uses the network, and its queue is short.`;
}

/** Whether the video stands still at this moment. */
export function isStill({ received_mbps }: Moment): boolean {
  return received_mbps !== null && received_mbps < STANDSTILL_MBPS;
}
