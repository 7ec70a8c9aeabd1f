// What a forwarding server sent to its subscribers: a lane for each picture that somebody watches, coloured by
// layer, and the decisions with their reasons.

import { serverData } from "../data";
import { command, el, empty, scroller, table } from "../dom";
import { framed, innerWidth, plotHead, styledPicture } from "../exports";
import type { ForwardedLane, ForwardedSpan, Forwarding, LayerChoice } from "../format";
import { formatNumber, plural, unique } from "../model";
import { choiceInWords, spanInWords } from "../words";
import { number } from "./tables";

const TITLE = "What the server sent to whom";
const SVG = "http://www.w3.org/2000/svg";
const LABEL = 150;
const LANE = 24;
const BAR = 16;
const AXIS = 30;
const RIGHT = 16;
/** Width of the lanes in pixels, whatever the run's duration. */
const WIDTH = 780;
/** Widths of a character in a bar and of a name beside a lane. */
const CHARACTER = 6.2;
const NAME_MAX = 22;
/** Distances of two marks of the axis in seconds. The first with at most this many marks is taken. */
const TICKS_S = [1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600];
const MARKS_MAX = 10;
/** Choices that are shown at first. */
const FIRST = 12;

/** Colours of layers, from the smallest. A pause has none. */
const COLOURS = ["brown", "orange", "blue", "green"];

export function serverView(scenario: string, server: Forwarding): HTMLElement {
  const { lanes, choices } = server;
  if (lanes.length === 0) {
    const none = empty("Nobody watches a picture in this scenario.");
    return el("div", { class: "part" }, el("h3", {}, TITLE), none);
  }
  const picture = lanePicture(server);
  const caption =
    `The run of ${server.controller} with the first seed. A lane is the picture of a publisher on its way to a ` +
    "subscriber.";
  const foot = [`${scenario}: ${TITLE}`, caption, inWords(server.layers), server.command];
  const file = () => {
    const width = LABEL + WIDTH + RIGHT;
    const most = width + (width - innerWidth(width));
    return framed(styledPicture(picture), most, lanes.length * LANE + AXIS, foot);
  };
  return el(
    "div",
    { class: "part" },
    plotHead({
      title: TITLE,
      subject: scenario,
      svg: file,
      data: () => serverData(scenario, server),
    }),
    scroller("Layers sent to subscribers", el("div", { class: "air" }, picture)),
    el("p", { class: "caption" }, legend(server.layers), caption, " Point at a bar to see why."),
    server.is_cut
      ? el("p", {}, `There is more: this shows ${plural(lanes.length, "lane")}.`)
      : null,
    choiceTables(choices),
    command(server.command),
  );
}

function choiceTables(choices: LayerChoice[]): HTMLElement {
  if (choices.length === 0) return empty("The server decided nothing about layers.");
  const [first, others] = [choices.slice(0, FIRST), choices.slice(FIRST)];
  const more = el("summary", {}, `${others.length} more decisions`);
  return el(
    "div",
    {},
    choiceTable("Decisions about layers", first),
    others.length === 0
      ? null
      : el("details", {}, more, choiceTable("More decisions about layers", others)),
  );
}

function choiceTable(caption: string, rows: LayerChoice[]): HTMLElement {
  const several = unique(rows.map(({ flow }) => flow)).length > 1;
  return table<LayerChoice>(
    caption,
    [
      number("Time (s)", (row) => row.time_s, 2),
      ...(several ? [{ head: "Subscriber", cell: (row: LayerChoice) => row.flow }] : []),
      { head: "Publisher", cell: (row) => row.publisher },
      { head: "Decision", cell: (row) => choiceInWords(row) },
      { head: "Why", cell: (row) => row.reason },
      number("Budget (kbit/s)", (row) => row.budget_kbps, 0),
      number("Needed (kbit/s)", (row) => row.needed_kbps, 0),
    ],
    rows,
  );
}

