// Generated from the types of lab/report by `WEIR_UPDATE=1 cargo test -p weir-report generated`.

/** The messages of a call between the parts of an IMS, and how long its phases took. */
export interface Signalling {
  /** Both users; with a scenario, its name and the seed too. */
  title: string;
  /** The terminals and parts, in the order in which they appear. */
  parts: Array<string>;
  phases: Array<Phase>;
  /** In the order of time. */
  messages: Array<SignallingMessage>;
}

/** A phase of a call, such as from INVITE to 180. */
export interface Phase {
  name: string;
  duration_ms: number;
}

/** A message between two parts. */
export interface SignallingMessage {
  /** Since the first message. */
  time_ms: number;
  from: string;
  to: string;
  /** `SIP`, `Diameter`, `HTTP` or `bearer`; `media` for the first picture. */
  protocol: string;
  /** Method, status or command. */
  name: string;
  text: string;
}
