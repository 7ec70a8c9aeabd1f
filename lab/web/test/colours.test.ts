// Colours of controllers.

import { expect, test } from "vitest";
import { shadeOf, shadesOf } from "../src/colours";

const CONTROLLERS = [
  "chromium",
  "firefox",
  "gcc",
  "gcc-2013",
  "gcc-draft",
  "nada",
  "scream",
  "scream-v2",
  "sluice",
];

test("a controller has the same colour whatever it is compared with", () => {
  const all = shadesOf(CONTROLLERS);
  for (const name of CONTROLLERS) {
    expect(shadesOf(["mine", name, "other"]).get(name)).toEqual(all.get(name));
    expect(shadeOf(name)).toEqual(all.get(name));
  }
});

test("no two controllers share a colour, with those of users beside them", () => {
  const names = [...CONTROLLERS, "mine", "mine-2", "tuned", "old", "new", "a", "b"];
  for (const theme of ["light", "dark"] as const) {
    const colours = [...shadesOf(names).values()].map((shade) => shade[theme]);
    expect(new Set(colours).size).toBe(names.length);
  }
});

test("a colour has three times the contrast of its background, as WCAG 2 asks of graphics", () => {
  for (const shade of shadesOf([...CONTROLLERS, "a", "b", "c", "d", "e", "f", "g"]).values()) {
    expect(contrast(shade.light, "#ffffff")).toBeGreaterThanOrEqual(3);
    expect(contrast(shade.dark, "#15181c")).toBeGreaterThanOrEqual(3);
  }
});

function contrast(a: string, b: string): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const s = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
