import { expect, test } from "vitest";
import { csvText } from "../src/csv";
import {
  airtimeData,
  bearerData,
  boxData,
  delaysData,
  gridData,
  latenessData,
  pacersData,
  screensData,
  ratesData,
  scatterData,
  seriesData,
  splitData,
} from "../src/data";
import type { Airtime, Group } from "../src/format";
import { scatterOf } from "../src/model";
import { emptyGroup, fixture } from "./fixture/report";

function call() {
  return fixture().scenarios.find((it) => it.id === "demo/first-call")!;
}

function column(table: { head: string[]; rows: unknown[][] }, name: string): unknown[] {
  const index = table.head.indexOf(name);
  expect(index, name).toBeGreaterThanOrEqual(0);
  return table.rows.map((row) => row[index]);
}

test("text with commas, quotes and line breaks is quoted, and a missing value is empty", () => {
  const rows = [
    ["a,b", 1, null],
    ['say "no"', 0.1 + 0.2, Infinity],
    ["two\nlines", -1.5, ""],
  ];
  expect(csvText({ head: ["name", "x_ms", "y_s"], rows })).toBe(
    'name,x_ms,y_s\r\n"a,b",1,\r\n"say ""no""",0.3,\r\n"two\nlines",-1.5,\r\n',
  );
});

test("no text becomes a formula of a spreadsheet", () => {
  const text = csvText({ head: ["name"], rows: [["=1+1"], ["@SUM(A1)"], ["-x"], ["+x"], [-1]] });
  expect(text).toBe("name\r\n'=1+1\r\n'@SUM(A1)\r\n'-x\r\n'+x\r\n-1\r\n");
});

test("a curve has a row a time within the span, and rate changes only where they are drawn", () => {
  const group: Group = emptyGroup("nada", "sim", "media-1");
  group.seeds = ["1", "2"];
  Object.assign(group.series, { time_s: [0, 1, 2, 3], rtt_ms: [50, 60, null, 80] });
  group.events = [
    {
      time_s: 1.5,
      from_mbps: 1,
      target_mbps: 2,
      reason: "probe",
      state: "up",
      signals: { a: 1, b: 2 },
    },
    { time_s: 3.5, from_mbps: 2, target_mbps: 1, reason: "loss", state: "down", signals: {} },
  ];
  const view = { groups: [group], columns: ["target_mbps", "rtt_ms"] as const, from_s: 1, to_s: 3 };
  const name = ["my/test", "sim", "nada", "media-1", 2];
  const alone = seriesData("my/test", { ...view, columns: [...view.columns], events: false });
  expect(alone).toEqual({
    head: ["scenario", "engine", "controller", "flow", "runs", "time_s", "target_mbps", "rtt_ms"],
    rows: [
      [...name, 1, null, 60],
      [...name, 2, null, null],
      [...name, 3, null, 80],
    ],
  });
  const both = seriesData("my/test", { ...view, columns: [...view.columns], events: true });
  expect(both.head.slice(8)).toEqual(["from_mbps", "reason", "state", "signals"]);
  expect(both.rows.slice(2)).toEqual([
    [...name, 3, null, 80, null, null, null, null],
    [...name, 1.5, 2, null, 1, "probe", "up", "a 1; b 2"],
  ]);
});

test("a box is a row, in the units that are drawn", () => {
  const scenario = fixture().scenarios[0]!;
  const [first] = scenario.groups;
  first!.box.rtt_ms = null;
  const table = boxData(scenario.id, scenario.groups);
  expect(table.rows).toHaveLength(3);
  const box = first!.box.utilization!;
  expect(column(table, "utilization_percent.median")[0]).toBeCloseTo(100 * box.median);
  expect(column(table, "utilization_percent.outliers")[0]).toBe(
    String(Number((100 * box.outliers[0]!).toPrecision(12))),
  );
  expect(column(table, "rtt_ms.median")[0]).toBeNull();
  expect(column(table, "controller")).toEqual(["gcc-draft", "nada", "scream"]);
});

test("a metric that no box shows has no columns", () => {
  const scenario = fixture().scenarios[0]!;
  for (const group of scenario.groups) group.box.loss_percent = null;
  expect(boxData(scenario.id, scenario.groups).head.join()).not.toContain("loss");
});

test("a dot is a row with its scenario, flow and seed", () => {
  const series = scatterOf([call()], "p95_queuing_delay_ms", "throughput_mbps");
  const table = scatterData(series, "p95_queuing_delay_ms", "throughput_mbps");
  expect(table.rows).toHaveLength(3 * 5 * 2 + 2);
  expect(table.rows.at(-1)!.slice(0, 5)).toEqual([
    "demo/first-call",
    "call",
    "gcc-chromium",
    "media-1-down",
    "1",
  ]);
});

