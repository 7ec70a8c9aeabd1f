// The rate of each flow, split into video, retransmissions, parity, and the rest of its packets.

import {
  baseOption,
  legendOption,
  textWidth,
  tooltipOption,
  valueAxis,
  type Plot,
  type SeriesOption,
  type Surface,
} from "../chart";
import { RATE_PARTS, splitData } from "../data";
import { el, table, type TableColumn } from "../dom";
import { figure } from "../figure";
import type { Group, Scenario, SplitRow } from "../format";
import { ENGINE_NAME, commandsOf, formatNumber, formatPercent, groupLabel } from "../model";
import { theme } from "../theme";
import { name } from "./tables";

const TITLE = "Utilization by video, retransmission and parity";
const ROW = 26;
const X_AXIS = 50;

/** Empty if no receiver reported what it received. */
export function splitView(scenario: Scenario): HTMLElement[] {
  const rows = scenario.split;
  if (rows.length === 0) return [];
  const plot = figure({
    title: TITLE,
    subject: scenario.id,
    caption: `Means over the seeds. ${notes(rows).join(" ")}`,
    description: () => `${TITLE}. ${rows.map(describe).join(" ")}`,
    commands: () =>
      commandsOf(scenario.groups.filter((group) => rows.some((row) => isOf(row, group)))),
    build: (surface) => splitPlot(rows, surface),
    data: () => splitData(scenario.id, rows),
  });
  return [plot.element, splitTable(rows)];
}

function isOf(row: SplitRow, { controller, engine }: Group): boolean {
  return row.controller === controller && row.engine === engine;
}

/** Notes on the meaning of the parts, and on a part that is missing. */
function notes(rows: SplitRow[]): string[] {
  const real = rows.filter((row) => row.engine === "call");
  const texts: string[] = [];
  if (real.length < rows.length) texts.push("Simulated runs: bytes of the IP packets.");
  if (real.length > 0) {
    texts.push(
      "Real calls: payload according to the receiver's getStats. Headers are part of the rest.",
    );
  }
  if (real.length > 0 && real.every((row) => row.fec_mbps === null)) {
    texts.push(
      "Real calls show no parity, because their browsers report none. Chromium's only kind (ULPFEC) is " +
        "sent inside the video's own stream, and getStats counts it as video.",
    );
  }
  return texts;
}

function describe(row: SplitRow): string {
  const parts = RATE_PARTS.map(({ name, rate }) => `${name} ${formatNumber(rate(row), 3)}`);
  return `${groupLabel(row, 2)}: ${parts.join(", ")} Mbit/s.`;
}

/** Draws shares of the capacity in per cent if every row has a capacity, else rates. */
function splitPlot(rows: SplitRow[], surface: Surface): Plot {
  const shares = rows.every((row) => row.capacity_mbps !== null);
  const scaled = (row: SplitRow, rate: number | null) =>
    rate === null ? 0 : shares ? (100 * rate) / (row.capacity_mbps as number) : rate;
  const shown = RATE_PARTS.filter(({ rate }) => rows.some((row) => (rate(row) ?? 0) > 0));
  const { legend, height } = legendOption(
    shown.map((part) => part.name),
    surface.width,
  );
  const labels = rows.map((row) => groupLabel(row, 2));
  const left = Math.min(Math.max(...labels.map(textWidth)) + 18, surface.width * 0.45);
  const { palette, muted, grid } = theme();
  const body = ROW * rows.length + 8;
  const colour = (name: string) => {
    const index = RATE_PARTS.findIndex((part) => part.name === name);
    return index === RATE_PARTS.length - 1 ? muted : (palette[index] ?? muted);
  };
  const series = shown.map(({ name, rate }): SeriesOption => {
    return {
      type: "bar",
      name,
      stack: "rate",
      barWidth: 14,
      itemStyle: { color: colour(name) },
      data: rows.map((row) => scaled(row, rate(row))),
    };
  });
  return {
    height: height + 6 + body + X_AXIS,
    option: {
      ...baseOption(),
      legend,
      tooltip: { ...tooltipOption((items) => tip(rows, items)), trigger: "axis" },
      grid: { left, right: 24, top: height + 6, height: body, outerBoundsMode: "none" },
      xAxis: { ...valueAxis(shares ? "Utilization (%)" : "Rate (Mbit/s)", 28), min: 0 },
      yAxis: {
        type: "category",
        data: labels,
        inverse: true,
        axisTick: { show: false },
        axisLine: { show: true, lineStyle: { color: muted } },
        splitLine: { show: false, lineStyle: { color: grid } },
        axisLabel: {
          color: muted,
          width: left - 10,
          overflow: "break",
          lineHeight: 12,
          interval: 0,
        },
      },
      series,
    },
  };
}

function tip(rows: SplitRow[], items: unknown): HTMLElement | string {
  const [item] = items as { dataIndex: number }[];
  const row = item && rows[item.dataIndex];
  if (!row) return "";
  const of = (rate: number | null) =>
    rate === null || row.capacity_mbps === null
      ? ""
      : `, ${formatPercent(rate / row.capacity_mbps)} % of the capacity`;
  const line = (name: string, rate: number | null) =>
    el("p", {}, `${name} ${formatNumber(rate, 3)} Mbit/s${of(rate)}`);
  return el(
    "div",
    { class: "tip-body" },
    el("strong", {}, groupLabel(row, 2)),
    ...RATE_PARTS.map(({ name, rate }) => line(name, rate(row))),
  );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function splitTable(rows: SplitRow[]): HTMLElement {
  const rate = (head: string, value: (row: SplitRow) => number | null): TableColumn<SplitRow> => ({
    head,
    cell: (row) => formatNumber(value(row), 3),
    kind: "number",
  });
  const share = (head: string, value: (row: SplitRow) => number | null): TableColumn<SplitRow> => ({
    head,
    cell: (row) => {
      const [mbps, of] = [value(row), row.capacity_mbps];
      return formatPercent(mbps === null || of === null ? null : mbps / of);
    },
    kind: "number",
  });
  return table<SplitRow>(
    TITLE,
    [
      { head: "Controller", cell: (row) => row.controller },
      { head: "Engine", cell: (row) => name(ENGINE_NAME[row.engine]) },
      { head: "Flow", cell: (row) => name(row.flow) },
      rate("Capacity (Mbit/s)", (row) => row.capacity_mbps),
      rate("Received (Mbit/s)", (row) => row.rate_mbps),
      ...RATE_PARTS.slice(0, -1).flatMap(({ name, rate: of }) => [
        rate(`${capital(name)} (Mbit/s)`, of),
        share("(% of capacity)", of),
      ]),
    ],
    rows,
  );
}
