// The signalling of a call through an IMS: how long each phase took, and a ladder diagram with a column for each
// part, an arrow for each message, and the message's text under its arrow. A part can be left out with its messages.

import { el, empty, scroller, table } from "../dom";
import type { Phase, Signalling, SignallingMessage } from "../format";
import { formatNumber, plural } from "../model";

/** Width of a column and height of a line, in pixels. */
const COLUMN = 104;
const HEIGHT = 26;
const HEAD = 6;
/** How far the arrow of a message to its own sender goes out, and half of its height, in pixels. */
const LOOP = { width: 16, height: 3 };

const KINDS: { protocol: string; text: string }[] = [
  { protocol: "SIP", text: "SIP" },
  { protocol: "Diameter", text: "Diameter" },
  { protocol: "HTTP", text: "HTTP" },
  { protocol: "bearer", text: "decisions about bearers" },
];

export function ladderView(signalling: Signalling, place: number): HTMLElement {
  const { title, phases, messages } = signalling;
  const diagram = el("div", {}, ladder(signalling));
  const region = scroller("Ladder diagram", diagram);
  region.querySelector(".scroll")?.classList.add("ladder-region");
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
      partsFilter(signalling, (shown) => diagram.replaceChildren(ladder(shown))),
      region,
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

/** Boxes that leave parts out, and how many messages that leaves. */
function partsFilter(
  { parts, messages, ...rest }: Signalling,
  show: (shown: Signalling) => void,
): HTMLElement {
  const left = new Set(parts);
  const count = el("span", { class: "ladder-count", "aria-live": "polite" });
  const box = (part: string) => {
    const input = el("input", { type: "checkbox", checked: true });
    input.addEventListener("change", () => {
      if (input.checked) left.add(part);
      else left.delete(part);
      const between = messages.filter(({ from, to }) => left.has(from) && left.has(to));
      show({ ...rest, parts: parts.filter((one) => left.has(one)), messages: between });
      const isAll = between.length === messages.length;
      count.textContent = isAll ? "" : `${between.length} of ${plural(messages.length, "message")}`;
    });
    return el("label", {}, input, part);
  };
  const name = el("legend", {}, "Parts shown");
  return el("fieldset", { class: "ladder-filter" }, name, ...parts.map(box), count);
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
  if (from === to) return loop(from, y);
  const back = to >= from ? to - HEAD : to + HEAD;
  return path(`M${from} ${y}H${to}M${back} ${y - 3}L${to} ${y}L${back} ${y + 3}`, "ladder-stroke");
}

/** From a part to itself. */
function loop(x: number, y: number): SVGElement {
  const { width, height } = LOOP;
  const line = `M${x} ${y - height}h${width}v${2 * height}H${x}`;
  return path(`${line}m${HEAD} -3L${x} ${y + height}l${HEAD} 3`, "ladder-stroke");
}

function label(text: string, x: number): SVGElement {
  const element = svgElement("text", { x, y: HEIGHT - 11 });
  element.textContent = text;
  return element;
}
