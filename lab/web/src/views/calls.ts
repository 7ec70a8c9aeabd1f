// Values that only real calls have: set-up, browsers, packet captures, and agreement of the
// witnesses.

import {
  baseOption,
  legendOption,
  panelTitle,
  tooltipOption,
  valueAxis,
  type Option,
  type Plot,
  type SeriesOption,
  type Surface,
} from "../chart";
import { DELAY_BIN_MS, delaysData, ratesData } from "../data";
import { el, table } from "../dom";
import { figure } from "../figure";
import type {
  Agreement,
  AppRow,
  Calls,
  DelayPlot,
  FindingRow,
  StreamErrorRow,
  PeerRow,
  RatePlot,
  Scenario,
  SetupRow,
  StreamRow,
} from "../format";
import {
  clockSpan,
  commandsOf,
  cumulative,
  formatNumber,
  formatPercent,
  formatSignal,
  isOpenLoop,
  pairs,
  plural,
  unique,
} from "../model";
import { theme } from "../theme";
import { name, number } from "./tables";

const LEFT = 72;
const RIGHT = 14;
const TITLE = 20;
const BODY = 130;
const GAP = 16;
const X_AXIS = 46;

/** The answer on calls that were analyzed; it stands above the curves. */
export function answerOfCalls(scenario: Scenario): HTMLElement[] {
  const verdict = scenario.calls?.verdict ?? null;
  return verdict === null ? [] : [el("p", { class: "answer" }, verdict)];
}

/** What limited the calls that were analyzed. The numbers stand on the curves, too. */
export function findingsOfCalls(scenario: Scenario): HTMLElement[] {
  const findings = scenario.calls?.findings ?? [];
  if (findings.length === 0) return [];
  const heading = el("h3", {}, "What limited the calls, and when");
  const began = scenario.calls?.began_ms ?? null;
  return [el("div", { class: "part" }, heading, findingTable(findings, began))];
}

/** Empty for a scenario without real calls. */
export function callsView(scenario: Scenario): HTMLElement[] {
  const calls = scenario.calls;
  if (calls === null) return [];
  const commands = () => commandsOf(scenario.groups.filter((g) => g.engine === "call"));
  const part = (title: string, ...content: HTMLElement[]) =>
    el("div", { class: "part" }, el("h3", {}, title), ...content);
  const subject = scenario.id;
  const views: HTMLElement[] = [
    part(
      "Real calls: set-up",
      success(calls),
      // The set-up of an application is in the table of its participants.
      ...(calls.setup.length === 0 ? [] : [setupTable(calls.setup)]),
    ),
  ];
  if (calls.app.length > 0)
    views.unshift(part("Participants and their streams", appTable(calls.app)));
  const [open, real] = split(calls.peers, (row) => isOpenLoop(row.controller));
  if (real.length > 0) views.push(part("Real calls: peers", peerTable(real)));
  if (open.length > 0)
    views.push(part("Open loop: the peers of the recorded calls", peerTable(open)));
  if (calls.rates.length > 0) {
    const title = "getStats beside the packet capture";
    const caption =
      `RTP payload of each stream between two reports of the browser, for the first call of seed ${calls.seed}. ` +
      "Thick line: capture at the peer's host. Thin line: reported by the browser. Each title has the " +
      "error over the whole call and, in brackets, the mean error of an interval.";
    const description = () => `${title}. ${calls.rates.map(describeRate).join(" ")}`;
    const build = (surface: Surface) => ratesPlot(calls.rates, surface);
    const data = () => ratesData(scenario, calls.rates);
    views.push(figure({ title, subject, caption, description, commands, build, data }).element);
  }
  if (calls.errors.length > 0) {
    views.push(
      part(`Streams by getStats and by the captures, seed ${calls.seed}`, errorTable(calls.errors)),
    );
  }
  if (calls.delays.length > 0) {
    const title = "One-way delay of packets";
    const caption =
      `From the captures of both hosts, seed ${calls.seed}. Bars: number of packets in bins of 10 ms; the ` +
      "last bin has all packets from 300 ms on. Curve: share of packets up to that delay. " +
      calls.delays.map(describeDelays).join(" ");
    const description = () => `${title}. ${calls.delays.map(describeDelays).join(" ")}`;
    const build = (surface: Surface) => delaysPlot(calls.delays, surface);
    const data = () => delaysData(scenario, calls.delays);
    views.push(figure({ title, subject, caption, description, commands, build, data }).element);
  }
  if (calls.streams.length > 0) {
    views.push(part(`Streams in the captures, seed ${calls.seed}`, streamTable(calls.streams)));
  }
  if (calls.agreement.length > 0)
    views.push(part("Browser, capture and emulator compared", ...witnesses(calls)));
  return views;
}

