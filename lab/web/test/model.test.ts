import { expect, test } from "vitest";
import type { RateChange, Report } from "../src/format";
import {
  capacityOf,
  comparedGroups,
  controllerOrder,
  cumulative,
  cutOff,
  describeSeries,
  eventsNear,
  flowsOf,
  formatNumber,
  formatPercent,
  formatSignal,
  freezesOf,
  groupLabel,
  hasSeries,
  lastAbove,
  isOpenLoop,
  linkTo,
  matrixOf,
  mean,
  nearestIndex,
  pairs,
  possibleOf,
  parseReport,
  sampleAt,
  scatterOf,
  seedPhrase,
  selectGroups,
  summary,
  thinEvents,
  verdictsOf,
  warningsOf,
  wordsMatch,
} from "../src/model";
import { fill, hostile, withoutValues } from "./fixture/altered";
import { emptyGroup, fixture } from "./fixture/report";

function change(time_s: number, from_mbps = 1, target_mbps = 1.1): RateChange {
  return { time_s, from_mbps, target_mbps, reason: "probe", state: "increase", signals: {} };
}

function scenario(report: Report, id: string) {
  return report.scenarios.find((it) => it.id === id)!;
}

test("shares grow to one, and nothing counted is no share", () => {
  expect(cumulative([1, 0, 3])).toEqual([0.25, 0.25, 1]);
  expect(cumulative([0, 0])).toEqual([0, 0]);
});

test("the fixture is the same every time", () => {
  expect(fixture()).toEqual(fixture());
});

test("a report survives being put into the page and read back", () => {
  const report = hostile(fixture());
  const page = fill('<script id="weir-data">/*WEIR_DATA*/</script>', report);
  const json = page.slice('<script id="weir-data">'.length, -"</script>".length);
  expect(json).not.toContain("<");
  expect(parseReport(json)).toEqual(report);
});

test("a stack is called by its name, but not in commands", () => {
  const command = "weir call arena/steps --seed 1 --stack pion";
  const group = { controller: "--stack pion", command };
  const text = JSON.stringify({ schema: 1, controllers: ["--stack pion"], scenarios: [group] });
  const report = parseReport(text) as unknown as { controllers: string[]; scenarios: unknown[] };
  expect(report.controllers).toEqual(["pion"]);
  expect(report.scenarios).toEqual([{ controller: "pion", command }]);
});

test("an application has a short name in place of its options, but not in commands", () => {
  const options = (count: number) => `--app 'http://x/' --join join.mjs --participants ${count}`;
  const renamed = (controllers: string[]) => {
    const group = { controller: controllers[0], command: `weir call a ${controllers[0]}` };
    const text = JSON.stringify({ schema: 1, controllers, scenarios: [group] });
    return parseReport(text) as unknown as { controllers: string[]; scenarios: unknown[] };
  };
  const one = renamed([options(2), "gcc"]);
  expect(one.controllers).toEqual(["application, 2 participants", "gcc"]);
  const command = `weir call a ${options(2)}`;
  expect(one.scenarios).toEqual([{ controller: "application, 2 participants", command }]);
  expect(renamed([options(2), options(3)]).controllers).toEqual([
    "application 1, 2 participants",
    "application 2, 3 participants",
  ]);
  expect(renamed(["gcc"]).controllers).toEqual(["gcc"]);
});

test("text that is no report is refused with a reason", () => {
  const problem = (text: string) => (parseReport(text) as { problem: string }).problem;
  expect(problem("/*WEIR_DATA*/")).toContain("holds no data");
  expect(problem("")).toContain("holds no data");
  expect(problem("{")).toContain("not valid JSON");
  expect(problem("null")).toContain("schema 1");
  expect(problem('{"schema":2}')).toContain("the data says 2");
});

test("missing values do not enter a mean", () => {
  expect(mean([1, null, 3])).toBe(2);
  expect(mean([null])).toBeNull();
  expect(mean([])).toBeNull();
});

test("numbers are rounded, and missing ones are a dash", () => {
  expect(formatNumber(1.256, 2)).toBe("1.26");
  expect(formatNumber(-0.001, 2)).toBe("0.00");
  expect(formatNumber(null, 2)).toBe("–");
  expect(formatNumber(undefined, 2)).toBe("–");
  expect(formatNumber(Infinity, 2)).toBe("–");
  expect(formatPercent(0.934)).toBe("93");
  expect(formatPercent(null)).toBe("–");
});

test("signals show four significant digits and no exponent for large values", () => {
  expect(formatSignal(0.0123456)).toBe("0.01235");
  expect(formatSignal(1234567.8)).toBe("1234568");
  expect(formatSignal(-3)).toBe("-3");
  expect(formatSignal(null)).toBe("–");
});

