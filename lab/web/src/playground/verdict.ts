// Who did best and why, in words, and what each controller is.

import type { Group } from "../format";
import { isMedia } from "../model";

/** One line on each controller; another one is named without it. */
export const ABOUT: Record<string, string> = {
  gcc: "what Chromium runs today: follows the trend of the delay, and losses",
  "gcc-draft": "the same idea as the IETF's draft of 2016 wrote it down",
  "gcc-2013": "its first version: the receiver watches the delay, the sender losses",
  nada: "RFC 8698: one signal of delay, loss and marks sets the rate",
  scream: "RFC 8298: a window of bytes on their way, as in TCP, set by the delay",
  "scream-v2": "its successor: a window again, which also heeds marks (L4S)",
  sluice: "Weir's own: measures what the path delivers, and keeps its queue low",
};

/** Rates within this share of the highest one are alike. */
const RATE_ALIKE = 0.03;
/** Delays within this of the lowest one are alike, ms. */
const DELAY_ALIKE_MS = 5;
/** Losses within this of the lowest one are alike, per cent. */
const LOSS_ALIKE = 1;

interface Mean {
  controller: string;
  mbps: number;
  /** 95th percentile of the queuing delay, ms. */
  delay_ms: number;
  loss_percent: number;
}

/** Means of each controller's media flows over its runs; those without a rate or a delay are left out. */
export function means(groups: Group[]): Mean[] {
  const found: Mean[] = [];
  for (const controller of new Set(groups.map((group) => group.controller))) {
    const own = groups.filter((it) => it.controller === controller && isMedia(it.flow));
    const points = own.flatMap((group) => group.points);
    const mbps = mean(points.map((it) => it.throughput_mbps));
    const delay_ms = mean(points.map((it) => it.p95_queuing_delay_ms));
    const loss_percent = mean(points.map((it) => it.loss_percent)) ?? 0;
    if (mbps !== null && delay_ms !== null)
      found.push({ controller, mbps, delay_ms, loss_percent });
  }
  return found;
}

function mean(values: (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, it) => sum + it, 0) / known.length;
}

/** One or two sentences: who did best by rate, delay and loss, or why nobody did. Empty without results. */
export function verdict(groups: Group[]): string {
  const all = means(groups);
  const [first] = all;
  if (first === undefined) return "";
  if (all.length === 1) {
    return `${first.controller} received ${rate(first)}, with a queue of ${delay(first)}${loss(first, first)}.`;
  }
  const most = Math.max(...all.map((it) => it.mbps));
  const [shortest, least] = [
    Math.min(...all.map((it) => it.delay_ms)),
    Math.min(...all.map((it) => it.loss_percent)),
  ];
  const fast = all.filter((it) => it.mbps >= most * (1 - RATE_ALIKE));
  const prompt = all.filter((it) => it.delay_ms <= shortest + DELAY_ALIKE_MS);
  const isWhole = (it: Mean) => it.loss_percent <= least + LOSS_ALIKE;
  const best = fast.filter((it) => prompt.includes(it) && isWhole(it));
  const [winner] = best;
  if (winner === undefined) {
    const [highest, lowest] = [
      all.find((it) => it.mbps === most) as Mean,
      all.find((it) => it.delay_ms === shortest) as Mean,
    ];
    if (highest === lowest) {
      return `Nobody did best: ${highest.controller} received the most, ${rate(highest)}, with a queue of ${delay(highest)}, but lost ${highest.loss_percent.toFixed(1)} % of its packets.`;
    }
    return `Nobody did best, it is a choice: ${highest.controller} received more, ${rate(highest)} with a queue of ${delay(highest)}${loss(highest, lowest)}; ${lowest.controller} kept the queue shorter, ${delay(lowest)} with ${rate(lowest)}${loss(lowest, highest)}.`;
  }
  if (best.length > 1) {
    const names = best.map((it) => it.controller);
    const whole = best.length === all.length ? "" : " did best, and";
    return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}${whole} did alike: rates within ${RATE_ALIKE * 100} %, delays within ${DELAY_ALIKE_MS} ms (${names[0]}: ${rate(winner)}, a queue of ${delay(winner)}).`;
  }
  const other = all
    .filter((it) => it !== winner)
    .reduce((one, it) => (it.mbps > one.mbps ? it : one));
  const isFaster = !fast.includes(other);
  const isShorter = !prompt.includes(other);
  const why = [
    isFaster
      ? `the higher rate (${rate(winner)}, against ${rate(other)} of ${other.controller})`
      : null,
    isShorter
      ? `the shorter queue (${delay(winner)}, against ${other.delay_ms.toFixed(0)} ms of ${other.controller})`
      : null,
    isWhole(other)
      ? null
      : `fewer losses (${winner.loss_percent.toFixed(1)} %, against ${other.loss_percent.toFixed(1)} % of ${other.controller})`,
  ].filter((it) => it !== null);
  const alike = [isFaster ? null : "rate", isShorter ? null : "delay"].filter((it) => it !== null);
  const rest =
    alike.length === 0
      ? ""
      : ` Their ${alike.join(" and ")} ${alike.length > 1 ? "are" : "is"} alike.`;
  return `${winner.controller} did best: ${why.join(", ")}.${rest}`;
}

function rate({ mbps }: Mean): string {
  return `${mbps.toFixed(2)} Mbit/s`;
}

function delay({ delay_ms }: Mean): string {
  return `${delay_ms.toFixed(0)} ms at the 95th percentile`;
}

/** Losses, where they differ from the other's or are many. */
function loss(one: Mean, other: Mean): string {
  const isWorth =
    one === other
      ? one.loss_percent >= LOSS_ALIKE
      : one.loss_percent > other.loss_percent + LOSS_ALIKE;
  return isWorth ? ` and ${one.loss_percent.toFixed(1)} % lost` : "";
}