function success(calls: Calls): HTMLElement {
  const { succeeded, tried, failures, left_out, disturbed } = calls;
  const ratio = formatPercent(tried === 0 ? null : succeeded / tried);
  const line = el("p", {}, `${succeeded} of ${plural(tried, "call")} succeeded (${ratio} %).`);
  const list = (texts: string[]) => el("ul", {}, ...texts.map((text) => el("li", {}, text)));
  const mark =
    "The machine disturbed every run. The values depend more on the machine than on the calls.";
  const apart =
    "If a call of a run failed, the flows of that run count in no mean and no curve. Its other calls count in the tables below.";
  const without = `The machine disturbed ${plural(left_out.length, "run")}, which ${left_out.length === 1 ? "does" : "do"} not count:`;
  return el(
    "div",
    {},
    line,
    failures.length === 0 ? null : list(failures),
    failures.length === 0 ? null : el("p", {}, apart),
    disturbed ? el("p", {}, el("b", {}, mark)) : null,
    ...(left_out.length === 0 ? [] : [el("p", {}, without), list(left_out)]),
  );
}

function setupTable(rows: SetupRow[]): HTMLElement {
  return table<SetupRow>(
    "Steps of the set-up",
    [
      { head: "Peer", cell: (row) => name(row.peer) },
      { head: "Seed", cell: (row) => row.seed },
      number("Page (ms)", (row) => row.page_ms, 0),
      number("Camera (ms)", (row) => row.camera_ms, 0),
      number("Waiting for the other peer (ms)", (row) => row.waiting_ms, 0),
      number("Signalling (ms)", (row) => row.signalling_ms, 0),
      number("ICE (ms)", (row) => row.ice_ms, 0),
      number("DTLS (ms)", (row) => row.dtls_ms, 0),
      number("Whole set-up (ms)", (row) => row.total_ms, 0),
      number("First frame after (ms)", (row) => row.first_frame_ms, 0),
      { head: "Path", cell: (row) => row.path, kind: "prose" },
    ],
    rows,
  );
}

/** The rows for which it holds, and the others. */
function split<Row>(rows: Row[], holds: (row: Row) => boolean): [Row[], Row[]] {
  return [rows.filter(holds), rows.filter((row) => !holds(row))];
}

function appTable(rows: AppRow[]): HTMLElement {
  return table<AppRow>(
    "Participants of the application; p1/2 is the second video stream of p1",
    [
      { head: "Who", cell: (row) => name(row.name) },
      { head: "Seed", cell: (row) => row.seed },
      { head: "Sends", cell: (row) => row.sends ?? "–" },
      number("Set-up (ms)", (row) => row.setup_ms, 0),
      number("First frame (ms)", (row) => row.first_frame_ms, 0),
      number("Sent (Mbit/s)", (row) => row.send_rate_mbps, 2),
      number("Received (Mbit/s)", (row) => row.receive_rate_mbps, 2),
      number("Frames a second", (row) => row.frame_rate, 1),
      number("Received height", (row) => row.frame_height, 0),
      number("Freezes", (row) => row.freezes, 0),
      number("Limited by bandwidth (%)", (row) => row.limited_by_bandwidth_percent, 0),
      number("Audio made up (%)", (row) => row.concealed_percent, 1),
    ],
    rows,
  );
}

