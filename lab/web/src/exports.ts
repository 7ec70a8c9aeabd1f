// Saves a plot as a file: the buttons, and the content of the files. No file needs a network.

import { FONT, FONT_SIZE, textWidth } from "./chart";
import { csvText, type CsvTable } from "./csv";
import { download, el } from "./dom";
import { theme } from "./theme";

export interface Exported {
  /** Heading, and the last part of the files' name. */
  title: string;
  /** Scenario or report that the plot belongs to. */
  subject: string;
  /** The picture with the lines of text under it. */
  svg: () => string;
  /** The numbers that the picture shows. */
  data: () => CsvTable;
}

/** Heading of a plot with a button for each kind of file. */
export function plotHead(it: Exported): HTMLElement {
  const name = fileName(`${it.subject} ${it.title}`);
  const svg = () => new Blob([it.svg()], { type: "image/svg+xml" });
  const csv = () => new Blob([csvText(it.data())], { type: "text/csv;charset=utf-8" });
  const button = (kind: string, content: () => Blob | Promise<Blob>) => {
    const label = `Save ${it.title} of ${it.subject} as ${kind}`;
    const element = el("button", { type: "button", class: "export", "aria-label": label }, kind);
    const save = async () => download(`${name}.${kind.toLowerCase()}`, await content());
    element.addEventListener("click", save);
    return element;
  };
  return el(
    "div",
    { class: "plot-head" },
    el("h3", {}, it.title),
    button("SVG", svg),
    button("PNG", () => rasterize(it.svg())),
    button("CSV", csv),
  );
}

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = 16;
const FOOT_LINE = 16;
const PNG_SCALE = 2;

/** Width of a picture without the margins, in a file that is `width` wide. */
export function innerWidth(width: number): number {
  return width - 2 * MARGIN;
}

/** A picture as a file, with lines of text under it. */
export function framed(svg: string, width: number, pictureHeight: number, foot: string[]): string {
  const lines = foot.flatMap((line) => wrap(line, innerWidth(width)));
  const height = pictureHeight + lines.length * FOOT_LINE + 3 * MARGIN;
  const page = new DOMParser().parseFromString(svg, "image/svg+xml");
  const root = page.documentElement;
  const add = (tag: string, attributes: Record<string, string | number>, ...children: Node[]) => {
    const node = page.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
    node.append(...children);
    root.append(node);
  };
  const drawing = [...root.childNodes];
  root.setAttribute("width", String(width));
  root.setAttribute("height", String(height));
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  add("rect", { width, height, fill: theme().background });
  add("g", { transform: `translate(${MARGIN},${MARGIN})` }, ...drawing);
  lines.forEach((line, i) => {
    const y = pictureHeight + 2 * MARGIN + (i + 0.75) * FOOT_LINE;
    const look = { fill: theme().muted, "font-family": FONT, "font-size": FONT_SIZE };
    add("text", { x: MARGIN, y, ...look }, page.createTextNode(line));
  });
  return new XMLSerializer().serializeToString(page);
}

/** Style properties that are copied into a saved picture. */
const LOOK = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-dasharray",
  "font-family",
  "font-size",
  "text-anchor",
  "dominant-baseline",
];

/** The picture as text with its styles as attributes, because a file has no style sheet. */
export function styledPicture(picture: SVGElement): string {
  const copy = picture.cloneNode(true) as SVGElement;
  const copies = copy.querySelectorAll("*");
  picture.querySelectorAll("*").forEach((element, i) => {
    const look = getComputedStyle(element);
    for (const name of LOOK) copies[i]?.setAttribute(name, look.getPropertyValue(name));
  });
  return new XMLSerializer().serializeToString(copy);
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
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}
