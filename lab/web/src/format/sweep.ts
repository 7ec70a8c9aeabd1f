// Generated from the types of lab/report by `WEIR_UPDATE=1 cargo test -p weir-report generated`.

/** Everything that the report of a sweep shows. `kind` tells the page which report it has. */
export interface SweepReport {
  schema: number;
  /** Always `sweep`. */
  kind: string;
  title: string;
  /** The command that wrote this report. */
  command: string;
  /** Program and version. */
  generator: string;
  /** In the order of legends and tables. */
  controllers: Array<string>;
  /**
   * Metrics that have a value in at least one run. Members named `values` have one entry for
   * each.
   */
  metrics: Array<SweepMetric>;
  runs: number;
  scenarios: Array<SweepScenario>;
}

/** A metric of a run: the mean over its media flows. */
export interface SweepMetric {
  name: string;
  unit: string;
  /** `higher`, `lower` or empty. */
  better: string;
  meaning: string;
}

export interface SweepScenario {
  id: string;
  runs: number;
  seeds: number;
  /** Number of different combinations of the parameters' values. */
  points: number;
  parameters: Array<SweepParameter>;
  maps: Array<HeatMap>;
  /**
   * Mean over the seeds, for each controller and combination of parameters. If there are many, a
   * part of them, which contains every front.
   */
  dots: Array<SweepDot>;
  fronts: Array<FrontRow>;
  worst: Array<WorstRuns>;
}

/** A parameter, and its values or ranges of its values in rising order. */
export interface SweepParameter {
  name: string;
  bins: Array<string>;
}

/** Two parameters against each other; `y` is `null` if the sweep has only one. */
export interface HeatMap {
  /** Index of the parameter. */
  x: number;
  y: number | null;
  cells: Array<HeatCell>;
}

/**
 * The runs of a controller in which both parameters have values of one bin. All numbers but the
 * last two are indices.
 */
export interface HeatCell {
  controller: number;
  x: number;
  y: number;
  runs: number;
  /** Mean of each metric. */
  values: Array<number | null>;
}

/** A controller at one combination of the parameters. */
export interface SweepDot {
  controller: number;
  /** Value of each parameter. */
  at: Array<string>;
  p95_queuing_delay_ms: number;
  utilization: number;
  runs: number;
  /** No other dot of this controller has at least this utilization and at most this delay. */
  on_own_front: boolean;
}

/**
 * How often a controller is on the Pareto front of utilization and delay among the controllers,
 * over all combinations of the parameters.
 */
export interface FrontRow {
  controller: number;
  points: number;
  on_front: number;
  /** The only one on the front: no other has more utilization or less delay. */
  alone: number;
}

/** The worst runs of a controller by one metric, the worst first. */
export interface WorstRuns {
  controller: number;
  /** Index of the metric. */
  metric: number;
  runs: Array<WorstRun>;
}

export interface WorstRun {
  seed: string;
  /** Value of each parameter. */
  at: Array<string>;
  values: Array<number | null>;
  /** The command that makes this run again, with a record. */
  command: string;
}
