// Generated from the types of lab/report by `WEIR_UPDATE=1 cargo test -p weir-report generated`.

/** What a forwarding server sent to its subscribers over one run. */
export interface Forwarding {
  /** The command that repeats the run. */
  command: string;
  controller: string;
  duration_s: number;
  /** Layers of the publisher that has most. */
  layers: number;
  lanes: Array<ForwardedLane>;
  /** Chosen and switched layers, and pauses, by time. */
  choices: Array<LayerChoice>;
  /** Whether there were more lanes or choices than these. */
  is_cut: boolean;
}

/** One publisher's picture on its way to one subscriber. */
export interface ForwardedLane {
  /** The subscriber. */
  flow: string;
  publisher: string;
  spans: Array<ForwardedSpan>;
}

/** A time in which one layer was sent. */
export interface ForwardedSpan {
  from_s: number;
  to_s: number;
  /** From 0, the smallest; `null`: nothing was sent. */
  layer: number | null;
  /** Why it was chosen; empty at the start. */
  reason: string;
}

/** A decision about a layer. */
export interface LayerChoice {
  time_s: number;
  flow: string;
  publisher: string;
  /** `chosen`, `switched` or `cut`. */
  decision: string;
  from: number | null;
  /** `null`: a pause. */
  to: number | null;
  reason: string;
  /** What all pictures could take at that moment. */
  budget_kbps: number;
  /** What all pictures need after the decision. */
  needed_kbps: number;
}
