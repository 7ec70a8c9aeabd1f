// The agent of the WIC: two of them call each other over a network that passes on what they send.

import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { Agent } from "../../../ims/agent/agent.ts";
import { Connection, type Told } from "../../../ims/agent/connection.ts";
import { authorization, challenge, md5, utf8 } from "../../../ims/agent/digest.ts";
import { hex, milenage } from "../../../ims/agent/milenage.ts";
import { decorate, forBrowser, preconditions } from "../../../ims/agent/sdp.ts";
import * as sip from "../../../ims/agent/sip.ts";
import type { Account, Event, Media, OnCall } from "../../../ims/agent/surroundings.ts";

// As Chromium writes it: an address for each medium, and a bundle.
const SDP = [
  "v=0",
  "o=- 1 2 IN IP4 127.0.0.1",
  "s=-",
  "t=0 0",
  "a=group:BUNDLE 0 1",
  "m=audio 5000 UDP/TLS/RTP/SAVPF 111",
  "c=IN IP4 10.45.0.1",
  "a=sendrecv",
  "m=video 5002 UDP/TLS/RTP/SAVPF 96",
  "c=IN IP4 10.45.0.1",
  "b=AS:30",
  "a=sendrecv",
  "",
].join("\r\n");

const account = (name: string): Account => ({
  private: `${name}@ims.test`,
  public: `sip:${name}@ims.test`,
  realm: "ims.test",
  address: "10.46.1.2",
  credentials: { password: "secret" },
  rates: { audio: 64, video: 2500 },
});

class Side {
  readonly events: Event[] = [];
  readonly sent: sip.Message[] = [];
  readonly media: string[] = [];
  readonly agent: Agent;
  other: Side | null = null;
  /** What the network does with a message of this side; `null` drops it. */
  pass: (message: sip.Message) => sip.Message | null = (message) => message;

  constructor(name: string, onCall: OnCall) {
    let count = 0;
    const media: Media = {
      offer: async () => SDP,
      answer: async (offer) => {
        this.media.push(offer);
        return SDP;
      },
      accept: async (answer) => void this.media.push(answer),
    };
    this.agent = new Agent(account(name), {
      send: (text) => this.carry(text),
      on: (event) => this.events.push(event),
      media,
      onCall,
      random: () => `${name}${++count}`,
    });
  }

  private carry(text: string) {
    const message = sip.parse(text);
    if (!message) throw new Error(`no message: ${text}`);
    this.sent.push(message);
    const passed = this.pass(message);
    if (passed) void this.other?.agent.receive(sip.write(passed));
  }

  /** Methods and status codes of what was sent, in order. */
  get names(): string[] {
    return this.sent.map((one) => (one.kind === "request" ? one.method : String(one.code)));
  }

  has(type: Event["type"]): boolean {
    return this.events.some((event) => event.type === type);
  }

  find(name: string): sip.Message {
    const found = this.sent.at(this.names.indexOf(name));
    if (!found || !this.names.includes(name)) throw new Error(`no ${name}`);
    return found;
  }
}

function pair(onCall: OnCall = { answerAfterMs: 10 }): [Side, Side] {
  const [alice, bob] = [new Side("alice", "ring"), new Side("bob", onCall)];
  alice.other = bob;
  bob.other = alice;
  return [alice, bob];
}

const until = (happened: () => boolean) =>
  vi.waitFor(() => expect(happened()).toBe(true), { timeout: 5_000, interval: 1 });

test("a call reserves resources on both sides before it rings", async () => {
  const [alice, bob] = pair();
  await alice.agent.dial("sip:bob@ims.test");
  await until(() => alice.has("established") && bob.has("established"));
  expect(alice.names).toEqual(["INVITE", "PRACK", "UPDATE", "ACK"]);
  expect(bob.names).toEqual(["100", "183", "200", "200", "180", "200"]);
  // RFC 3262, section 4; RFC 3312, section 5.
  expect(sip.header(alice.find("PRACK"), "RAck")).toBe("1 1 INVITE");
  expect(sip.list(bob.find("183"), "Require")).toEqual(["100rel", "precondition"]);
  expect(preconditions(alice.find("INVITE").body)).toMatchObject({ local: false, remote: false });
  expect(preconditions(bob.find("183").body)).toMatchObject({ asksConfirmation: true });
  expect(preconditions(alice.find("UPDATE").body)).toMatchObject({ local: true });
  expect(preconditions(bob.sent[3]?.body ?? "")).toMatchObject({ local: true, remote: true });
  // Each side's media take one description of the other.
  expect([alice.media.length, bob.media.length]).toEqual([1, 1]);
  await alice.agent.hold(true);
  await until(() => bob.has("held"));
  expect(bob.events.at(-1)).toEqual({ type: "held", isHeld: true });
  // RFC 3264, section 6.1.
  await until(() => bob.sent.at(-1)?.body.includes("a=recvonly") ?? false);
  await bob.agent.hangUp();
  await until(() => alice.has("ended") && bob.has("ended"));
  expect(alice.events.at(-1)).toEqual({ type: "ended", byOtherSide: true });
});

