// A plot on the page: drawn when it comes into view, redrawn for width and theme, exported as a
// file, and named for readers who do not see it.

import { WHOLE, createChart, renderSvg, type Chart, type Plot, type Surface } from "./chart";
import type { CsvTable } from "./csv";
import { command, el } from "./dom";
import { framed, innerWidth, plotHead } from "./exports";
import { plural } from "./model";
import { onThemeChange } from "./theme";

export interface FigureSpec {
  /** Heading, and the first part of the exported file's name. */
  title: string;
  /** Scenario or report that the plot belongs to. */
  subject: string;
  caption: string;
  /** Controls that choose the data, placed above the plot. */
  controls?: HTMLElement;
  /** Text alternative of the plot. */
  description: () => string;
  commands: () => string[];
  build: (surface: Surface) => Plot;
  /** The numbers that the plot shows at this zoom. */
  data: (zoom: Surface["zoom"]) => CsvTable;
  /** Called once with the chart, to attach behaviour. */
  attach?: (chart: Chart, surface: HTMLElement) => void;
}

export interface Figure {
  element: HTMLElement;
  /** Draws again after the data it shows has changed. */
  redraw: () => void;
}

const EXPORT_WIDTH = 960;

const waiting = new Map<Element, () => void>();
const viewObserver = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) if (entry.isIntersecting) waiting.get(entry.target)?.();
  },
  { rootMargin: "600px" },
);

/**
 * Draws the plots that are on the page, one after the other while the browser has nothing else to do. A capture of the
 * whole page does not scroll, so without this it would have empty frames. Folded plots wait until they are opened.
 */
export function drawWhenIdle(): void {
  const idle =
    "requestIdleCallback" in window
      ? (work: () => void) => void window.requestIdleCallback(work)
      : (work: () => void) => void setTimeout(work, 50);
  const next = () => {
    for (const [surface, draw] of waiting) {
      if (!surface.checkVisibility()) continue;
      draw();
      idle(next);
      return;
    }
  };
  idle(next);
}

/** Draws every plot now: for print, which does not scroll, and for tests. */
export function drawAll(): void {
  for (const draw of [...waiting.values()]) draw();
}

/** Draws the plots above an element, before the page scrolls to it: afterwards they would move it. */
export function drawAbove(element: Element): void {
  for (const [surface, draw] of [...waiting]) {
    const place = surface.compareDocumentPosition(element);
    if ((place & Node.DOCUMENT_POSITION_FOLLOWING) !== 0) draw();
  }
}

export function figure(spec: FigureSpec): Figure {
  const surface = el("div", { class: "surface", role: "img" });
  const commands = el("div", { class: "commands" });
  let chart: Chart | null = null;

  const draw = () => {
    if (surface.clientWidth === 0) return;
    const plot = spec.build({ width: surface.clientWidth, zoom: zoomOf(chart), screen: true });
    surface.style.height = `${plot.height}px`;
    // The minimum height only reserves space for a plot that is not drawn yet.
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

  const { title, subject } = spec;
  const svg = () => exportSvg(spec, zoomOf(chart));
  const element = el(
    "figure",
    { class: "plot" },
    plotHead({ title, subject, svg, data: () => spec.data(zoomOf(chart)) }),
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

function commandList(commands: string[]): HTMLElement {
  if (commands.length === 0) return el("span");
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

/** The plot as a file. Under it are the subject and the commands that reproduce it. */
function exportSvg(spec: FigureSpec, zoom: Surface["zoom"]): string {
  const width = innerWidth(EXPORT_WIDTH);
  const plot = spec.build({ width, zoom, screen: false });
  const foot = [`${spec.subject}: ${spec.title}`, ...spec.commands()];
  return framed(renderSvg(plot, width), EXPORT_WIDTH, plot.height, foot);
}
