// The catalogue with its search, the scenario's text with its errors, and the buttons that start a run.

import { el } from "../dom";
import { wordsMatch } from "../model";
import { drawing } from "../playground/catalogue";
import { action, field, tabs } from "../ui/ui";
import { ask, type About, type Checked, type Known } from "./server";

type Trying = (work: () => Promise<unknown>) => Promise<void>;

/** Pause after a key before the text is checked, ms. */
const PAUSE_MS = 250;
const SHOWN_MAX = 200;
/** Lines of the list, and while a search has an answer. */
const LINES = 4;
const LINES_FOUND = 8;

/** Scenarios of which each word of the search is in id, title or source. */
export function found(scenarios: Known[], search: string): Known[] {
  return scenarios.filter(({ id, title, source }) =>
    wordsMatch(`${id} ${title} ${source}`, search),
  );
}

/** The lines of the list: the first of those found, and the chosen one in any case. */
export function listed(shown: Known[], chosen: string): Known[] {
  const first = shown.slice(0, SHOWN_MAX);
  const own = shown.slice(SHOWN_MAX).filter(({ id }) => id === chosen);
  return [...own, ...first];
}

export function editor(about: About, trying: Trying) {
  let chosen = "";
  let original = "";
  let timer = 0;
  const search = el("input", {
    type: "search",
    placeholder: "such as: lund wifi loss",
    "aria-label": "Search the scenarios",
  });
  const list = el("select", { size: String(LINES), "aria-label": "Scenarios" });
  const chosenLine = el("p", { class: "chosen", "aria-live": "polite" });
  const count = el("p", { class: "note", "aria-live": "polite" });
  const text = el("textarea", {
    spellcheck: "false",
    rows: "18",
    "aria-label": "Text of the scenario",
  });
  const numbers = el("pre", { class: "numbers", "aria-hidden": "true" });
  const verdict = el("p", { class: "note", role: "status", "aria-live": "polite" });

  const preview = el("div", { class: "preview" });

  const isEdited = () => text.value !== original;
  const showNumbers = (wrong: number | null) => {
    const lines = text.value.split("\n").map((_, i) => {
      const number = el("span", {}, `${i + 1}\n`);
      if (i + 1 === wrong) number.className = "wrong";
      return number;
    });
    numbers.replaceChildren(...lines);
    numbers.scrollTop = text.scrollTop;
  };
  const check = async () => {
    const asked = text.value;
    const answer = await ask<Checked>("check", { text: asked });
    if (asked !== text.value) return;
    showNumbers(answer.line ?? null);
    preview.replaceChildren(...previewOf(chosen, answer));
    verdict.className = answer.error === undefined ? "note" : "note wrong";
    const whole = `${answer.title}: ${answer.duration_s} s; ${answer.network?.join("; ")}`;
    verdict.textContent = answer.error ?? `${isEdited() ? "edited; " : ""}${whole}`;
  };
  const show = () => {
    const shown = found(about.scenarios, search.value);
    const options = listed(shown, chosen).map(({ id, title }) =>
      el("option", { value: id, title }, `${id} – ${title}`),
    );
    list.replaceChildren(...options);
    list.size =
      search.value.trim() === "" ? LINES : Math.max(LINES, Math.min(LINES_FOUND, shown.length));
    list.value = chosen;
    inView(list);
    const more = shown.length > SHOWN_MAX ? `; the first ${SHOWN_MAX} are shown` : "";
    count.textContent =
      shown.length === 0
        ? "No scenario has all of these words in its id, title or source."
        : `${shown.length} of ${about.scenarios.length} scenarios${more}`;
  };
  const showChosen = () => {
    const title = about.scenarios.find(({ id }) => id === chosen)?.title ?? "";
    chosenLine.replaceChildren("Chosen: ", el("code", {}, chosen), title === "" ? "" : ` ${title}`);
  };
  const choose = (id: string) =>
    trying(async () => {
      chosen = id;
      showChosen();
      original = (await ask<{ text: string }>(`scenario/${encodeURIComponent(id)}`)).text;
      text.value = original;
      await check();
    });
  search.addEventListener("input", show);
  // Enter takes the first answer, so that a search needs no mouse.
  search.addEventListener("keydown", (event) => {
    const first = list.options[0];
    if (event.key !== "Enter" || first === undefined) return;
    event.preventDefault();
    list.value = first.value;
    void choose(first.value);
  });
  list.addEventListener("change", () => void choose(list.value));
  text.addEventListener("input", () => {
    showNumbers(null);
    clearTimeout(timer);
    timer = window.setTimeout(() => void trying(check), PAUSE_MS);
  });
  text.addEventListener("scroll", () => {
    numbers.scrollTop = text.scrollTop;
  });
  const starters = starting(about, trying, () =>
    isEdited() ? { text: text.value } : { scenario: chosen },
  );
  const choice = el("div", { class: "choice" }, chosenLine, search, list, count, starters);
  const edit = el(
    "details",
    { class: "edit-scenario" },
    el("summary", {}, "Edit the scenario"),
    el("div", { class: "editor" }, numbers, text),
    verdict,
  );
  chosen = "demo/first-call";
  show();
  void choose(chosen);
  return { choice, edit, preview };
}