test("consecutive seeds are a span, also above 2^53", () => {
  expect(seedPhrase(["1", "2", "3"])).toBe("1–3");
  expect(seedPhrase(["9007199254740993", "9007199254740994", "9007199254740995"])).toBe(
    "9007199254740993–9007199254740995",
  );
  expect(seedPhrase(["1", "2", "4"])).toBe("1, 2, 4");
  expect(seedPhrase(["1", "2"])).toBe("1, 2");
  expect(seedPhrase(["a", "b", "c"])).toBe("a, b, c");
  expect(seedPhrase([])).toBe("–");
});

test("controllers keep the report's order, and unlisted ones follow", () => {
  const report = fixture();
  report.controllers = ["scream", "nada"];
  expect(controllerOrder(report)).toEqual(["scream", "nada", "gcc-draft", "gcc-chromium"]);
});

test("a group's name says its engine, and its flow only among several", () => {
  const group = emptyGroup("nada", "call", "media-1-up");
  expect(groupLabel(group, 1)).toBe("nada, real call");
  expect(groupLabel(group, 2)).toBe("nada, real call, media-1-up");
});

test("selectors choose by flow and controller", () => {
  const call = scenario(fixture(), "demo/first-call");
  expect(flowsOf(call)).toEqual(["media-1-up", "media-1-down"]);
  expect(selectGroups(call, { controller: null, flow: "media-1-up" })).toHaveLength(4);
  const one = selectGroups(call, { controller: "nada", flow: "media-1-down" });
  expect(one.map((group) => [group.controller, group.flow])).toEqual([["nada", "media-1-down"]]);
});

test("the summary counts runs, scenarios and controllers", () => {
  const report = fixture();
  expect(report.runs).toBe(5 * 3 * 5 + 2 * (3 * 5 + 1));
  expect(summary(report)).toBe(
    "107 runs · 6 scenarios · 4 controllers (gcc-draft, nada, scream, gcc-chromium)" +
      " · simulated and real call · weir 0.1.0 (fixture)",
  );
});

test("analyzed calls are counted as such, without what only runs of ours have", () => {
  const report = fixture();
  const called = report.scenarios.find(({ calls }) => calls !== null)!;
  const analyzed = { ...called, calls: { ...called.calls!, verdict: "The uplink was full." } };
  expect(summary({ ...report, scenarios: [analyzed] })).toBe(
    "1 analyzed call · weir 0.1.0 (fixture)",
  );
  expect(summary({ ...report, scenarios: [analyzed, called] })).toContain("2 scenarios");
});

test("the matrix has simulated columns first, and a gap where nothing was run", () => {
  const { columns, rows } = matrixOf(fixture());
  expect(columns.map(({ controller, engine }) => `${controller} ${engine}`)).toEqual([
    "gcc-draft sim",
    "nada sim",
    "scream sim",
    "gcc-chromium call",
  ]);
  expect(rows[0]?.cells[3]).toBeNull();
  expect(rows[5]?.cells[3]?.lines.map((line) => line.flow)).toEqual(["media-1-up", "media-1-down"]);
});

test("a matrix cell is the mean over its runs", () => {
  const report = fixture();
  const group = report.scenarios[0]!.groups[0]!;
  group.points = [0.5, 0.7, null].map((utilization, i) => ({
    ...group.points[i]!,
    utilization,
    p95_queuing_delay_ms: i === 0 ? null : 10 * i,
    good_percent: i === 2 ? null : 40 * (i + 1),
  }));
  const cell = matrixOf(report).rows[0]?.cells[0];
  expect(cell?.utilization).toBeCloseTo(0.6);
  expect(cell?.lines[0]?.p95_queuing_delay_ms).toBe(15);
  expect(cell?.lines[0]?.good_percent).toBe(60);
});

test("a short column becomes gaps, not shifted values", () => {
  expect(pairs([0, 1, 2], [5, null])).toEqual([
    [0, 5],
    [1, null],
    [2, null],
  ]);
});

test("the capacity comes from the first group that states one", () => {
  const [without, stating] = [emptyGroup("a", "sim", "m"), emptyGroup("b", "sim", "m")];
  without.series.time_s = [0];
  without.series.capacity_mbps = [null];
  stating.series.time_s = [0, 1];
  stating.series.capacity_mbps = [2, 1];
  expect(capacityOf([without, stating])).toEqual([
    [0, 2],
    [1, 1],
  ]);
  expect(capacityOf([without])).toEqual([]);
});

