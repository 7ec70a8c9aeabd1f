// A number that the reader types, with its error beside it.

import { el } from "../dom";

export interface Limits {
  min: number;
  max: number;
}

/** What is wrong with a number as it was typed; null if nothing is. */
export function fault(text: string, { min, max }: Limits, isWhole = false): string | null {
  const value = Number(text);
  const is = text.trim() !== "" && Number.isFinite(value) && value >= min && value <= max;
  if (is && (!isWhole || Number.isSafeInteger(value))) return null;
  const range = max === Number.MAX_SAFE_INTEGER ? `from ${min} on` : `from ${min} to ${max}`;
  return `${isWhole ? "a whole number" : "a number"} ${range}`;
}

export interface Field {
  element: HTMLElement;
  /** Shows this value, and no error. */
  show: (value: number) => void;
}

let count = 0;

/**
 * `take` gets each value that is allowed, and `wrong` whether there is an error now. The caller marks what it shows as
 * old as long as there is one.
 */
export function field(
  label: string,
  limits: Limits & { step: number; isWhole?: boolean },
  take: (value: number) => void,
  wrong: (isWrong: boolean) => void,
): Field {
  count += 1;
  const id = `fault-${count}`;
  // A browser would refuse numbers between the steps of its arrows.
  const input = el("input", { type: "number", step: "any", inputmode: "decimal" });
  const said = el("span", { class: "fault", id, role: "alert", hidden: true });
  const judge = () => {
    const why = input.validity.badInput
      ? fault("x", limits)
      : fault(input.value, limits, limits.isWhole);
    said.textContent = why === null ? "" : `Write ${why}.`;
    said.hidden = why === null;
    input.setAttribute("aria-invalid", String(why !== null));
    if (why === null) input.removeAttribute("aria-describedby");
    else input.setAttribute("aria-describedby", id);
    return why === null;
  };
  input.addEventListener("input", () => {
    const is = judge();
    wrong(!is);
    if (is) take(Number(input.value));
  });
  input.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (steps === undefined) return;
    event.preventDefault();
    const value = (Number(input.value) || 0) + steps * limits.step;
    input.value = String(Math.min(limits.max, Math.max(limits.min, value)));
    input.dispatchEvent(new Event("input"));
  });
  const show = (value: number) => {
    input.value = String(value);
    judge();
    wrong(false);
  };
  return {
    element: el("div", { class: "field" }, el("label", {}, `${label} `, input), said),
    show,
  };
}
