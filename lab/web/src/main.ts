// Reads the data in the file and shows it.

import { drawAbove, drawAll, drawWhenIdle } from "./figure";
import { el } from "./dom";
import { controllerOrder, linkTo, parseReport } from "./model";
import { paletteOf } from "./theme";
import { contentsView } from "./views/contents";
import { foldable, unfold } from "./views/fold";
import { pageView } from "./views/page";
import { sweepView } from "./views/sweep";

declare global {
  interface Window {
    /** Draws every plot at once, for tests and for programs that print the page. */
    weirDrawAll: () => void;
  }
}

/**
 * Number of scenarios from which on a report is laid out as the reader scrolls. It halves the time to the first
 * picture of 1,000 runs.
 */
const LARGE = 10;

function start(): void {
  const main = document.getElementById("report") as HTMLElement;
  const report = parseReport(document.getElementById("weir-data")?.textContent ?? "");
  if ("problem" in report) {
    main.replaceChildren(el("p", { class: "warning", role: "alert" }, report.problem));
    return;
  }
  document.title = report.title;
  const isSweep = "kind" in report;
  const view = isSweep
    ? sweepView(report, paletteOf(report.controllers))
    : pageView(report, paletteOf(controllerOrder(report)));
  main.replaceChildren(...view);
  window.weirDrawAll = () => {
    for (const fold of main.querySelectorAll<HTMLDetailsElement>("details.more")) fold.open = true;
    drawAll();
  };
  const sections = [...main.querySelectorAll<HTMLElement>("section[id], footer")];
  for (const section of sections) foldable(section);
  main.classList.toggle("large", report.scenarios.length >= LARGE);
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
    for (const section of sections) unfold(section);
    drawAll();
  });
  // A large report is drawn as it is scrolled: all of it takes seconds.
  if (report.scenarios.length < LARGE) drawWhenIdle();
  // Plots of a sweep are few.
  if (isSweep) return;
  document.body.classList.add("with-contents");
  document.body.prepend(
    el("a", { class: "skip", href: "#report" }, "Skip the contents"),
    contentsView(report, sections),
  );
  // The sections did not exist when the browser looked for the address's target.
  const goToTarget = () => {
    const targets = [...main.querySelectorAll("[id]")];
    const target = targets.find(({ id }) => linkTo(id) === location.hash);
    const section = target?.closest<HTMLElement>("section, footer");
    if (section) unfold(section);
    if (!target) return;
    openAround(target);
    drawAbove(target);
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", goToTarget);
  // After a reload the browser would go back to a place of the page as it was drawn before.
  if (location.hash !== "") history.scrollRestoration = "manual";
  goToTarget();
}

/** Opens the folds around a link's target, and the whole of a scenario that is the target. */
function openAround(target: Element): void {
  const folds = [...target.querySelectorAll<HTMLDetailsElement>(":scope > details.whole")];
  let around = target.closest("details");
  while (around !== null) {
    folds.push(around);
    around = around.parentElement?.closest("details") ?? null;
  }
  for (const fold of folds) fold.open = true;
}

start();