test("a callee does not ring before the caller has its resources", async () => {
  const [alice, bob] = pair();
  alice.pass = (message) =>
    message.kind === "request" && message.method === "UPDATE" ? null : message;
  await alice.agent.dial("sip:bob@ims.test");
  await until(() => bob.names.includes("200"));
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(bob.names).not.toContain("180");
});

test("a 183 is repeated until its PRACK comes", async () => {
  const [alice, bob] = pair();
  let dropped = 0;
  bob.pass = (message) =>
    message.kind === "response" && message.code === 183 && dropped++ === 0 ? null : message;
  await alice.agent.dial("sip:bob@ims.test");
  await until(() => bob.has("established"));
  expect(bob.names.filter((name) => name === "183")).toHaveLength(2);
});

test("calls are refused and cancelled", async () => {
  const [alice, bob] = pair({ refuse: 486 });
  await alice.agent.dial("sip:bob@ims.test");
  await until(() => alice.has("failed"));
  expect(alice.events).toEqual([{ type: "failed", code: 486 }]);
  expect(alice.names).toEqual(["INVITE", "ACK"]);
  expect(bob.agent.call).toBe(null);

  const [carol, dan] = pair("ring");
  await carol.agent.dial("sip:dan@ims.test");
  await until(() => carol.has("ringing"));
  await carol.agent.hangUp();
  await until(() => carol.has("failed") && dan.has("ended"));
  expect(carol.events.at(-1)).toEqual({ type: "failed", code: 487 });
  expect(dan.events.at(-1)).toEqual({ type: "ended", byOtherSide: true });
});

test("requests of nobody's dialog are refused, and a second call is busy", async () => {
  const [alice, bob] = pair("ring");
  await alice.agent.dial("sip:bob@ims.test");
  await until(() => alice.has("ringing"));
  const stranger = (method: string, id: string) =>
    `${method} sip:bob@ims.test SIP/2.0\r\nVia: SIP/2.0/WSS a;branch=z9hG4bKx${id}\r\nFrom: <sip:eve@a>;tag=1\r\n` +
    `To: <sip:bob@ims.test>;tag=2\r\nCall-ID: ${id}\r\nCSeq: 1 ${method}\r\n\r\n`;
  await bob.agent.receive(stranger("BYE", "none"));
  expect(bob.names.at(-1)).toBe("481");
  await bob.agent.receive(stranger("INVITE", "other"));
  expect(bob.names.at(-1)).toBe("486");
  // The Call-ID alone does not make a BYE part of the dialog.
  await bob.agent.receive(stranger("BYE", sip.header(alice.find("INVITE"), "Call-ID") ?? ""));
  expect(bob.names.at(-1)).toBe("481");
  expect(bob.agent.call).not.toBe(null);
});

test("a registration answers the challenge once, and keeps the service route", async () => {
  const alice = new Side("alice", "ring");
  const answer = (code: number, headers: sip.Header[]) => {
    const response = sip.respond(alice.sent.at(-1) as sip.Request, code, "x");
    response.headers.push(...headers);
    return alice.agent.receive(sip.write(response));
  };
  const asks: sip.Header[] = [["WWW-Authenticate", 'Digest realm="ims.test",nonce="n",qop="auth"']];
  await alice.agent.register(600);
  expect(sip.header(alice.find("REGISTER"), "Authorization")).toContain(
    'username="alice@ims.test"',
  );
  await answer(401, asks);
  expect(sip.header(alice.sent[1] as sip.Message, "Authorization")).toContain("nc=00000001");
  await answer(401, asks);
  expect(alice.events).toEqual([{ type: "not-registered", why: "status 401" }]);
  await alice.agent.register(600);
  await answer(200, [
    ["Service-Route", "<sip:orig@scscf.ims.test;lr>"],
    ["P-Associated-URI", "<sip:alice@ims.test>, <tel:+1>"],
  ]);
  const identities = ["sip:alice@ims.test", "tel:+1"];
  expect(alice.events.at(-1)).toEqual({ type: "registered", identities });
  await alice.agent.dial("sip:bob@ims.test");
  expect(sip.all(alice.find("INVITE"), "Route")).toEqual(["<sip:orig@scscf.ims.test;lr>"]);
});