test("what is possible is shown for one flow, not for several", () => {
  const [one, other] = [emptyGroup("a", "sim", "m"), emptyGroup("b", "sim", "m")];
  expect(possibleOf([one, other])).toEqual([]);
  one.series = { ...one.series, time_s: [0, 1], possible_mbps: [null, 0.9] };
  expect(possibleOf([one, other])).toEqual([
    [0, null],
    [1, 0.9],
  ]);
  other.flow = "n";
  expect(possibleOf([one, other])).toEqual([]);
});

test("a capacity alone is no measured series", () => {
  const group = emptyGroup("a", "sim", "m");
  group.series = {
    ...group.series,
    time_s: [0],
    capacity_mbps: [2],
    possible_mbps: [1.9],
    rtt_ms: [null],
  };
  expect(hasSeries(group)).toBe(false);
  group.series.rtt_ms = [50];
  expect(hasSeries(group)).toBe(true);
});

test("the nearest point of a grid is found at its ends and between", () => {
  const times = [0, 1, 2, 4];
  expect([-1, 0.4, 0.6, 2.9, 3.1, 9].map((time) => nearestIndex(times, time))).toEqual([
    0, 0, 1, 2, 3, 3,
  ]);
  expect(nearestIndex([], 1)).toBe(-1);
});

test("a sample holds every column at the nearest time", () => {
  const { series } = emptyGroup("a", "sim", "m");
  expect(sampleAt(series, 0)).toBeNull();
  series.time_s = [0, 1];
  series.rtt_ms = [50, 60];
  expect(sampleAt(series, 0.9)).toMatchObject({ rtt_ms: 60, loss_percent: null });
});

test("a series is described by the values it has", () => {
  const group = emptyGroup("a", "sim", "m");
  expect(describeSeries(group)).toBe("no values");
  group.series.received_mbps = [1, 2];
  group.series.loss_percent = [0.5, null];
  expect(describeSeries(group)).toBe("mean received rate 1.50 Mbit/s, mean loss 0.50 %");
});

test("of the rate changes near a time the nearest are kept, in order of time", () => {
  const events = [1, 2, 2.9, 3.2, 4, 9].map((time) => change(time));
  const times = (limit: number, window = 1.5) =>
    eventsNear(events, 3, window, limit).map((event) => event.time_s);
  expect(times(9)).toEqual([2, 2.9, 3.2, 4]);
  expect(times(2)).toEqual([2.9, 3.2]);
  expect(times(9, 0.01)).toEqual([]);
});

test("thinning keeps the largest rate change of each span", () => {
  const events = [change(0), change(1, 1, 0.5), change(4), change(5, 1, 1.2), change(9.9)];
  expect(thinEvents(events, 10, 3).map((event) => event.time_s)).toEqual([1, 5, 9.9]);
  expect(thinEvents(events, 0, 3)).toHaveLength(1);
});

test("a scatter joins the scenarios of a controller and skips runs without both values", () => {
  const report = fixture();
  report.scenarios[0]!.groups[0]!.points[0]!.utilization = null;
  const series = scatterOf(report.scenarios, "p95_queuing_delay_ms", "utilization", 100);
  expect(series.map((entry) => [entry.label, entry.points.length])).toEqual([
    ["gcc-draft, simulated", 5 * 5 + 2 * 5 - 1],
    ["nada, simulated", 5 * 5 + 2 * 5],
    ["scream, simulated", 5 * 5 + 2 * 5],
    ["gcc-chromium, real call", 2],
  ]);
  const point = report.scenarios[0]!.groups[1]!.points[0]!;
  expect(series[1]?.points[0]).toEqual({
    x: point.p95_queuing_delay_ms,
    y: point.utilization! * 100,
    seed: "1",
    flow: "media-1",
    scenario: "lund/rmcat-ns3",
  });
  const none = scatterOf(withoutValues(report).scenarios, "rtt_ms", "utilization");
  expect(none).toEqual([]);
});

test("a comparison finds the simulated and the real group of its flow", () => {
  const call = scenario(fixture(), "demo/first-call");
  const found = comparedGroups(call, call.sim_real[1]!);
  expect(found.map((g) => [g?.controller, g?.engine, g?.flow])).toEqual([
    ["gcc-draft", "sim", "media-1-down"],
    ["gcc-chromium", "call", "media-1-down"],
  ]);
  expect(comparedGroups(call, { ...call.sim_real[0]!, real_controller: "x" })[1]).toBeNull();
});

test("warnings name their group and are told once", () => {
  const call = scenario(fixture(), "demo/first-call");
  call.groups[0]!.warnings = ["late", "late"];
  expect(warningsOf(call)[0]).toEqual({ label: "gcc-draft, simulated, media-1-up", text: "late" });
  expect(warningsOf(call)).toHaveLength(3);
});

