// A moving picture of a call: encoder, sender's queue, network's queue, link and receiver. It shows the moment at which
// the pointer is in the plot below it, and plays.

import type { Chart } from "../chart";
import { el } from "../dom";
import { formatNumber } from "../model";
import { onThemeChange, type Palette } from "../theme";
import {
  isStill,
  longestWait,
  momentOf,
  scaleOf,
  sentence,
  type Lane,
  type Moment,
  type Scale,
} from "./moment";

export interface Picture {
  element: HTMLElement;
  /** Shows other flows. The moment stays if it is within the new duration. */
  show: (lanes: Lane[], duration_s: number, palette: Palette) => void;
  /** Shows this moment of the call, unless it plays. */
  showAt: (time_s: number) => void;
  /** Shows the moment at which the pointer of this plot is. */
  follow: (chart: Chart) => void;
}

const SPEEDS = [1, 5, 10, 50];
const FIRST_SPEED = 5;
/** More flows than these are not drawn: the picture would hide the curves. */
const LANES = 4;
/** Step of the slider, s. */
const STEP_S = 0.1;
/** A picture whose packets wait as long as this looks as bad as it can, ms. */
const WORST_MS = 800;

const NOTE =
  "Drawn from the curves below, at the moment of the pointer in them. The person is a drawing: sharper with more rate.";

export function picture(): Picture {
  const lanes = el("div", { class: "lanes" });
  const words = el("p", { class: "words", "aria-live": "off" });
  const play = el("button", { type: "button", class: "play" }, "▶ Play");
  const speed = el(
    "select",
    { "aria-label": "Speed" },
    ...SPEEDS.map((factor) => el("option", { value: String(factor) }, `${factor}×`)),
  );
  speed.value = String(FIRST_SPEED);
  const slider = el("input", {
    type: "range",
    min: "0",
    step: String(STEP_S),
    value: "0",
    "aria-label": "Moment of the call, s",
  });
  const clock = el("output", { class: "clock" });
  const element = el(
    "section",
    { class: "picture", "aria-label": "The call at one moment" },
    el("div", { class: "player" }, play, speed, slider, clock),
    lanes,
    words,
    el("p", { class: "note" }, NOTE),
  );

  let shown: DrawnLane[] = [];
  let hidden = 0;
  let time = 0;
  let duration = 0;
  /** Whether somebody chose a moment. Until then the picture shows the longest queue, and plays from the start. */
  let isChosen = false;
  /** The frame of the browser that moves the picture next; 0 while it does not play. */
  let frame = 0;
  let last = 0;

  const draw = () => {
    slider.value = String(time);
    clock.textContent = `${time.toFixed(1)} of ${duration.toFixed(0)} s`;
    const lines = shown.map((lane) => el("span", {}, lane.draw(time)));
    if (hidden > 0) lines.push(el("span", { class: "note" }, `${hidden} more: choose one above.`));
    words.replaceChildren(...lines);
  };
  const stop = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    play.textContent = "▶ Play";
    element.classList.remove("playing");
  };
  const advance = (now: number) => {
    time = Math.min(duration, time + ((now - last) / 1000) * Number(speed.value));
    last = now;
    draw();
    if (time >= duration) stop();
    else frame = requestAnimationFrame(advance);
  };
  const start = () => {
    if (time >= duration || !isChosen) time = 0;
    isChosen = true;
    last = performance.now();
    play.textContent = "❚❚ Pause";
    element.classList.add("playing");
    frame = requestAnimationFrame(advance);
  };
  play.addEventListener("click", () => {
    if (frame === 0) start();
    else stop();
  });
  slider.addEventListener("input", () => {
    stop();
    isChosen = true;
    time = Number(slider.value);
    draw();
  });

  const show = (flows: Lane[], duration_s: number, palette: Palette) => {
    element.hidden = flows.length === 0;
    const scale = scaleOf(flows);
    shown = flows.slice(0, LANES).map((lane) => drawnLane(lane, scale, palette));
    hidden = Math.max(0, flows.length - LANES);
    lanes.replaceChildren(...shown.map((lane) => lane.element));
    duration = duration_s;
    time = isChosen ? Math.min(time, duration) : longestWait(flows.slice(0, LANES));
    slider.max = String(duration);
    draw();
  };
  const showAt = (time_s: number) => {
    if (frame !== 0) return;
    isChosen = true;
    time = Math.min(duration, Math.max(0, time_s));
    draw();
  };
  const follow = (chart: Chart) => {
    chart.on("updateAxisPointer", (event) => {
      const pointed = (event as { axesInfo?: { value?: unknown }[] }).axesInfo?.[0]?.value;
      if (typeof pointed === "number") showAt(pointed);
    });
  };
  onThemeChange(() => shown.forEach((lane) => lane.colour()));
  return { element, show, showAt, follow };
}

