// Controllers by scenarios: mean utilization above mean p95 queuing delay, coloured by utilization.

import { el, empty, scroller } from "../dom";
import type { Report } from "../format";
import {
  ENGINE_NAME,
  NONE,
  formatNumber,
  formatPercent,
  linkTo,
  matrixOf,
  type MatrixCell,
  type MatrixColumn,
} from "../model";
import { scaleColour, scaleGradient } from "../theme";

export function matrixView(report: Report): HTMLElement {
  const { columns, rows } = matrixOf(report);
  if (columns.length === 0) return empty("No runs: the report has no scenario with results.");
  const head = columns.map(({ controller, engine }) =>
    el("th", { scope: "col" }, controller, el("small", {}, ENGINE_NAME[engine])),
  );
  const body = rows.map(({ scenario, cells }) => {
    const link = el("a", { href: linkTo(scenario.id) }, ...breakable(scenario.id));
    const data = cells.map((cell, i) => cellView(scenario.id, columns[i] as MatrixColumn, cell));
    return el("tr", {}, el("th", { scope: "row" }, link), ...data);
  });
  const corner = el("th", { scope: "col" }, "Scenario");
  return el(
    "div",
    { class: "part matrix" },
    el("h3", {}, "Controllers by scenarios"),
    legend(),
    scroller(
      "Controllers by scenarios",
      el("table", {}, el("thead", {}, el("tr", {}, corner, ...head)), el("tbody", {}, ...body)),
    ),
  );
}

/** A scenario's id that may break after its folder, for narrow screens. */
function breakable(id: string): (Node | string)[] {
  return id.split(/(?<=\/)/).flatMap((piece, i) => (i === 0 ? [piece] : [el("wbr"), piece]));
}

function cellView(id: string, column: MatrixColumn, cell: MatrixCell | null): HTMLElement {
  if (cell === null) return el("td", { class: "none" }, NONE);
  const known = cell.utilization !== null;
  const { background, text } = scaleColour(cell.utilization ?? 0);
  const lines = cell.lines.map((line) =>
    el(
      "span",
      { class: "cell-line" },
      cell.lines.length > 1 || line.flow.endsWith("flows") ? el("small", {}, line.flow) : null,
      el("b", {}, withUnit(formatPercent(line.utilization), "%")),
      el("span", {}, withUnit(formatNumber(line.p95_queuing_delay_ms, 0), "ms")),
      line.good_percent === null
        ? null
        : el("span", {}, `good ${formatNumber(line.good_percent, 0)} %`),
    ),
  );
  const title = `${column.controller}, ${ENGINE_NAME[column.engine]}, in ${id}`;
  const style = known ? `background:${background};color:${text}` : "";
  const outcome =
    cell.outcome === "" ? null : el("span", { class: "cell-line" }, el("small", {}, cell.outcome));
  return el("td", {}, el("a", { href: linkTo(id), title, style }, ...lines, outcome));
}

function withUnit(number: string, unit: string): string {
  return number === NONE ? NONE : `${number} ${unit}`;
}

function legend(): HTMLElement {
  const ticks = [0, 25, 50, 75, 100].map((tick) => el("span", {}, String(tick)));
  return el(
    "div",
    { class: "scale" },
    el(
      "p",
      {},
      el("b", {}, "Bold: mean utilization (%)"),
      ". Below it: 95th percentile of the queuing delay (ms), and the good time (%) where it is known: a new ",
      "picture, at most 250 ms late, VMAF at least 80. All are means over the runs, shown for each flow. ",
      "If a scenario has more than two flows, they are means over its media flows. The colour ",
      "shows the mean utilization of the media flows. The last line shows the results of the scenario's ",
      "expectations. Click a cell to go to its scenario.",
    ),
    el(
      "div",
      { class: "scale-bar", role: "img", "aria-label": "Colour scale, utilization 0 to 100 %" },
      el("span", { class: "gradient", style: `background:${scaleGradient()}` }),
      el("span", { class: "ticks" }, ...ticks),
      el("span", {}, "Utilization (%)"),
    ),
  );
}
