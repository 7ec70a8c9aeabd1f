// The chart library, with the parts that this page uses, and the option pieces all plots share.

import {
  BarChart,
  CustomChart,
  LineChart,
  ScatterChart,
  type BarSeriesOption,
  type CustomSeriesOption,
  type LineSeriesOption,
  type ScatterSeriesOption,
} from "echarts/charts";
import {
  AxisPointerComponent,
  DataZoomComponent,
  GridComponent,
  LegendPlainComponent,
  MarkAreaComponent,
  TitleComponent,
  TooltipComponent,
  type AxisPointerComponentOption,
  type DataZoomComponentOption,
  type GridComponentOption,
  type LegendComponentOption,
  type TitleComponentOption,
  type TooltipComponentOption,
} from "echarts/components";
import { init, use, type ComposeOption, type EChartsType } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { theme } from "./theme";

use([
  AxisPointerComponent,
  BarChart,
  CustomChart,
  DataZoomComponent,
  GridComponent,
  LegendPlainComponent,
  LineChart,
  MarkAreaComponent,
  ScatterChart,
  SVGRenderer,
  TitleComponent,
  TooltipComponent,
]);

export type { CustomSeriesOption };
export type SeriesOption =
  | BarSeriesOption
  | CustomSeriesOption
  | LineSeriesOption
  | ScatterSeriesOption;
export type Option = ComposeOption<
  | AxisPointerComponentOption
  | DataZoomComponentOption
  | GridComponentOption
  | LegendComponentOption
  | SeriesOption
  | TitleComponentOption
  | TooltipComponentOption
>;
export type Chart = EChartsType;

/** Properties of the surface on which a plot is drawn. */
export interface Surface {
  width: number;
  /** Zoomed span of the time axis in per cent of the whole. */
  zoom: { start: number; end: number };
  /** True for the screen, with controls; false for a file, without them. */
  screen: boolean;
}

export interface Plot {
  option: Option;
  height: number;
}

export const WHOLE = { start: 0, end: 100 };
export const FONT = "system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif";
export const FONT_SIZE = 12;

export function createChart(element: HTMLElement): Chart {
  const chart = init(element, null, { renderer: "svg" });
  // The element has a description. A screen reader would find a picture without a name in it, too.
  element.firstElementChild?.setAttribute("aria-hidden", "true");
  return chart;
}

/**
 * Draws without a page, so that the size and look of a file do not depend on the reader's window.
 */
export function renderSvg(plot: Plot, width: number): string {
  const chart = init(null, null, { renderer: "svg", ssr: true, width, height: plot.height });
  chart.setOption(plot.option);
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

const canvas = document.createElement("canvas").getContext("2d");

/** Width of a text in the plots' font. */
export function textWidth(text: string): number {
  if (canvas === null) return text.length * FONT_SIZE * 0.6;
  canvas.font = `${FONT_SIZE}px ${FONT}`;
  return Math.ceil(canvas.measureText(text).width);
}

export function baseOption(): Option {
  return {
    animation: false,
    backgroundColor: theme().background,
    textStyle: { fontFamily: FONT, fontSize: FONT_SIZE, color: theme().text },
  };
}

const LEGEND_ICON = 25;
/** Gap between entries, and between lines. */
const LEGEND_GAP = 12;
const LEGEND_LINE = 14;

/** A legend above the plot, and its height. The chart library does not reserve space for it. */
export function legendOption(names: string[], width: number) {
  let lines = names.length === 0 ? 0 : 1;
  let x = 0;
  for (const name of names) {
    const item = LEGEND_ICON + 5 + textWidth(name) + LEGEND_GAP;
    if (x > 0 && x + item - LEGEND_GAP > width) {
      lines += 1;
      x = 0;
    }
    x += item;
  }
  const legend: LegendComponentOption = {
    data: names,
    top: 0,
    left: 0,
    right: 0,
    padding: 0,
    itemGap: LEGEND_GAP,
    itemWidth: LEGEND_ICON,
    itemHeight: 11,
    inactiveColor: theme().grid,
    textStyle: {
      color: theme().text,
      fontFamily: FONT,
      fontSize: FONT_SIZE,
      lineHeight: LEGEND_LINE,
    },
  };
  return { legend, height: lines * (LEGEND_LINE + LEGEND_GAP) };
}

/** Title of one panel, at its upper left. */
export function panelTitle(text: string, top: number, left = 0): TitleComponentOption {
  return {
    text,
    top,
    left,
    padding: 0,
    textStyle: { color: theme().text, fontFamily: FONT, fontSize: FONT_SIZE, fontWeight: 600 },
  };
}

/** A value axis with its name and unit in the middle of it. */
export function valueAxis(name: string, gap: number) {
  const { text, muted, grid } = theme();
  return {
    type: "value" as const,
    name,
    nameLocation: "middle" as const,
    nameGap: gap,
    nameTextStyle: { color: text, fontFamily: FONT, fontSize: FONT_SIZE },
    axisLine: { show: true, lineStyle: { color: muted } },
    axisTick: { show: true, lineStyle: { color: muted } },
    axisLabel: { color: muted, fontFamily: FONT, fontSize: FONT_SIZE, hideOverlap: true },
    splitLine: { lineStyle: { color: grid } },
  };
}

/** Tooltip in the page's colours whose content is built as elements, never as markup. */
export function tooltipOption(content: (parameters: unknown) => HTMLElement | string) {
  const { text, grid, tooltip } = theme();
  const option: TooltipComponentOption = {
    confine: true,
    transitionDuration: 0,
    backgroundColor: tooltip,
    borderColor: grid,
    textStyle: { color: text, fontFamily: FONT, fontSize: FONT_SIZE },
    className: "tip",
    formatter: (parameters) => content(parameters) as HTMLElement,
  };
  return option;
}
