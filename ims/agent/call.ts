// A call of two sides with preconditions (TS 24.229, sections 5.1.3 and 5.1.4).

import {
  decorate,
  forBrowser,
  type Direction,
  isDescription,
  preconditions,
  type Resources,
} from "./sdp.ts";
import * as sip from "./sip.ts";
import type { Account, Event, Surroundings } from "./surroundings.ts";

/** What a call uses of the agent whose call it is. */
export interface Line {
  readonly account: Account;
  readonly around: Surroundings;
  readonly serviceRoutes: string[];
  /** Does this when all before it is done. */
  after(action: () => Promise<void> | void): Promise<void>;
  /** A new name that no other message has. */
  unique(prefix: string): string;
  /** A request with what every request has. */
  request(method: string, uri: string, headers: sip.Header[]): sip.Request;
  /** The address under which this side is reached. */
  contact(): string;
  /** Sends a request, and hands its responses on. */
  ask(request: sip.Request, onResponse: (response: sip.Response) => void | Promise<void>): void;
  /** Sends any other message. */
  send(message: sip.Message): void;
  /** The call is over. */
  end(event: Event): void;
}

const SUPPORTED = "100rel, precondition";
/** T1 and T2: first and longest time between repetitions (RFC 3261, section 17.1). */
const [T1_MS, T2_MS] = [500, 4_000];
const PATIENCE_MS = 64 * T1_MS;
/** Number of the only reliable provisional response. */
const RSEQ = "1";

/** A dialog and what has been agreed in it. */
export abstract class Call {
  protected id = "";
  protected local = "";
  protected remote = "";
  protected target = "";
  protected routes: string[] = [];
  protected sequence = 0;
  /** Number of the last request of the other side. */
  private lastSequence = -1;
  protected description = "";
  protected version = 0;
  protected resources: Resources = { local: false, remote: false };
  protected isEstablished = false;
  private repeated = new Map<string, ReturnType<typeof setTimeout>>();
  protected abstract readonly isAnswerer: boolean;

  constructor(protected readonly agent: Line) {}

  abstract hangUp(): void;
  abstract onRequest(request: sip.Request): Promise<void>;

  onRepeatedAnswer(_: sip.Response): void {}

  /** Whether a request belongs to this dialog. CANCEL has no tag of ours yet. */
  isOurs(request: sip.Request): boolean {
    if (sip.header(request, "Call-ID") !== this.id) return false;
    if (request.method === "CANCEL" || request.method === "INVITE") return true;
    const tag = sip.parameter(sip.header(request, "To") ?? "", "tag");
    return tag === sip.parameter(this.local, "tag");
  }

  /** Holds the other party by an UPDATE, or ends that. */
  hold(holds: boolean): void {
    if (!this.isEstablished) return;
    const update = this.within("UPDATE", [["Content-Type", "application/sdp"]]);
    update.body = this.described(holds ? "sendonly" : "sendrecv");
    this.agent.ask(update, (response) => {
      if (response.code === 200) this.agent.around.on({ type: "held", isHeld: holds });
    });
  }

  close(): void {
    for (const timer of this.repeated.values()) clearTimeout(timer);
    this.repeated.clear();
  }

  /** A request within the dialog (RFC 3261, section 12.2.1.1). */
  protected within(method: string, more: sip.Header[] = []): sip.Request {
    if (method !== "ACK") this.sequence += 1;
    const routes = this.routes.map((route): sip.Header => ["Route", route]);
    return this.agent.request(method, this.target, [
      ...routes,
      ["From", this.local],
      ["To", this.remote],
      ["Call-ID", this.id],
      ["CSeq", `${this.sequence} ${method}`],
      ["Contact", this.agent.contact()],
      ["Supported", SUPPORTED],
      ["Allow", "INVITE, ACK, CANCEL, BYE, PRACK, UPDATE"],
      ...more,
    ]);
  }

  protected bye(): void {
    this.agent.ask(this.within("BYE"), () => this.agent.end({ type: "ended", byOtherSide: false }));
  }

