// Findings of a call, marked on its curves.

import type { SeriesOption } from "../chart";
import { MARKS_MAX, markOpacity, type Mark } from "../marks";
import { theme } from "../theme";

const LANE_HEIGHT = 15;
export function markColour(mark: Mark): string {
  return mark.isEffect ? theme().effect : theme().muted;
}

/** The shading of all panels; the numbers stand in the first one. */
export function markSeries(marks: Mark[], panels: number): SeriesOption[] {
  if (marks.length === 0) return [];
  return Array.from({ length: panels }, (_, panel) => ({
    type: "line",
    // Without a name it is not in the legend.
    data: [],
    xAxisIndex: panel,
    yAxisIndex: panel,
    silent: true,
    z: 0,
    markArea: {
      silent: true,
      data: marks.map((mark) => [
        {
          xAxis: mark.from_s,
          name: panel === 0 ? String(mark.number) : "",
          itemStyle: { color: markColour(mark), opacity: markOpacity(mark, marks) },
          label: {
            position: "insideTopLeft",
            offset: [0, mark.lane * LANE_HEIGHT],
            color: markColour(mark),
            fontWeight: "bold",
          },
        },
        { xAxis: mark.to_s },
      ]),
    },
  }));
}

/** What the shading means, for the caption; empty without marks. */
export function explainMarks(marks: Mark[], findings: number): string {
  if (marks.length === 0) return "";
  const count =
    findings > MARKS_MAX && marks.length === MARKS_MAX ? ` The first ${MARKS_MAX} are marked.` : "";
  return (
    "The shaded times have the numbers of the findings below: red is what was seen or heard, " +
    `grey is what limited the stream.${count} `
  );
}
