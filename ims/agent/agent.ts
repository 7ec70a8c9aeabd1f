// A SIP user agent of an IMS over a WebSocket (RFC 7118): one registration and one call at a time, with
// reliable provisional responses (RFC 3262), UPDATE (RFC 3311) and preconditions (RFC 3312).
//
//   caller: INVITE -> 183 -> PRACK -> UPDATE -> 180 -> 200 -> ACK ... BYE
//
// It has no socket and no media of its own: the page gives it both, so that it runs in Node too.

import { Callee, Caller, type Call, type Line } from "./call.ts";
import { authorization, challenge } from "./digest.ts";
import * as sip from "./sip.ts";
import { bindings, subscription } from "./state.ts";
import type { Account, Event, Surroundings } from "./surroundings.ts";

/** 64 T1: a request without answer has failed (RFC 3261, section 17.1.2.2). */
const PATIENCE_MS = 32_000;
/** A caller waits longer for the answer of a person. */
const INVITE_PATIENCE_MS = 180_000;
const REQUEST_TIMEOUT = 408;
/** Most messages that wait for a new connection. */
const MOST_WAITING = 100;

interface Transaction {
  onResponse(response: sip.Response): void | Promise<void>;
  timer: ReturnType<typeof setTimeout>;
}

/** The agent. All its work is done in the order in which it came. */
export class Agent implements Line {
  private readonly open = new Map<string, Transaction>();
  private queue: Promise<void> = Promise.resolve();
  private count = 0;
  private readonly registerId: string;
  serviceRoutes: string[] = [];
  /** Whether the agent has subscribed to the state of its registration. */
  private isWatching = false;
  /** Whether the agent itself ends its registration. */
  private isLeaving = false;
  call: Call | null = null;
  /** Seconds of the last REGISTER; 0 without registration. */
  private expires = 0;
  /** What waits for a new connection and its registration; `null` while there is one. */
  private waiting: sip.Message[] | null = null;
  /** Whether the new connection is there, and its registration is not. */
  private isReturning = false;

  constructor(
    readonly account: Account,
    readonly around: Surroundings,
  ) {
    this.registerId = around.random();
  }

  /** A text has come from the P-CSCF. What is no message is left out. */
  receive(text: string): Promise<void> {
    return this.after(async () => {
      const message = sip.parse(text);
      if (message?.kind === "response") await this.onResponse(message);
      else if (message) await this.onRequest(message);
    });
  }

  /** Registers for this many seconds; 0 ends the registration. */
  register(expires: number): Promise<void> {
    return this.after(() => this.sendRegister(expires, null));
  }

  /** The connection is lost. What is sent from now on waits for the next one; the call stands. */
  disconnected(): void {
    this.waiting ??= [];
    this.isReturning = false;
  }

  /** There is a new connection: registers on it (RFC 5626, section 4.5), and then sends what has waited. */
  reconnected(): void {
    if (this.expires === 0) return this.release();
    this.isReturning = true;
    this.sendRegister(this.expires, null);
  }

  private release(): void {
    const waiting = this.waiting ?? [];
    this.waiting = null;
    this.isReturning = false;
    for (const message of waiting) this.send(message);
  }

  /** Calls an identity. Does nothing while another call stands. */
  dial(target: string): Promise<void> {
    return this.after(async () => {
      if (this.call) return;
      const caller = new Caller(this, target);
      this.call = caller;
      await caller.invite();
    });
  }

  /** Ends the call: CANCEL before its answer, BYE after it. */
  hangUp(): Promise<void> {
    return this.after(async () => this.call?.hangUp());
  }

  /** Holds the other party, or ends that: an UPDATE (RFC 3311; TS 24.610, section 4.5.2). */
  hold(holds: boolean): Promise<void> {
    return this.after(async () => this.call?.hold(holds));
  }