  /** Our description at this point of the call. */
  protected described(direction: Direction = "sendrecv"): string {
    this.version += 1;
    const { rates } = this.agent.account;
    const { version, resources, isAnswerer: isAnswer } = this;
    return decorate(this.description, { rates, resources, isAnswer, version, direction });
  }

  /** Takes what the other side says about its resources. Without preconditions they are there. */
  protected read(sdp: string): void {
    this.resources.remote = preconditions(sdp)?.local ?? true;
  }

  /** Sends a response again and again until it is acknowledged (RFC 3262, section 3). */
  protected repeat(key: string, response: sip.Response): void {
    const again = (interval: number, passed: number) => {
      if (passed > PATIENCE_MS) return;
      const timer = setTimeout(() => {
        this.agent.send(response);
        again(Math.min(2 * interval, T2_MS), passed + interval);
      }, interval);
      this.repeated.set(key, timer);
    };
    again(T1_MS, 0);
  }

  protected acknowledged(key: string): void {
    clearTimeout(this.repeated.get(key));
    this.repeated.delete(key);
  }

  /** Requests that both sides answer alike. Returns whether this was one. */
  protected common(request: sip.Request): boolean {
    const { agent } = this;
    const number = sip.sequence(request)?.number ?? 0;
    if (request.method !== "ACK" && request.method !== "CANCEL") {
      if (number < this.lastSequence) {
        // RFC 3261, section 12.2.2: a request that comes out of order.
        agent.send(sip.respond(request, 500, "Out of Order"));
        return true;
      }
      this.lastSequence = number;
    }
    if (request.method === "BYE") {
      agent.send(sip.respond(request, 200, "OK"));
      agent.end({ type: "ended", byOtherSide: true });
      return true;
    }
    if (request.method === "UPDATE") {
      this.onUpdate(request);
      return true;
    }
    return false;
  }

  protected onUpdate(request: sip.Request): void {
    this.read(request.body);
    // RFC 3264, section 6.1: who is only sent to does not send.
    const offered = /^a=(sendonly|inactive)\r?$/m.exec(request.body)?.[1];
    const answers = { sendonly: "recvonly", inactive: "inactive" } as const;
    if (this.isEstablished) {
      const isHeld = offered !== undefined;
      this.agent.around.on({ type: "held", isHeld });
    }
    this.resources.local = true;
    const response = sip.respond(request, 200, "OK");
    response.headers.push(["Contact", this.agent.contact()], ["Content-Type", "application/sdp"]);
    response.body = this.described(answers[offered as keyof typeof answers] ?? "sendrecv");
    this.agent.send(response);
  }
}

/** The side that calls. */
export class Caller extends Call {
  protected readonly isAnswerer = false;
  private first: sip.Request | null = null;
  private hasAnswer = false;
  private hasRung = false;
  private isCancelled = false;
  private hasProvisional = false;

  constructor(agent: Line, target: string) {
    super(agent);
    this.id = agent.unique("call");
    this.local = `<${agent.account.public}>;tag=${agent.unique("t")}`;
    this.remote = `<${target}>`;
    this.target = target;
    this.routes = agent.serviceRoutes;
  }

  async invite(): Promise<void> {
    this.description = await this.agent.around.media.offer();
    const invite = this.within("INVITE", [
      ["P-Preferred-Identity", `<${this.agent.account.public}>`],
      ["Content-Type", "application/sdp"],
    ]);
    invite.body = this.described();
    this.first = invite;
    this.agent.ask(invite, (response) => this.onInviteResponse(response));
  }

  hangUp(): void {
    if (this.isEstablished) return this.bye();
    this.isCancelled = true;
    if (this.hasProvisional) this.cancel();
  }

  /** RFC 3261, section 9.1: not before the first provisional response. */
  private cancel(): void {
    if (this.first) this.agent.ask(copy(this.first, "CANCEL"), () => {});
  }

