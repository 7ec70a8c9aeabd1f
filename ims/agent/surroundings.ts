// What an agent is given: its account, and the socket and the media of its page.

import type { Credentials } from "./digest.ts";
import type { Rates } from "./sdp.ts";

/** Who the agent is. */
export interface Account {
  /** Private identity, such as `alice@ims.test`. */
  private: string;
  /** Public identity that registers and calls, such as `sip:alice@ims.test`. */
  public: string;
  /** Domain of the home network. */
  realm: string;
  /** Address of the terminal: the network's store of contacts knows only addresses. */
  address: string;
  /** Password, keys of AKA, or a token of the operator's authorization server (RFC 8898). */
  credentials: Credentials | { token: string };
  /** What this side wants to receive, in kbit/s by kind of medium. */
  rates: Rates;
}

/** The media of a call. A page makes it from an RTCPeerConnection. */
export interface Media {
  /** The offer, with all candidates. */
  offer(): Promise<string>;
  /** The answer to an offer, with all candidates. */
  answer(offer: string): Promise<string>;
  /** The other side's answer has come. */
  accept(answer: string): Promise<void>;
}

/** What the registrar says of one public identity. */
export interface Binding {
  identity: string;
  /** `init`, `active` or `terminated` (RFC 3680, section 5.2.2). */
  state: string;
  /** What happened to its contact, such as `registered` or `expired`; empty without a contact. */
  event: string;
}

/** What an agent does with an incoming call. */
export type OnCall = { answerAfterMs: number } | { refuse: number } | "ring";

export type Event =
  | { type: "registered"; identities: string[] }
  | { type: "deregistered" }
  | { type: "not-registered"; why: string }
  | { type: "registrations"; bindings: Binding[] }
  | { type: "incoming"; from: string }
  | { type: "reserved" }
  | { type: "ringing" }
  | { type: "established" }
  | { type: "held"; isHeld: boolean }
  | { type: "ended"; byOtherSide: boolean }
  | { type: "failed"; code: number };

/** What an agent needs from its surroundings. */
export interface Surroundings {
  /** Sends a message to the P-CSCF. */
  send(text: string): void;
  /** Takes what has happened. */
  on(event: Event): void;
  media: Media;
  onCall: OnCall;
  /** Random text for tags, branches and Call-IDs. */
  random(): string;
}
