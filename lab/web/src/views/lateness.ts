// Release lateness of the emulator in a call.

import {
  baseOption,
  legendOption,
  tooltipOption,
  valueAxis,
  type Plot,
  type Surface,
} from "../chart";
import { el } from "../dom";
import type { Histogram } from "../format";
import { formatSignal } from "../model";
import { theme } from "../theme";

const NAME = "released packets";
const BODY = 180;
const X_AXIS = 52;

export function latenessPlot(histogram: Histogram, color: string, surface: Surface): Plot {
  const { legend, height } = legendOption([NAME], surface.width);
  const top = height + 12;
  const count = valueAxis("Packets (count, log scale)", 50);
  const lateness = valueAxis("Lateness (µs)", 30);
  return {
    height: top + BODY + X_AXIS,
    option: {
      ...baseOption(),
      legend,
      grid: { left: 76, right: 20, top, height: BODY, outerBoundsMode: "none" },
      xAxis: {
        ...lateness,
        type: "category",
        data: histogram.counts.map((_, i) => binName(histogram, i)),
        axisLabel: { ...lateness.axisLabel, interval: "auto" },
      },
      // The axis starts at one half, so that a bin with one packet has a bar.
      yAxis: {
        ...count,
        type: "log",
        min: 0.5,
        startValue: 0.5,
        axisLabel: { ...count.axisLabel, formatter: (n: number) => (n < 1 ? "" : String(n)) },
      },
      tooltip: {
        ...tooltipOption((item) => {
          const i = (item as { dataIndex: number }).dataIndex;
          const text = `${binName(histogram, i)} µs: ${histogram.counts[i]} packets`;
          return el("div", { class: "tip-body" }, text);
        }),
        trigger: "item",
      },
      series: [
        {
          type: "bar",
          name: NAME,
          barCategoryGap: "8%",
          itemStyle: { color, borderColor: theme().background },
          // A logarithmic axis cannot show zero, so an empty bin has no bar.
          data: histogram.counts.map((n) => (n > 0 ? n : null)),
        },
      ],
    },
  };
}

function binName(histogram: Histogram, i: number): string {
  const [from, to] = [histogram.edges[i] ?? null, histogram.edges[i + 1] ?? null];
  return `${formatSignal(from)}–${formatSignal(to)}`;
}

export function describeLateness(histogram: Histogram): string {
  const [p50, p99, max] = [histogram.p50, histogram.p99, histogram.max].map(formatSignal);
  return `Median ${p50} µs, 99th percentile ${p99} µs, maximum ${max} µs.`;
}
