// A scenario of the catalogue: its search, its description, and its network as the reader's own.

import { el } from "../dom";
import type { Scenario } from "../format";
import { wordsMatch } from "../model";
import { CAPACITY, DEFAULT, LIMITS, STEPS, type State } from "./state";

export interface Named {
  id: string;
  title: string;
}

/** Scenarios of which each word of the search is in id or title. */
export function found(scenarios: Named[], search: string): Named[] {
  return scenarios.filter(({ id, title }) => wordsMatch(`${id} ${title}`, search));
}

/** Lines of the list while a search has an answer. */
const LISTED = 8;

/** `choose` gets an id, or nothing for the drawn network. */
export function picker(scenarios: Named[], choose: (id: string) => void) {
  const search = el("input", {
    type: "search",
    placeholder: "Search: lte, wifi, rfc8867 …",
    "aria-label": "Search the scenarios",
  });
  const list = el("select", { "aria-label": "Scenario" });
  const count = el("span", { class: "note", "aria-live": "polite" });
  let chosen = "";
  const draw = () => {
    const isSearch = search.value.trim() !== "";
    const shown = isSearch ? found(scenarios, search.value) : scenarios;
    const options = shown.map(({ id, title }) => el("option", { value: id }, `${id} – ${title}`));
    const own = isSearch ? [] : [el("option", { value: "" }, "Your own: drawn below")];
    list.replaceChildren(...own, ...options);
    list.size = isSearch ? Math.min(LISTED, Math.max(2, shown.length)) : 1;
    list.value = chosen;
    count.textContent = isSearch ? `${shown.length} of ${scenarios.length} scenarios` : "";
  };
  search.addEventListener("input", draw);
  list.addEventListener("change", () => choose(list.value));
  draw();
  const show = (id: string) => {
    chosen = id;
    if (search.value !== "" && id === "") search.value = "";
    draw();
  };
  return { element: el("div", { class: "picker" }, search, list, count), show };
}

/**
 * Means of a scenario's capacity in the steps of a drawn one, kbit/s. A time without a limit has the highest.
 * Null where no link has a capacity, as in a radio cell.
 */
export function drawnCapacity(scenario: Scenario): number[] | null {
  const series = scenario.groups.find((group) =>
    group.series.capacity_mbps.some((it) => it !== null),
  )?.series;
  if (series === undefined) return null;
  const steps = Array.from({ length: STEPS }, () => [] as number[]);
  series.time_s.forEach((time, i) => {
    const kbps = (series.capacity_mbps[i] ?? CAPACITY.max / 1000) * 1000;
    const step = Math.floor((time / scenario.duration_s) * STEPS);
    steps[Math.min(STEPS - 1, Math.max(0, step))]?.push(kbps);
  });
  let last: number = CAPACITY.max;
  return steps.map((values) => {
    if (values.length > 0) last = values.reduce((sum, it) => sum + it, 0) / values.length;
    const rounded = Math.round(last / CAPACITY.step) * CAPACITY.step;
    return Math.min(CAPACITY.max, Math.max(CAPACITY.min, rounded));
  });
}

/** A scenario's network as a drawn one: its capacity, and delay, queue and loss where its text says them once. */
export function asDrawn(scenario: Scenario, text: string, state: State): State {
  const within = (value: number, { min, max }: { min: number; max: number }) =>
    Math.min(max, Math.max(min, value));
  const of = (key: string, unit: string): number | null => {
    const match = new RegExp(`^\\s*${key}\\s*=\\s*"([0-9.]+)\\s*${unit}"`, "m").exec(text);
    return match === null ? null : Number(match[1]);
  };
  return {
    ...state,
    scenario: "",
    capacity: drawnCapacity(scenario) ?? [...DEFAULT.capacity],
    duration: within(Math.round(scenario.duration_s), LIMITS.duration),
    delay: within(of("delay", "ms") ?? DEFAULT.delay, LIMITS.delay),
    queue: within(of("queue", "ms") ?? DEFAULT.queue, LIMITS.queue),
    loss: within(of("loss", "%") ?? DEFAULT.loss, LIMITS.loss),
    tcp: /kind\s*=\s*"tcp"/.test(text),
  };
}

const SVG = "http://www.w3.org/2000/svg";

/** A capacity over time as one area, kbit/s, and the same in words. */
export function drawing(capacity: number[], duration_s: number) {
  const highest = Math.max(...capacity);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${capacity.length} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  const [low, high] = [Math.min(...capacity), highest].map((kbps) => (kbps / 1000).toFixed(2));
  const words = `Capacity from ${low} to ${high} Mbit/s in ${duration_s} s`;
  svg.setAttribute("aria-label", words);
  // One shape: bars beside each other would have seams between them.
  const area = document.createElementNS(SVG, "path");
  const steps = capacity.map((kbps, i) => {
    const height = highest === 0 ? 0 : (kbps / highest) * 100;
    return `V${100 - height}H${i + 1}`;
  });
  area.setAttribute("d", `M0 100${steps.join("")}V100Z`);
  svg.append(area);
  const mbps = (kbps: number) => `${Number((kbps / 1000).toPrecision(3))}`;
  const axes = [
    el("span", { class: "axis top" }, `${mbps(highest)} Mbit/s`),
    el("span", { class: "axis bottom" }, "0"),
    el("span", { class: "axis from" }, "0 s"),
    el("span", { class: "axis to" }, `${Number(duration_s.toPrecision(4))} s`),
  ];
  for (const axis of axes) axis.setAttribute("aria-hidden", "true");
  return { element: el("div", { class: "sketch shown" }, svg, ...axes), words };
}

/** What a scenario is: its words, its capacity over time, and a button that makes it the reader's own. */
export function described(scenario: Scenario, edit: () => void): HTMLElement {
  const capacity = drawnCapacity(scenario);
  const title = el("p", {}, el("strong", {}, scenario.title), `. ${scenario.description}`);
  const network = scenario.network.join("; ");
  if (capacity === null) {
    const why = "No link of it has a capacity that could be drawn.";
    return el("div", {}, title, el("p", { class: "note" }, `${network}. ${why}`));
  }
  const { element, words } = drawing(capacity, scenario.duration_s);
  const button = el("button", { type: "button" }, "Edit this network");
  button.addEventListener("click", edit);
  return el(
    "div",
    { class: "described" },
    title,
    element,
    el("p", { class: "note" }, `${words}. ${network}.`),
    el(
      "p",
      { class: "edit" },
      button,
      el(
        "span",
        { class: "note" },
        "Takes over its capacity (up to 5 Mbit/s), delay, queue and loss.",
      ),
    ),
  );
}