  private async onInviteResponse(response: sip.Response): Promise<void> {
    const { code } = response;
    if (code < 200) {
      if (!this.hasProvisional) {
        this.hasProvisional = true;
        if (this.isCancelled) return this.cancel();
      }
      if (code > 100) await this.onProvisional(response);
      return;
    }
    if (code >= 300) {
      if (code !== 408) this.acknowledgeRefusal(response);
      return this.agent.end({ type: "failed", code });
    }
    this.take(response);
    await this.readAnswer(response);
    this.isEstablished = true;
    this.acknowledge();
    if (this.isCancelled) return this.bye();
    this.agent.around.on({ type: "established" });
  }

  override onRepeatedAnswer(): void {
    this.acknowledge();
  }

  /** The ACK of a 200 is a request of its own (RFC 3261, section 13.2.2.4). */
  private acknowledge(): void {
    const number = this.first ? sip.sequence(this.first)?.number : 1;
    const ack = this.within("ACK");
    ack.headers = ack.headers.map(([name, value]) =>
      name === "CSeq" ? [name, `${number} ACK`] : [name, value],
    );
    this.agent.send(ack);
  }

  private acknowledgeRefusal(response: sip.Response): void {
    if (!this.first) return;
    const ack = copy(this.first, "ACK");
    const to = sip.header(response, "To") ?? "";
    ack.headers = ack.headers.map(([name, value]) => (name === "To" ? [name, to] : [name, value]));
    this.agent.send(ack);
  }

  /** What a response says about the dialog (RFC 3261, section 12.1.2). */
  private take(response: sip.Response): void {
    this.remote = sip.header(response, "To") ?? this.remote;
    const contact = sip.header(response, "Contact");
    if (contact === undefined) return;
    this.target = sip.addressOf(contact);
    this.routes = sip.list(response, "Record-Route").reverse();
  }

  private async onProvisional(response: sip.Response): Promise<void> {
    this.take(response);
    if (response.code === 180 && !this.hasRung) {
      this.hasRung = true;
      this.agent.around.on({ type: "ringing" });
    }
    const isNew = !this.hasAnswer;
    await this.readAnswer(response);
    const number = sip.header(response, "RSeq");
    const isReliable = sip.list(response, "Require").includes("100rel");
    if (!number || !isReliable || !isNew) return;
    // RFC 3262, section 4.
    const prack = this.within("PRACK", [["RAck", `${number} ${sip.header(response, "CSeq")}`]]);
    this.agent.ask(prack, (final) => this.onPracked(final));
  }

  private async readAnswer(response: sip.Response): Promise<void> {
    if (!isDescription(response.body)) return;
    this.read(response.body);
    if (this.hasAnswer) return;
    this.hasAnswer = true;
    await this.agent.around.media.accept(forBrowser(response.body));
  }

  /** RFC 3312, section 7: the network let the 183 pass, so our resources are there. */
  private onPracked(response: sip.Response): void {
    if (response.code >= 300) return this.hangUp();
    if (response.code < 200) return;
    this.resources.local = true;
    const update = this.within("UPDATE", [
      ["Require", "precondition"],
      ["Content-Type", "application/sdp"],
    ]);
    update.body = this.described();
    this.agent.ask(update, (final) => {
      if (final.code >= 300) return this.hangUp();
      if (final.code < 200) return;
      this.read(final.body);
      this.agent.around.on({ type: "reserved" });
    });
  }

  async onRequest(request: sip.Request): Promise<void> {
    if (this.common(request) || request.method === "ACK") return;
    this.agent.send(sip.respond(request, 405, "Method Not Allowed"));
  }
}

