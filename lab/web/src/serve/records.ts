// The records in the folder, of which some or all become one report.

import { el, empty, table } from "../dom";
import { ask, reportOf, type Recorded } from "./server";

type Trying = (work: () => Promise<unknown>) => Promise<void>;

/** An address has room for this many names. */
const CHOSEN_MAX = 60;

/** What tells a record from others of its scenario: `gcc, seed 1`. */
export function recordName({ controller, seed }: Recorded): string {
  return `${controller}, seed ${seed}`;
}

export function records(trying: Trying) {
  const chosen = new Set<string>();
  const list = el("div");
  const compare = el("button", { type: "button" }, "Compare the chosen ones");
  compare.addEventListener("click", () => {
    void trying(async () => {
      if (chosen.size === 0) throw new Error("Choose one record or more.");
      if (chosen.size > CHOSEN_MAX) throw new Error(`Choose at most ${CHOSEN_MAX} records.`);
      window.open(reportOf([...chosen]), "_blank", "noopener");
    });
  });
  const refresh = () =>
    trying(async () => {
      const found = await ask<Recorded[]>("records");
      for (const name of chosen) if (!found.some((it) => it.name === name)) chosen.delete(name);
      if (found.length === 0) {
        list.replaceChildren(empty("There are no records yet."));
        return;
      }
      const box = (record: Recorded) => {
        const input = el("input", {
          type: "checkbox",
          "aria-label": `choose ${recordName(record)} of ${record.scenario}`,
        });
        input.checked = chosen.has(record.name);
        input.addEventListener("change", () => {
          if (input.checked) chosen.add(record.name);
          else chosen.delete(record.name);
        });
        return input;
      };
      const engine: Record<string, string> = { sim: "simulated", call: "real call", link: "link" };
      const rows = table(
        "Records",
        [
          { head: "", cell: box },
          { head: "scenario", cell: (it: Recorded) => it.scenario },
          { head: "controller", cell: (it: Recorded) => it.controller },
          { head: "kind", cell: (it: Recorded) => engine[it.engine] ?? it.engine },
          { head: "seed", kind: "number", cell: (it: Recorded) => it.seed },
          {
            head: "report",
            cell: (it: Recorded) =>
              el(
                "a",
                { href: reportOf([it.name]), target: "_blank", rel: "noopener" },
                recordName(it),
              ),
          },
        ],
        found,
      );
      list.replaceChildren(rows);
    });
  const element = el(
    "section",
    { "aria-label": "Records" },
    el("h2", {}, "Records"),
    list,
    compare,
  );
  return { element, refresh };
}
