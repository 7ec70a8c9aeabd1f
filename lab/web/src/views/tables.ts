// The tables and lists of a scenario: published and measured values, findings, sections, errors.

import { el, empty, table, type TableColumn } from "../dom";
import type {
  ErrorRow,
  Expectation,
  FairnessRow,
  Finding,
  LoadRow,
  FlowMeans,
  PaperRow,
  ParticipantsRow,
  Report,
  SectionRow,
  SimReal,
  ThenAndNow,
  RequirementRow,
  VideoRow,
} from "../format";
import {
  ENGINE_NAME,
  NONE,
  formatNumber,
  formatPercent,
  formatSignal,
  linkTo,
  verdictsOf,
  type FreezeRow,
  type Warning,
} from "../model";

/** A section and its flow; lines break only between the two. */
function pieces(text: string): HTMLElement {
  const parts = text
    .split(", ")
    .map((part, i, all) => name(i + 1 < all.length ? `${part}, ` : part));
  return el("span", {}, ...parts);
}

/** A name that is not broken at its hyphens. */
export function name(text: string): HTMLElement {
  return el("span", { class: "name" }, text);
}

/** A column of numbers. */
export function number<Row>(
  head: string,
  value: (row: Row) => number | null,
  digits: number,
): TableColumn<Row> {
  return { head, cell: (row) => formatNumber(value(row), digits), kind: "number" };
}

/** A published value, and the measured value of each controller. */
interface Published {
  row: PaperRow;
  ours: Map<string, PaperRow>;
}

export function paperTable(rows: PaperRow[]): HTMLElement {
  const named = (part: (row: PaperRow) => string | null) => rows.some((row) => part(row) !== null);
  const controllers = [...new Set(rows.flatMap((row) => row.controller ?? []))];
  return table<Published>(
    "Published values beside ours",
    [
      { head: "Where", cell: ({ row }) => row.where },
      ...(named((row) => row.flow)
        ? [{ head: "Flow", cell: ({ row }: Published) => name(row.flow ?? NONE) }]
        : []),
      ...(named((row) => row.section)
        ? [{ head: "Section", cell: ({ row }: Published) => row.section ?? NONE }]
        : []),
      { head: "Metric", cell: ({ row }) => row.metric },
      { head: "Paper", cell: ({ row }) => row.published },
      ...controllers.map((controller) => ({
        head: controller,
        cell: ({ ours }: Published) => measuredOf(ours.get(controller)),
      })),
      { head: "Note", cell: noteOf, kind: "prose" },
    ],
    publishedValues(rows),
  );
}

/** Merges rows that differ only in their controller. */
function publishedValues(rows: PaperRow[]): Published[] {
  const values = new Map<string, Published>();
  for (const row of rows) {
    const key = [row.where, row.flow, row.section, row.metric, row.published].join("\n");
    const value = values.get(key) ?? { row, ours: new Map<string, PaperRow>() };
    values.set(key, value);
    if (row.controller !== null) value.ours.set(row.controller, row);
  }
  return [...values.values()];
}

function measuredOf(row: PaperRow | undefined): string {
  return row === undefined ? NONE : (row.measured ?? "not measured");
}

function noteOf({ row, ours }: Published): string {
  const since = [...ours.values()].map(({ since }) => since).filter((text) => text !== "");
  return [row.note, ...since.map((text) => `Since the paper: ${text}`)].join(" ").trim();
}

const VERDICTS = new Map<boolean | null, [string, string]>([
  [true, ["holds", "holds"]],
  [false, ["differs", "does not hold"]],
  [null, ["open", "not decided"]],
]);

export function findingsList(findings: Finding[]): HTMLElement {
  const items = findings.map((finding) => {
    const [kind, verdict] = VERDICTS.get(finding.holds) ?? ["open", "not decided"];
    return el(
      "li",
      { class: `finding ${kind}` },
      el("p", {}, el("b", { class: "verdict" }, verdict), finding.text, place(finding.where)),
      el("p", {}, el("b", {}, "Ours: "), finding.measured),
      finding.why === "" ? null : el("p", {}, el("b", {}, "Why: "), finding.why),
    );
  });
  return el("ul", { class: "findings" }, ...items);
}

