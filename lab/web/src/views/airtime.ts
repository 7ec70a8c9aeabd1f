// Use of the channel of a Wi-Fi cell: one lane for each node, one bar for each frame.

import { airtimeData } from "../data";
import { command, el, scroller } from "../dom";
import { framed, innerWidth, plotHead, styledPicture } from "../exports";
import type { AirFrame, Airtime } from "../format";

const TITLE = "On the air";
const SVG = "http://www.w3.org/2000/svg";
const LABEL = 92;
const LANE = 30;
const BAR = 20;
const AXIS = 34;
/** Pixels per microsecond: an ACK of 34 us must be visible. */
const SCALE = 0.22;
const TICK_US = 500;
/** Width of a character of the bars' text. */
const CHARACTER = 6.2;
/** Minimum width of a saved picture, for the text under it. */
const EXPORT_MIN = 960;

export function airtimeView(scenario: string, airtime: Airtime): HTMLElement {
  const { nodes, frames } = airtime;
  // Nodes that send nothing in this time get no lane.
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
    `Starts at ${airtime.from_s.toFixed(3)} s of the run of ${airtime.controller} with the first seed. ` +
    "Each bar is a frame. Its numbers are the packets that arrived and the packets that it had.";
  // The text under the picture explains the colours, because a file has no legend.
  const foot = [`${scenario}: ${TITLE}`, caption, KINDS_IN_WORDS, airtime.command];
  const file = () => {
    const most = width + (EXPORT_MIN - innerWidth(EXPORT_MIN));
    return framed(styledPicture(picture), Math.max(EXPORT_MIN, most), height, foot);
  };
  return el(
    "div",
    { class: "part" },
    plotHead({
      title: TITLE,
      subject: scenario,
      svg: file,
      data: () => airtimeData(scenario, airtime),
    }),
    scroller("Frames on the air", el("div", { class: "air" }, picture)),
    el("p", { class: "caption" }, legend(), caption, " Point at a frame to see what it is."),
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

const KINDS: [kind: string, words: string, colour: string][] = [
  ["whole", "data, all arrived", "blue"],
  ["partly", "data, some arrived", "orange"],
  ["lost", "nothing arrived", "brown"],
  ["answer", "ACK or BlockAck", "green"],
];

const KINDS_IN_WORDS = `Colours: ${KINDS.map(([, words, colour]) => `${colour} ${words}`).join("; ")}.`;

function legend(): HTMLElement {
  const item = ([kind, words]: [string, string, string]) =>
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
  return `${frames.length} frames of ${lanes} of ${nodes.length} nodes; ${lost} of the frames did not arrive.`;
}

function svg(tag: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, `${value}`);
  return element;
}