  /** Does this when all before it is done. An error in it is the call's end, not the agent's. */
  after(action: () => Promise<void> | void): Promise<void> {
    this.queue = this.queue.then(action).catch(() => {
      if (this.call) this.end({ type: "failed", code: 500 });
    });
    return this.queue;
  }

  /** A new name that no other message has. */
  unique(prefix: string): string {
    this.count += 1;
    return `${prefix}${this.around.random()}${this.count}`;
  }

  /** A request with what every request has (RFC 3261, section 8.1.1; RFC 7118, section 5.2.1). */
  request(method: string, uri: string, headers: sip.Header[]): sip.Request {
    const via = `SIP/2.0/WSS ${this.account.address};branch=${this.unique("z9hG4bK")};rport`;
    const own: sip.Header[] = [
      ["Via", via],
      ["Max-Forwards", "70"],
    ];
    return { kind: "request", method, uri, headers: [...own, ...headers], body: "" };
  }

  contact(): string {
    const user = this.account.private.split("@")[0];
    return `<sip:${user}@${this.account.address};transport=ws>`;
  }

  /** Sends a request. Without an answer in time its responses end with a 408. */
  ask(request: sip.Request, onResponse: Transaction["onResponse"]): void {
    const branch = sip.parameter(sip.header(request, "Via") ?? "", "branch") ?? "";
    const key = `${branch} ${request.method}`;
    const patience = request.method === "INVITE" ? INVITE_PATIENCE_MS : PATIENCE_MS;
    const timeout = () => {
      if (!this.open.delete(key)) return;
      const response = sip.respond(request, REQUEST_TIMEOUT, "Request Timeout");
      void this.after(() => onResponse(response));
    };
    this.open.set(key, { onResponse, timer: setTimeout(timeout, patience) });
    this.send(request);
  }

  send(message: sip.Message): void {
    const isRegister = message.kind === "request" && message.method === "REGISTER";
    if (this.waiting && !(this.isReturning && isRegister)) {
      if (this.waiting.length < MOST_WAITING) this.waiting.push(message);
      return;
    }
    this.around.send(sip.write(message));
  }

  /** The call is over. */
  end(event: Event): void {
    this.call?.close();
    this.call = null;
    this.around.on(event);
  }

  private async onResponse(response: sip.Response): Promise<void> {
    const branch = sip.parameter(sip.header(response, "Via") ?? "", "branch") ?? "";
    const method = sip.sequence(response)?.method ?? "";
    const key = `${branch} ${method}`;
    const transaction = this.open.get(key);
    if (!transaction) {
      // A second 200 to an INVITE wants its ACK again (RFC 3261, section 13.2.2.4).
      if (method === "INVITE" && response.code < 300) this.call?.onRepeatedAnswer(response);
      return;
    }
    if (response.code >= 200) {
      clearTimeout(transaction.timer);
      this.open.delete(key);
    }
    await transaction.onResponse(response);
  }

  private async onRequest(request: sip.Request): Promise<void> {
    const isOurs = this.call?.isOurs(request) ?? false;
    if (isOurs) return this.call?.onRequest(request);
    switch (request.method) {
      case "INVITE":
        return this.onInvite(request);
      case "ACK":
        return;
      case "NOTIFY":
        return this.onNotify(request);
      case "OPTIONS":
        return this.send(sip.respond(request, 200, "OK", this.unique("t")));
      default:
        this.send(sip.respond(request, 481, "Call Does Not Exist", this.unique("t")));
    }
  }

  private onNotify(request: sip.Request): void {
    if (sip.header(request, "Event") !== "reg") {
      return this.send(sip.respond(request, 489, "Bad Event", this.unique("t")));
    }
    this.send(sip.respond(request, 200, "OK", this.unique("t")));
    const all = bindings(request.body);
    this.around.on({ type: "registrations", bindings: all });
    // TS 24.229, section 5.1.1.7: the network has ended the registration.
    const own = all.find(({ identity }) => identity === this.account.public);
    if (own?.state === "terminated" && !this.isLeaving && this.serviceRoutes.length > 0) {
      this.serviceRoutes = [];
      this.isWatching = false;
      this.around.on({ type: "deregistered" });
    }
  }