function place(where: string): HTMLElement | null {
  return where === "" ? null : el("small", {}, ` (${where})`);
}

export function sectionsTable(rows: SectionRow[]): HTMLElement {
  return table<SectionRow>(
    "Sections of the run",
    [
      { head: "Section", cell: (row) => pieces(row.name) },
      { head: "Time (s)", cell: (row) => span(row), kind: "number" },
      { head: "Controller", cell: (row) => row.controller },
      { head: "Engine", cell: (row) => name(ENGINE_NAME[row.engine]) },
      { head: "Utilization (%)", cell: (row) => formatPercent(row.utilization), kind: "number" },
      { head: "Rate (Mbit/s)", cell: (row) => formatNumber(row.rate_mbps, 2), kind: "number" },
      {
        head: "p95 queuing delay (ms)",
        cell: (row) => formatNumber(row.p95_queuing_delay_ms, 0),
        kind: "number",
      },
      { head: "RTT (ms)", cell: (row) => formatNumber(row.rtt_ms, 0), kind: "number" },
      { head: "Loss (%)", cell: (row) => formatNumber(row.loss_percent, 2), kind: "number" },
    ],
    rows,
  );
}

export function videoTable(rows: VideoRow[]): HTMLElement {
  const isJudged = rows.some((row) => row.good_percent !== null || row.vmaf !== null);
  return table<VideoRow>(
    "Video quality, and the cost of repairing lost packets",
    [
      { head: "Flow", cell: (row) => name(row.flow) },
      { head: "Controller", cell: (row) => row.controller },
      number("Frames a second", (row) => row.frame_rate, 1),
      number("Freezes", (row) => row.freezes, 1),
      number("Frozen (s)", (row) => row.frozen_s, 1),
      number("p95 frame delay (ms)", (row) => row.p95_frame_delay_ms, 0),
      number("Loss after repair (%)", (row) => row.residual_loss_percent, 2),
      number("Retransmissions (% of bytes)", (row) => row.rtx_percent, 1),
      number("Parity (% of bytes)", (row) => row.fec_percent, 1),
      ...(isJudged
        ? [
            number<VideoRow>("Good time (%)", (row) => row.good_percent, 0),
            number<VideoRow>("VMAF, modelled", (row) => row.vmaf, 1),
          ]
        : []),
    ],
    rows,
  );
}

export function freezesTable(rows: FreezeRow[]): HTMLElement {
  return table<FreezeRow>(
    "Freezes",
    [
      { head: "Scenario", cell: (row) => el("a", { href: linkTo(row.scenario) }, row.scenario) },
      { head: "Controller", cell: (row) => name(row.controller) },
      { head: "Freezes", cell: (row) => formatNumber(row.freezes, 1), kind: "number" },
      { head: "Frozen (s)", cell: (row) => formatNumber(row.frozen_s, 1), kind: "number" },
      { head: "Flow", cell: (row) => name(row.flow) },
      { head: "Engine", cell: (row) => name(ENGINE_NAME[row.engine]) },
      { head: "Runs", cell: (row) => String(row.runs), kind: "number" },
    ],
    rows,
  );
}

export function loadsTable(rows: LoadRow[]): HTMLElement {
  return table<LoadRow>(
    "Load on the network besides the media",
    [
      { head: "Flow", cell: (row) => name(row.flow) },
      { head: "Section", cell: (row) => row.section ?? "all" },
      { head: "Controller", cell: (row) => row.controller },
      { head: "Engine", cell: (row) => name(ENGINE_NAME[row.engine]) },
      number("Rate (Mbit/s)", (row) => row.rate_mbps, 2),
      number("Goodput (Mbit/s)", (row) => row.goodput_mbps, 2),
      number("Retransmitted packets", (row) => row.retransmitted_packets, 0),
      number("p95 queuing delay (ms)", (row) => row.p95_queuing_delay_ms, 0),
      number("Loss (%)", (row) => row.loss_percent, 2),
    ],
    rows,
  );
}