// TS 24.229, sections 5.1.1.3 and 5.1.1.7; RFC 3680, section 5.
test("a registered agent subscribes to the state of its registration, and hears of its end", async () => {
  const alice = new Side("alice", "ring");
  const answer = (headers: sip.Header[]) => {
    const response = sip.respond(alice.sent.at(-1) as sip.Request, 200, "OK");
    response.headers.push(...headers);
    return alice.agent.receive(sip.write(response));
  };
  const route: sip.Header = ["Service-Route", "<sip:orig@scscf.ims.test;lr>"];
  await alice.agent.register(600);
  await answer([route]);
  expect(alice.names).toEqual(["REGISTER", "SUBSCRIBE"]);
  const subscribe = alice.find("SUBSCRIBE");
  expect(sip.header(subscribe, "Event")).toBe("reg");
  expect(sip.all(subscribe, "Route")).toEqual(["<sip:orig@scscf.ims.test;lr>"]);
  await answer([]);
  // Once for a registration: to renew it asks for no second subscription.
  await alice.agent.register(600);
  await answer([route]);
  expect(alice.names).toEqual(["REGISTER", "SUBSCRIBE", "REGISTER"]);
  const notify = (event: string, state: string, what: string) =>
    alice.agent.receive(
      `NOTIFY sip:alice@10.46.1.2 SIP/2.0\r\nVia: SIP/2.0/WSS a;branch=z9hG4bKn${what}\r\n` +
        "From: <sip:alice@ims.test>;tag=1\r\nTo: <sip:alice@ims.test>;tag=2\r\nCall-ID: w\r\n" +
        `CSeq: 1 NOTIFY\r\nEvent: ${event}\r\n\r\n<reginfo><registration aor="sip:alice@ims.test" ` +
        `id='1' state="${state}"><contact event='${what}'/></registration></reginfo>`,
    );
  await notify("presence", "active", "no");
  expect(alice.names.at(-1)).toBe("489");
  await notify("reg", "active", "registered");
  expect(alice.names.at(-1)).toBe("200");
  const binding = { identity: "sip:alice@ims.test", state: "active", event: "registered" };
  expect(alice.events.at(-1)).toEqual({ type: "registrations", bindings: [binding] });
  await notify("reg", "terminated", "deactivated");
  expect(alice.events.at(-1)).toEqual({ type: "deregistered" });
  expect(alice.agent.serviceRoutes).toEqual([]);
});