  /** TS 24.229, section 5.1.1.3: a terminal that is registered subscribes to the state of it, once. */
  private watch(): void {
    if (this.isWatching) return;
    this.isWatching = true;
    this.ask(subscription(this, ++this.count), ({ code }) => {
      // The registration stands all the same.
      if (code >= 300) this.isWatching = false;
    });
  }

  private async onInvite(request: sip.Request): Promise<void> {
    const { onCall } = this.around;
    if (this.call) return this.send(sip.respond(request, 486, "Busy Here", this.unique("t")));
    if (typeof onCall === "object" && "refuse" in onCall) {
      return this.send(sip.respond(request, onCall.refuse, "Refused", this.unique("t")));
    }
    const callee = new Callee(this, request);
    this.call = callee;
    await callee.begin();
  }

  private sendRegister(expires: number, answer: string | null): void {
    const { account } = this;
    this.isLeaving = expires === 0;
    this.expires = expires;
    const uri = `sip:${account.realm}`;
    const headers: sip.Header[] = [
      ["From", `<${account.public}>;tag=${this.unique("t")}`],
      ["To", `<${account.public}>`],
      ["Call-ID", this.registerId],
      ["CSeq", `${++this.count} REGISTER`],
      ["Contact", `${this.contact()};expires=${expires}`],
      ["Expires", String(expires)],
      ["Supported", "path"],
      ["Authorization", answer ?? this.firstAuthorization(uri)],
    ];
    this.ask(this.request("REGISTER", uri, headers), (response) =>
      this.onRegistered(response, expires, answer !== null),
    );
  }

  /** TS 24.229, section 5.1.1.2: the private identity goes with the first REGISTER already. */
  private firstAuthorization(uri: string): string {
    const { account } = this;
    // RFC 8898, section 2; TS 24.371, section A.3.2.
    if ("token" in account.credentials) return `Bearer access_token="${account.credentials.token}"`;
    const algorithm = "aka" in account.credentials ? "AKAv1-MD5" : "MD5";
    return (
      `Digest username="${account.private}",realm="${account.realm}",nonce="",uri="${uri}",` +
      `response="",algorithm=${algorithm}`
    );
  }

  private async onRegistered(
    response: sip.Response,
    expires: number,
    hasAnswered: boolean,
  ): Promise<void> {
    const { code } = response;
    const { credentials } = this.account;
    if (code < 200) return;
    if (code < 300) {
      // RFC 3608, section 5: the way of all requests that start a dialog.
      this.serviceRoutes = expires === 0 ? [] : sip.list(response, "Service-Route");
      if (expires === 0) {
        this.isWatching = false;
        return this.around.on({ type: "deregistered" });
      }
      if (this.isReturning) this.release();
      const identities = sip.list(response, "P-Associated-URI").map(sip.addressOf);
      this.around.on({ type: "registered", identities });
      return this.watch();
    }
    if (code !== 401 || hasAnswered || "token" in credentials) {
      return this.notRegistered(`status ${code}`);
    }
    try {
      const asked = challenge(sip.header(response, "WWW-Authenticate") ?? "");
      if (!asked) throw new Error("401 without a challenge of Digest");
      const uri = `sip:${this.account.realm}`;
      const [username, cnonce] = [this.account.private, this.unique("c")];
      const answer = await authorization(
        { username, method: "REGISTER", uri, cnonce },
        asked,
        credentials,
      );
      this.sendRegister(expires, answer);
    } catch (error) {
      this.notRegistered((error as Error).message);
    }
  }

  private notRegistered(why: string): void {
    // Requests of a standing call need no registration.
    if (this.isReturning) this.release();
    this.around.on({ type: "not-registered", why });
  }
}
