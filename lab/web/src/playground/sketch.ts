// The capacity over time, drawn with the mouse, a finger, or the arrow keys.

import { el } from "../dom";
import { CAPACITY, STEPS, type State } from "./state";

const HEIGHT = 100;
const SVG = "http://www.w3.org/2000/svg";

const clamp = (kbps: number) => {
  const rounded = Math.round(kbps / CAPACITY.step) * CAPACITY.step;
  return Math.min(CAPACITY.max, Math.max(CAPACITY.min, rounded));
};

/** `changed` is called after each change of the state's capacity. */
export function sketch(state: () => State, changed: () => void) {
  let chosen = 0;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${STEPS} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  // The slider around it has the words.
  svg.setAttribute("aria-hidden", "true");
  const bars = Array.from({ length: STEPS }, () => document.createElementNS(SVG, "rect"));
  svg.append(...bars);
  const note = el("span", { class: "note" });
  const surface = el("div", {
    class: "sketch",
    role: "slider",
    tabindex: "0",
    "aria-label": "Capacity over time. Left and right choose the time, up and down the capacity.",
    "aria-valuemin": String(CAPACITY.min),
    "aria-valuemax": String(CAPACITY.max),
  });
  // It says where a click draws, until the first one does.
  const hint = el("span", { class: "hint", "aria-hidden": "true" }, "✎ draw the capacity here");
  surface.append(svg, hint);

  const draw = () => {
    const { capacity, duration } = state();
    bars.forEach((bar, i) => {
      const height = ((capacity[i] ?? 0) / CAPACITY.max) * HEIGHT;
      bar.setAttribute("x", String(i));
      bar.setAttribute("width", "1.02");
      bar.setAttribute("y", String(HEIGHT - height));
      bar.setAttribute("height", String(height));
      bar.classList.toggle("chosen", i === chosen);
    });
    const [from, to] = [chosen, chosen + 1].map((i) => ((i * duration) / STEPS).toFixed(1));
    const kbps = capacity[chosen] ?? 0;
    const words = `${from} to ${to} s: ${(kbps / 1000).toFixed(2)} Mbit/s`;
    surface.setAttribute("aria-valuenow", String(kbps));
    surface.setAttribute("aria-valuetext", words);
    note.textContent = words;
  };
  const set = (index: number, kbps: number) => {
    state().capacity[index] = clamp(kbps);
  };

  let last: number | null = null;
  const point = (event: PointerEvent) => {
    hint.hidden = true;
    const box = surface.getBoundingClientRect();
    const index = Math.floor(((event.clientX - box.left) / box.width) * STEPS);
    chosen = Math.min(STEPS - 1, Math.max(0, index));
    const kbps = (1 - (event.clientY - box.top) / box.height) * CAPACITY.max;
    // A fast pointer skips steps: fill those in between.
    const from = last ?? chosen;
    const [low, high] = [Math.min(from, chosen), Math.max(from, chosen)];
    for (let i = low; i <= high; i += 1) set(i, kbps);
    last = chosen;
    draw();
    changed();
  };
  surface.addEventListener("pointerdown", (event) => {
    surface.setPointerCapture(event.pointerId);
    last = null;
    point(event);
  });
  surface.addEventListener("pointermove", (event) => {
    if (surface.hasPointerCapture(event.pointerId)) point(event);
  });
  surface.addEventListener("keydown", (event) => {
    const change = event.shiftKey ? 10 * CAPACITY.step : CAPACITY.step;
    const [right, up] = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, change],
      ArrowDown: [0, -change],
      Home: [-STEPS, 0],
      End: [STEPS, 0],
    }[event.key] ?? [0, 0];
    if (right === 0 && up === 0) return;
    event.preventDefault();
    chosen = Math.min(STEPS - 1, Math.max(0, chosen + (right ?? 0)));
    if (up !== 0) {
      hint.hidden = true;
      set(chosen, (state().capacity[chosen] ?? 0) + (up ?? 0));
      changed();
    }
    draw();
  });
  draw();
  const scale = el("span", { class: "note" }, `0 to ${CAPACITY.max / 1000} Mbit/s`);
  return { element: el("div", {}, surface, el("p", { class: "under" }, note, scale)), draw };
}