/** The side that is called. */
export class Callee extends Call {
  protected readonly isAnswerer = true;
  private readonly tag: string;
  private hasRung = false;
  private answerTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    agent: Line,
    private readonly first: sip.Request,
  ) {
    super(agent);
    this.tag = agent.unique("t");
    this.id = sip.header(first, "Call-ID") ?? "";
    this.local = `${sip.header(first, "To")};tag=${this.tag}`;
    this.remote = sip.header(first, "From") ?? "";
    this.target = sip.addressOf(sip.header(first, "Contact") ?? "");
    this.routes = sip.list(first, "Record-Route");
  }

  async begin(): Promise<void> {
    const { agent, first } = this;
    if (!isDescription(first.body)) {
      agent.send(sip.respond(first, 488, "Not Acceptable Here", this.tag));
      return agent.end({ type: "failed", code: 488 });
    }
    agent.send(sip.respond(first, 100, "Trying"));
    const from = sip.header(first, "P-Asserted-Identity") ?? this.remote;
    agent.around.on({ type: "incoming", from: sip.addressOf(from) });
    this.read(first.body);
    this.description = await agent.around.media.answer(forBrowser(first.body));
    const options = [...sip.list(first, "Supported"), ...sip.list(first, "Require")];
    if (!options.includes("100rel")) {
      this.resources = { local: true, remote: true };
      return this.ringIfReserved();
    }
    const progress = this.response(183, "Session Progress", [
      ["Require", SUPPORTED],
      ["RSeq", RSEQ],
      ["Content-Type", "application/sdp"],
    ]);
    progress.body = this.described();
    agent.send(progress);
    this.repeat("183", progress);
  }

  /** Refuses or ends: an early call gets 603. */
  hangUp(): void {
    if (this.isEstablished) return this.bye();
    this.agent.send(this.response(603, "Decline", []));
    this.agent.end({ type: "ended", byOtherSide: false });
  }

  override close(): void {
    super.close();
    clearTimeout(this.answerTimer);
  }

  async onRequest(request: sip.Request): Promise<void> {
    const { agent } = this;
    if (this.common(request)) return;
    switch (request.method) {
      case "ACK":
        this.acknowledged("200");
        if (this.isEstablished) return;
        this.isEstablished = true;
        return agent.around.on({ type: "established" });
      case "PRACK":
        this.acknowledged("183");
        agent.send(sip.respond(request, 200, "OK"));
        return this.ringIfReserved();
      case "CANCEL":
        agent.send(sip.respond(request, 200, "OK", this.tag));
        if (this.isEstablished) return;
        agent.send(this.response(487, "Request Terminated", []));
        return agent.end({ type: "ended", byOtherSide: true });
      case "INVITE":
        // The same one again: its last response is repeated anyway.
        return;
      default:
        agent.send(sip.respond(request, 405, "Method Not Allowed"));
    }
  }

  protected override onUpdate(request: sip.Request): void {
    super.onUpdate(request);
    this.ringIfReserved();
  }

  /** RFC 3312, section 8: the user is alerted only when both sides have their resources. */
  private ringIfReserved(): void {
    const { local, remote } = this.resources;
    if (!local || !remote || this.hasRung) return;
    this.hasRung = true;
    const { agent } = this;
    agent.send(this.response(180, "Ringing", []));
    agent.around.on({ type: "reserved" });
    const { onCall } = agent.around;
    if (typeof onCall !== "object" || !("answerAfterMs" in onCall)) return;
    this.answerTimer = setTimeout(
      () => void agent.after(() => this.answer()),
      onCall.answerAfterMs,
    );
  }

  /** The user takes the call. */
  answer(): void {
    const response = this.response(200, "OK", [["Supported", SUPPORTED]]);
    if (this.version === 0) {
      // Without 100rel the answer stands in the 200.
      response.headers.push(["Content-Type", "application/sdp"]);
      response.body = this.described();
    }
    this.agent.send(response);
    this.repeat("200", response);
  }

  private response(code: number, reason: string, more: sip.Header[]): sip.Response {
    const response = sip.respond(this.first, code, reason, this.tag);
    response.headers.push(["Contact", this.agent.contact()], ...more);
    return response;
  }
}

/** A request of the same transaction: CANCEL, or the ACK of a refusal. */
function copy(invite: sip.Request, method: string): sip.Request {
  const copied = ["Via", "Max-Forwards", "Route", "From", "To", "Call-ID"];
  const headers = invite.headers.filter(([name]) => copied.includes(name));
  const number = sip.sequence(invite)?.number ?? 1;
  return { ...invite, method, body: "", headers: [...headers, ["CSeq", `${number} ${method}`]] };
}
