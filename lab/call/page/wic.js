// Made from ims/agent by `npm run build` in lab/web. Do not change it here.

// ../../ims/agent/sdp.ts
var OPUS_HEADERS = 32;
var VIDEO_HEADERS = 0.06;
var LOWEST_OPUS = 6;
function sections(sdp) {
  const session = [];
  const media = [];
  for (const line of sdp.split(/\r?\n/).filter((line2) => line2 !== "")) {
    const last = media.at(-1);
    if (line.startsWith("m=")) media.push({ first: line, lines: [] });
    else (last?.lines ?? session).push(line);
  }
  return { session, media };
}
function decorate(sdp, wanted) {
  const { session, media } = sections(sdp);
  const isConnection = (line) => line.startsWith("c=");
  const connection = media.flatMap(({ lines: lines2 }) => lines2).find(isConnection);
  const head = session.filter((line) => !line.startsWith("a=group:BUNDLE")).map(
    (line) => line.replace(/^(o=\S+ \S+) \d+/, (_, before) => `${before} ${wanted.version}`)
  );
  if (connection && !head.some(isConnection)) {
    const name = head.findIndex((line) => line.startsWith("s="));
    head.splice(name + 1, 0, connection);
  }
  const lines = media.flatMap((section) => [section.first, ...decorated(section, wanted)]);
  return `${[...head, ...lines].join("\r\n")}\r
`;
}
function decorated({ first, lines }, wanted) {
  const kind = first.slice(2).split(" ")[0] ?? "";
  const isOld = (line) => /^a=(curr|des|conf):qos /.test(line) || line.startsWith("b=") || line === "a=bundle-only";
  const kept = lines.filter((line) => !isOld(line)).map((line) => line === "a=sendrecv" ? `a=${wanted.direction ?? "sendrecv"}` : line);
  const wantedRate = wanted.rates[kind];
  const rate = wantedRate === void 0 ? void 0 : withHeaders(wantedRate, { first, lines });
  const at = kept.findIndex((line) => !/^[ic]=/.test(line));
  kept.splice(at < 0 ? kept.length : at, 0, ...rate === void 0 ? [] : [`b=AS:${rate}`]);
  const state = (isThere) => isThere ? "sendrecv" : "none";
  const { resources, isAnswer } = wanted;
  kept.push(
    `a=curr:qos local ${state(resources.local)}`,
    `a=curr:qos remote ${state(resources.remote)}`,
    "a=des:qos mandatory local sendrecv",
    `a=des:qos ${isAnswer ? "mandatory" : "optional"} remote sendrecv`
  );
  if (isAnswer && !resources.remote) kept.push("a=conf:qos remote sendrecv");
  return kept;
}
function isOpus(first, lines) {
  const type = /^m=audio \S+ \S+ (\d+)/.exec(first)?.[1];
  return lines.some((line) => line.toLowerCase().startsWith(`a=rtpmap:${type} opus/`));
}
function withHeaders(rate, { first, lines }) {
  if (first.startsWith("m=video ")) return Math.ceil(rate * (1 + VIDEO_HEADERS));
  return isOpus(first, lines) ? rate + OPUS_HEADERS : rate;
}
function withoutHeaders(rate, { first, lines }) {
  if (first.startsWith("m=video ")) return Math.floor(rate / (1 + VIDEO_HEADERS));
  return isOpus(first, lines) ? Math.max(LOWEST_OPUS, rate - OPUS_HEADERS) : rate;
}
function forBrowser(sdp) {
  const parts = sdp.split(/^(?=m=)/m);
  const limited = parts.map((part) => {
    const [first = "", ...lines] = part.split(/\r?\n/);
    return part.replace(/^b=AS:(\d+)/m, (_, rate) => {
      return `b=AS:${withoutHeaders(Number(rate), { first, lines })}`;
    });
  });
  return limited.join("");
}
function preconditions(sdp) {
  const lines = sdp.split(/\r?\n/);
  const has = (line) => lines.includes(line);
  if (!lines.some((line) => line.startsWith("a=curr:qos "))) return null;
  return {
    local: !has("a=curr:qos local none"),
    remote: !has("a=curr:qos remote none"),
    asksConfirmation: has("a=conf:qos remote sendrecv")
  };
}
function isDescription(sdp) {
  return /^v=0\r?\n/.test(sdp) && /^m=(audio|video|application) \d{1,5} /m.test(sdp);
}