interface DrawnLane {
  element: HTMLElement;
  /** Shows this moment, and says what happens. */
  draw: (time: number) => string;
  colour: () => void;
}

function drawnLane(lane: Lane, scale: Scale, palette: Palette): DrawnLane {
  const encoder = screen("encoder");
  const sender = vessel("sender's queue");
  const network = vessel("network's queue");
  const link = pipe();
  const receiver = screen("receiver");
  const element = el(
    "div",
    { class: "lane" },
    el("strong", {}, lane.name),
    lane.series.target_mbps.every((value) => value === null) ? null : encoder.element,
    lane.sender === null ? null : sender.element,
    network.element,
    link.element,
    lane.isNetwork ? null : receiver.element,
  );
  const colour = () => element.style.setProperty("--flow", palette(lane.controller));
  colour();
  const draw = (time: number): string => {
    const moment = momentOf(lane, time);
    if (moment === null) return `${lane.name}: nothing was recorded.`;
    encoder.draw(quality(moment.target_mbps, scale), mbps(moment.target_mbps));
    sender.draw(moment.sender_ms, scale);
    network.draw(moment.queue_ms, scale);
    link.draw(moment, scale);
    receiver.draw(quality(moment.received_mbps, scale), mbps(moment.received_mbps));
    receiver.element.classList.toggle("still", isStill(moment));
    const waits = (moment.queue_ms ?? 0) + (moment.sender_ms ?? 0);
    receiver.element.style.setProperty("--late", String(Math.min(1, waits / WORST_MS)));
    return sentence(lane.name, moment, lane.isNetwork);
  };
  return { element, draw, colour };
}

function mbps(value: number | null): string {
  return `${formatNumber(value, 2)} Mbit/s`;
}

/** From 0 to 1: how sharp the drawing of a video of this rate is. It is no measurement of a picture. */
function quality(value: number | null, scale: Scale): number {
  return value === null ? 0 : Math.min(1, Math.sqrt(value / scale.mbps));
}

function part(name: string, kind: string, drawing: HTMLElement) {
  const value = el("span", { class: "value" });
  const element = el(
    "div",
    { class: `part-of-call ${kind}` },
    el("span", { class: "what" }, name),
    drawing,
    value,
  );
  return { element, value };
}

/** A screen with somebody on it. */
function screen(name: string) {
  const person = el("span", { class: "person" });
  const { element, value } = part(name, "screen-part", el("div", { class: "screen" }, person));
  const draw = (sharp: number, text: string) => {
    element.style.setProperty("--sharp", sharp.toFixed(2));
    value.textContent = text;
  };
  return { element, draw };
}

/** A vessel that fills with what waits. */
function vessel(name: string) {
  const fill = el("div", { class: "fill" });
  const { element, value } = part(name, "queue-part", el("div", { class: "vessel" }, fill));
  const draw = (ms: number | null, scale: Scale) => {
    fill.style.height = `${(100 * Math.min(1, (ms ?? 0) / scale.queue_ms)).toFixed(1)}%`;
    value.textContent = `${formatNumber(ms, 0)} ms`;
  };
  return { element, draw };
}

/** A pipe as wide as the capacity, with what arrives in it. */
function pipe() {
  const flow = el("div", { class: "flow" });
  const walls = el("div", { class: "walls" }, flow);
  const { element, value } = part("link", "link-part", el("div", { class: "pipe" }, walls));
  const draw = ({ capacity_mbps, received_mbps }: Moment, scale: Scale) => {
    const wide = capacity_mbps ?? received_mbps ?? 0;
    const used = wide === 0 ? 0 : Math.min(1, (received_mbps ?? 0) / wide);
    walls.style.height = `${(100 * Math.min(1, wide / scale.mbps)).toFixed(1)}%`;
    flow.style.height = `${(100 * used).toFixed(1)}%`;
    value.textContent =
      capacity_mbps === null ? "capacity unknown" : `carries ${mbps(capacity_mbps)}`;
  };
  return { element, draw };
}
