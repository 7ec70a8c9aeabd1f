// The playground: choose or draw a network, and see what the controllers do in it.

import { el } from "../dom";
import { drawAll } from "../figure";
import type { Report, Scenario } from "../format";
import { card } from "../ui/ui";
import { asDrawn, described, picker } from "./catalogue";
import { field } from "./field";
import { results } from "./results";
import { Simulator, unpacked } from "./simulator";
import { sketch } from "./sketch";
import { DRAWN, LIMITS, ofFragment, toCommand, toFragment, toScenario, type State } from "./state";
import { ABOUT } from "./verdict";

/** Pause after a change before the simulator starts, ms: shorter than the pause between two keys. */
const PAUSE_MS = 60;

interface About {
  version: string;
  controllers: string[];
  scenarios: { id: string; title: string }[];
}

declare global {
  interface Window {
    weirDrawAll: () => void;
    /** Asks the simulator of this page, for tests. */
    weirAsk: (request: unknown) => Promise<unknown>;
  }
}

const text = (id: string) => document.getElementById(id)?.textContent ?? "";

async function start(): Promise<void> {
  const main = document.getElementById("playground") as HTMLElement;
  const module = await unpacked(text("weir-wasm"));
  const simulator = new Simulator(module, text("weir-worker"));
  const about = (await simulator.ask({ about: {} }))?.value as About;
  const tester = new Simulator(module, text("weir-worker"));
  window.weirAsk = async (request) => (await tester.ask(request))?.value;
  window.weirDrawAll = drawAll;
  show(main, about, simulator);
}

function show(main: HTMLElement, about: About, simulator: Simulator): void {
  let state = ofFragment(location.hash);
  let timer = 0;
  const status = el("p", { class: "status", role: "status", "aria-live": "polite" });
  const failure = el("p", { class: "warning", role: "alert", hidden: true });
  const shown = results();
  const copies = el("div", { class: "copies" });
  /** Fields whose text cannot be simulated. What is shown is older than they are. */
  const faults = new Set<string>();

  const run = async () => {
    shown.element.classList.toggle("stale", faults.size > 0);
    if (faults.size > 0) {
      status.textContent = "Not simulated: mend the marked field. The curves below are older.";
      return;
    }
    const asked = { ...state };
    history.replaceState(null, "", `#${toFragment(asked)}`);
    copies.replaceChildren(...copyButtons(asked, simulator));
    status.textContent = "simulating…";
    try {
      const runs = { controllers: asked.controllers.join(","), seeds: [asked.seed] };
      const scenario =
        asked.scenario === ""
          ? { scenario: DRAWN, text: toScenario(asked) }
          : { scenario: asked.scenario };
      const result = await simulator.ask({ simulate: { ...scenario, ...runs } });
      if (result === null) return;
      failure.hidden = true;
      const report = result.value as Report;
      shown.show(report, toCommand(asked));
      controls.describe(asked.scenario === "" ? null : (report.scenarios[0] ?? null));
      status.textContent = `${asked.controllers.length} simulated in ${(result.took_ms / 1000).toFixed(2)} s`;
    } catch (error) {
      status.textContent = "";
      failure.hidden = false;
      failure.textContent = error instanceof Error ? error.message : String(error);
    }
  };
  const changed = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void run(), PAUSE_MS);
  };
  const edit = async (scenario: Scenario) => {
    const text = String((await simulator.ask({ text: { scenario: state.scenario } }))?.value);
    state = asDrawn(scenario, text, state);
    controls.read();
    changed();
  };
  const controls = controlsOf(about, { state: () => state, changed, faults, edit });
  window.addEventListener("hashchange", () => {
    state = ofFragment(location.hash);
    controls.read();
    changed();
  });
  main.replaceChildren(
    el("h1", {}, "Weir playground"),
    el(
      "p",
      { class: "summary" },
      `Congestion controllers of video calls, simulated in this page by weir ${about.version}. Nothing leaves it.`,
    ),
    controls.element,
    status,
    failure,
    shown.element,
    copies,
  );
  void run();
}

/** What the controls act on. */
interface Page {
  state: () => State;
  changed: () => void;
  faults: Set<string>;
  /** Makes the scenario's network the reader's own. */
  edit: (scenario: Scenario) => Promise<void>;
}

/** A field whose errors stop the simulation. */
function checked(
  page: Page,
  label: string,
  limits: Parameters<typeof field>[1],
  take: (value: number) => void,
) {
  const judged = (isWrong: boolean) => {
    if (isWrong) page.faults.add(label);
    else page.faults.delete(label);
    page.changed();
  };
  return field(label, limits, take, judged);
}

