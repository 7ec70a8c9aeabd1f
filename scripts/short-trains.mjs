#!/usr/bin/env node
// Prints how far trains of a few packets are off if the log's arrivals have whole milliseconds, as in an RTC event log:
// frames of one to four packets of 1100 bytes over 1.5 Mbit/s and 25 ms, by the rules of lab/analyze (packets/passages.rs).
//
// usage: scripts/short-trains.mjs

const rate = 1.5e6;
const size = 1100 * 8;
const waited = 3;

// Numbers from 0 to 1 by Park and Miller, so that each run prints the same.
function numbers(seed) {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

// Times of sending and of arrival in ms. `late` is the mean of what delays an arrival behind the bottleneck.
function packets(gap, late, unit, random) {
  const all = [];
  let free = 0;
  for (let frame = 0; frame < 90; frame += 1) {
    const begin = frame * 33.3 + 3 * random();
    const count = 1 + Math.floor(4 * random());
    for (let at = 0; at < count; at += 1) {
      const sent = begin + at * gap;
      free = Math.max(free, sent) + (1e3 * size) / rate;
      const arrival = free + 25 - late * Math.log(1 - random());
      all.push([sent, unit ? Math.floor(arrival / unit) * unit : arrival]);
    }
  }
  return all;
}

// The rate of the packets that waited behind their predecessor.
function measured(all) {
  const base = Math.min(...all.map(([sent, arrival]) => arrival - sent));
  let [bits, busy, last] = [0, 0, undefined];
  for (const [sent, arrival] of all) {
    if (last !== undefined && sent + base + waited <= last && last <= arrival) {
      bits += size;
      busy += arrival - last;
    }
    last = Math.max(last ?? arrival, arrival);
  }
  return busy > 0 ? (1e3 * bits) / busy : undefined;
}

// The same by the packets that wait in a queue that is served at this rate.
function modelled(all, known) {
  const own = (1e3 * size) / known;
  const base = Math.min(...all.map(([sent, arrival]) => arrival - sent)) - own;
  let [bits, busy, free, last] = [0, 0, undefined, undefined];
  for (const [sent, arrival] of all) {
    const earliest = sent + base;
    if (free !== undefined && earliest + 1 <= free) {
      bits += size;
      busy += arrival - last;
    }
    free = Math.max(free ?? earliest, earliest) + own;
    last = arrival;
  }
  return busy > 0 ? (1e3 * bits) / busy : known;
}

// By arrivals first, and then three times by the model.
function twice(all) {
  let found = measured(all);
  for (let time = 0; found !== undefined && time < 3; time += 1) {
    found = modelled(all, found);
  }
  return found;
}

const rules = [
  ["by arrivals", measured],
  ["and by the model", twice],
];
console.log(
  "| time between two packets of a frame | trains | exact times | whole ms | whole ms, 1 ms late on average |",
);
console.log("|---|---|---|---|---|");
for (const gap of [1, 2, 3.2]) {
  for (const [name, rule] of rules) {
    const cells = [
      [0, 0],
      [0, 1],
      [1, 1],
    ].map(([late, unit]) => error(rule, gap, late, unit));
    console.log(`| ${[`${gap} ms`, name, ...cells].join(" | ")} |`);
  }
}

// The mean error of 200 measurements.
function error(rule, gap, late, unit) {
  const random = numbers(1);
  const found = Array.from({ length: 200 }, () => rule(packets(gap, late, unit, random)));
  const known = found.filter((it) => it !== undefined);
  if (known.length === 0) {
    return "not measured";
  }
  const mean = known.reduce((sum, it) => sum + it / rate - 1, 0) / known.length;
  return `${mean >= 0 ? "+" : "-"}${Math.abs(100 * mean).toFixed(0)} %`;
}
