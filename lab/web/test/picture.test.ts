// The picture of a call: what it shows at a moment, and its words.

import { expect, test } from "vitest";
import type { Group, Scenario, Series } from "../src/format";
import { lanesOf } from "../src/picture/lanes";
import {
  isStill,
  longestWait,
  momentOf,
  scaleOf,
  sentence,
  type Moment,
} from "../src/picture/moment";

const series = (rest: Partial<Series> = {}): Series => ({
  time_s: [0, 1, 2],
  capacity_mbps: [2, 2, 0.5],
  possible_mbps: [null, null, null],
  target_mbps: [0.3, 1, 1.5],
  received_mbps: [0.3, 1, 0],
  rtt_ms: [50, 50, 600],
  queuing_delay_ms: [0, 10, 550],
  loss_percent: [0, 0, 12],
  ...rest,
});

const group = (controller: string, rest: Partial<Group> = {}): Group =>
  ({ controller, engine: "sim", flow: "media", series: series(), ...rest }) as Group;

const scenario = (calls: unknown = null) => ({ calls }) as Scenario;

test("a moment is the nearest one that was recorded", () => {
  const lane = { name: "gcc", controller: "gcc", series: series(), sender: null };
  expect(momentOf(lane, 1.8)).toEqual({
    target_mbps: 1.5,
    sender_ms: null,
    queue_ms: 550,
    capacity_mbps: 0.5,
    received_mbps: 0,
    loss_percent: 12,
  });
  expect(momentOf({ ...lane, series: series({ time_s: [] }) }, 1)).toBeNull();
});

test("one scale for all flows, and a short queue looks short", () => {
  const [one, other] = lanesOf(scenario(), [
    group("gcc", { series: series({ queuing_delay_ms: [0, 5, 9] }) }),
    group("nada"),
  ]);
  expect(scaleOf([one!])).toEqual({ mbps: 2, queue_ms: 200 });
  expect(scaleOf([one!, other!]).queue_ms).toBe(200);
  const long = { ...other!, series: series({ queuing_delay_ms: [700, 700, 700] }) };
  expect(scaleOf([one!, long])).toEqual({ mbps: 2, queue_ms: 700 });
  expect(scaleOf([])).toEqual({ mbps: 0.1, queue_ms: 200 });
});

test("it opens at the longest wait of network and sender", () => {
  const lanes = lanesOf(scenario(), [group("gcc"), group("nada")]);
  expect(longestWait(lanes)).toBe(2);
  const sender = { time_s: [1], queue_ms: [900] };
  expect(
    longestWait([{ ...lanes[0]!, sender, series: series({ queuing_delay_ms: [0, 10, 9] }) }]),
  ).toBe(1);
  expect(longestWait([])).toBe(0);
});

test("lanes are the flows whose way is known, with the queue of a pipeline's sender", () => {
  const nothing = [null, null, null];
  const blind = series({ capacity_mbps: nothing, queuing_delay_ms: nothing });
  const pacers = [{ controller: "gcc", peer: "a", time_s: [1], queue_ms: [40], encoder_mbps: [1] }];
  const lanes = lanesOf(scenario({ pacers }), [
    group("gcc", { engine: "call" }),
    group("gcc"),
    group("nada", { series: blind }),
  ]);
  expect(lanes.map((lane) => lane.name)).toEqual(["gcc, real call", "gcc, simulated"]);
  expect(momentOf(lanes[0]!, 2)?.sender_ms).toBe(40);
  expect(lanes[1]?.sender).toBeNull();
});

test("the sentence names what a person would notice", () => {
  const quiet: Moment = {
    target_mbps: 1.9,
    sender_ms: 0,
    queue_ms: 5,
    capacity_mbps: 2,
    received_mbps: 1.8,
    loss_percent: 0,
  };
  const says = (rest: Partial<Moment>) => sentence("gcc", { ...quiet, ...rest });
  expect(says({})).toBe("gcc: the call uses the network, and its queue is short.");
  expect(says({ received_mbps: 0.5 })).toContain("uses 25 % of what the network carries");
  expect(says({ received_mbps: 0 })).toBe("gcc: nothing arrives, and the picture freezes.");
  expect(says({ target_mbps: 3, queue_ms: 480 })).toBe(
    "gcc: more is sent than the network carries, and packets wait 480 ms in the network.",
  );
  expect(says({ sender_ms: 90, loss_percent: 4 })).toBe(
    "gcc: media waits 90 ms in the sender; 4 % of the packets are lost.",
  );
  const ping = sentence("up", { ...quiet, received_mbps: 0 }, true);
  expect(ping).toBe("up: next to nothing is sent.");
  expect(says({ received_mbps: null })).toContain("nothing was recorded");
  expect(isStill({ ...quiet, received_mbps: 0 })).toBe(true);
  expect(isStill(quiet)).toBe(false);
});