function findingTable(rows: FindingRow[], began: number | null): HTMLElement {
  return table<FindingRow>(
    "What limited the calls",
    [
      number("#", (row) => rows.indexOf(row) + 1, 0),
      number("From (s)", (row) => row.from_s, 1),
      number("To (s)", (row) => row.to_s, 1),
      // First what a narrow screen must show.
      { head: "Limited by", cell: (row) => name(row.part) },
      { head: "Why", cell: (row) => row.says, kind: "prose" },
      { head: "Stream", cell: (row) => name(row.stream) },
      ...(began === null
        ? []
        : [{ head: "Time of day, UTC", cell: (row: FindingRow) => clockSpan(row, began) }]),
      // What browsers count themselves rests on no samples.
      number("Samples", (row) => (row.samples === 0 ? null : row.samples), 0),
      ...(unique(rows.map((row) => row.seed)).length === 1
        ? []
        : [{ head: "Seed", cell: (row: FindingRow) => row.seed }]),
    ],
    rows,
  );
}

function peerTable(rows: PeerRow[]): HTMLElement {
  return table<PeerRow>(
    "Browsers and pictures",
    [
      { head: "Controller", cell: (row) => name(row.controller) },
      { head: "Peer", cell: (row) => name(row.peer) },
      { head: "Seed", cell: (row) => row.seed },
      number("CPU (% of a core)", (row) => row.cpu_percent, 0),
      number("Memory (MB)", (row) => row.memory_mb, 0),
      number("Encoding a frame (ms)", (row) => row.encode_ms, 1),
      number("Decoding a frame (ms)", (row) => row.decode_ms, 1),
      { head: "Received picture", cell: (row) => row.frame_size ?? "–" },
      number("Frames a second", (row) => row.frame_rate, 1),
      number("Freezes", (row) => row.freezes, 0),
      number("Frozen (s)", (row) => row.frozen_s, 1),
      { head: "Quality limited by", cell: (row) => row.limited ?? "–" },
    ],
    rows,
  );
}

function streamTable(rows: StreamRow[]): HTMLElement {
  return table<StreamRow>(
    "Streams in the captures",
    [
      { head: "Call", cell: (row) => String(row.call) },
      { head: "From", cell: (row) => row.from },
      { head: "To", cell: (row) => row.to },
      { head: "Stream", cell: (row) => name(`${row.role}, ${row.ssrc}`) },
      number("Packets", (row) => row.packets, 0),
      number("Received (Mbit/s)", (row) => row.received_mbps, 3),
      number("Lost (%)", (row) => row.lost_percent, 2),
      number("Reordered", (row) => row.reordered, 0),
      number("Duplicates", (row) => row.duplicates, 0),
      number("Mean delay (ms)", (row) => row.mean_delay_ms, 1),
      number("Median (ms)", (row) => row.p50_delay_ms, 1),
      number("95 % (ms)", (row) => row.p95_delay_ms, 1),
      number("Maximum (ms)", (row) => row.max_delay_ms, 1),
    ],
    rows,
  );
}

function errorTable(rows: StreamErrorRow[]): HTMLElement {
  return table<StreamErrorRow>(
    "Streams by getStats and by the captures",
    [
      { head: "Peer", cell: (row) => name(row.peer) },
      { head: "Stream", cell: (row) => name(row.what) },
      number("Payload error (%)", (row) => row.error_percent, 3),
      number("Mean of intervals (%)", (row) => row.interval_error_percent, 2),
      number("Packets, getStats", (row) => row.reported_packets, 0),
      number("Capture", (row) => row.captured_packets, 0),
      { head: "mid", cell: (row) => row.mid ?? "–" },
      { head: "SSRC", cell: (row) => name(row.ssrcs) },
    ],
    rows,
  );
}