function lanePicture(server: Forwarding): SVGElement {
  const { lanes, duration_s } = server;
  const scale = WIDTH / Math.max(duration_s, 1e-9);
  const [width, height] = [LABEL + WIDTH + RIGHT, lanes.length * LANE + AXIS];
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    class: "airtime layers",
    role: "img",
    "aria-label": describe(server),
  });
  picture.append(...axis(duration_s, scale, lanes.length * LANE));
  lanes.forEach((lane, place) => {
    const y = place * LANE + LANE / 2;
    const name = svg("text", { x: LABEL - 8, y, class: "lane" });
    name.textContent = laneName(lane);
    const whole = svg("title", {});
    whole.textContent = `${lane.publisher} to ${lane.flow}`;
    name.append(whole);
    picture.append(name);
    for (const span of lane.spans) picture.append(bar(span, y, scale));
  });
  return picture;
}

function laneName({ flow, publisher }: ForwardedLane): string {
  const name = `${publisher} to ${flow}`;
  return name.length <= NAME_MAX ? name : `${name.slice(0, NAME_MAX - 1)}…`;
}

function bar(span: ForwardedSpan, y: number, scale: number): SVGElement {
  const x = LABEL + span.from_s * scale;
  const width = Math.max(1, (span.to_s - span.from_s) * scale);
  const group = svg("g", { class: `frame ${classOf(span.layer)}` });
  const title = svg("title", {});
  title.textContent = spanInWords(span);
  const place = { x, width, y: y - BAR / 2, height: BAR };
  group.append(title, svg("rect", span.layer === null ? { ...place, "fill-opacity": 0 } : place));
  const words = span.layer === null ? "paused" : String(span.layer);
  if (words.length * CHARACTER + 4 < width) {
    const text = svg("text", { x: x + width / 2, y });
    text.textContent = words;
    group.append(text);
  }
  return group;
}

function classOf(layer: number | null): string {
  return layer === null ? "pause" : `layer-${Math.min(layer, COLOURS.length - 1)}`;
}

function legend(layers: number): HTMLElement {
  const item = (name: string, words: string) =>
    el("span", {}, el("i", { class: `frame ${name}` }), ` ${words} `);
  const all = Array.from({ length: layers }, (_, layer) =>
    item(classOf(layer), layerName(layer, layers)),
  );
  return el("span", { class: "air-legend" }, ...all, item("pause", "nothing sent"));
}

function layerName(layer: number, layers: number): string {
  if (layer === 0) return "layer 0, the smallest";
  return layer === layers - 1 ? `layer ${layer}, the largest` : `layer ${layer}`;
}

/** What a file says of the colours. */
function inWords(layers: number): string {
  const all = Array.from({ length: layers }, (_, layer) => {
    return `${COLOURS[Math.min(layer, COLOURS.length - 1)]} ${layerName(layer, layers)}`;
  });
  return `Colours: ${[...all, "empty nothing sent"].join("; ")}.`;
}

function axis(duration_s: number, scale: number, y: number): SVGElement[] {
  const step = TICKS_S.find((step) => duration_s / step <= MARKS_MAX) ?? duration_s;
  const marks: SVGElement[] = [];
  for (let time = 0; time <= duration_s; time += step) {
    const x = LABEL + time * scale;
    const text = svg("text", { x, y: y + 16, class: "tick" });
    text.textContent = `${formatNumber(time, 0)} s`;
    marks.push(svg("line", { x1: x, x2: x, y1: 0, y2: y + 4, class: "grid" }), text);
  }
  return marks;
}

function describe({ lanes }: Forwarding): string {
  const spans = lanes.flatMap((lane) => lane.spans);
  const paused = spans.filter(({ layer }) => layer === null).length;
  return (
    `${plural(lanes.length, "picture")} on the way to ${plural(unique(lanes.map((it) => it.flow)).length, "subscriber")}: ` +
    `${plural(spans.length - paused, "time")} with a layer and ${paused} without.`
  );
}

function svg(tag: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, `${value}`);
  return element;
}