// RFC 8898, section 2.
// RFC 5626, section 4.5.
test("a connection is opened again, ever more slowly, and given up at last", async () => {
  vi.useFakeTimers();
  const [heard, opened]: [string[], Told[]] = [[], []];
  const open = (told: Told) => {
    opened.push(told);
    return { send: () => {} };
  };
  const on = (name: string) => () => void heard.push(name);
  const hears = {
    onText: on("text"),
    onOpen: on("open"),
    onLost: on("lost"),
    onBack: on("back"),
    onFailed: on("failed"),
  };
  new Connection(open, hears, () => 1);
  opened[0]?.onOpen();
  opened[0]?.onClosed();
  for (const [count, milliseconds] of [500, 1_000, 2_000, 4_000, 4_000].entries()) {
    await vi.advanceTimersByTimeAsync(milliseconds - 1);
    expect(opened.length).toBe(1 + count);
    await vi.advanceTimersByTimeAsync(1);
    expect(opened.length).toBe(2 + count);
    opened.at(-1)?.onClosed();
  }
  await vi.advanceTimersByTimeAsync(4_000);
  opened.at(-1)?.onOpen();
  expect(heard).toEqual(["open", "lost", "back"]);
  opened.at(-1)?.onClosed();
  for (let attempt = 0; attempt < 15; attempt++) {
    await vi.advanceTimersByTimeAsync(4_000);
    opened.at(-1)?.onClosed();
  }
  expect(heard).toEqual(["open", "lost", "back", "lost", "failed"]);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

test("a call stands while the connection is away, and a BYE waits for the next registration", async () => {
  const [alice, bob] = pair();
  // The registrar, which is not there at first: it answers what alice registers.
  const registrar = (message: sip.Message) => {
    if (message.kind !== "request" || message.method !== "REGISTER") return message;
    void alice.agent.receive(sip.write(sip.respond(message, 200, "OK", "r")));
    return null;
  };
  alice.pass = registrar;
  await alice.agent.register(600);
  await until(() => alice.has("registered"));
  await alice.agent.dial("sip:bob@ims.test");
  await until(() => alice.has("established") && bob.has("established"));
  const before = alice.names.length;
  alice.agent.disconnected();
  await alice.agent.hangUp();
  expect(alice.names.length).toBe(before);
  expect(alice.has("ended")).toBe(false);
  alice.agent.reconnected();
  await until(() => alice.has("ended") && bob.has("ended"));
  expect(alice.names.slice(before, before + 2)).toEqual(["REGISTER", "BYE"]);
  expect(bob.events.at(-1)).toEqual({ type: "ended", byOtherSide: true });
});

test("a token goes in the place of a password", async () => {
  const alice = new Side("alice", "ring");
  Object.assign(alice.agent.account, { credentials: { token: "abc" } });
  await alice.agent.register(600);
  expect(sip.header(alice.find("REGISTER"), "Authorization")).toBe('Bearer access_token="abc"');
});

test("a request without answer fails after 64 T1", async () => {
  vi.useFakeTimers();
  const alice = new Side("alice", "ring");
  await alice.agent.register(600);
  await vi.advanceTimersByTimeAsync(31_999);
  expect(alice.events).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(alice.events).toEqual([{ type: "not-registered", why: "status 408" }]);
  vi.useRealTimers();
});

test("a browser's description gets rates and preconditions, and loses its bundle", () => {
  const resources = { local: false, remote: false };
  const rates = { audio: 64, video: 2500 };
  const text = decorate(SDP, { rates, resources, isAnswer: false, version: 7 });
  const lines = text.split("\r\n");
  expect(lines.slice(0, 5)).toEqual([
    "v=0",
    "o=- 1 7 IN IP4 127.0.0.1",
    "s=-",
    "c=IN IP4 10.45.0.1",
    "t=0 0",
  ]);
  expect(text).not.toContain("BUNDLE");
  expect(lines.filter((line) => line.startsWith("b="))).toEqual(["b=AS:64", "b=AS:2650"]);
  expect(lines.filter((line) => line === "a=curr:qos local none")).toHaveLength(2);
  // Decorating again replaces what was there.
  const again = decorate(text, { rates, resources, isAnswer: false, version: 7 });
  expect(again).toBe(text);
});

// RFC 1321, section A.5.
// RFC 3550, section 6.2.
test("rates of Opus and video count headers on the way, and none in a browser", () => {
  const opus = SDP.replace("a=sendrecv", "a=rtpmap:111 opus/48000/2\r\na=sendrecv");
  const wanted = { rates: { audio: 64, video: 2500 }, isAnswer: false, version: 1 };
  const text = decorate(opus, { ...wanted, resources: { local: false, remote: false } });
  const rates = (sdp: string) => sdp.match(/^b=.*$/gm)?.map((line) => line.trim());
  expect(rates(text)).toEqual(["b=AS:96", "b=AS:2650"]);
  expect(rates(forBrowser(text))).toEqual(["b=AS:64", "b=AS:2500"]);
  expect(forBrowser(text).length).toBe(text.length);
  expect(rates(forBrowser(text.replace("AS:96", "AS:20")))).toEqual(["b=AS:6", "b=AS:2500"]);
  // G.711 has its rate.
  expect(forBrowser(SDP)).toBe(SDP.replace("AS:30", "AS:28"));
});

test("MD5 gives the published digests", () => {
  expect(md5(utf8(""))).toBe("d41d8cd98f00b204e9800998ecf8427e");
  expect(md5(utf8("message digest"))).toBe("f96b697d7cb7938d525a2f31aaf161d0");
  const long = "12345678901234567890123456789012345678901234567890123456789012345678901234567890";
  expect(md5(utf8(long))).toBe("57edf4a22be3c955ac49da2e2107b67a");
});

// RFC 2617, section 3.5.
test("Digest gives the response of its standard", async () => {
  const value =
    'Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", ' +
    'opaque="5ccc069c403ebaf9f0171e9517f40e41"';
  const asked = {
    username: "Mufasa",
    method: "GET",
    uri: "/dir/index.html",
    cnonce: "0a4f113b",
  };
  const to = challenge(value);
  if (!to) throw new Error("no challenge");
  const text = await authorization(asked, to, { password: "Circle Of Life" });
  expect(text).toContain('response="6629fae49393a05397450978507c4ef1"');
  expect(text).toContain('opaque="5ccc069c403ebaf9f0171e9517f40e41"');
});

// TS 35.208, section 4.3, test set 1.
test("AKA gives the published results, and refuses a network without the key", async () => {
  const [k, opc] = ["465b5ce8b199b49faa5f0a2ee238a6bc", "cd63cb71954a9f4e48a5994e37a02baf"];
  const rand = "23553cbe9637a89d218ae64dae47bf35";
  const { res, ak, macOf } = await milenage(hex(k), hex(opc), hex(rand));
  expect(res).toEqual(hex("a54211d5e3ba50bf"));
  expect(ak).toEqual(hex("aa689c648370"));
  const [sqn, amf] = [hex("ff9bb4d0b607"), hex("b9b9")];
  const mac = await macOf(sqn, amf);
  expect(mac).toEqual(hex("4a9ffac354dfafb3"));

  const asked = { username: "c", method: "REGISTER", uri: "sip:a", cnonce: "1" };
  const hidden = sqn.map((byte, index) => byte ^ (ak[index] ?? 0));
  const nonceOf = (...parts: Uint8Array[]) =>
    btoa(String.fromCharCode(...parts.flatMap((part) => [...part])));
  const to = { realm: "a", qop: true, algorithm: "AKAv1-MD5", opaque: undefined };
  const good = { ...to, nonce: nonceOf(hex(rand), hidden, amf, mac) };
  const aka = { aka: { k, opc } };
  await expect(authorization(asked, good, aka)).resolves.toContain("algorithm=AKAv1-MD5");
  const bad = { ...to, nonce: nonceOf(hex(rand), hidden, amf, mac.reverse()) };
  await expect(authorization(asked, bad, aka)).rejects.toThrow("does not know the key");
  const short = { ...to, nonce: btoa("short") };
  await expect(authorization(asked, short, aka)).rejects.toThrow("too short");
});

test("headers are folded, compact and listed", () => {
  const text =
    'INVITE sip:b@a SIP/2.0\nv: SIP/2.0/WS a;branch=z9hG4bK1\nf: "A, B" <sip:a@a;x=1>;tag=1\nt: <sip:b@a>\n' +
    "i: 1\nCSeq: 1 INVITE\nRecord-Route: <sip:a,b;lr>,\n <sip:c;lr>\nl: 3\n\näb";
  const message = sip.parse(text);
  if (!message) throw new Error("no message");
  expect(sip.list(message, "Record-Route")).toEqual(["<sip:a,b;lr>", "<sip:c;lr>"]);
  expect(sip.addressOf(sip.header(message, "From") ?? "")).toBe("sip:a@a;x=1");
  expect(sip.parameter(sip.header(message, "From") ?? "", "tag")).toBe("1");
  expect(message.body).toBe("äb");
});

test("the reader takes any text, and what it reads is written and read again", () => {
  const whole = sip.write({
    kind: "request",
    method: "INVITE",
    uri: "sip:b@a",
    headers: [
      ["Via", "SIP/2.0/WS a;branch=z9hG4bK1"],
      ["From", "<sip:a@a>;tag=1"],
      ["To", "<sip:b@a>"],
      ["Call-ID", "1"],
      ["CSeq", "1 INVITE"],
    ],
    body: SDP,
  });
  // A generator of its own: the same texts in each run.
  let state = 1;
  const next = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
  let read = 0;
  for (let count = 0; count < 20_000; count++) {
    const characters = [...whole];
    for (let change = next(6); change >= 0; change--) {
      const at = next(characters.length);
      if (next(3) === 0) characters.splice(at, next(40));
      else characters[at] = String.fromCharCode(next(next(2) ? 128 : 65_536));
    }
    const message = sip.parse(characters.join(""));
    if (!message) continue;
    read++;
    expect(sip.parse(sip.write(message))).not.toBe(null);
    challenge(sip.header(message, "Via") ?? "");
    sip.list(message, "Via").map(sip.addressOf);
  }
  expect(read).toBeGreaterThan(1_000);
  expect(sip.parse("")).toBe(null);
  expect(sip.parse(`${whole}${"a".repeat(sip.MOST_CHARACTERS)}`)).toBe(null);
});

test("the call page has this agent", () => {
  const kept = readFileSync("../call/page/wic.js", "utf8");
  expect(kept).toBe(readFileSync("dist/wic.js", "utf8"));
});
