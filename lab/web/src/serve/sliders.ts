// Sliders that change the emulated network at once. What they set stands in the record as if it were typed.

import { el } from "../dom";
import { card } from "../ui/ui";

interface Property {
  name: "capacity" | "delay" | "jitter" | "loss";
  label: string;
  /** Value of a position from 0 to 1, in the unit. */
  value: (position: number) => number;
  position: (value: number) => number;
  unit: string;
  /** The unit as people read it. */
  shown: string;
  first: number;
}

const CAPACITY_MIN = 50;
const CAPACITY_MAX = 20_000;
const linear = (max: number) => ({
  value: (position: number) => Math.round(position * max),
  position: (value: number) => value / max,
});

/** The capacity's slider is logarithmic: 50 to 100 kbit/s is as wide as 10 to 20 Mbit/s. */
export const PROPERTIES: Property[] = [
  {
    name: "capacity",
    label: "Capacity",
    value: (position) => {
      const kbps = CAPACITY_MIN * (CAPACITY_MAX / CAPACITY_MIN) ** position;
      return kbps < 1000 ? Math.round(kbps / 10) * 10 : Math.round(kbps / 100) * 100;
    },
    position: (kbps) => Math.log(kbps / CAPACITY_MIN) / Math.log(CAPACITY_MAX / CAPACITY_MIN),
    unit: "kbps",
    shown: "kbit/s",
    first: 2000,
  },
  { name: "delay", label: "One-way delay", ...linear(500), unit: "ms", shown: "ms", first: 25 },
  { name: "jitter", label: "Jitter", ...linear(200), unit: "ms", shown: "ms", first: 0 },
  { name: "loss", label: "Loss", ...linear(50), unit: "%", shown: "%", first: 0 },
];

/** Time between two changes while a slider moves, ms. */
const PAUSE_MS = 100;

/** Number and unit of a quantity such as `1Mbps`, in the slider's unit. */
export function inUnit(property: Property, text: string): number | null {
  const match = /^([0-9.]+)\s*([A-Za-z%]+)$/.exec(text);
  if (match === null) return null;
  const factors: Record<string, number> = {
    bps: 1e-3,
    kbps: 1,
    Mbps: 1e3,
    Gbps: 1e6,
    ms: 1,
    s: 1e3,
    us: 1e-3,
    "%": 1,
  };
  const factor = factors[match[2] as string];
  const sameKind =
    property.unit === "kbps" ? /bps$/ : property.unit === "ms" ? /^(us|ms|s)$/ : /^%$/;
  return factor === undefined || !sameKind.test(match[2] as string)
    ? null
    : Number(match[1]) * factor;
}

/** `change` gets a line such as `capacity up 1000kbps`. */
export function sliders(change: (line: string) => void) {
  const direction = el(
    "select",
    {},
    el("option", { value: "" }, "both directions"),
    el("option", { value: "up" }, "up (A to B)"),
    el("option", { value: "down" }, "down (B to A)"),
  );
  const rows = PROPERTIES.map((property) => {
    const position = (value: number) => String(Math.min(1, Math.max(0, property.position(value))));
    const input = el("input", {
      type: "range",
      min: "0",
      max: "1",
      step: "0.005",
      "aria-label": property.label,
      value: position(property.first),
    });
    const shown = el("output", {}, "not changed");
    let timer = 0;
    let held = false;
    const send = () => {
      timer = 0;
      const ways = direction.value === "" ? "" : `${direction.value} `;
      change(`${property.name} ${ways}${property.value(Number(input.value))}${property.unit}`);
    };
    input.addEventListener("input", () => {
      held = true;
      shown.textContent = `${property.value(Number(input.value))} ${property.shown}`;
      if (timer === 0) timer = window.setTimeout(send, PAUSE_MS);
    });
    input.addEventListener("change", () => {
      // The server's answer may move the slider again once the last change was sent.
      window.setTimeout(() => {
        held = false;
      }, 3 * PAUSE_MS);
    });
    const row = el("label", { class: "slider" }, el("span", {}, property.label), input, shown);
    /** Moves the slider to what was set on any page. */
    const show = (changes: Record<string, string>) => {
      if (held) return;
      const of = (ways: string) => changes[`${property.name}${ways}`];
      const texts = { both: of(""), up: of(" up"), down: of(" down") };
      const own =
        direction.value === ""
          ? texts.both
          : (changes[`${property.name} ${direction.value}`] ?? texts.both);
      const value = own === undefined ? null : inUnit(property, own);
      if (value !== null) input.value = position(value);
      const words = Object.entries(texts).filter(([, text]) => text !== undefined);
      shown.textContent =
        words.length === 0
          ? "not changed"
          : words.map(([way, text]) => (way === "both" ? text : `${way} ${text}`)).join(", ");
    };
    return { row, show };
  });
  const idle = el("p", { class: "note" }, "They act on a real call or a link while it runs.");
  const element = card(
    "Network",
    el("label", { class: "slider" }, el("span", {}, "Change"), direction),
    ...rows.map(({ row }) => row),
    idle,
  );
  element.classList.add("sliders");
  const inputs = rows.map(({ row }) => row.querySelector("input") as HTMLInputElement);
  /** Whether there is a network to change. */
  const allow = (isLive: boolean) => {
    for (const input of inputs) input.disabled = !isLive;
    direction.disabled = !isLive;
    idle.hidden = isLive;
  };
  allow(false);
  return {
    element,
    allow,
    show: (changes: Record<string, string>) => rows.forEach((it) => it.show(changes)),
  };
}
