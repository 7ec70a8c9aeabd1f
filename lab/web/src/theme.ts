// The light and the dark theme of plots. Controllers have the colours of colours.ts.

import { SERIES, shadesOf } from "./colours";

export interface Theme {
  background: string;
  text: string;
  muted: string;
  grid: string;
  capacity: string;
  tooltip: string;
  /** Of times in which the picture or the sound suffered. */
  effect: string;
  /** Of curves that are not controllers. */
  palette: string[];
}

const LIGHT: Theme = {
  background: "#ffffff",
  text: "#1f2328",
  muted: "#57606a",
  grid: "#e3e6ea",
  capacity: "#8c959f",
  tooltip: "#ffffff",
  effect: "#c0392b",
  palette: SERIES.map((shade) => shade.light),
};

const DARK: Theme = {
  background: "#15181c",
  text: "#e6e9ed",
  muted: "#a3abb5",
  grid: "#2c3138",
  capacity: "#8b949e",
  tooltip: "#20252b",
  effect: "#ff8577",
  palette: SERIES.map((shade) => shade.dark),
};

const darkQuery = matchMedia("(prefers-color-scheme: dark)");

export function theme(): Theme {
  return darkQuery.matches ? DARK : LIGHT;
}

export function onThemeChange(react: () => void): void {
  darkQuery.addEventListener("change", react);
}

export type Palette = (controller: string) => string;

/** One colour per name, in the theme that is on. */
export function paletteOf(names: string[]): Palette {
  const shades = shadesOf(names);
  return (name) => {
    const shade = shades.get(name);
    if (shade === undefined) return theme().text;
    return darkQuery.matches ? shade.dark : shade.light;
  };
}

type Rgb = [number, number, number];

// Cividis at equal steps: its lightness grows evenly, and it looks the same with any colour vision.
const CIVIDIS: Rgb[] = [
  [0, 32, 81],
  [60, 77, 110],
  [127, 124, 117],
  [187, 175, 113],
  [253, 234, 69],
];

/**
 * Colour of a ratio from 0 to 1, and black or white for text on it, whichever has more contrast.
 */
export function scaleColour(ratio: number): { background: string; text: string } {
  const position = Math.min(1, Math.max(0, ratio)) * (CIVIDIS.length - 1);
  const index = Math.min(Math.floor(position), CIVIDIS.length - 2);
  const [from, to] = [CIVIDIS[index] as Rgb, CIVIDIS[index + 1] as Rgb];
  const rgb = from.map((c, i) => Math.round(c + ((to[i] as number) - c) * (position - index)));
  const dark = luminance(rgb as Rgb) < 0.18;
  return { background: `rgb(${rgb.join(",")})`, text: dark ? "#ffffff" : "#000000" };
}

export function scaleGradient(): string {
  return `linear-gradient(90deg, ${CIVIDIS.map((rgb) => `rgb(${rgb.join(",")})`).join(", ")})`;
}

/** Relative luminance as WCAG 2 defines it. At 0.18 black and white have the same contrast. */
function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((c) => {
    const s = c / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
