// The few components of all forms: a card, a labelled field, a choice of one among few, and the main button.

import { el } from "../dom";

/** A part of a page with a heading of its own. */
export function card(title: string, ...content: (HTMLElement | null)[]): HTMLElement {
  return el("section", { class: "card", "aria-label": title }, el("h2", {}, title), ...content);
}

/** A control under its label. */
export function field(label: string, control: HTMLElement): HTMLElement {
  return el("label", { class: "ui-field" }, el("span", {}, label), control);
}

/** A button for what the page is there for. */
export function action(label: string, work: () => void): HTMLButtonElement {
  const button = el("button", { type: "button", class: "primary" }, label);
  button.addEventListener("click", work);
  return button;
}

/** Tabs: of several panels, the chosen one is shown. */
export function tabs(name: string, panels: [label: string, panel: HTMLElement][]): HTMLElement {
  const buttons = panels.map(([label]) =>
    el("button", { type: "button", role: "tab", "aria-selected": "false" }, label),
  );
  const choose = (chosen: number) => {
    for (const [i, button] of buttons.entries()) {
      button.setAttribute("aria-selected", String(i === chosen));
      button.tabIndex = i === chosen ? 0 : -1;
    }
    for (const [i, [, panel]] of panels.entries()) panel.hidden = i !== chosen;
  };
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": name }, ...buttons);
  for (const [i, button] of buttons.entries()) button.addEventListener("click", () => choose(i));
  list.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    const from = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const to = (from + step + buttons.length) % buttons.length;
    choose(to);
    buttons[to]?.focus();
  });
  for (const [label, panel] of panels) {
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-label", label);
  }
  choose(0);
  return el("div", {}, list, ...panels.map(([, panel]) => panel));
}
