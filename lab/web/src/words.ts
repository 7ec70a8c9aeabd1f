// The report in a few sentences, for readers who look at nothing else; and decisions in words.

import type { Expectation, ForwardedSpan, Group, LayerChoice, Report } from "./format";
import { ENGINE_NAME, formatNumber, isMedia, mean, plural, unique } from "./model";

/** Most names that a sentence lists. */
const NAMED = 4;

/** Begins the names of calls that `weir analyze` read. */
export const ANALYZED = "analyzed/";

/** The verdict on a call in which no rule found anything. */
export const NO_LIMIT = "No rule found a limit.";

/** What the runs say together. Each sentence has the numbers it rests on. */
export function inWords(report: Report): string[] {
  return [
    ...performance(report, "sim"),
    ...performance(report, "call"),
    ...verdict(report),
    ...failedCalls(report),
    ...modelErrors(report),
  ];
}

/** Media flows of a controller: means over the groups, each the mean of its runs. */
function performance(report: Report, engine: Group["engine"]): string[] {
  const groups = report.scenarios.flatMap((scenario) =>
    scenario.groups.filter((group) => group.engine === engine && isMedia(group.flow)),
  );
  const rows = unique(groups.map((group) => group.controller)).flatMap((controller) => {
    const own = groups.filter((group) => group.controller === controller);
    const of = (name: "utilization" | "p95_queuing_delay_ms") =>
      mean(own.map((group) => mean(group.points.map((point) => point[name]))));
    const [used, delay] = [of("utilization"), of("p95_queuing_delay_ms")];
    return used === null || delay === null ? [] : [{ controller, used, delay }];
  });
  const [first, ...others] = rows.sort((a, b) => b.used - a.used);
  if (first === undefined) return [];
  const words = ({ controller, used, delay }: typeof first) =>
    `${controller} ${(used * 100).toFixed(0)} % and ${delay.toFixed(0)} ms`;
  const rest = others.length === 0 ? "" : `, ${others.map(words).join(", ")}`;
  return [
    `Media flows, ${ENGINE_NAME[engine]}: mean utilization, and mean of the 95th percentile of queuing delay, by controller: ${words(first)}${rest}.`,
  ];
}

/** What makes a check fail. */
const FAILED: Expectation["outcome"][] = ["fails", "known miss that holds now"];

export interface Verdict {
  passed: boolean;
  /** `1 failed, 2 of 3 expectations hold.` */
  text: string;
  failed: (Expectation & { scenario: string })[];
}

/** What came of all that was expected; null if nothing was. */
export function expectedInWords(report: Report): Verdict | null {
  const all = report.scenarios.flatMap((scenario) =>
    scenario.expectations.map((it) => ({ ...it, scenario: scenario.id })),
  );
  if (all.length === 0) return null;
  const failed = all.filter(({ outcome }) => FAILED.includes(outcome));
  const count = (outcome: Expectation["outcome"]) =>
    all.filter((it) => it.outcome === outcome).length;
  const [holds, missed] = [count("holds"), count("known miss")];
  const parts = [
    failed.length === 0 ? "" : `${failed.length} failed`,
    `${holds} of ${plural(all.length, "expectation")} ${holds === 1 ? "holds" : "hold"}`,
    count("in doubt") === 0 ? "" : `${count("in doubt")} in doubt`,
    missed === 0 ? "" : `${missed} known ${missed === 1 ? "miss" : "misses"}`,
  ];
  const text = `${parts.filter((part) => part !== "").join(", ")}.`;
  return { passed: failed.length === 0, text, failed };
}

/** What happened in the call that was made elsewhere. Of several, each has a part of the page. */
function verdict(report: Report): string[] {
  const [first, ...others] = report.scenarios.filter((it) => it.id.startsWith(ANALYZED));
  if (first === undefined || others.length > 0) return [];
  return [first.calls?.verdict ?? NO_LIMIT];
}

function failedCalls(report: Report): string[] {
  // A call that was made elsewhere is known by its dump alone.
  const participants = report.participants.filter((it) => !it.scenario.startsWith(ANALYZED));
  const failed = participants.filter((it) => (it.success_ratio ?? 1) < 1);
  if (participants.length === 0) return [];
  if (failed.length === 0) return ["Every real call succeeded."];
  const where = failed.map((it) => `${it.controller} in ${it.scenario}`);
  return [`Not every real call succeeded${listed(unique(where))}.`];
}

/** Pairs whose real call the machine disturbed say nothing on the model: they are counted, and left out. */
function modelErrors(report: Report): string[] {
  const known = report.errors.filter((it) => it.error_percent !== null);
  if (known.length === 0) return [];
  const sound = known.filter((it) => !it.is_disturbed);
  const left = known.length - sound.length;
  const why =
    "because the machine disturbed the real call (it had no processor time for the emulator)";
  if (sound.length === 0) {
    return [
      `Simulated beside real: no comparison. ${plural(left, "pair")} left out, ${why}. Make the call again on a quiet machine.`,
    ];
  }
  const sorted = sound.map((it) => Math.abs(it.error_percent as number)).sort((a, b) => a - b);
  const middle = median(sorted);
  const near = sorted.filter((error) => error <= 10).length;
  const without = left === 0 ? "" : ` ${plural(left, "pair")} left out, ${why}.`;
  return [
    `Simulated beside real: the rate is within 10 % in ${near} of ${plural(sorted.length, "pair")}; the median error is ${middle.toFixed(1)} %.${without}`,
  ];
}

/** Of sorted values, at least one. */
function median(sorted: number[]): number {
  const half = sorted.length / 2;
  const upper = sorted[Math.floor(half)] as number;
  return Number.isInteger(half) ? ((sorted[half - 1] as number) + upper) / 2 : upper;
}

function listed(names: string[]): string {
  if (names.length === 0) return "";
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
  return `: ${names.slice(0, NAMED).join(", ")}${more}`;
}

// Forwarding server

/** `layer 1 → 2 chosen`, `paused`, `layer 2 sent from now on`. */
export function choiceInWords({ decision, from, to }: LayerChoice): string {
  if (decision === "cut") return "nothing sent until the key frame";
  if (to === null) return "paused";
  if (decision === "switched") return `layer ${to} sent from now on`;
  return from === null ? `layer ${to} chosen` : `layer ${from} → ${to} chosen`;
}

/** The text of a bar. */
export function spanInWords({ from_s, to_s, layer, reason }: ForwardedSpan): string {
  const what = layer === null ? "nothing sent" : `layer ${layer}`;
  const why = reason === "" ? "" : `: ${reason}`;
  const [from, to] = [formatNumber(from_s, 2), formatNumber(to_s, 2)];
  return `${what}${why} (${from} to ${to} s)`;
}