function witnesses(calls: Calls): HTMLElement[] {
  const rows = table<Agreement>(
    "Capture compared with getStats and with the emulator's log",
    [
      { head: "What", cell: (row) => row.subject },
      { head: "Quantity", cell: (row) => row.quantity },
      { head: "Source", cell: (row) => row.witness },
      { head: "Source's value", cell: (row) => formatSignal(row.witnessed), kind: "number" },
      { head: "Capture's value", cell: (row) => formatSignal(row.captured), kind: "number" },
      { head: "Error", cell: (row) => formatSignal(row.error), kind: "number" },
      { head: "Limit", cell: (row) => formatSignal(row.limit), kind: "number" },
      {
        head: "Verdict",
        cell: (row) =>
          el(
            "b",
            { class: `verdict ${row.agrees ? "holds" : "differs"}` },
            row.agrees ? "agree" : "disagree",
          ),
      },
    ],
    calls.agreement,
  );
  const compared = plural(calls.compared, "comparison");
  const all = `${calls.agreed} of ${compared} agree over all calls. The table shows seed ${calls.seed}.`;
  return [el("p", {}, all), rows];
}

function describeRate(plot: RatePlot): string {
  const [whole, each] = errorsOf(plot);
  return `${plot.peer}, ${plot.what}: error ${whole} % over the call, ${each} % on average over the intervals.`;
}

/** Title of a rate plot, short enough for a narrow screen. */
function rateTitle(plot: RatePlot): string {
  const [whole, each] = errorsOf(plot);
  return `${plot.peer} ${plot.what.replace(" and ", " + ")}: ${whole} % (${each} %)`;
}

function errorsOf(plot: RatePlot): [string, string] {
  return [formatNumber(plot.error_percent, 3), formatNumber(plot.interval_error_percent, 2)];
}

function describeDelays(plot: DelayPlot): string {
  const shares = cumulative(plot.counts);
  const at = (share: number) => (shares.findIndex((it) => it >= share) + 1) * DELAY_BIN_MS;
  const up = (share: number) => {
    const bound = at(share);
    return bound >= plot.counts.length * DELAY_BIN_MS ? "beyond 300 ms" : `within ${bound} ms`;
  };
  return `${plot.stream}: half of the packets ${up(0.5)}, 95 % ${up(0.95)}.`;
}

/** Colours of the thick and of the thin curve. */
function colours(): [string, string] {
  const { palette, text } = theme();
  return [palette[0] ?? text, palette[1] ?? text];
}

/** One panel for each plot, one below the other. */
function stack(titles: string[], names: string[], surface: Surface) {
  const { legend, height } = legendOption(names, surface.width);
  const tops = titles.map((_, i) => height + 6 + TITLE + i * (TITLE + BODY + GAP));
  const shared: Option = {
    ...baseOption(),
    legend,
    title: titles.map((title, i) => panelTitle(title, (tops[i] as number) - TITLE + 2)),
    grid: tops.map((top) => {
      return { left: LEFT, right: RIGHT, top, height: BODY, outerBoundsMode: "none" as const };
    }),
  };
  const last = tops.at(-1) ?? 0;
  return { shared, height: last + BODY + X_AXIS };
}

function ratesPlot(plots: RatePlot[], surface: Surface): Plot {
  const names = ["captured", "reported"];
  const { shared, height } = stack(plots.map(rateTitle), names, surface);
  const end = Math.max(...plots.flatMap((plot) => plot.time_s));
  const palette = colours();
  const line = (plot: RatePlot, i: number, k: 0 | 1): SeriesOption => ({
    type: "line",
    name: names[k] as string,
    data: pairs(plot.time_s, k === 0 ? plot.captured_kbps : plot.reported_kbps),
    xAxisIndex: i,
    yAxisIndex: i,
    showSymbol: false,
    lineStyle: { color: palette[k], width: k === 0 ? 3.5 : 1.2 },
    itemStyle: { color: palette[k] },
  });
  const option: Option = {
    ...shared,
    xAxis: plots.map((_, gridIndex) => {
      const labelled = gridIndex === plots.length - 1;
      const axis = valueAxis(labelled ? "Time (s)" : "", 26);
      const axisLabel = { ...axis.axisLabel, show: labelled };
      return { ...axis, gridIndex, min: 0, max: Math.ceil(end), axisLabel };
    }),
    yAxis: plots.map((_, gridIndex) => {
      return { ...valueAxis("Rate (kbit/s)", 42), gridIndex, min: 0, splitNumber: 3 };
    }),
    tooltip: { ...tooltipOption((items) => rateTip(plots, items)), trigger: "axis" },
    series: plots.flatMap((plot, i) => [line(plot, i, 0), line(plot, i, 1)]),
  };
  return { option, height };
}

