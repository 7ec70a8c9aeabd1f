// The page of `weir serve`: what it computes. lab/cli/tests/real/serve_page.rs opens it in a browser.

import { expect, test } from "vitest";
import { found, listed } from "../src/serve/editor";
import { liveReport, newest } from "../src/serve/live";
import { recordName } from "../src/serve/records";
import type { Stats, Status, Way } from "../src/serve/server";
import { PROPERTIES, inUnit } from "../src/serve/sliders";

const way = (rate_mbps: number, rest: Partial<Way> = {}): Way => ({
  capacity_mbps: 2,
  rate_mbps,
  loss_ratio: 0,
  delay_ms: 25,
  queuing_delay_ms: 0,
  ...rest,
});

test("every word of a search must be somewhere", () => {
  const known = [
    { id: "lund/rmcat", title: "Wi-Fi", source: "a paper", duration_s: 1, callable: true },
    { id: "demo/x", title: "A call", source: "ours", duration_s: 1, callable: true },
  ];
  expect(found(known, "PAPER lund").map(({ id }) => id)).toEqual(["lund/rmcat"]);
  expect(found(known, "").length).toBe(2);
  expect(found(known, "lund ours")).toEqual([]);
});

test("the chosen scenario is in the list, however many there are", () => {
  const known = Array.from({ length: 684 }, (_, i) => ({
    id: `x/${i}`,
    title: "t",
    source: "s",
    duration_s: 1,
    callable: true,
  }));
  const ids = (chosen: string) => listed(known, chosen).map(({ id }) => id);
  expect(ids("x/500").slice(0, 2)).toEqual(["x/500", "x/0"]);
  expect(ids("x/5").filter((id) => id === "x/5")).toEqual(["x/5"]);
  expect(ids("y/1").length).toBe(200);
});

test("a record is named by its controller and seed", () => {
  const record = { name: "run-7/x", scenario: "x", controller: "gcc", engine: "sim", seed: "3" };
  expect(recordName(record)).toBe("gcc, seed 3");
});

test("a status becomes a point of a curve for each direction", () => {
  const status: Status = {
    time_s: 12.2,
    round_trip_ms: 60,
    hops: [
      { up: way(1, { loss_ratio: 0.5, queuing_delay_ms: 4 }), down: way(0.2) },
      { up: way(0.9, { capacity_mbps: 1, loss_ratio: 0.5, queuing_delay_ms: 6 }), down: way(0.3) },
    ],
  };
  const [scenario] = liveReport("x", "link", [status], []).scenarios;
  expect(scenario?.duration_s).toBe(20);
  const [up, down] = scenario?.groups ?? [];
  expect(up?.series).toMatchObject({
    time_s: [12.2],
    capacity_mbps: [1],
    received_mbps: [0.9],
    rtt_ms: [60],
    queuing_delay_ms: [10],
    loss_percent: [75],
  });
  expect(down?.series.received_mbps).toEqual([0.2]);
});

test("a peer that sends has a curve, and the newest interval counts", () => {
  const stats: Stats[] = [
    { call: 0, peer: "a", time_s: 1, send_bps: 1e6, target_bps: 2e6, rtt_ms: 50 },
    { call: 0, peer: "b", time_s: 1.1, receive_bps: 9e5 },
    { call: 0, peer: "a", time_s: 1.5, send_bps: 1.5e6, target_bps: null },
  ];
  const { groups } = liveReport("x", "call", [], stats).scenarios[0]!;
  expect(groups.map(({ controller, flow }) => `${controller} ${flow}`)).toEqual([
    "up network",
    "down network",
    "sent by a getStats",
  ]);
  expect(groups[2]?.series).toMatchObject({ received_mbps: [1, 1.5], target_mbps: [2, null] });
  expect(newest(stats).map(({ time_s }) => time_s)).toEqual([1.5, 1.1]);
});

test("a slider's positions and values belong together", () => {
  for (const property of PROPERTIES) {
    for (const position of [0, 0.3, 0.7, 1]) {
      const value = property.value(position);
      expect(Math.abs(property.position(value) - position)).toBeLessThan(0.02);
      expect(inUnit(property, `${value}${property.unit}`)).toBe(value);
    }
  }
  const [capacity, delay] = PROPERTIES;
  expect(inUnit(capacity!, "1.5Mbps")).toBe(1500);
  expect(inUnit(delay!, "0.2s")).toBe(200);
  expect(inUnit(delay!, "5%")).toBeNull();
  expect(inUnit(capacity!, "fast")).toBeNull();
});