// ../../ims/agent/sip.ts
var MOST_CHARACTERS = 65536;
var MOST_HEADERS = 200;
var COMPACT = {
  b: "Referred-By",
  c: "Content-Type",
  e: "Content-Encoding",
  f: "From",
  i: "Call-ID",
  k: "Supported",
  l: "Content-Length",
  m: "Contact",
  o: "Event",
  s: "Subject",
  t: "To",
  u: "Allow-Events",
  v: "Via"
};
function parse(text) {
  if (text.length > MOST_CHARACTERS) return null;
  const end = /\r?\n\r?\n/.exec(text);
  if (!end) return null;
  const head = text.slice(0, end.index).replace(/\r?\n[ \t]+/g, " ");
  const [first = "", ...lines] = head.split(/\r?\n/);
  if (lines.length > MOST_HEADERS) return null;
  const headers = [];
  for (const line of lines) {
    const at = line.indexOf(":");
    const name = line.slice(0, at).trim();
    if (at < 1 || !/^[\w.!%*+`'~-]+$/.test(name)) return null;
    headers.push([COMPACT[name.toLowerCase()] ?? name, line.slice(at + 1).trim()]);
  }
  const rest = text.slice(end.index + end[0].length);
  const message = start(first, headers, rest);
  if (!message || !isWhole(message)) return null;
  return message;
}
function start(line, headers, rest) {
  const status = /^SIP\/2\.0 ([1-6]\d\d) ?(.*)$/.exec(line);
  const body = cut(rest, headers);
  if (body === null) return null;
  if (status) {
    const [, code = "", reason = ""] = status;
    return { kind: "response", code: Number(code), reason, headers, body };
  }
  const request = /^([A-Z][A-Za-z.!%*_+`'~-]*) (\S+) SIP\/2\.0$/.exec(line);
  if (!request) return null;
  const [, method = "", uri = ""] = request;
  return { kind: "request", method, uri, headers, body };
}
function cut(rest, headers) {
  const given = headers.find(([name]) => name.toLowerCase() === "content-length")?.[1];
  if (given === void 0) return rest;
  if (!/^\d{1,6}$/.test(given)) return null;
  const bytes = new TextEncoder().encode(rest);
  if (bytes.length < Number(given)) return null;
  return new TextDecoder().decode(bytes.slice(0, Number(given)));
}
function isWhole(message) {
  const needed = ["Via", "From", "To", "Call-ID"];
  return needed.every((name) => header(message, name)) && sequence(message) !== null;
}
function write(message) {
  const first = message.kind === "request" ? `${message.method} ${message.uri} SIP/2.0` : `SIP/2.0 ${message.code} ${message.reason}`;
  const length = new TextEncoder().encode(message.body).length;
  const headers = message.headers.filter(([name]) => name.toLowerCase() !== "content-length");
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  return [first, ...lines, `Content-Length: ${length}`, "", message.body].join("\r\n");
}
function header(message, name) {
  return all(message, name)[0];
}
function all(message, name) {
  const wanted = name.toLowerCase();
  return message.headers.filter(([of]) => of.toLowerCase() === wanted).map(([, value]) => value);
}
function list(message, name) {
  return all(message, name).flatMap((value) => split(value, ",")).filter((value) => value !== "");
}
function split(text, at) {
  const parts = [];
  let [part, quoted, depth] = ["", false, 0];
  for (let index = 0; index < text.length; index++) {
    const c = text.charAt(index);
    if (quoted && c === "\\") {
      part += c + text.charAt(++index);
      continue;
    }
    if (c === '"') quoted = !quoted;
    if (!quoted && c === "<") depth++;
    if (!quoted && c === ">") depth = Math.max(0, depth - 1);
    if (c === at && !quoted && depth === 0) {
      parts.push(part.trim());
      part = "";
    } else part += c;
  }
  return [...parts, part.trim()];
}
function addressOf(value) {
  const bracketed = /<([^<>]*)>/.exec(value)?.[1];
  return bracketed ?? (split(value, ";")[0] ?? "").trim();
}
function parameter(value, name) {
  const parts = split(value, ";").slice(1);
  const wanted = `${name.toLowerCase()}=`;
  const found = parts.find((part) => part.toLowerCase().startsWith(wanted));
  return found?.slice(wanted.length);
}
function sequence(message) {
  const found = /^(\d{1,10})\s+([A-Za-z.!%*_+`'~-]+)$/.exec(header(message, "CSeq") ?? "");
  return found ? { number: Number(found[1]), method: found[2] ?? "" } : null;
}
function respond(request, code, reason, tag) {
  const copied = ["Via", "Record-Route", "From", "To", "Call-ID", "CSeq"];
  const headers = request.headers.filter(([name]) => copied.some((of) => of.toLowerCase() === name.toLowerCase())).map(([name, value]) => {
    const isBare = name.toLowerCase() === "to" && parameter(value, "tag") === void 0;
    return [name, isBare && tag ? `${value};tag=${tag}` : value];
  });
  return { kind: "response", code, reason, headers, body: "" };
}

// ../../ims/agent/call.ts
var SUPPORTED = "100rel, precondition";
var [T1_MS, T2_MS] = [500, 4e3];
var PATIENCE_MS = 64 * T1_MS;
var RSEQ = "1";
var Call = class {
  constructor(agent) {
    this.agent = agent;
  }
  agent;
  id = "";
  local = "";
  remote = "";
  target = "";
  routes = [];
  sequence = 0;
  /** Number of the last request of the other side. */
  lastSequence = -1;
  description = "";
  version = 0;
  resources = { local: false, remote: false };
  isEstablished = false;
  repeated = /* @__PURE__ */ new Map();
  onRepeatedAnswer(_) {
  }
  /** Whether a request belongs to this dialog. CANCEL has no tag of ours yet. */
  isOurs(request) {
    if (header(request, "Call-ID") !== this.id) return false;
    if (request.method === "CANCEL" || request.method === "INVITE") return true;
    const tag = parameter(header(request, "To") ?? "", "tag");
    return tag === parameter(this.local, "tag");
  }
  /** Holds the other party by an UPDATE, or ends that. */
  hold(holds) {
    if (!this.isEstablished) return;
    const update = this.within("UPDATE", [["Content-Type", "application/sdp"]]);
    update.body = this.described(holds ? "sendonly" : "sendrecv");
    this.agent.ask(update, (response) => {
      if (response.code === 200) this.agent.around.on({ type: "held", isHeld: holds });
    });
  }
  close() {
    for (const timer of this.repeated.values()) clearTimeout(timer);
    this.repeated.clear();
  }
  /** A request within the dialog (RFC 3261, section 12.2.1.1). */
  within(method, more = []) {
    if (method !== "ACK") this.sequence += 1;
    const routes = this.routes.map((route) => ["Route", route]);
    return this.agent.request(method, this.target, [
      ...routes,
      ["From", this.local],
      ["To", this.remote],
      ["Call-ID", this.id],
      ["CSeq", `${this.sequence} ${method}`],
      ["Contact", this.agent.contact()],
      ["Supported", SUPPORTED],
      ["Allow", "INVITE, ACK, CANCEL, BYE, PRACK, UPDATE"],
      ...more
    ]);
  }
  bye() {
    this.agent.ask(this.within("BYE"), () => this.agent.end({ type: "ended", byOtherSide: false }));
  }
  /** Our description at this point of the call. */
  described(direction = "sendrecv") {
    this.version += 1;
    const { rates } = this.agent.account;
    const { version, resources, isAnswerer: isAnswer } = this;
    return decorate(this.description, { rates, resources, isAnswer, version, direction });
  }
  /** Takes what the other side says about its resources. Without preconditions they are there. */
  read(sdp) {
    this.resources.remote = preconditions(sdp)?.local ?? true;
  }
  /** Sends a response again and again until it is acknowledged (RFC 3262, section 3). */
  repeat(key, response) {
    const again = (interval, passed) => {
      if (passed > PATIENCE_MS) return;
      const timer = setTimeout(() => {
        this.agent.send(response);
        again(Math.min(2 * interval, T2_MS), passed + interval);
      }, interval);
      this.repeated.set(key, timer);
    };
    again(T1_MS, 0);
  }
  acknowledged(key) {
    clearTimeout(this.repeated.get(key));
    this.repeated.delete(key);
  }
  /** Requests that both sides answer alike. Returns whether this was one. */
  common(request) {
    const { agent } = this;
    const number = sequence(request)?.number ?? 0;
    if (request.method !== "ACK" && request.method !== "CANCEL") {
      if (number < this.lastSequence) {
        agent.send(respond(request, 500, "Out of Order"));
        return true;
      }
      this.lastSequence = number;
    }
    if (request.method === "BYE") {
      agent.send(respond(request, 200, "OK"));
      agent.end({ type: "ended", byOtherSide: true });
      return true;
    }
    if (request.method === "UPDATE") {
      this.onUpdate(request);
      return true;
    }
    return false;
  }
  onUpdate(request) {
    this.read(request.body);
    const offered = /^a=(sendonly|inactive)\r?$/m.exec(request.body)?.[1];
    const answers = { sendonly: "recvonly", inactive: "inactive" };
    if (this.isEstablished) {
      const isHeld = offered !== void 0;
      this.agent.around.on({ type: "held", isHeld });
    }
    this.resources.local = true;
    const response = respond(request, 200, "OK");
    response.headers.push(["Contact", this.agent.contact()], ["Content-Type", "application/sdp"]);
    response.body = this.described(answers[offered] ?? "sendrecv");
    this.agent.send(response);
  }
};
var Caller = class extends Call {
  isAnswerer = false;
  first = null;
  hasAnswer = false;
  hasRung = false;
  isCancelled = false;
  hasProvisional = false;
  constructor(agent, target) {
    super(agent);
    this.id = agent.unique("call");
    this.local = `<${agent.account.public}>;tag=${agent.unique("t")}`;
    this.remote = `<${target}>`;
    this.target = target;
    this.routes = agent.serviceRoutes;
  }
  async invite() {
    this.description = await this.agent.around.media.offer();
    const invite = this.within("INVITE", [
      ["P-Preferred-Identity", `<${this.agent.account.public}>`],
      ["Content-Type", "application/sdp"]
    ]);
    invite.body = this.described();
    this.first = invite;
    this.agent.ask(invite, (response) => this.onInviteResponse(response));
  }
  hangUp() {
    if (this.isEstablished) return this.bye();
    this.isCancelled = true;
    if (this.hasProvisional) this.cancel();
  }
  /** RFC 3261, section 9.1: not before the first provisional response. */
  cancel() {
    if (this.first) this.agent.ask(copy(this.first, "CANCEL"), () => {
    });
  }
  async onInviteResponse(response) {
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
  onRepeatedAnswer() {
    this.acknowledge();
  }
  /** The ACK of a 200 is a request of its own (RFC 3261, section 13.2.2.4). */
  acknowledge() {
    const number = this.first ? sequence(this.first)?.number : 1;
    const ack = this.within("ACK");
    ack.headers = ack.headers.map(
      ([name, value]) => name === "CSeq" ? [name, `${number} ACK`] : [name, value]
    );
    this.agent.send(ack);
  }
  acknowledgeRefusal(response) {
    if (!this.first) return;
    const ack = copy(this.first, "ACK");
    const to = header(response, "To") ?? "";
    ack.headers = ack.headers.map(([name, value]) => name === "To" ? [name, to] : [name, value]);
    this.agent.send(ack);
  }
  /** What a response says about the dialog (RFC 3261, section 12.1.2). */
  take(response) {
    this.remote = header(response, "To") ?? this.remote;
    const contact = header(response, "Contact");
    if (contact === void 0) return;
    this.target = addressOf(contact);
    this.routes = list(response, "Record-Route").reverse();
  }
  async onProvisional(response) {
    this.take(response);
    if (response.code === 180 && !this.hasRung) {
      this.hasRung = true;
      this.agent.around.on({ type: "ringing" });
    }
    const isNew = !this.hasAnswer;
    await this.readAnswer(response);
    const number = header(response, "RSeq");
    const isReliable = list(response, "Require").includes("100rel");
    if (!number || !isReliable || !isNew) return;
    const prack = this.within("PRACK", [["RAck", `${number} ${header(response, "CSeq")}`]]);
    this.agent.ask(prack, (final) => this.onPracked(final));
  }
  async readAnswer(response) {
    if (!isDescription(response.body)) return;
    this.read(response.body);
    if (this.hasAnswer) return;
    this.hasAnswer = true;
    await this.agent.around.media.accept(forBrowser(response.body));
  }
  /** RFC 3312, section 7: the network let the 183 pass, so our resources are there. */
  onPracked(response) {
    if (response.code >= 300) return this.hangUp();
    if (response.code < 200) return;
    this.resources.local = true;
    const update = this.within("UPDATE", [
      ["Require", "precondition"],
      ["Content-Type", "application/sdp"]
    ]);
    update.body = this.described();
    this.agent.ask(update, (final) => {
      if (final.code >= 300) return this.hangUp();
      if (final.code < 200) return;
      this.read(final.body);
      this.agent.around.on({ type: "reserved" });
    });
  }
  async onRequest(request) {
    if (this.common(request) || request.method === "ACK") return;
    this.agent.send(respond(request, 405, "Method Not Allowed"));
  }
};
var Callee = class extends Call {
  constructor(agent, first) {
    super(agent);
    this.first = first;
    this.tag = agent.unique("t");
    this.id = header(first, "Call-ID") ?? "";
    this.local = `${header(first, "To")};tag=${this.tag}`;
    this.remote = header(first, "From") ?? "";
    this.target = addressOf(header(first, "Contact") ?? "");
    this.routes = list(first, "Record-Route");
  }
  first;
  isAnswerer = true;
  tag;
  hasRung = false;
  answerTimer;
  async begin() {
    const { agent, first } = this;
    if (!isDescription(first.body)) {
      agent.send(respond(first, 488, "Not Acceptable Here", this.tag));
      return agent.end({ type: "failed", code: 488 });
    }
    agent.send(respond(first, 100, "Trying"));
    const from = header(first, "P-Asserted-Identity") ?? this.remote;
    agent.around.on({ type: "incoming", from: addressOf(from) });
    this.read(first.body);
    this.description = await agent.around.media.answer(forBrowser(first.body));
    const options = [...list(first, "Supported"), ...list(first, "Require")];
    if (!options.includes("100rel")) {
      this.resources = { local: true, remote: true };
      return this.ringIfReserved();
    }
    const progress = this.response(183, "Session Progress", [
      ["Require", SUPPORTED],
      ["RSeq", RSEQ],
      ["Content-Type", "application/sdp"]
    ]);
    progress.body = this.described();
    agent.send(progress);
    this.repeat("183", progress);
  }
  /** Refuses or ends: an early call gets 603. */
  hangUp() {
    if (this.isEstablished) return this.bye();
    this.agent.send(this.response(603, "Decline", []));
    this.agent.end({ type: "ended", byOtherSide: false });
  }
  close() {
    super.close();
    clearTimeout(this.answerTimer);
  }
  async onRequest(request) {
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
        agent.send(respond(request, 200, "OK"));
        return this.ringIfReserved();
      case "CANCEL":
        agent.send(respond(request, 200, "OK", this.tag));
        if (this.isEstablished) return;
        agent.send(this.response(487, "Request Terminated", []));
        return agent.end({ type: "ended", byOtherSide: true });
      case "INVITE":
        return;
      default:
        agent.send(respond(request, 405, "Method Not Allowed"));
    }
  }
  onUpdate(request) {
    super.onUpdate(request);
    this.ringIfReserved();
  }
  /** RFC 3312, section 8: the user is alerted only when both sides have their resources. */
  ringIfReserved() {
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
      onCall.answerAfterMs
    );
  }
  /** The user takes the call. */
  answer() {
    const response = this.response(200, "OK", [["Supported", SUPPORTED]]);
    if (this.version === 0) {
      response.headers.push(["Content-Type", "application/sdp"]);
      response.body = this.described();
    }
    this.agent.send(response);
    this.repeat("200", response);
  }
  response(code, reason, more) {
    const response = respond(this.first, code, reason, this.tag);
    response.headers.push(["Contact", this.agent.contact()], ...more);
    return response;
  }
};
function copy(invite, method) {
  const copied = ["Via", "Max-Forwards", "Route", "From", "To", "Call-ID"];
  const headers = invite.headers.filter(([name]) => copied.includes(name));
  const number = sequence(invite)?.number ?? 1;
  return { ...invite, method, body: "", headers: [...headers, ["CSeq", `${number} ${method}`]] };
}

// ../../ims/agent/milenage.ts
function hex(text) {
  if (!/^([0-9a-f]{2})*$/i.test(text)) throw new Error("a key of AKA is not hexadecimal");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
var xor = (a, b) => a.map((byte, index) => byte ^ (b[index] ?? 0));
var rotated = (a, bits) => a.map((_, i) => a[(i + bits / 8) % 16] ?? 0);
async function milenage(k, opc, rand) {
  if (k.length !== 16 || opc.length !== 16) throw new Error("a key of AKA has not 16 bytes");
  const key = await crypto.subtle.importKey("raw", k, "AES-CBC", false, [
    "encrypt"
  ]);
  const cipher = async (block) => {
    const iv = new Uint8Array(16);
    const out = await crypto.subtle.encrypt({ name: "AES-CBC", iv }, key, block);
    return new Uint8Array(out).slice(0, 16);
  };
  const temp = await cipher(xor(rand, opc));
  const second = xor(temp, opc);
  second[15] = (second[15] ?? 0) ^ 1;
  const out2 = xor(await cipher(second), opc);
  const macOf = async (sqn, amf) => {
    const in1 = new Uint8Array([...sqn, ...amf, ...sqn, ...amf]);
    const mixed = xor(temp, rotated(xor(in1, opc), 64));
    return xor(await cipher(mixed), opc).slice(0, 8);
  };
  return { res: out2.slice(8), ak: out2.slice(0, 6), macOf };
}

// ../../ims/agent/digest.ts
function challenge(value) {
  const scheme = /^digest\s+/i.exec(value);
  if (!scheme) return null;
  const values = /* @__PURE__ */ new Map();
  for (const part of split(value.slice(scheme[0].length), ",")) {
    const at = part.indexOf("=");
    if (at < 1) continue;
    values.set(part.slice(0, at).trim().toLowerCase(), unquoted(part.slice(at + 1).trim()));
  }
  const [realm, nonce] = [values.get("realm"), values.get("nonce")];
  if (realm === void 0 || nonce === void 0) return null;
  const qops = (values.get("qop") ?? "").split(",").map((word) => word.trim());
  const algorithm = values.get("algorithm") ?? "MD5";
  return { realm, nonce, qop: qops.includes("auth"), algorithm, opaque: values.get("opaque") };
}
function unquoted(text) {
  if (!text.startsWith('"')) return text;
  return text.replace(/^"|"$/g, "").replace(/\\(.)/g, "$1");
}
async function authorization(asked, to, credentials) {
  const { username, method, uri, cnonce } = asked;
  const secret = await secretOf(to, credentials);
  const bytes = new Uint8Array([...utf8(`${username}:${to.realm}:`), ...secret]);
  const [ha1, ha2] = [md5(bytes), md5(utf8(`${method}:${uri}`))];
  const nc = "00000001";
  const middle = to.qop ? `${to.nonce}:${nc}:${cnonce}:auth` : to.nonce;
  const parts = [
    `Digest username="${username}"`,
    `realm="${to.realm}"`,
    `nonce="${to.nonce}"`,
    `uri="${uri}"`,
    `response="${md5(utf8(`${ha1}:${middle}:${ha2}`))}"`,
    `algorithm=${to.algorithm}`
  ];
  if (to.qop) parts.push("qop=auth", `nc=${nc}`, `cnonce="${cnonce}"`);
  if (to.opaque !== void 0) parts.push(`opaque="${to.opaque}"`);
  return parts.join(",");
}
async function secretOf(to, credentials) {
  const algorithm = to.algorithm.toUpperCase();
  if ("password" in credentials) {
    if (algorithm !== "MD5")
      throw new Error(`the algorithm ${to.algorithm} needs other credentials`);
    return utf8(credentials.password);
  }
  if (algorithm !== "AKAV1-MD5") throw new Error(`the algorithm ${to.algorithm} is not AKA`);
  let nonce;
  try {
    nonce = Uint8Array.from(atob(to.nonce), (c) => c.charCodeAt(0));
  } catch {
    throw new Error("the nonce of AKA is not in base 64");
  }
  if (nonce.length < 32) throw new Error("the nonce of AKA is too short");
  const [rand, autn] = [nonce.slice(0, 16), nonce.slice(16, 32)];
  const { k, opc } = credentials.aka;
  const { res, ak, macOf } = await milenage(hex(k), hex(opc), rand);
  const sqn = autn.slice(0, 6).map((byte, index) => byte ^ (ak[index] ?? 0));
  const mac = await macOf(sqn, autn.slice(6, 8));
  if (mac.some((byte, index) => byte !== autn[8 + index])) {
    throw new Error("the network does not know the key of AKA");
  }
  return res;
}
var utf8 = (text) => new TextEncoder().encode(text);
var SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
var SINES = Array.from({ length: 64 }, (_, i) => Math.floor(2 ** 32 * Math.abs(Math.sin(i + 1))));
function md5(bytes) {
  const blocks = Math.floor((bytes.length + 8) / 64) + 1;
  const padded = new Uint8Array(64 * blocks);
  padded.set(bytes);
  padded[bytes.length] = 128;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, bytes.length << 3, true);
  view.setUint32(padded.length - 4, Math.floor(bytes.length / 2 ** 29), true);
  const state = [1732584193, 4023233417, 2562383102, 271733878];
  for (let at = 0; at < padded.length; at += 64) {
    let [a, b, c, d] = state;
    for (let i = 0; i < 64; i++) {
      const round = i >> 4;
      const [mixed, word] = [
        [b & c | ~b & d, i],
        [b & d | c & ~d, 5 * i + 1],
        [b ^ c ^ d, 3 * i + 5],
        [c ^ (b | ~d), 7 * i]
      ][round];
      const sum = a + mixed + (SINES[i] ?? 0) + view.getUint32(at + 4 * (word % 16), true) | 0;
      const shift = SHIFTS[4 * round + i % 4] ?? 0;
      [a, d, c, b] = [d, c, b, b + (sum << shift | sum >>> 32 - shift) | 0];
    }
    for (const [index, value] of [a, b, c, d].entries()) {
      state[index] = (state[index] ?? 0) + value | 0;
    }
  }
  const out = new DataView(new ArrayBuffer(16));
  state.forEach((word, index) => out.setUint32(4 * index, word, true));
  return [...new Uint8Array(out.buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// ../../ims/agent/state.ts
var EXPIRES = 6e5;
function subscription(line, sequence2) {
  const { account } = line;
  const routes = line.serviceRoutes.map((route) => ["Route", route]);
  return line.request("SUBSCRIBE", account.public, [
    ...routes,
    ["From", `<${account.public}>;tag=${line.unique("t")}`],
    ["To", `<${account.public}>`],
    ["Call-ID", line.unique("watch")],
    ["CSeq", `${sequence2} SUBSCRIBE`],
    ["Contact", line.contact()],
    ["Event", "reg"],
    ["Accept", "application/reginfo+xml"],
    ["Expires", String(EXPIRES)]
  ]);
}
function bindings(xml) {
  const found = [];
  for (const [, tag, attributes] of xml.matchAll(/<(registration|contact)\s([^>]*)>/g)) {
    const value = (name) => attributeOf(attributes ?? "", name);
    if (tag === "registration") {
      found.push({ identity: value("aor"), state: value("state"), event: "" });
    } else {
      const last = found.at(-1);
      if (last) last.event = value("event");
    }
  }
  return found;
}
function attributeOf(attributes, name) {
  const found = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(attributes);
  return found?.[1] ?? found?.[2] ?? "";
}

// ../../ims/agent/agent.ts
var PATIENCE_MS2 = 32e3;
var INVITE_PATIENCE_MS = 18e4;
var REQUEST_TIMEOUT = 408;
var MOST_WAITING = 100;
var Agent = class {
  constructor(account, around) {
    this.account = account;
    this.around = around;
    this.registerId = around.random();
  }
  account;
  around;
  open = /* @__PURE__ */ new Map();
  queue = Promise.resolve();
  count = 0;
  registerId;
  serviceRoutes = [];
  /** Whether the agent has subscribed to the state of its registration. */
  isWatching = false;
  /** Whether the agent itself ends its registration. */
  isLeaving = false;
  call = null;
  /** Seconds of the last REGISTER; 0 without registration. */
  expires = 0;
  /** What waits for a new connection and its registration; `null` while there is one. */
  waiting = null;
  /** Whether the new connection is there, and its registration is not. */
  isReturning = false;
  /** A text has come from the P-CSCF. What is no message is left out. */
  receive(text) {
    return this.after(async () => {
      const message = parse(text);
      if (message?.kind === "response") await this.onResponse(message);
      else if (message) await this.onRequest(message);
    });
  }
  /** Registers for this many seconds; 0 ends the registration. */
  register(expires) {
    return this.after(() => this.sendRegister(expires, null));
  }
  /** The connection is lost. What is sent from now on waits for the next one; the call stands. */
  disconnected() {
    this.waiting ??= [];
    this.isReturning = false;
  }
  /** There is a new connection: registers on it (RFC 5626, section 4.5), and then sends what has waited. */
  reconnected() {
    if (this.expires === 0) return this.release();
    this.isReturning = true;
    this.sendRegister(this.expires, null);
  }
  release() {
    const waiting = this.waiting ?? [];
    this.waiting = null;
    this.isReturning = false;
    for (const message of waiting) this.send(message);
  }
  /** Calls an identity. Does nothing while another call stands. */
  dial(target) {
    return this.after(async () => {
      if (this.call) return;
      const caller = new Caller(this, target);
      this.call = caller;
      await caller.invite();
    });
  }
  /** Ends the call: CANCEL before its answer, BYE after it. */
  hangUp() {
    return this.after(async () => this.call?.hangUp());
  }
  /** Holds the other party, or ends that: an UPDATE (RFC 3311; TS 24.610, section 4.5.2). */
  hold(holds) {
    return this.after(async () => this.call?.hold(holds));
  }
  /** Does this when all before it is done. An error in it is the call's end, not the agent's. */
  after(action) {
    this.queue = this.queue.then(action).catch(() => {
      if (this.call) this.end({ type: "failed", code: 500 });
    });
    return this.queue;
  }
  /** A new name that no other message has. */
  unique(prefix) {
    this.count += 1;
    return `${prefix}${this.around.random()}${this.count}`;
  }
  /** A request with what every request has (RFC 3261, section 8.1.1; RFC 7118, section 5.2.1). */
  request(method, uri, headers) {
    const via = `SIP/2.0/WSS ${this.account.address};branch=${this.unique("z9hG4bK")};rport`;
    const own = [
      ["Via", via],
      ["Max-Forwards", "70"]
    ];
    return { kind: "request", method, uri, headers: [...own, ...headers], body: "" };
  }
  contact() {
    const user = this.account.private.split("@")[0];
    return `<sip:${user}@${this.account.address};transport=ws>`;
  }
  /** Sends a request. Without an answer in time its responses end with a 408. */
  ask(request, onResponse) {
    const branch = parameter(header(request, "Via") ?? "", "branch") ?? "";
    const key = `${branch} ${request.method}`;
    const patience = request.method === "INVITE" ? INVITE_PATIENCE_MS : PATIENCE_MS2;
    const timeout = () => {
      if (!this.open.delete(key)) return;
      const response = respond(request, REQUEST_TIMEOUT, "Request Timeout");
      void this.after(() => onResponse(response));
    };
    this.open.set(key, { onResponse, timer: setTimeout(timeout, patience) });
    this.send(request);
  }
  send(message) {
    const isRegister = message.kind === "request" && message.method === "REGISTER";
    if (this.waiting && !(this.isReturning && isRegister)) {
      if (this.waiting.length < MOST_WAITING) this.waiting.push(message);
      return;
    }
    this.around.send(write(message));
  }
  /** The call is over. */
  end(event) {
    this.call?.close();
    this.call = null;
    this.around.on(event);
  }
  async onResponse(response) {
    const branch = parameter(header(response, "Via") ?? "", "branch") ?? "";
    const method = sequence(response)?.method ?? "";
    const key = `${branch} ${method}`;
    const transaction = this.open.get(key);
    if (!transaction) {
      if (method === "INVITE" && response.code < 300) this.call?.onRepeatedAnswer(response);
      return;
    }
    if (response.code >= 200) {
      clearTimeout(transaction.timer);
      this.open.delete(key);
    }
    await transaction.onResponse(response);
  }
  async onRequest(request) {
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
        return this.send(respond(request, 200, "OK", this.unique("t")));
      default:
        this.send(respond(request, 481, "Call Does Not Exist", this.unique("t")));
    }
  }
  onNotify(request) {
    if (header(request, "Event") !== "reg") {
      return this.send(respond(request, 489, "Bad Event", this.unique("t")));
    }
    this.send(respond(request, 200, "OK", this.unique("t")));
    const all2 = bindings(request.body);
    this.around.on({ type: "registrations", bindings: all2 });
    const own = all2.find(({ identity }) => identity === this.account.public);
    if (own?.state === "terminated" && !this.isLeaving && this.serviceRoutes.length > 0) {
      this.serviceRoutes = [];
      this.isWatching = false;
      this.around.on({ type: "deregistered" });
    }
  }
  /** TS 24.229, section 5.1.1.3: a terminal that is registered subscribes to the state of it, once. */
  watch() {
    if (this.isWatching) return;
    this.isWatching = true;
    this.ask(subscription(this, ++this.count), ({ code }) => {
      if (code >= 300) this.isWatching = false;
    });
  }
  async onInvite(request) {
    const { onCall } = this.around;
    if (this.call) return this.send(respond(request, 486, "Busy Here", this.unique("t")));
    if (typeof onCall === "object" && "refuse" in onCall) {
      return this.send(respond(request, onCall.refuse, "Refused", this.unique("t")));
    }
    const callee = new Callee(this, request);
    this.call = callee;
    await callee.begin();
  }
  sendRegister(expires, answer) {
    const { account } = this;
    this.isLeaving = expires === 0;
    this.expires = expires;
    const uri = `sip:${account.realm}`;
    const headers = [
      ["From", `<${account.public}>;tag=${this.unique("t")}`],
      ["To", `<${account.public}>`],
      ["Call-ID", this.registerId],
      ["CSeq", `${++this.count} REGISTER`],
      ["Contact", `${this.contact()};expires=${expires}`],
      ["Expires", String(expires)],
      ["Supported", "path"],
      ["Authorization", answer ?? this.firstAuthorization(uri)]
    ];
    this.ask(
      this.request("REGISTER", uri, headers),
      (response) => this.onRegistered(response, expires, answer !== null)
    );
  }
  /** TS 24.229, section 5.1.1.2: the private identity goes with the first REGISTER already. */
  firstAuthorization(uri) {
    const { account } = this;
    if ("token" in account.credentials) return `Bearer access_token="${account.credentials.token}"`;
    const algorithm = "aka" in account.credentials ? "AKAv1-MD5" : "MD5";
    return `Digest username="${account.private}",realm="${account.realm}",nonce="",uri="${uri}",response="",algorithm=${algorithm}`;
  }
  async onRegistered(response, expires, hasAnswered) {
    const { code } = response;
    const { credentials } = this.account;
    if (code < 200) return;
    if (code < 300) {
      this.serviceRoutes = expires === 0 ? [] : list(response, "Service-Route");
      if (expires === 0) {
        this.isWatching = false;
        return this.around.on({ type: "deregistered" });
      }
      if (this.isReturning) this.release();
      const identities = list(response, "P-Associated-URI").map(addressOf);
      this.around.on({ type: "registered", identities });
      return this.watch();
    }
    if (code !== 401 || hasAnswered || "token" in credentials) {
      return this.notRegistered(`status ${code}`);
    }
    try {
      const asked = challenge(header(response, "WWW-Authenticate") ?? "");
      if (!asked) throw new Error("401 without a challenge of Digest");
      const uri = `sip:${this.account.realm}`;
      const [username, cnonce] = [this.account.private, this.unique("c")];
      const answer = await authorization(
        { username, method: "REGISTER", uri, cnonce },
        asked,
        credentials
      );
      this.sendRegister(expires, answer);
    } catch (error) {
      this.notRegistered(error.message);
    }
  }
  notRegistered(why) {
    if (this.isReturning) this.release();
    this.around.on({ type: "not-registered", why });
  }
};

// ../../ims/agent/connection.ts
var [FIRST_MS, LONGEST_MS] = [500, 4e3];
var ATTEMPTS = 15;
var Connection = class {
  /** `open` makes a socket; `random` gives numbers from 0 to 1. */
  constructor(open2, hears, random) {
    this.open = open2;
    this.hears = hears;
    this.random = random;
    this.socket = this.next();
  }
  open;
  hears;
  random;
  socket;
  wasOpen = false;
  attempts = 0;
  send(text) {
    this.socket.send(text);
  }
  next() {
    return this.open({
      onOpen: () => this.onOpen(),
      onText: (text) => this.hears.onText(text),
      onClosed: () => this.onClosed()
    });
  }
  onOpen() {
    this.attempts = 0;
    if (this.wasOpen) return this.hears.onBack();
    this.wasOpen = true;
    this.hears.onOpen();
  }
  onClosed() {
    if (!this.wasOpen || this.attempts === ATTEMPTS) return this.hears.onFailed();
    if (this.attempts === 0) this.hears.onLost();
    const most = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.attempts);
    this.attempts += 1;
    setTimeout(
      () => {
        this.socket = this.next();
      },
      most * (0.5 + this.random() / 2)
    );
  }
};

// ../../ims/agent/page.ts
function connect(options) {
  const random = () => crypto.randomUUID().slice(0, 8);
  return new Promise((resolve, reject) => {
    let isOpen = false;
    const connection = new Connection(
      (told) => open(options.url, told),
      {
        onText(text) {
          options.onMessage?.(text, false);
          void agent.receive(text);
        },
        onOpen() {
          isOpen = true;
          resolve(agent);
        },
        onLost: () => agent.disconnected(),
        onBack: () => agent.reconnected(),
        onFailed() {
          if (isOpen) options.on({ type: "failed", code: 503 });
          else reject(new Error("the eP-CSCF refuses the WebSocket"));
        }
      },
      Math.random
    );
    const agent = new Agent(options.account, {
      send(text) {
        options.onMessage?.(text, true);
        connection.send(text);
      },
      on: options.on,
      media: options.media,
      onCall: options.onCall,
      random
    });
  });
}
function open(url, told) {
  const socket = new WebSocket(url, "sip");
  socket.binaryType = "arraybuffer";
  socket.addEventListener("message", ({ data }) => {
    const text = typeof data === "string" ? data : new TextDecoder().decode(data);
    if (text.trim() !== "") told.onText(text);
  });
  socket.addEventListener("open", told.onOpen);
  socket.addEventListener("close", told.onClosed);
  return socket;
}
function gathered(connection) {
  const sdp = () => connection.localDescription?.sdp ?? "";
  if (connection.iceGatheringState === "complete") return Promise.resolve(sdp());
  return new Promise((resolve) => {
    connection.addEventListener("icegatheringstatechange", () => {
      if (connection.iceGatheringState === "complete") resolve(sdp());
    });
  });
}
export {
  Agent,
  connect,
  gathered,
  parse
};
