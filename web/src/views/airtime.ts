// Who held the channel of a Wi-Fi cell: a lane a node, a bar a frame.

import { command, el, scroller } from "../dom";
import type { AirFrame, Airtime } from "../format";

const SVG = "http://www.w3.org/2000/svg";
const LABEL = 92;
const LANE = 30;
const BAR = 20;
const AXIS = 34;
/** Pixels a microsecond, so that an ACK of 34 us can be seen. */
const SCALE = 0.22;
const TICK_US = 500;
/** Width of a character of the bars' text. */
const CHARACTER = 6.2;

export function airtimeView(airtime: Airtime): HTMLElement {
  const { nodes, frames } = airtime;
  // Nodes that say nothing in this time take no lane.
  const lanes = nodes.map((_, i) => i).filter((i) => frames.some((frame) => frame.node === i));
  const end = Math.max(...frames.map((frame) => frame.end_us));
  const [width, height] = [LABEL + end * SCALE + 16, lanes.length * LANE + AXIS];
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    class: "airtime",
    role: "img",
    "aria-label": describe(airtime, lanes.length),
  });
  picture.append(...axis(end, lanes.length * LANE));
  lanes.forEach((node, lane) => {
    const y = lane * LANE + LANE / 2;
    const name = svg("text", { x: LABEL - 8, y, class: "lane" });
    name.textContent = nodes[node] as string;
    picture.append(name, svg("line", { x1: LABEL, x2: width - 16, y1: y, y2: y, class: "idle" }));
    frames.filter((frame) => frame.node === node).forEach((frame) => picture.append(bar(frame, y)));
  });
  const caption =
    `From ${airtime.from_s.toFixed(3)} s on, under ${airtime.controller}, first seed. Bars are frames; under the ` +
    "pointer, what they are. Numbers are packets: those that arrived, of those sent.";
  return el(
    "div",
    {},
    scroller("Frames on the air", el("div", { class: "air" }, picture)),
    el("p", { class: "caption" }, legend(), caption),
    command(airtime.command),
  );
}

function bar(frame: AirFrame, y: number): SVGElement {
  const x = LABEL + frame.start_us * SCALE;
  const width = Math.max(1.5, (frame.end_us - frame.start_us) * SCALE);
  const group = svg("g", { class: `frame ${kindOf(frame)}` });
  const title = svg("title", {});
  title.textContent = `${frame.text} (${(frame.end_us - frame.start_us).toFixed(0)} µs)`;
  group.append(title, svg("rect", { x, y: y - BAR / 2, width, height: BAR }));
  const words = `${frame.decoded}/${frame.mpdus}`;
  if (frame.kind === "data" && words.length * CHARACTER < width) {
    const text = svg("text", { x: x + width / 2, y });
    text.textContent = words;
    group.append(text);
  }
  return group;
}

function kindOf(frame: AirFrame): string {
  if (frame.decoded === 0) return "lost";
  if (frame.kind !== "data") return "answer";
  return frame.decoded < frame.mpdus ? "partly" : "whole";
}

const KINDS: [string, string][] = [
  ["whole", "data, all arrived"],
  ["partly", "data, some arrived"],
  ["lost", "nothing arrived"],
  ["answer", "ACK or BlockAck"],
];

function legend(): HTMLElement {
  const item = ([kind, words]: [string, string]) =>
    el("span", {}, el("i", { class: `frame ${kind}` }), ` ${words} `);
  return el("span", { class: "air-legend" }, ...KINDS.map(item));
}

function axis(end: number, y: number): SVGElement[] {
  const marks: SVGElement[] = [];
  for (let us = 0; us <= end; us += TICK_US) {
    const x = LABEL + us * SCALE;
    const text = svg("text", { x, y: y + 16, class: "tick" });
    text.textContent = us % (2 * TICK_US) === 0 ? `${us / 1000} ms` : "";
    marks.push(svg("line", { x1: x, x2: x, y1: 0, y2: y + 4, class: "grid" }), text);
  }
  return marks;
}

function describe({ nodes, frames }: Airtime, lanes: number): string {
  const lost = frames.filter((frame) => frame.decoded === 0).length;
  return (
    `${frames.length} frames of ${lanes} of ${nodes.length} nodes; of ${lost} nothing arrived.`
  );
}

function svg(tag: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, `${value}`);
  return element;
}
