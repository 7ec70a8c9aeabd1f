import type { Browser, LaunchOptions, Page, TestType } from "@playwright/test";
import type {
  PlaywrightTestArgs,
  PlaywrightTestOptions,
  PlaywrightWorkerArgs,
  PlaywrightWorkerOptions,
} from "@playwright/test";

export { expect } from "@playwright/test";

/** What runs on the far host beside the far browser. */
export interface Server {
  /** A shell command. `WEIR_ADDRESS` in its environment is the host's address. */
  command: string;
  /** The TCP port on which it listens. The test begins when it does. */
  port: number;
}

export interface NetworkOptions {
  /** A scenario of Weir: its name in the catalogue, or the path of a TOML file. */
  scenario: string;
  /** The application's server. `page.goto("/")` finds it. */
  server?: Server;
  /** The program. The default is `$WEIR`, or `weir` in the search path. */
  weir?: string;
  /** A folder for a record of each test, which `weir report` reads. */
  records?: string;
  /** Seed of losses and jitter; 1 by default. */
  seed?: number;
}

/** One direction of the link. */
export interface Direction {
  /** In Mbit/s; `null` if it is unlimited. */
  capacity_mbps: number | null;
  /** What passes, in Mbit/s. */
  rate_mbps: number;
  /** Share of the packets that are lost, 0 to 1. */
  loss_ratio: number;
  /** One-way delay without a queue, in ms. */
  delay_ms: number;
  /** Time in the queue, in ms. */
  queuing_delay_ms: number;
}

export interface Status {
  /** Time since the network began, in s. */
  time_s: number;
  /** With queues, in ms. */
  round_trip_ms: number;
  /** The links on the way; up is from `page` to the server. */
  hops: { up: Direction; down: Direction }[];
}

export interface Host {
  /** Starts a browser of Playwright on this host. */
  browser(name: "chromium" | "firefox" | "webkit", options?: LaunchOptions): Promise<Browser>;
  /** Starts a shell command, and waits until it listens on the port. */
  start(command: string, port: number): Promise<void>;
}

/** Two hosts with an emulated path between them. */
export class Network {
  static open(options: NetworkOptions): Promise<Network>;
  /** The host of `page`. */
  readonly near: Host;
  /** The host of the server and of `far`. */
  readonly far: Host;
  /** Where both pages find the server, such as `http://10.45.0.2:9000`. */
  readonly origin: string | undefined;
  /** The link now; five times a second. `undefined` in the first moment. */
  readonly status: Status | undefined;
  /**
   * Changes the link at once: `capacity up 500kbps`, `loss 5%`, `delay down 100ms`, `jitter 10ms`. `capacity 0bps` is
   * an outage. Fails if the line is not understood.
   */
  change(line: string): Promise<void>;
  /**
   * Ends all programs on both hosts. Returns a line for each way in which this machine disturbed the emulated network:
   * times and rates of such a run do not count. The fixture makes annotations `disturbed` of them.
   */
  close(): Promise<string[]>;
}

export interface NetworkFixtures extends NetworkOptions {
  network: Network;
  /** A page on the host of the server, in a browser of its own: the other end of a call. */
  far: Page;
}

/** Playwright's `test`, with `page` on a host behind the scenario's link. */
export const test: TestType<
  PlaywrightTestArgs & PlaywrightTestOptions & NetworkFixtures,
  PlaywrightWorkerArgs & PlaywrightWorkerOptions
>;
