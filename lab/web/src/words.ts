// The report in a few sentences, for readers who look at nothing else; and decisions in words.

import type { ForwardedSpan, Group, LayerChoice, Report } from "./format";
import { ENGINE_NAME, formatNumber, isMedia, mean, plural, unique } from "./model";

/** Most names that a sentence lists. */
const NAMED = 4;

/** Begins the names of calls that `weir analyze` read. */
const ANALYZED = "analyzed/";

/** What the runs say together. Each sentence has the numbers it rests on. */
export function inWords(report: Report): string[] {
  return [
    ...performance(report, "sim"),
    ...performance(report, "call"),
    ...expectations(report),
    ...verdicts(report),
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

function expectations(report: Report): string[] {
  const all = report.scenarios.flatMap((it) =>
    it.expectations.map((expectation) => ({ ...expectation, scenario: it.id })),
  );
  if (all.length === 0) return [];
  const of = (outcome: string) => all.filter((it) => it.outcome === outcome);
  const failed = of("fails");
  const where = unique(failed.map((it) => `${it.controller} in ${it.scenario}`));
  return [
    `Expectations: ${of("holds").length} of ${all.length} hold; in doubt: ${of("in doubt").length}; ` +
      `known misses: ${of("known miss").length}; failed: ${failed.length}${listed(where)}.`,
  ];
}

/** What happened in the calls that were made elsewhere. */
function verdicts(report: Report): string[] {
  const analyzed = report.scenarios.filter((it) => it.id.startsWith(ANALYZED));
  return analyzed.map((scenario) => {
    const verdict = scenario.calls?.verdict ?? "No rule found a limit.";
    return analyzed.length === 1 ? verdict : `${scenario.id.slice(ANALYZED.length)}: ${verdict}`;
  });
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
