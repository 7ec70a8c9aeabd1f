// A plot on the page: drawn when it comes into view, redrawn for width and theme, exported as a
// file, and named for readers who do not see it.

import {
  FONT,
  FONT_SIZE,
  WHOLE,
  createChart,
  renderSvg,
  textWidth,
  type Chart,
  type Plot,
  type Surface,
} from "./chart";
import { command, download, el } from "./dom";
import { plural } from "./model";
import { onThemeChange, theme } from "./theme";

export interface FigureSpec {
  /** Heading, and the first part of the exported file's name. */
  title: string;
  /** Scenario or report that the plot belongs to. */
  subject: string;
  caption: string;
  /** What chooses the data shown; stands over the plot. */
  controls?: HTMLElement;
  /** The plot in words. */
  description: () => string;
  commands: () => string[];
  build: (surface: Surface) => Plot;
  /** Called once with the chart, to attach behaviour. */
  attach?: (chart: Chart, surface: HTMLElement) => void;
}

export interface Figure {
  element: HTMLElement;
  /** Draws again after the data it shows has changed. */
  redraw: () => void;
}

const EXPORT_WIDTH = 960;
const EXPORT_MARGIN = 16;
const PNG_SCALE = 2;

const waiting = new Map<Element, () => void>();
const viewObserver = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) if (entry.isIntersecting) waiting.get(entry.target)?.();
  },
  { rootMargin: "600px" },
);

/** Draws every plot now: for print, which does not scroll, and for tests. */
export function drawAll(): void {
  for (const draw of [...waiting.values()]) draw();
}

export function figure(spec: FigureSpec): Figure {
  const surface = el("div", { class: "surface", role: "img" });
  const commands = el("div", { class: "commands" });
  let chart: Chart | null = null;

  const draw = () => {
    if (surface.clientWidth === 0) return;
    const plot = spec.build({ width: surface.clientWidth, zoom: zoomOf(chart), screen: true });
    surface.style.height = `${plot.height}px`;
    // The least height holds the place of a plot that is not drawn yet.
    surface.style.minHeight = "0";
    if (chart === null) {
      chart = createChart(surface);
      spec.attach?.(chart, surface);
    }
    chart.resize({ width: surface.clientWidth, height: plot.height });
    chart.setOption(plot.option, { notMerge: true });
  };
  const describe = () => {
    surface.setAttribute("aria-label", spec.description());
    commands.replaceChildren(commandList(spec.commands()));
  };
  describe();
  drawWhenSeen(surface, draw, () => chart !== null);

  const svg = () => exportSvg(spec, zoomOf(chart));
  const name = fileName(`${spec.subject} ${spec.title}`);
  const element = el(
    "figure",
    { class: "plot" },
    el(
      "div",
      { class: "plot-head" },
      el("h3", {}, spec.title),
      exportButton("SVG", spec, async () =>
        download(`${name}.svg`, new Blob([svg()], { type: "image/svg+xml" })),
      ),
      exportButton("PNG", spec, async () => download(`${name}.png`, await rasterize(svg()))),
    ),
    spec.controls ?? null,
    surface,
    el("figcaption", {}, spec.caption),
    commands,
  );
  const redraw = () => {
    describe();
    if (chart !== null) draw();
  };
  return { element, redraw };
}

function drawWhenSeen(surface: HTMLElement, draw: () => void, drawn: () => boolean): void {
  const first = () => {
    viewObserver.unobserve(surface);
    waiting.delete(surface);
    draw();
  };
  waiting.set(surface, first);
  viewObserver.observe(surface);
  let width = 0;
  new ResizeObserver(() => {
    if (drawn() && surface.clientWidth !== width) draw();
    width = surface.clientWidth;
  }).observe(surface);
  onThemeChange(() => {
    if (drawn()) draw();
  });
}

function exportButton(kind: string, spec: FigureSpec, act: () => Promise<void>): HTMLElement {
  const label = `Save ${spec.title} of ${spec.subject} as ${kind}`;
  const button = el("button", { type: "button", class: "export", "aria-label": label }, kind);
  button.addEventListener("click", act);
  return button;
}

function commandList(commands: string[]): HTMLElement {
  if (commands.length === 1) return command(commands[0] as string);
  const list = el("ul", {}, ...commands.map((text) => el("li", {}, command(text))));
  const title = `Reproduce this plot: ${plural(commands.length, "command")}`;
  return el("details", {}, el("summary", {}, title), list);
}

/** The span that the reader has zoomed to. */
function zoomOf(chart: Chart | null): Surface["zoom"] {
  type Zoomed = { dataZoom?: { start?: number; end?: number }[] };
  const { start, end } = (chart?.getOption() as Zoomed | undefined)?.dataZoom?.[0] ?? {};
  return { start: start ?? WHOLE.start, end: end ?? WHOLE.end };
}

const SVG = "http://www.w3.org/2000/svg";
const FOOT_LINE = 16;

/** The plot as a file, with the subject and the commands that reproduce it under it. */
function exportSvg(spec: FigureSpec, zoom: Surface["zoom"]): string {
  const width = EXPORT_WIDTH - 2 * EXPORT_MARGIN;
  const plot = spec.build({ width, zoom, screen: false });
  const lines = [`${spec.subject}: ${spec.title}`, ...spec.commands()].flatMap((line) =>
    wrap(line, width),
  );
  const height = plot.height + lines.length * FOOT_LINE + 3 * EXPORT_MARGIN;
  const page = new DOMParser().parseFromString(renderSvg(plot, width), "image/svg+xml");
  const root = page.documentElement;
  const add = (tag: string, attributes: Record<string, string | number>, ...children: Node[]) => {
    const node = page.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
    node.append(...children);
    root.append(node);
  };
  const drawing = [...root.childNodes];
  root.setAttribute("width", String(EXPORT_WIDTH));
  root.setAttribute("height", String(height));
  root.setAttribute("viewBox", `0 0 ${EXPORT_WIDTH} ${height}`);
  add("rect", { width: EXPORT_WIDTH, height, fill: theme().background });
  add("g", { transform: `translate(${EXPORT_MARGIN},${EXPORT_MARGIN})` }, ...drawing);
  lines.forEach((line, i) => {
    const y = plot.height + 2 * EXPORT_MARGIN + (i + 0.75) * FOOT_LINE;
    const look = { fill: theme().muted, "font-family": FONT, "font-size": FONT_SIZE };
    add("text", { x: EXPORT_MARGIN, y, ...look }, page.createTextNode(line));
  });
  return new XMLSerializer().serializeToString(page);
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && textWidth(`${last} ${word}`) <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else {
      lines.push(word);
    }
  }
  return lines;
}

async function rasterize(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth * PNG_SCALE;
  canvas.height = image.naturalHeight * PNG_SCALE;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob === null ? reject(new Error("no image")) : resolve(blob)));
  });
}

function fileName(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
}
