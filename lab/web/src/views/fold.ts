// Sections that fold: a click on the button beside the heading hides everything below it.

import { el } from "../dom";

const FOLDED = "folded";
const buttons = new WeakMap<HTMLElement, HTMLButtonElement>();

/** Adds the button to the section's first heading. */
export function foldable(section: HTMLElement): void {
  const heading = section.querySelector<HTMLElement>("h2");
  if (heading === null) return;
  const button = el("button", {
    type: "button",
    class: "fold",
    "aria-expanded": "true",
    title: "Fold this section",
    "aria-label": `Fold ${heading.textContent}`,
  });
  button.addEventListener("click", () => set(section, !section.classList.contains(FOLDED)));
  buttons.set(section, button);
  heading.prepend(button);
}

/** Shows the section, for a link into it and for print. */
export function unfold(section: HTMLElement): void {
  if (section.classList.contains(FOLDED)) set(section, false);
}

function set(section: HTMLElement, folded: boolean): void {
  section.classList.toggle(FOLDED, folded);
  buttons.get(section)?.setAttribute("aria-expanded", String(!folded));
}