function span(row: SectionRow): string {
  return `${formatSignal(row.from_s)}–${formatSignal(row.to_s)}`;
}

const OUTCOMES: Record<Expectation["outcome"], string> = {
  holds: "holds",
  fails: "differs",
  "in doubt": "open",
  "known miss": "open",
  "known miss that holds now": "differs",
};

export function expectationsTable(rows: Expectation[]): HTMLElement {
  const measured = ({ measured, confidence }: Expectation) =>
    confidence === null
      ? formatSignal(measured)
      : `${formatSignal(measured)} ± ${formatSignal(confidence)}`;
  return table<Expectation>(
    "Expectations",
    [
      { head: "Controller", cell: (row) => row.controller },
      {
        head: "Verdict",
        cell: (row) => el("b", { class: `verdict ${OUTCOMES[row.outcome]}` }, row.outcome),
      },
      { head: "Expectation", cell: (row) => row.text, kind: "prose" },
      { head: "Measured", cell: measured, kind: "number" },
      { head: "Limit", cell: (row) => row.limit },
      ...(rows.some(({ why }) => why !== "")
        ? [{ head: "Why", cell: (row: Expectation) => row.why, kind: "prose" as const }]
        : []),
    ],
    rows,
  );
}

export function fairnessTable(rows: FairnessRow[]): HTMLElement {
  const ratio = (head: string, value: (row: FairnessRow) => number | null) => ({
    head,
    cell: (row: FairnessRow) => formatNumber(value(row), 3),
    kind: "number" as const,
  });
  return table<FairnessRow>(
    "How the media flows share",
    [
      { head: "Controller", cell: (row) => row.controller },
      { head: "Engine", cell: (row) => name(ENGINE_NAME[row.engine]) },
      ratio("Jain's index", (row) => row.jain),
      ratio("Lowest over highest, 1 s", (row) => row.ratio_1s),
      ratio("Lowest over highest, 5 s", (row) => row.ratio_5s),
      ratio("Lowest over highest, 20 s", (row) => row.ratio_20s),
      {
        head: "Windows of 5 s within a factor of three (%)",
        cell: (row) => formatPercent(row.within_5s),
        kind: "number",
      },
    ],
    rows,
  );
}

/**
 * Requirements of RFC 8836 by controllers, with the deciding value. The tooltip names its
 * expectation.
 */
export function verdictTable(report: Report): HTMLElement {
  const { controllers, rows: all } = verdictsOf(report);
  const rows = all.filter((row) => row.some(({ met }) => met !== null));
  const words = ({ met, held, tested }: RequirementRow) =>
    met === null ? "not tested" : met ? "met" : `not met (${held} of ${tested})`;
  const kind = ({ met }: RequirementRow) => (met === null ? "open" : met ? "holds" : "differs");
  return table<RequirementRow[]>(
    "Requirements of RFC 8836",
    [
      {
        head: "Requirement",
        cell: ([first]) => `${first?.requirement}: ${first?.text}`,
        kind: "prose",
      },
      ...controllers.map((controller, i) => ({
        head: controller,
        cell: (row: RequirementRow[]) => {
          const verdict = row[i] as RequirementRow;
          const figure = verdict.figure === "" ? null : el("small", {}, verdict.figure);
          const met = el(
            "span",
            { class: `verdict ${kind(verdict)}`, title: verdict.by },
            words(verdict),
          );
          return el("div", {}, met, " ", figure);
        },
      })),
    ],
    rows,
  );
}