function controlsOf(about: About, page: Page) {
  const { state, changed } = page;
  const drawing = sketch(state, changed);
  const readers: (() => void)[] = [drawing.draw];
  const number = (name: keyof typeof LIMITS, label: string, step: number) => {
    const { element, show } = checked(page, label, { ...LIMITS[name], step }, (value) => {
      state()[name] = value;
      drawing.draw();
    });
    readers.push(() => show(state()[name]));
    return element;
  };
  const tcp = el("input", { type: "checkbox" });
  tcp.addEventListener("change", () => {
    state().tcp = tcp.checked;
    changed();
  });
  const drawn = el(
    "div",
    {},
    drawing.element,
    el(
      "div",
      { class: "fields" },
      number("duration", "Length, s", 10),
      number("delay", "One-way delay, ms", 5),
      number("queue", "Queue, ms", 10),
      number("loss", "Loss, %", 0.5),
    ),
    el("label", { class: "tick" }, tcp, " a TCP download joins"),
  );
  const catalogued = el("div", { hidden: true });
  const read = () => readers.forEach((reader) => reader());
  const list = picker(about.scenarios, (id) => {
    state().scenario = id;
    read();
    changed();
  });
  readers.push(() => {
    const { scenario } = state();
    list.show(scenario);
    drawn.hidden = scenario !== "";
    catalogued.hidden = scenario === "";
    catalogued.replaceChildren(el("p", { class: "note" }, "simulating…"));
    tcp.checked = state().tcp;
  });
  const element = el(
    "form",
    { class: "controls", "aria-label": "What is simulated" },
    card("Network", list.element, drawn, catalogued),
    controllersOf(about, page, readers),
  );
  element.addEventListener("submit", (event) => event.preventDefault());
  read();
  const describe = (scenario: Scenario | null) => {
    if (scenario === null) return;
    catalogued.replaceChildren(described(scenario, () => void page.edit(scenario)));
  };
  return { element, read, describe };
}

function controllersOf(about: About, page: Page, readers: (() => void)[]): HTMLElement {
  const { state, changed } = page;
  const boxes = about.controllers.map((name) => {
    const box = el("input", { type: "checkbox", value: name });
    box.addEventListener("change", () => {
      const chosen = boxes.filter((it) => it.checked).map((it) => it.value);
      // One stays, so that there is always a curve.
      if (chosen.length === 0) box.checked = true;
      else state().controllers = chosen;
      changed();
    });
    return box;
  });
  readers.push(() => {
    for (const box of boxes) box.checked = state().controllers.includes(box.value);
  });
  const whole = { min: 0, max: Number.MAX_SAFE_INTEGER, step: 1, isWhole: true };
  const seed = checked(page, "Seed", whole, (value) => {
    state().seed = value;
  });
  readers.push(() => seed.show(state().seed));
  const choices = boxes.map((box) => {
    const line = el("span", { class: "note" }, ABOUT[box.value] ?? "");
    return el("div", { class: "choice-of" }, el("label", {}, box, ` ${box.value}`), line);
  });
  return card("Controllers", ...choices, seed.element);
}

/** The scenario's text and the link, each copied by a click. The command is below the plot. */
function copyButtons(state: State, simulator: Simulator): HTMLElement[] {
  const copying = (name: string, content: () => Promise<string>) => {
    const button = el("button", { type: "button" }, name);
    const said = el("span", { "aria-live": "polite" });
    const area = el("textarea", { readonly: true, rows: "12", hidden: true, "aria-label": name });
    button.addEventListener("click", async () => {
      const value = await content();
      try {
        await navigator.clipboard.writeText(value);
        said.textContent = " copied";
      } catch {
        area.value = value;
        area.hidden = false;
        area.select();
        said.textContent = " selected below";
      }
    });
    return el("div", { class: "copying" }, button, said, area);
  };
  const scenario = async () => {
    if (state.scenario === "") return toScenario(state);
    return String((await simulator.ask({ text: { scenario: state.scenario } }))?.value);
  };
  const file = state.scenario === "" ? ` (save it as ${DRAWN})` : "";
  return [
    el("h2", {}, "Take it with you"),
    copying(`Copy as scenario${file}`, scenario),
    copying("Copy link", async () => location.href),
  ];
}

start().catch((error: unknown) => {
  const why = error instanceof Error ? error.message : String(error);
  const warning = el(
    "p",
    { class: "warning", role: "alert" },
    `The playground cannot start: ${why}`,
  );
  document.getElementById("playground")?.replaceChildren(warning);
});