test("a cell of the matrix counts what became of its expectations", () => {
  const report = fixture();
  const row = matrixOf(report).rows.find((it) => it.scenario.id === "rfc8867/5.1")!;
  const outcomes = row.cells.map((cell) => cell?.outcome ?? null);
  expect(outcomes).toEqual(["1 known miss", "1 changed, 1 known miss", "1 fails, 1 changed", null]);
  const other = matrixOf(report).rows[0]!;
  expect(other.cells[0]!.outcome).toBe("");
});

test("verdicts are by requirement, then by controller", () => {
  const { controllers, rows } = verdictsOf(fixture());
  expect(controllers).toEqual(["gcc-draft", "nada", "scream"]);
  expect(rows.map((row) => row[0]!.requirement)).toEqual(["1a", "1c", "6"]);
  expect(rows.map((row) => row.map((verdict) => verdict.met))).toEqual([
    [true, true, true],
    [true, false, false],
    [null, null, null],
  ]);
});

test("a cell of many flows is one line, the mean of the media flows", () => {
  const report = fixture();
  const groups = report.scenarios[0]!.groups;
  const [first] = groups;
  groups.push({ ...first!, flow: "media-2" }, { ...first!, flow: "tcp-1" });
  const cell = matrixOf(report).rows[0]!.cells[0]!;
  expect(cell.lines.map((line) => line.flow)).toEqual(["2 media flows"]);
  expect(cell.lines[0]!.utilization).toBe(cell.utilization);
});

test("freezes are told of simulated flows and of what real peers saw, the longest first", () => {
  const rows = freezesOf(fixture());
  expect(rows).toHaveLength(6 + 2);
  expect(rows.map((row) => row.frozen_s)).toEqual([4, 3.2, 2.4, 1.6, 0.8, 0.4, 0.4, 0].map(near));
  expect(rows[0]).toEqual({
    scenario: "demo/first-call",
    controller: "scream",
    engine: "sim",
    flow: "media-1-down",
    runs: 5,
    freezes: 5,
    frozen_s: 4,
  });
  expect(rows[5]).toMatchObject({ controller: "gcc-chromium", engine: "call", flow: "seen by a" });
});

test("freezes of a real call are the mean over its seeds, and one that counts none has no row", () => {
  const report = fixture();
  const call = scenario(report, "demo/first-call");
  call.video = [];
  const [a, b] = call.calls!.peers;
  b!.freezes = null;
  call.calls!.peers.push({ ...a!, seed: "2", freezes: 2, frozen_s: 1 });
  call.calls!.peers.push({ ...a!, seed: "1", controller: "gcc", freezes: 9, frozen_s: null });
  expect(
    freezesOf(report).map(({ controller, flow, runs, freezes, frozen_s }) => {
      return [controller, flow, runs, freezes, frozen_s];
    }),
  ).toEqual([
    ["gcc-chromium", "seen by a", 2, 1.5, 0.7],
    ["gcc", "seen by a", 1, 9, null],
  ]);
});

test("the heading that is read is the last one at or above the line", () => {
  const tops = [-900, -20, 90, 400];
  const at = (line: number) => lastAbove(tops.length, (i) => tops[i]!, line);
  expect([-1000, -900, 89, 90, 5000].map(at)).toEqual([-1, 0, 1, 2, 3]);
  expect(lastAbove(0, () => 0, 10)).toBe(-1);
});

test("a filter finds entries by all of its words", () => {
  expect(wordsMatch("lund/no-jitter Long path", "LONG lund")).toBe(true);
  expect(wordsMatch("lund/no-jitter Long path", "long short")).toBe(false);
  expect(wordsMatch("anything", " ")).toBe(true);
});

test("a link names an element whatever its id holds", () => {
  expect(linkTo("lund/no-jitter:on the air")).toBe("#lund%2Fno-jitter%3Aon%20the%20air");
});

test("the controllers of an open loop are no calls", () => {
  expect(isOpenLoop("analyzed dump.gz, open loop: gcc")).toBe(true);
  expect(isOpenLoop("analyzed dump.gz")).toBe(false);
  expect(isOpenLoop("chromium")).toBe(false);
});

function near(value: number) {
  return expect.closeTo(value);
}

test("the axis ends above the flows where the capacity is far above them", () => {
  const group = fixture().scenarios[0]!.groups[0]!;
  const of = (mbps: number, capacity: number) => {
    const all = (value: number) => group.series.time_s.map(() => value);
    const series = { ...group.series, capacity_mbps: all(capacity), received_mbps: all(mbps) };
    return cutOff([{ ...group, series }], ["received_mbps"]);
  };
  expect(of(8, 1400)).toEqual({ end: 12, capacity: 1400 });
  expect(of(8, 30)).toBeNull();
  expect(of(0, 30)).toBeNull();
});