export function thenAndNowTable(rows: ThenAndNow[]): HTMLElement {
  const pair = (head: string, value: (it: FlowMeans) => string) => ({
    head,
    cell: ({ then, now }: ThenAndNow) => `${value(then)} → ${value(now)}`,
    kind: "number" as const,
  });
  return table<ThenAndNow>(
    "gcc-2013 and gcc where the former was published",
    [
      { head: "Scenario", cell: (row) => row.scenario },
      { head: "Flow", cell: (row) => name(row.flow) },
      pair("Utilization (%)", (it) => formatPercent(it.utilization)),
      pair("Rate (Mbit/s)", (it) => formatNumber(it.rate_mbps, 2)),
      pair("p95 queuing delay (ms)", (it) => formatNumber(it.p95_queuing_delay_ms, 0)),
      pair("Loss (%)", (it) => formatNumber(it.loss_percent, 2)),
    ],
    rows,
  );
}

export function participantsTable(rows: ParticipantsRow[]): HTMLElement {
  return table<ParticipantsRow>(
    "Real calls, means over the participants",
    [
      { head: "Scenario", cell: (row) => name(row.scenario) },
      { head: "Browser", cell: (row) => name(row.controller) },
      number("Participants", (row) => row.participants, 0),
      number("Runs", (row) => row.runs, 0),
      {
        head: "Success (%)",
        cell: (row) => formatPercent(row.success_ratio),
        kind: "number" as const,
      },
      number("Set-up (ms)", (row) => row.setup_ms, 0),
      number("First frame (ms)", (row) => row.first_frame_ms, 0),
      number("RTT (ms)", (row) => row.rtt_ms, 1),
      number("One-way delay (ms)", (row) => row.one_way_delay_ms, 1),
      number("Sent (Mbit/s)", (row) => row.send_rate_mbps, 2),
      number("Received (Mbit/s)", (row) => row.receive_rate_mbps, 2),
      number("CPU (% of a core)", (row) => row.cpu_percent, 0),
      number("Memory (MB)", (row) => row.memory_mb, 0),
    ],
    rows,
  );
}

export function errorsTable(rows: ErrorRow[]): HTMLElement {
  return table<ErrorRow>(
    "Simulated beside real, all scenarios",
    [
      { head: "Scenario", cell: (row) => row.scenario },
      { head: "Flow", cell: (row) => name(row.flow) },
      { head: "Real", cell: (row) => name(row.real_controller) },
      { head: "Simulated", cell: (row) => name(row.sim_controller) },
      number("Rate, real (Mbit/s)", (row) => row.real_mbps, 2),
      number("Rate, simulated (Mbit/s)", (row) => row.sim_mbps, 2),
      number("Error (%)", (row) => row.error_percent, 1),
      number("p95 queuing delay, real (ms)", (row) => row.real_p95_ms, 0),
      number("p95 queuing delay, simulated (ms)", (row) => row.sim_p95_ms, 0),
      number("Error (ms)", (row) => row.error_ms, 0),
      ...(rows.some((row) => row.is_disturbed)
        ? [
            {
              head: "Real call",
              cell: (row: ErrorRow) => (row.is_disturbed ? "disturbed" : "sound"),
            },
          ]
        : []),
    ],
    rows,
  );
}

export function errorTable(pair: SimReal): HTMLElement {
  if (pair.rows.length === 0) return empty("No metric was measured both ways.");
  return table<SimReal["rows"][number]>(
    `Simulated beside real: ${pair.sim_controller}, ${pair.flow}`,
    [
      { head: "Metric", cell: (row) => row.metric },
      { head: "Unit", cell: (row) => row.unit },
      { head: "Simulated", cell: (row) => formatSignal(row.simulated), kind: "number" },
      { head: "Real call", cell: (row) => formatSignal(row.real), kind: "number" },
      { head: "Error (simulated − real)", cell: (row) => formatSignal(row.error), kind: "number" },
      { head: "Note", cell: (row) => row.note, kind: "prose" },
    ],
    pair.rows,
  );
}

export function warningBox(warnings: Warning[]): HTMLElement | null {
  if (warnings.length === 0) return null;
  const items = warnings.map(({ label, text }) => el("li", {}, el("b", {}, `${label}: `), text));
  return el(
    "div",
    { class: "warning", role: "note", "aria-label": "Warnings" },
    el("p", {}, el("b", {}, "Warnings")),
    el("ul", {}, ...items),
  );
}
