// Who had which resource blocks of a cellular cell: one column for each TTI, one row for each
// resource block, one colour for each terminal.

import { FONT } from "../chart";
import { gridData, prbText } from "../data";
import { command, el, empty, scroller } from "../dom";
import { framed, innerWidth, plotHead } from "../exports";
import type { Cellular, GridBlock, ResourceGrid } from "../format";
import { formatNumber, plural, unique } from "../model";
import { onThemeChange, paletteOf, theme } from "../theme";

const TITLE = "Resource blocks";
const SVG = "http://www.w3.org/2000/svg";
const LEFT = 56;
const TTI_WIDTH = 18;
/** Height of a direction's resource blocks together. */
const HEIGHT = 150;
const HEAD = 20;
const GAP = 12;
const AXIS = 34;
const TICK_TTIS = 5;
/** Minimum width of a saved picture, for the text under it. */
const EXPORT_MIN = 960;
/** Opacity of a block that was not decoded. */
const PALE = 0.35;

type Direction = GridBlock["direction"];

const NAMES: Record<Direction, string> = { down: "Downlink", up: "Uplink" };

/** Number of pictures so far: a pattern's name must be unique in the page. */
let pictures = 0;

export function resourceView(scenario: string, cellular: Cellular): HTMLElement {
  const { grid, controller } = cellular;
  if (grid === null || grid.blocks.length === 0) {
    const none = empty("No block was on the air in the time that is recorded block by block.");
    return el("div", { class: "part" }, el("h3", {}, TITLE), none);
  }
  const hatch = `hatch-${++pictures}`;
  const holder = el("div", { class: "resources" });
  const legend = el("span", { class: "resource-legend" });
  const colour = colourOf(cellular, grid);
  const draw = () => {
    holder.replaceChildren(picture(grid, colour, hatch));
    legend.replaceChildren(...legendItems(grid, colour));
  };
  draw();
  onThemeChange(draw);
  const span = grid.ttis * grid.tti_ms;
  const caption =
    `${span} ms from ${grid.from_s.toFixed(3)} s on, under ${controller}, first seed. A column is a ` +
    "TTI, a row is a resource block. Hatched: retransmission. Pale with an outline: not decoded.";
  // The text under the picture explains the colours, because a file has no legend.
  const file = () => {
    const { width, height } = sizeOf(grid);
    const most = width + (EXPORT_MIN - innerWidth(EXPORT_MIN));
    const foot = [`${scenario}: ${TITLE}`, caption, cellular.command];
    const svg = new XMLSerializer().serializeToString(picture(grid, colour, hatch, true));
    return framed(svg, Math.max(EXPORT_MIN, most), height, foot);
  };
  return el(
    "div",
    { class: "part" },
    plotHead({
      title: TITLE,
      subject: scenario,
      svg: file,
      data: () => gridData(scenario, controller, grid),
    }),
    scroller("Resource blocks of each TTI", holder),
    el("p", { class: "caption" }, legend, caption, " Point at a block to see what it is."),
    command(cellular.command),
  );
}

/** Indices of the terminals that have a block, in their order. */
function terminalsOf(grid: ResourceGrid): number[] {
  return unique(grid.blocks.map((block) => block.node)).sort((a, b) => a - b);
}

function nameOf(grid: ResourceGrid, node: number): string {
  return grid.nodes[node] ?? `terminal ${node}`;
}

type Colour = (node: number) => string;

/** A terminal has the colour of its curves. */
function colourOf({ curves }: Cellular, grid: ResourceGrid): Colour {
  const palette = paletteOf(unique(curves.map((curve) => curve.terminal)));
  return (node) => palette(nameOf(grid, node));
}

/** Directions with a block. In time division both use the same resource blocks in turn. */
function directionsOf(grid: ResourceGrid): Direction[] {
  const all: Direction[] = ["down", "up"];
  return all.filter((way) => grid.blocks.some((block) => block.direction === way));
}

function sizeOf(grid: ResourceGrid): { width: number; height: number } {
  const directions = directionsOf(grid).length;
  return {
    width: LEFT + grid.ttis * TTI_WIDTH + 16,
    height: directions * (HEAD + HEIGHT + GAP) - GAP + AXIS,
  };
}

/** The picture; a file has the names of the terminals above it. */
function picture(grid: ResourceGrid, colour: Colour, hatch: string, isFile = false): SVGElement {
  const { width, height } = sizeOf(grid);
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    class: "resource-grid",
    role: "img",
    "aria-label": describe(grid),
    "font-family": FONT,
    "font-size": 12,
  });
  root.append(hatchPattern(hatch));
  directionsOf(grid).forEach((direction, i) => {
    const top = i * (HEAD + HEIGHT + GAP) + HEAD;
    const prbs = direction === "down" ? grid.prbs_down : grid.prbs_up;
    root.append(...frame(grid, direction, prbs, top));
    const own = grid.blocks.filter((block) => block.direction === direction);
    root.append(...own.map((block) => blockShape(grid, block, { prbs, top, colour, hatch })));
  });
  root.append(...timeAxis(grid, height - AXIS));
  if (isFile) root.append(...names(grid, colour));
  return root;
}

