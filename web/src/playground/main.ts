// The playground: choose or draw a network, and see what the controllers do in it.

import { el } from "../dom";
import { drawAll } from "../figure";
import type { Report } from "../format";
import { results } from "./results";
import { Simulator, unpacked } from "./simulator";
import { sketch } from "./sketch";
import { DRAWN, LIMITS, ofFragment, toCommand, toFragment, toScenario, type State } from "./state";

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

  const run = async () => {
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
      shown.show(result.value as Report, toCommand(asked));
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
  const controls = controlsOf(about, () => state, changed);
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

type Changed = () => void;

function controlsOf(about: About, state: () => State, changed: Changed) {
  const drawing = sketch(state, changed);
  const readers: (() => void)[] = [drawing.draw];
  const options = about.scenarios.map(({ id, title }) =>
    el("option", { value: id }, `${id} – ${title}`),
  );
  const scenario = el("select", {}, el("option", { value: "" }, "drawn below"), ...options);
  const number = (name: keyof typeof LIMITS, label: string, step: number) => {
    const { min, max } = LIMITS[name];
    const limits = { min: String(min), max: String(max), step: String(step) };
    const input = el("input", { type: "number", ...limits });
    input.addEventListener("input", () => {
      if (input.value === "" || !input.checkValidity()) return;
      state()[name] = Number(input.value);
      drawing.draw();
      changed();
    });
    readers.push(() => {
      input.value = String(state()[name]);
    });
    return el("label", {}, `${label} `, input);
  };
  const tcp = el("input", { type: "checkbox" });
  tcp.addEventListener("change", () => {
    state().tcp = tcp.checked;
    changed();
  });
  const network = el(
    "fieldset",
    {},
    el("legend", {}, "Network"),
    drawing.element,
    number("duration", "Length, s", 10),
    number("delay", "One-way delay, ms", 5),
    number("queue", "Queue, ms", 10),
    number("loss", "Loss, %", 0.5),
    el("label", {}, tcp, " a TCP download joins"),
  );
  scenario.addEventListener("change", () => {
    state().scenario = scenario.value;
    network.hidden = scenario.value !== "";
    changed();
  });
  readers.push(() => {
    scenario.value = state().scenario;
    network.hidden = scenario.value !== "";
    tcp.checked = state().tcp;
  });
  const element = el(
    "form",
    { class: "controls", "aria-label": "What is simulated" },
    el("label", { class: "wide" }, "Scenario ", scenario),
    network,
    controllersOf(about, state, changed, readers),
  );
  element.addEventListener("submit", (event) => event.preventDefault());
  const read = () => readers.forEach((reader) => reader());
  read();
  return { element, read };
}

function controllersOf(
  about: About,
  state: () => State,
  changed: Changed,
  readers: (() => void)[],
): HTMLElement {
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
  const seed = el("input", { type: "number", min: "0", step: "1" });
  seed.addEventListener("input", () => {
    if (seed.value === "" || !seed.checkValidity()) return;
    state().seed = Number(seed.value);
    changed();
  });
  readers.push(() => {
    seed.value = String(state().seed);
  });
  return el(
    "fieldset",
    {},
    el("legend", {}, "Controllers"),
    ...boxes.map((box) => el("label", {}, box, ` ${box.value}`)),
    el("label", {}, "Seed ", seed),
  );
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