/** Scrolls a list to its chosen line. A list that is not on the page yet has no height. */
function inView(list: HTMLSelectElement): void {
  requestAnimationFrame(() => list.selectedOptions[0]?.scrollIntoView({ block: "nearest" }));
}

/** The scenario before it runs: its words and its capacity. */
function previewOf(
  id: string,
  { error, title, duration_s, network, capacity_kbps }: Checked,
): HTMLElement[] {
  if (error !== undefined) return [el("p", { class: "note wrong" }, error)];
  const heading = el("h3", {}, `${title} (${duration_s} s) `, el("code", {}, id));
  const lines = (network ?? []).map((line) => el("li", {}, line));
  const list = el("ul", { class: "note" }, ...lines);
  if (capacity_kbps == null) return [heading, list];
  const drawn = drawing(capacity_kbps, duration_s ?? 0);
  return [heading, drawn.element, el("p", { class: "note" }, `${drawn.words}, up.`), list];
}

/** The buttons. A variant of a file is started by its id, and an edited text as a whole. */
function starting(about: About, trying: Trying, scenario: () => object): HTMLElement {
  const boxes = about.controllers.map((name) => {
    const box = el("input", { type: "checkbox", value: name });
    box.checked = name === "gcc" || name === "sluice";
    return box;
  });
  const seed = el("input", { type: "number", min: "0", step: "1", value: "1" });
  const sender = el(
    "select",
    {},
    el("option", { value: "" }, "the browsers' own"),
    ...["chromium-scream-v2", ...about.controllers].map((name) =>
      el("option", { value: name }, name),
    ),
  );
  const command = el(
    "select",
    {},
    ...about.commands.map((name) => el("option", { value: name }, name)),
  );
  const start = (request: object) =>
    void trying(() => ask("start", { ...scenario(), seed: Number(seed.value), ...request }));
  const checked = () => boxes.filter((box) => box.checked).map((box) => box.value);
  const chips = boxes.map((box) => el("label", {}, box, ` ${box.value}`));
  const panels: [string, HTMLElement][] = [
    [
      "Simulation",
      el(
        "div",
        {},
        el("div", { class: "chips" }, ...chips),
        action("Simulate", () => start({ kind: "run", controllers: checked().join(",") })),
      ),
    ],
    [
      "Real call",
      el(
        "div",
        {},
        field("Congestion control", sender),
        action("Call", () => start({ kind: "call", controllers: sender.value })),
      ),
    ],
    [
      "Link",
      el(
        "div",
        {},
        field("Command in the emulated network", command),
        action("Link", () => start({ kind: "link", command: command.value })),
      ),
    ],
  ];
  return el("div", { class: "starters" }, tabs("What to run", panels), field("Seed", seed));
}
