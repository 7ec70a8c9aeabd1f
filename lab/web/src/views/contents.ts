// Contents of the report: at the side of a wide screen, behind a bar at the top of a narrow one. It
// lists the scenarios, and the parts of the current scenario only, so that hundreds of scenarios
// fit in one list.

import { el } from "../dom";
import type { Report } from "../format";
import { lastAbove, linkTo, wordsMatch } from "../model";

interface Entry {
  section: HTMLElement;
  item: HTMLElement;
  link: HTMLAnchorElement;
  /** What the filter searches. */
  text: string;
}

/** Number of entries from which on the list has a filter. */
const FILTER_FROM = 10;
/** A section is current once its heading is at most this far below the top, in pixels. */
const READING_LINE = 90;
/** Media query of a wide screen, as in the style sheet. */
const WIDE = "(min-width: 1200px)";

/**
 * Builds the contents. `sections` are the page's, in order; each has an id. Parts get their ids
 * here.
 */
export function contentsView(report: Report, sections: HTMLElement[]): HTMLElement {
  const titles = new Map(report.scenarios.map(({ id, title }) => [id, title]));
  const entries = sections.map((section) => entryOf(section, titles));
  for (const section of sections) nameParts(section);
  const here = el("span", { class: "here" });
  const list = el("ol", {}, ...entries.map(({ item }) => item));
  const filter = entries.length >= FILTER_FROM ? filterBox(entries) : null;
  const panel = el("div", { class: "panel" }, filter, list);
  const summary = el("summary", {}, el("b", {}, "Contents"), " ", here);
  const details = el("details", {}, summary, panel);
  const nav = el("nav", { class: "contents", "aria-label": "Contents" }, details);
  keepOpenWhereWide(details, summary);
  walkByArrows(nav);
  follow(entries, (entry, part) => {
    mark(entry, part);
    here.textContent = entry.link.textContent;
    show(panel, entry.item);
  });
  return nav;
}

function entryOf(section: HTMLElement, titles: Map<string, string>): Entry {
  const heading = section.querySelector("h2")?.textContent ?? section.id;
  const title = titles.get(section.id);
  const name = title === undefined ? heading : section.id;
  const link = el(
    "a",
    { href: linkTo(section.id), ...(title === undefined ? {} : { title }) },
    name,
  );
  const item = el("li", {}, link);
  return { section, item, link, text: `${name} ${title ?? ""}` };
}

/** Gives each part under a heading an id, so that it can be linked to. */
function nameParts(section: HTMLElement): void {
  const used = new Set<string>();
  for (const heading of section.querySelectorAll("h3")) {
    const part = heading.closest<HTMLElement>(".part, figure");
    if (part === null) continue;
    const name = (heading.textContent ?? "").toLowerCase().replace(/[^a-z0-9]+/g, "-");
    let id = `${section.id}:${name}`;
    for (let n = 2; used.has(id); n++) id = `${section.id}:${name}-${n}`;
    used.add(id);
    part.id = id;
  }
}

function partsOf(section: HTMLElement): HTMLElement[] {
  return [...section.querySelectorAll<HTMLElement>(".part[id], figure[id]")];
}

function filterBox(entries: Entry[]): HTMLElement {
  const count = el("span", { class: "spoken", role: "status" });
  const input = el("input", {
    type: "search",
    placeholder: "Filter",
    "aria-label": "Filter contents",
  });
  const none = el("p", { class: "empty", hidden: true }, "No scenario matches.");
  input.addEventListener("input", () => {
    const shown = entries.filter((entry) => wordsMatch(entry.text, input.value));
    for (const entry of entries) entry.item.hidden = !shown.includes(entry);
    none.hidden = shown.length > 0;
    count.textContent = `${shown.length} of ${entries.length} shown`;
  });
  return el("div", { class: "filter" }, input, count, none);
}

/** Keeps the list open on a wide screen. On a narrow one, a choice or Escape closes it. */
function keepOpenWhereWide(details: HTMLDetailsElement, summary: HTMLElement): void {
  const wide = matchMedia(WIDE);
  const fit = () => {
    details.open = wide.matches;
  };
  fit();
  wide.addEventListener("change", fit);
  details.addEventListener("click", (event) => {
    if (event.target instanceof HTMLAnchorElement) fit();
  });
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || wide.matches) return;
    details.open = false;
    summary.focus();
  });
}

