// The tables and lists of a scenario: published values beside ours, findings, sections, errors.

import { el, empty, table } from "../dom";
import type { Finding, PaperRow, SectionRow, SimReal, VideoRow } from "../format";
import {
  ENGINE_NAME,
  NONE,
  formatNumber,
  formatPercent,
  formatSignal,
  type Warning,
} from "../model";

export function paperTable(rows: PaperRow[]): HTMLElement {
  if (rows.length === 0) return empty("No published values belong to this scenario.");
  return table<PaperRow>(
    "Published values beside ours",
    [
      { head: "Where", cell: (row) => row.where },
      { head: "Metric", cell: (row) => row.metric },
      { head: "Controller", cell: (row) => row.controller ?? NONE },
      { head: "Paper", cell: (row) => row.published },
      { head: "Ours", cell: (row) => row.measured ?? "not measured" },
      { head: "Note", cell: (row) => row.note, kind: "prose" },
    ],
    rows,
  );
}

const VERDICTS = new Map<boolean | null, [string, string]>([
  [true, ["holds", "holds"]],
  [false, ["differs", "does not hold"]],
  [null, ["open", "not decided"]],
]);

export function findingsList(findings: Finding[]): HTMLElement {
  if (findings.length === 0) return empty("No published findings belong to this scenario.");
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
      { head: "Section", cell: (row) => row.name },
      { head: "Time (s)", cell: (row) => span(row), kind: "number" },
      { head: "Controller", cell: (row) => row.controller },
      { head: "Engine", cell: (row) => ENGINE_NAME[row.engine] },
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
  const number = (head: string, value: (row: VideoRow) => number | null, digits: number) => ({
    head,
    cell: (row: VideoRow) => formatNumber(value(row), digits),
    kind: "number" as const,
  });
  return table<VideoRow>(
    "What the viewer saw, and what the repair of lost packets cost",
    [
      { head: "Flow", cell: (row) => row.flow },
      { head: "Controller", cell: (row) => row.controller },
      number("Frames a second", (row) => row.frame_rate, 1),
      number("Freezes", (row) => row.freezes, 1),
      number("Frozen (s)", (row) => row.frozen_s, 1),
      number("p95 frame delay (ms)", (row) => row.p95_frame_delay_ms, 0),
      number("Loss after repair (%)", (row) => row.residual_loss_percent, 2),
      number("Retransmissions (% of bytes)", (row) => row.rtx_percent, 1),
      number("Parity (% of bytes)", (row) => row.fec_percent, 1),
    ],
    rows,
  );
}

function span(row: SectionRow): string {
  return `${formatSignal(row.from_s)}–${formatSignal(row.to_s)}`;
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
      { head: "Error (real − simulated)", cell: (row) => formatSignal(row.error), kind: "number" },
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
