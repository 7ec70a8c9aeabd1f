// Generated from the types of lab/report by `WEIR_UPDATE=1 cargo test -p weir-report generated`.

/** How a run was made: in simulation, or with real programs. */
export type Engine = "sim" | "call" | "link";

/** One quantity, measured by two witnesses. */
export interface Agreement {
  /** The subject and the place of the measurement: `audio a to b, at a`. */
  subject: string;
  /** `packets`, `payload bytes`, `bytes`, `lost packets` or `mean delay, ms`. */
  quantity: string;
  /** The witness other than the capture: `getStats` or `emulator`. */
  witness: string;
  /** Value of this witness. */
  witnessed: number;
  /** Value of the capture. */
  captured: number;
  /** Witnessed minus captured. */
  error: number;
  /** Largest error at which the two still agree. */
  limit: number;
  /** Whether the error is within the limit. */
  agrees: boolean;
}
