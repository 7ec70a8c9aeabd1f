// One colour for each controller, on every page and in every figure: a controller keeps its colour whatever it is
// compared with. The hues are Okabe and Ito's, which colour-blind readers can tell apart; the controllers of a family
// share a hue and differ in lightness. The dark values are lighter, for contrast.

export interface Shade {
  light: string;
  dark: string;
}

const NAMED: Record<string, Shade> = {
  sluice: { light: "#d55e00", dark: "#ff8f45" },
  gcc: { light: "#0072b2", dark: "#56b4e9" },
  "gcc-draft": { light: "#3f97d1", dark: "#a3d6f7" },
  "gcc-2013": { light: "#5c6aa8", dark: "#8f9ee0" },
  nada: { light: "#b0578d", dark: "#e39cc6" },
  scream: { light: "#00805d", dark: "#25b98d" },
  "scream-v2": { light: "#6f8a00", dark: "#b9cc4a" },
  chromium: { light: "#3b4148", dark: "#dfe3e8" },
  firefox: { light: "#b87a00", dark: "#f0b429" },
};

/** For names that have no colour of their own: controllers of users, flows, terminals. */
const OTHERS: Shade[] = [
  { light: "#1b7f8c", dark: "#5cc8d6" },
  { light: "#8a4b2d", dark: "#d59a78" },
  { light: "#7a3fb0", dark: "#c39bf0" },
  { light: "#a8323e", dark: "#f08a94" },
  { light: "#4f7a3a", dark: "#9ccb84" },
  { light: "#2f4fb5", dark: "#93abff" },
  { light: "#7d7322", dark: "#d9cf77" },
];

/** Where several things of one kind are drawn that are not controllers, such as the curves of one stream. */
export const SERIES: Shade[] = [
  NAMED["gcc"] as Shade,
  NAMED["sluice"] as Shade,
  NAMED["scream"] as Shade,
  NAMED["nada"] as Shade,
  NAMED["firefox"] as Shade,
];

/**
 * The colours of some names. A controller of Weir or a browser has always the same. Another name has the colour that
 * its text gives, or the next free one where two of `names` would share it.
 */
export function shadesOf(names: string[]): Map<string, Shade> {
  const shades = new Map<string, Shade>();
  const taken = new Set<number>();
  for (const name of [...new Set(names)].sort()) {
    const own = named(name);
    if (own !== undefined) {
      shades.set(name, own);
      continue;
    }
    let place = hash(name) % OTHERS.length;
    while (taken.has(place) && taken.size < OTHERS.length) place = (place + 1) % OTHERS.length;
    taken.add(place);
    shades.set(name, OTHERS[place] as Shade);
  }
  return shades;
}

/** The colour of a name on its own. */
export function shadeOf(name: string): Shade {
  return shadesOf([name]).get(name) as Shade;
}

function named(name: string): Shade | undefined {
  return Object.hasOwn(NAMED, name) ? NAMED[name] : undefined;
}

/** FNV-1a of the name's UTF-16 units. */
function hash(name: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) {
    value = Math.imul(value ^ name.charCodeAt(i), 0x01000193) >>> 0;
  }
  return value;
}