function hatchPattern(id: string): SVGElement {
  const pattern = svg("pattern", {
    id,
    width: 6,
    height: 6,
    patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)",
  });
  pattern.append(svg("rect", { width: 2.5, height: 6, fill: theme().background }));
  const definitions = svg("defs", {});
  definitions.append(pattern);
  return definitions;
}

interface Place {
  prbs: number;
  top: number;
  colour: Colour;
  hatch: string;
}

function blockShape(grid: ResourceGrid, block: GridBlock, place: Place): SVGElement {
  const { prbs, top, colour, hatch } = place;
  const group = svg("g", { class: "block" });
  const title = svg("title", {});
  title.textContent = blockText(grid, block);
  group.append(title);
  const row = HEIGHT / Math.max(1, prbs);
  for (const [first, last] of block.prbs) {
    const box = {
      x: LEFT + block.tti * TTI_WIDTH + 1,
      y: top + first * row,
      width: TTI_WIDTH - 2,
      height: Math.max(1, (last - first + 1) * row - 0.5),
    };
    const fill = colour(block.node);
    const look = block.is_decoded ? { fill } : { fill, "fill-opacity": PALE, stroke: fill };
    group.append(svg("rect", { ...box, ...look }));
    if (block.attempt > 1) group.append(svg("rect", { ...box, fill: `url(#${hatch})` }));
  }
  return group;
}

/** `caller-1, PRB 0-24, MCS 28, 2292 B, transmission 2, not decoded`. */
function blockText(grid: ResourceGrid, block: GridBlock): string {
  const again = block.attempt > 1 ? `, transmission ${block.attempt}` : "";
  const lost = block.is_decoded ? "" : ", not decoded";
  const where = `PRB ${prbText(block.prbs)}`;
  const what = `MCS ${block.mcs}, ${block.bytes} B${again}${lost}`;
  return `${nameOf(grid, block.node)}, ${where}, ${what}`;
}

function frame(grid: ResourceGrid, way: Direction, prbs: number, top: number): SVGElement[] {
  const { text, muted, grid: line } = theme();
  const title = label(NAMES[way], { x: LEFT, y: top - 6, fill: text, "font-weight": 600 });
  const width = grid.ttis * TTI_WIDTH;
  const box = svg("rect", { x: LEFT, y: top, width, height: HEIGHT, fill: "none", stroke: line });
  const row = HEIGHT / Math.max(1, prbs);
  const ticks = unique([0, Math.floor((prbs - 1) / 2), prbs - 1]);
  const marks = ticks.map((prb) =>
    label(`${prb}`, {
      x: LEFT - 6,
      y: top + (prb + 0.5) * row + 4,
      fill: muted,
      "text-anchor": "end",
    }),
  );
  const middle = top + HEIGHT / 2;
  const name = label("PRB", {
    x: 14,
    y: middle,
    fill: text,
    "text-anchor": "middle",
    transform: `rotate(-90 14 ${middle})`,
  });
  return [title, box, name, ...marks];
}

function timeAxis(grid: ResourceGrid, y: number): SVGElement[] {
  const { text, muted } = theme();
  const marks: SVGElement[] = [];
  for (let tti = 0; tti <= grid.ttis; tti += TICK_TTIS) {
    const x = LEFT + tti * TTI_WIDTH;
    marks.push(svg("line", { x1: x, x2: x, y1: y, y2: y + 4, stroke: muted }));
    const ms = formatNumber(tti * grid.tti_ms, grid.tti_ms < 1 ? 2 : 0);
    marks.push(label(ms, { x, y: y + 16, fill: muted, "text-anchor": "middle" }));
  }
  const middle = LEFT + (grid.ttis * TTI_WIDTH) / 2;
  const name = "Time (ms)";
  marks.push(label(name, { x: middle, y: y + 30, fill: text, "text-anchor": "middle" }));
  return marks;
}

/** Names of the terminals in their colours, at the upper right. */
function names(grid: ResourceGrid, colour: Colour): SVGElement[] {
  const terminals = terminalsOf(grid);
  const text = label("", { x: LEFT + grid.ttis * TTI_WIDTH, y: 14, "text-anchor": "end" });
  for (const node of terminals) {
    const part = svg("tspan", { fill: colour(node) });
    part.textContent = `■ ${nameOf(grid, node)}  `;
    text.append(part);
  }
  return [text];
}

function legendItems(grid: ResourceGrid, colour: Colour): HTMLElement[] {
  return terminalsOf(grid).map((node) => {
    const swatch = el("i", { style: `background:${colour(node)}` });
    return el("span", {}, swatch, ` ${nameOf(grid, node)} `);
  });
}

function describe(grid: ResourceGrid): string {
  const again = grid.blocks.filter((block) => block.attempt > 1).length;
  const lost = grid.blocks.filter((block) => !block.is_decoded).length;
  const terminals = plural(terminalsOf(grid).length, "terminal");
  return (
    `${plural(grid.blocks.length, "block")} of ${terminals} in ${grid.ttis} TTIs; ` +
    `${again} of them retransmissions, ${lost} not decoded.`
  );
}

function label(text: string, attributes: Record<string, string | number>): SVGElement {
  const element = svg("text", attributes);
  element.textContent = text;
  return element;
}

function svg(tag: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, `${value}`);
  return element;
}