test("a bar's parts are rates and shares of the capacity", () => {
  const table = splitData("demo/first-call", call().split);
  expect(column(table, "video_mbps")).toEqual([1.6, 1.6]);
  expect(column(table, "video_percent")).toEqual([80, 80]);
  expect(column(table, "fec_mbps")).toEqual([0.1, null]);
  expect(column(table, "other_mbps")[1]).toBeCloseTo(1.8 - 1.6 - 0.04);
});

test("histograms have their edges beside their counts", () => {
  const scenario = call();
  const group = scenario.groups.find((it) => it.lateness_us !== null)!;
  const lateness = latenessData(scenario.id, group, group.lateness_us!);
  expect(column(lateness, "lateness_from_us").slice(0, 3)).toEqual([0, 10, 20]);
  expect(column(lateness, "lateness_to_us").at(-1)).toBe(20000);
  const delays = delaysData(scenario, scenario.calls!.delays);
  expect(column(delays, "delay_to_ms").slice(-2)).toEqual([300, null]);
  expect(column(delays, "cumulative_percent").at(-1)).toBe(100);
});

test("what a pacer held and why the target changed are rows of one table", () => {
  const scenario = call();
  const plots = scenario.calls!.pacers;
  const controller = plots[0]!.controller;
  const table = pacersData(scenario, plots);
  expect(column(table, "pacer_queue_ms").slice(6, 8)).toEqual([60 + 50 * Math.sin(3.5), null]);
  const sent = scenario.groups.filter((it) => it.engine === "call" && it.controller === controller);
  const changes = sent.flatMap((group) => group.events);
  expect(table.rows).toHaveLength(60 + changes.length);
  expect(column(table, "reason").slice(60)).toEqual(changes.map(({ reason }) => reason));
});

test("both delays of a camera's frames stand in one row", () => {
  const scenario = call();
  const data = screensData(scenario, scenario.calls!.screens);
  expect(data.rows).toHaveLength(60);
  expect(column(data, "shown_delay_ms").slice(7, 8)).toEqual([null]);
  expect(column(data, "received_delay_ms")[0]).toBe(
    100 + 20 * Math.sin(column(data, "time_s")[0] as number),
  );
});

test("both rates of a stream stand in one row", () => {
  const scenario = call();
  const table = ratesData(scenario, scenario.calls!.rates);
  expect(table.rows).toHaveLength(2 * 60);
  expect(table.head.slice(4)).toEqual(["time_s", "captured_kbps", "reported_kbps"]);
  expect(table.rows[0]!.slice(0, 5)).toEqual([
    "demo/first-call",
    "1",
    "a",
    "sent video and retransmissions",
    0.5,
  ]);
});

test("a frame on the air has the time of its run", () => {
  const frame = {
    start_us: 10,
    end_us: 44,
    node: 1,
    kind: "ack" as const,
    mpdus: 1,
    decoded: 1,
    text: "ACK",
  };
  const airtime: Airtime = {
    command: "weir run demo/wifi-5",
    controller: "gcc",
    from_s: 2,
    nodes: ["ap", "caller-1"],
    frames: [frame],
  };
  expect(airtimeData("demo/wifi-5", airtime).rows).toEqual([
    ["demo/wifi-5", "gcc", "caller-1", "ack", 2000010, 2000044, 1, 1, "ACK"],
  ]);
});

test("bearers have a row for each time within the zoom, and a gap is an empty cell", () => {
  const { cellular } = fixture().scenarios.find((it) => it.cellular !== null)!;
  const span = { from_s: cellular!.time_s[40]!, to_s: cellular!.time_s[50]! };
  const table = bearerData("demo/lte-5", cellular!, cellular!.curves.slice(0, 2), span);
  expect(table.rows.length).toBe(2 * 11);
  expect(table.rows[0]!.slice(0, 5)).toEqual(["demo/lte-5", "nada", "pc3", "default", "down"]);
  expect(column(table, "mcs").slice(1, 10)).toEqual(Array(9).fill(null));
  expect(column(table, "mcs")[0]).not.toBeNull();
});

test("a block has the time of its run and its resource blocks as the record has them", () => {
  const { cellular } = fixture().scenarios.find((it) => it.cellular !== null)!;
  const { rows } = gridData("demo/lte-5", "nada", cellular!.grid!);
  expect(rows[3]).toEqual([
    "demo/lte-5",
    "nada",
    "pc4",
    "down",
    30.008,
    "12-15 20-24",
    12,
    700,
    2,
    1,
  ]);
});
