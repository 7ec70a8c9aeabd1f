// The page of `weir serve`: choose or edit a scenario, run it, watch it, and compare records.

import { el } from "../dom";
import { drawAll } from "../figure";
import { card } from "../ui/ui";
import { editor } from "./editor";
import { records } from "./records";
import { ask, type About } from "./server";
import { watch } from "./watch";

declare global {
  interface Window {
    weirDrawAll: () => void;
  }
}

async function start(): Promise<void> {
  const main = document.getElementById("serve") as HTMLElement;
  const about = await ask<About>("about");
  window.weirDrawAll = drawAll;
  const failure = el("p", { class: "warning", role: "alert", hidden: true });
  /** Does what a button asks for, and shows why it cannot be done. */
  const trying = async (work: () => Promise<unknown>) => {
    try {
      await work();
      failure.hidden = true;
    } catch (error) {
      failure.hidden = false;
      failure.textContent = error instanceof Error ? error.message : String(error);
    }
  };
  const recorded = records(trying);
  const edited = editor(about, trying);
  const watched = watch(trying, edited.preview, () => void recorded.refresh());
  const controls = el(
    "div",
    { class: "controls-column" },
    card("Run", edited.choice),
    watched.network,
    watched.peers,
  );
  main.replaceChildren(
    el(
      "header",
      { class: "serve-head" },
      el("h1", {}, "Weir"),
      el(
        "p",
        { class: "summary" },
        `weir ${about.version} on this machine. Records are in ${about.out}. All pages with this address show the same run.`,
      ),
    ),
    failure,
    el("div", { class: "live" }, controls, watched.element),
    edited.edit,
    recorded.element,
  );
  await recorded.refresh();
  await watched.follow();
}

start().catch((error: unknown) => {
  const why = error instanceof Error ? error.message : String(error);
  const warning = el("p", { class: "warning", role: "alert" }, `The page cannot start: ${why}`);
  document.getElementById("serve")?.replaceChildren(warning);
});