function rateTip(plots: RatePlot[], items: unknown): HTMLElement | string {
  const [item] = items as { dataIndex: number; axisIndex: number }[];
  const plot = item && plots[item.axisIndex];
  if (!item || !plot) return "";
  const value = (values: number[]) => formatNumber(values[item.dataIndex], 1);
  const at = formatNumber(plot.time_s[item.dataIndex], 1);
  return el(
    "div",
    { class: "tip-body" },
    el("strong", {}, `${plot.peer}, ${plot.what}, ${at} s`),
    el("p", {}, `captured ${value(plot.captured_kbps)} kbit/s`),
    el("p", {}, `reported ${value(plot.reported_kbps)} kbit/s`),
  );
}

function delaysPlot(plots: DelayPlot[], surface: Surface): Plot {
  const names = ["packets", "up to this delay"];
  const { shared, height } = stack(
    plots.map((plot) => plot.stream),
    names,
    surface,
  );
  const palette = colours();
  const series = plots.flatMap((plot, i): SeriesOption[] => {
    const total = plot.counts.reduce((a, b) => a + b, 0);
    const place = { xAxisIndex: i, yAxisIndex: i };
    const percent = (values: number[]) => values.map((value) => 100 * value);
    return [
      {
        ...place,
        type: "bar",
        name: names[0] as string,
        barCategoryGap: "10%",
        itemStyle: { color: palette[0] },
        data: percent(plot.counts.map((count) => count / total)),
      },
      {
        ...place,
        type: "line",
        name: names[1] as string,
        showSymbol: false,
        step: "middle",
        lineStyle: { color: palette[1], width: 2 },
        itemStyle: { color: palette[1] },
        data: percent(cumulative(plot.counts)),
      },
    ];
  });
  const option: Option = {
    ...shared,
    xAxis: plots.map(({ counts }, gridIndex) => {
      const labelled = gridIndex === plots.length - 1;
      const axis = valueAxis(labelled ? "One-way delay (ms)" : "", 28);
      // A bin is labelled by its upper edge: there is no room for both edges.
      const data = counts.map((_, i) => binName(counts, i).replace(/^\d+–/, ""));
      const axisLabel = { ...axis.axisLabel, show: labelled };
      return { ...axis, type: "category" as const, gridIndex, data, axisLabel };
    }),
    yAxis: plots.map((_, gridIndex) => {
      return { ...valueAxis("Packets (%)", 42), gridIndex, min: 0, max: 100 };
    }),
    tooltip: { ...tooltipOption((items) => delayTip(plots, items)), trigger: "axis" },
    series,
  };
  return { option, height };
}

function binName(counts: number[], i: number): string {
  return i === counts.length - 1
    ? `${i * DELAY_BIN_MS}+`
    : `${i * DELAY_BIN_MS}–${(i + 1) * DELAY_BIN_MS}`;
}

function delayTip(plots: DelayPlot[], items: unknown): HTMLElement | string {
  const [item] = items as { dataIndex: number; axisIndex: number }[];
  const plot = item && plots[item.axisIndex];
  if (!item || !plot) return "";
  const share = cumulative(plot.counts)[item.dataIndex] ?? null;
  return el(
    "div",
    { class: "tip-body" },
    el("strong", {}, `${plot.stream}, ${binName(plot.counts, item.dataIndex)} ms`),
    el("p", {}, plural(plot.counts[item.dataIndex] ?? 0, "packet")),
    el("p", {}, `${formatNumber(share === null ? null : 100 * share, 1)} % up to here`),
  );
}
