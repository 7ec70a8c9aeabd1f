// The signalling of a call through an IMS: how long each phase took, and a ladder diagram with a column for each
// part, an arrow for each message, and the message's text under its arrow.

import { el, empty, scroller, table } from "../dom";
import type { Phase, Signalling, SignallingMessage } from "../format";
import { formatNumber, plural } from "../model";

/** Width of a column and height of a line, in pixels. */
const COLUMN = 104;
const HEIGHT = 26;
const HEAD = 6;

const KINDS: { protocol: string; text: string }[] = [
  { protocol: "SIP", text: "SIP" },
  { protocol: "Diameter", text: "Diameter" },
  { protocol: "HTTP", text: "HTTP" },
  { protocol: "bearer", text: "decisions about bearers" },
];

export function ladderView(signalling: Signalling, place: number): HTMLElement {
  const { title, phases, messages } = signalling;
  return el(
    "section",
    { id: `signalling-${place + 1}` },
    el("h2", {}, `Signalling: ${title}`),
    el(
      "div",
      { class: "part" },
      el("h3", {}, "Phases"),
      phases.length === 0 ? empty("No phase was completed.") : phaseTable(phases),
    ),
    el(
      "div",
      { class: "part" },
      el("h3", {}, "Ladder diagram"),
      el("p", {}, `${plural(messages.length, "message")}. A click on one opens it.`),
      legend(messages),
      scroller("Ladder diagram", ladder(signalling)),
    ),
  );
}

function phaseTable(phases: Phase[]): HTMLElement {
  return table<Phase>(
    "Phases of the call",
    [
      { head: "Phase", cell: (phase) => phase.name },
      {
        head: "Duration (ms)",
        cell: (phase) => formatNumber(phase.duration_ms, 1),
        kind: "number",
      },
    ],
    phases,
  );
}

function legend(messages: SignallingMessage[]): HTMLElement {
  const there = KINDS.filter(({ protocol }) => messages.some((one) => one.protocol === protocol));
  const entry = ({ protocol, text }: { protocol: string; text: string }) => {
    const sample = picture(30, protocol);
    sample.append(arrow(2, 26, 10));
    return el("li", {}, wrapped(sample), text);
  };
  return el("ul", { class: "ladder-legend" }, ...there.map(entry));
}

function ladder({ parts, messages }: Signalling): HTMLElement {
  const heads = parts.map((part) => el("span", { class: "ladder-part" }, part));
  const times = el("span", { class: "ladder-time" }, "ms");
  return el(
    "div",
    { class: "ladder", style: `--column: ${COLUMN}px; --columns: ${parts.length}` },
    el("div", { class: "ladder-line ladder-heads" }, times, ...heads),
    ...messages.map((message) => line(message, parts)),
  );
}

function line(message: SignallingMessage, parts: string[]): HTMLElement {
  const x = (part: string) => (parts.indexOf(part) + 0.5) * COLUMN;
  const [from, to] = [x(message.from), x(message.to)];
  const svg = picture(COLUMN * parts.length, message.protocol);
  for (const part of parts) svg.append(path(`M${x(part)} 0V${HEIGHT}`, "ladder-life"));
  svg.append(arrow(from, to, HEIGHT - 6), label(message.name, (from + to) / 2));
  const words = `${message.time_ms} ms, ${message.from} to ${message.to}: `;
  return el(
    "details",
    {},
    el(
      "summary",
      { class: "ladder-line" },
      el("span", { class: "ladder-time" }, formatNumber(message.time_ms, 1)),
      el("span", { class: "spoken" }, `${words}${message.protocol} ${message.name}`),
      wrapped(svg),
    ),
    el("pre", {}, message.text),
  );
}

/** Elements of SVG are no children of `el` by their type, but by their nature. */
function wrapped(svg: SVGElement): HTMLElement {
  const span = el("span", { class: "ladder-arrow" });
  span.append(svg);
  return span;
}

function svgElement(tag: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag) as SVGElement;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

/** The text beside it says the same, so programs that read the page aloud skip it. */
function picture(width: number, name: string): SVGElement {
  const known = KINDS.some(({ protocol }) => name.endsWith(protocol)) ? name : "other";
  return svgElement("svg", { width, height: HEIGHT, class: known, "aria-hidden": "true" });
}

function path(d: string, name: string): SVGElement {
  return svgElement("path", { d, class: name });
}

function arrow(from: number, to: number, y: number): SVGElement {
  const back = to >= from ? to - HEAD : to + HEAD;
  return path(`M${from} ${y}H${to}M${back} ${y - 3}L${to} ${y}L${back} ${y + 3}`, "ladder-stroke");
}

function label(text: string, x: number): SVGElement {
  const element = svgElement("text", { x, y: HEIGHT - 11 });
  element.textContent = text;
  return element;
}
