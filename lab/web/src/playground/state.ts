// What the reader has chosen. The address's fragment holds all of it, so that a link leads to the same curves.

import { named, option } from "./shell";

/** The drawn capacity has this many steps of equal length. */
export const STEPS = 30;
/** Ranges of the numbers, each with its unit in the name. */
export const LIMITS = {
  duration: { min: 10, max: 300 },
  delay: { min: 0, max: 500 },
  queue: { min: 10, max: 2000 },
  loss: { min: 0, max: 30 },
} as const;
export const CAPACITY = { min: 50, max: 5000, step: 50 };

export interface State {
  /** Id of a scenario of the catalogue; empty for the drawn one. */
  scenario: string;
  /** Capacity of each step, kbit/s. */
  capacity: number[];
  /** Length of the run, s. */
  duration: number;
  /** One-way propagation delay, ms. */
  delay: number;
  /** Limit of the queue, ms at the capacity of the moment. */
  queue: number;
  /** Packets lost before the queue, per cent. */
  loss: number;
  /** Whether a TCP connection shares the link from a third of the run on. */
  tcp: boolean;
  controllers: string[];
  seed: number;
}

export const DEFAULT: State = {
  scenario: "",
  capacity: Array.from({ length: STEPS }, (_, i) => (i >= 10 && i < 20 ? 700 : 2500)),
  duration: 60,
  delay: 25,
  queue: 300,
  loss: 0,
  tcp: false,
  controllers: ["gcc", "sluice"],
  seed: 1,
};

/** The state as a fragment, without `#`. */
export function toFragment(state: State): string {
  const fields = new URLSearchParams();
  if (state.scenario === "") {
    const { capacity, duration, delay, queue, loss, tcp } = state;
    fields.set("capacity", capacity.join(" "));
    Object.entries({ duration, delay, queue, loss }).forEach(([name, value]) =>
      fields.set(name, String(value)),
    );
    if (tcp) fields.set("tcp", "1");
  } else {
    fields.set("scenario", state.scenario);
  }
  fields.set("controllers", state.controllers.join(" "));
  fields.set("seed", String(state.seed));
  return fields.toString();
}

/** The state of a fragment. What is missing or impossible has its default. */
export function ofFragment(fragment: string): State {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const within = (name: keyof typeof LIMITS) => {
    const text = fields.get(name);
    const value = text === null || text === "" ? Number.NaN : Number(text);
    const { min, max } = LIMITS[name];
    return Number.isFinite(value) ? Math.min(max, Math.max(min, value)) : DEFAULT[name];
  };
  const capacity = (fields.get("capacity") ?? "").split(" ").map(Number);
  const isDrawn = capacity.length === STEPS && capacity.every((kbps) => kbps >= CAPACITY.min);
  const controllers = (fields.get("controllers") ?? "").split(" ").filter((name) => name !== "");
  const seed = Number(fields.get("seed") ?? DEFAULT.seed);
  return {
    scenario: fields.get("scenario") ?? "",
    capacity: isDrawn
      ? capacity.map((kbps) => Math.min(kbps, CAPACITY.max))
      : [...DEFAULT.capacity],
    duration: within("duration"),
    delay: within("delay"),
    queue: within("queue"),
    loss: within("loss"),
    tcp: fields.get("tcp") === "1",
    controllers: controllers.length > 0 ? controllers : DEFAULT.controllers,
    seed: Number.isSafeInteger(seed) && seed >= 0 ? seed : DEFAULT.seed,
  };
}

/** The steps of the capacity, as [start in s, kbit/s]; equal neighbours are one step. */
export function capacitySteps({ capacity, duration }: State): [number, number][] {
  const start = (i: number) => Number(((i * duration) / STEPS).toFixed(3));
  return capacity
    .map((kbps, i): [number, number] => [start(i), kbps])
    .filter(([, kbps], i) => i === 0 || kbps !== capacity[i - 1]);
}

/** The drawn scenario as a file for `weir run`. */
export function toScenario(state: State): string {
  const steps = capacitySteps(state).map(([s, kbps]) => `["${s}s", "${kbps}kbps"]`);
  const { duration, delay, queue, loss } = state;
  const tcp = ["", "[[flow]]", 'kind = "tcp"', `start = "${Number((duration / 3).toFixed(3))}s"`];
  return [
    'title = "Drawn in the playground"',
    'source = "the playground of Weir"',
    'description = "A capacity drawn by hand."',
    `duration = "${duration}s"`,
    "",
    "[network.up]",
    `capacity = [${steps.join(", ")}]`,
    `queue = "${queue}ms"`,
    `delay = "${delay}ms"`,
    `loss = "${loss}%"`,
    "",
    "[network.down]",
    `delay = "${delay}ms"`,
    "",
    "[[flow]]",
    'max_bitrate = "5Mbps"',
    'source = { kind = "filler", fps = 30 }',
    ...(state.tcp ? tcp : []),
    "",
  ].join("\n");
}

/** Name of the file that the command expects the drawn scenario in. */
export const DRAWN = "drawn.toml";

/** The command that repeats the runs. */
export function toCommand(state: State): string {
  const scenario = state.scenario === "" ? DRAWN : state.scenario;
  const controllers = option("--controller", state.controllers.join(","));
  return `weir run ${named(scenario)} ${controllers} ${option("--seed", String(state.seed))}`;
}