/** Lets Up, Down, Home and End move between the visible links. */
function walkByArrows(nav: HTMLElement): void {
  nav.addEventListener("keydown", (event) => {
    const links = [...nav.querySelectorAll("a")].filter((link) => link.offsetParent !== null);
    const from = links.indexOf(document.activeElement as HTMLAnchorElement);
    const isFilter = document.activeElement instanceof HTMLInputElement;
    const to = { ArrowDown: from + 1, ArrowUp: from - 1, Home: 0, End: links.length - 1 }[
      event.key
    ];
    const target = to === undefined ? undefined : links[to];
    if (target === undefined || (from < 0 && !(isFilter && event.key === "ArrowDown"))) return;
    event.preventDefault();
    target.focus();
  });
}

/** Calls `changed` with the current section and part, at first and whenever they change. */
function follow(entries: Entry[], changed: (entry: Entry, part: string | null) => void): void {
  // The target of a link is current, even if the page ends before the target reaches the top.
  let chosen: string | null = null;
  let last = "";
  const update = () => {
    const [entry, part] = chosenPlace(entries, chosen) ?? readPlace(entries);
    const place = `${entry.section.id}\n${part}`;
    if (place === last) return;
    last = place;
    changed(entry, part);
  };
  let waiting = false;
  const soon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      update();
    });
  };
  const choose = (hash: string) => {
    chosen = hash;
    soon();
  };
  for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
    addEventListener(kind, () => (chosen = null), { passive: true });
  }
  addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (link !== null && link.hash !== "") choose(link.hash);
  });
  addEventListener("hashchange", () => choose(location.hash));
  addEventListener("scroll", soon, { passive: true });
  addEventListener("resize", soon);
  if (location.hash !== "") chosen = location.hash;
  // The page is added to the document after this task.
  soon();
}

type Place = [entry: Entry, part: string | null];

function chosenPlace(entries: Entry[], hash: string | null): Place | null {
  if (hash === null) return null;
  for (const entry of entries) {
    if (linkTo(entry.section.id) === hash) return [entry, null];
    // A part's id begins with its section's.
    if (!hash.startsWith(linkTo(`${entry.section.id}:`))) continue;
    const part = partsOf(entry.section).find(({ id }) => linkTo(id) === hash);
    if (part !== undefined) return [entry, part.id];
  }
  return null;
}

function readPlace(entries: Entry[]): Place {
  const top = (element: HTMLElement) => element.getBoundingClientRect().top;
  const index = lastAbove(entries.length, (i) => top((entries[i] as Entry).section), READING_LINE);
  const entry = entries[Math.max(0, index)] as Entry;
  const parts = partsOf(entry.section).filter((it) => it.closest("details:not([open])") === null);
  const part = parts[lastAbove(parts.length, (i) => top(parts[i] as HTMLElement), READING_LINE)];
  return [entry, part?.id ?? null];
}

/** Shows the parts of the current section, and marks the current part. */
function mark(entry: Entry, part: string | null): void {
  const nav = entry.item.closest("nav");
  for (const link of nav?.querySelectorAll("[aria-current]") ?? [])
    link.removeAttribute("aria-current");
  if (entry.item.querySelector("ol") === null) {
    for (const list of nav?.querySelectorAll("li > ol") ?? []) list.remove();
    const items = partsOf(entry.section).map((it) => {
      const heading = it.querySelector("h3")?.textContent ?? it.id;
      return el("li", {}, el("a", { href: linkTo(it.id) }, heading));
    });
    if (items.length > 0) entry.item.append(el("ol", {}, ...items));
  }
  const links = [...entry.item.querySelectorAll<HTMLAnchorElement>("ol a")];
  const current = links.find((link) => part !== null && link.hash === linkTo(part)) ?? entry.link;
  entry.link.setAttribute("aria-current", "true");
  current.setAttribute("aria-current", "location");
}

/** Scrolls the list to an item, without scrolling the page. */
function show(panel: HTMLElement, item: HTMLElement): void {
  const [box, frame] = [item.getBoundingClientRect(), panel.getBoundingClientRect()];
  const above = box.top - frame.top - 40;
  const below = Math.min(box.bottom - frame.bottom + 40, above);
  if (above < 0) panel.scrollTop += above;
  else if (below > 0) panel.scrollTop += below;
}
