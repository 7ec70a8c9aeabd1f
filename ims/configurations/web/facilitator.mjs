// The facilitator of video beside a telephone call: it sends both parties a link, and their browsers' video
// call begins and ends with the call of SIP (delft, 4.1).
//
//   node facilitator.mjs web.json
//
//   application server -- HTTP: a call begins, is answered, has ended --> facilitator
//   facilitator -- SIP MESSAGE: a link --> I-CSCF --> both terminals
//   browsers -- HTTPS: descriptions --> facilitator -- HTTP: the same, if the video gets a bearer --> af

import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { createServer as createPlain, request } from "node:http";
import { createServer } from "node:https";
import { noter } from "./note.mjs";

const config = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = config.addresses.facilitator;
const file = (path) => readFileSync(new URL(path, import.meta.url));
const pages = {
  page: ["text/html", file("video.html")],
  script: ["text/javascript", file("video.js")],
};
const MOST_BYTES = 65_536;
/** Calls by the Call-ID that the application server sees. */
const calls = new Map();
/** Both parties' places in their call, by the secret of their link. */
const places = new Map();
const note = noter(config.folder, "facilitator");
const nameOf = (identity) => identity.replace(/^sips?:/, "").split("@")[0];

// SIP: one MESSAGE for each party (RFC 3428), which the I-CSCF takes as from any application server.
const socket = createSocket("udp4");
/** Timers of the requests without a final response, by branch. */
const open = new Map();
const [T1_MS, T2_MS, MOST_TRIES] = [500, 4000, 7];

function sendMessage(target, text) {
  const [branch, tag] = [
    `z9hG4bK${randomBytes(8).toString("hex")}`,
    randomBytes(4).toString("hex"),
  ];
  const message = [
    `MESSAGE ${target} SIP/2.0`,
    `Via: SIP/2.0/UDP ${own}:5060;branch=${branch}`,
    "Max-Forwards: 70",
    `From: <sip:facilitator.${config.realm}>;tag=${tag}`,
    `To: <${target}>`,
    `Call-ID: ${branch}`,
    "CSeq: 1 MESSAGE",
    "Content-Type: text/plain",
    `Content-Length: ${Buffer.byteLength(text)}`,
    "",
    text,
  ].join("\r\n");
  let tries = 0;
  const send = () => {
    socket.send(message, 5060, config.addresses.icscf);
    tries += 1;
    if (tries === MOST_TRIES) return open.delete(branch);
    // RFC 3261, section 17.1.2.2.
    open.set(branch, setTimeout(send, Math.min(T1_MS * 2 ** (tries - 1), T2_MS)));
  };
  send();
}

socket.on("message", (bytes) => {
  const text = bytes.toString();
  const code = Number(/^SIP\/2\.0 (\d{3}) /.exec(text)?.[1] ?? 0);
  const branch = /^via:[^\r]*branch=([^;,\r\s]+)/im.exec(text)?.[1];
  if (code < 200 || !open.has(branch)) return;
  clearTimeout(open.get(branch));
  open.delete(branch);
  if (code >= 300) console.error(`a link did not arrive: ${text.split("\r\n")[0]}`);
});

// The application server: what becomes of a call.
function onCall({ call: id, state, caller, callee }) {
  const call = calls.get(id);
  if (state === "begin" && !call) {
    const parties = [caller, callee].map((identity, number) => {
      const secret = randomBytes(16).toString("hex");
      const role = number === 0 ? "caller" : "callee";
      return { secret, role, identity, stream: null, description: null };
    });
    const begun = {
      id,
      name: `video-${randomBytes(6).toString("hex")}`,
      state: "ringing",
      parties,
    };
    calls.set(id, begun);
    for (const party of parties) {
      places.set(party.secret, { call: begun, party });
      sendMessage(
        party.identity,
        `Video for this call: ${config.facilitator}/video/${party.secret}`,
      );
    }
  } else if (state === "answered" && call) {
    call.state = "answered";
    beginVideo(call);
  } else if (state === "ended" && call) {
    call.state = "ended";
    calls.delete(id);
    for (const party of call.parties) {
      places.delete(party.secret);
      tell(party, "ended", {});
      party.stream?.end();
    }
    if (call.hasBearer)
      for (const side of ["orig", "term"]) void atFunction("end", side, "-", call, "");
  }
}

/** An event for a party's page (Server-Sent Events). */
function tell(party, name, data) {
  if (!party.stream) return;
  const text = JSON.stringify(data);
  note("facilitator", nameOf(party.identity), "HTTP", `event ${name}`, data.sdp ?? text);
  party.stream.write(`event: ${name}\ndata: ${text}\n\n`);
}

/** The video begins when the call is answered and both pages are open. */
function beginVideo(call) {
  const [caller] = call.parties;
  const isReady = call.parties.every((party) => party.stream);
  if (call.state !== "answered" || !isReady || caller.isAsked) return;
  caller.isAsked = true;
  tell(caller, "offer", {});
}

/** Says something to the application function of Rx. Returns the status of HTTP. */
function atFunction(action, side, who, call, body) {
  const path = `/${action}/${side}/${who}/${call.name}/a/b`;
  note("facilitator", "af", "HTTP", `POST ${action} ${side}`, body);
  return new Promise((resolve) => {
    const options = { method: "POST", headers: { "Content-Type": "application/sdp" } };
    const asked = request(`${config.af}${path}`, options, (response) => {
      response.resume();
      note("af", "facilitator", "HTTP", `${response.statusCode} ${action}`, "");
      resolve(response.statusCode);
    });
    asked.on("error", () => resolve(503));
    asked.end(body);
  });
}

/** Bearers for the video of both terminals (Rx). Without them it stays on the default bearer. */
async function authorize(call) {
  const [offer, answer] = call.parties.map((party) => party.description);
  await atFunction("note", "orig", "own", call, offer);
  await atFunction("note", "term", "other", call, offer);
  call.hasBearer = true;
  const asked = [
    await atFunction("authorize", "orig", "other", call, answer),
    await atFunction("authorize", "term", "own", call, answer),
  ];
  if (asked.some((status) => status !== 200)) {
    console.error(
      `no bearer for ${call.name} (${asked.join(", ")}): the default bearer carries it`,
    );
  }
}

async function onDescription({ call, party }, sdp) {
  party.description = sdp;
  const [caller, callee] = call.parties;
  if (party === caller) return tell(callee, "describe", { type: "offer", sdp });
  // The bearers are there before the caller knows where to send.
  if (config.bearerForVideo) await authorize(call);
  tell(caller, "describe", { type: "answer", sdp });
}

async function text(incoming) {
  let read = "";
  for await (const part of incoming) {
    read += part;
    if (read.length > MOST_BYTES) throw new Error("the body is too long");
  }
  return read;
}

const refuse = (response, code, why) =>
  response.writeHead(code, { "Content-Type": "text/plain" }).end(`${why}\n`);
const give = (response, [kind, bytes]) =>
  response.writeHead(200, { "Content-Type": `${kind}; charset=utf-8` }).end(bytes);

async function serve(incoming, response) {
  const [, video, secret, what] = new URL(incoming.url, config.facilitator).pathname.split("/");
  if (incoming.method === "GET" && video === "video.js") return give(response, pages.script);
  const place = places.get(secret);
  if (video !== "video" || !place) return refuse(response, 404, "no such call");
  const { call, party } = place;
  const title = `${incoming.method} /video${what ? `/${what}` : ""}`;
  if (incoming.method === "GET" && what === undefined) {
    note(nameOf(party.identity), "facilitator", "HTTP", title, "");
    return give(response, pages.page);
  }
  if (incoming.method === "GET" && what === "events") {
    note(nameOf(party.identity), "facilitator", "HTTP", title, "");
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    party.stream?.end();
    party.stream = response;
    tell(party, "joined", { role: party.role });
    return beginVideo(call);
  }
  if (incoming.method === "POST" && what === "description") {
    const sdp = await text(incoming);
    note(nameOf(party.identity), "facilitator", "HTTP", title, sdp);
    response.writeHead(204).end();
    return onDescription(place, sdp);
  }
  return refuse(response, 405, "not allowed");
}

const failed = (response) => (error) => {
  console.error(error.message);
  if (!response.headersSent) refuse(response, 400, "bad request");
};
const [cert, key] = ["crt", "key"].map((end) =>
  readFileSync(`${config.folder}/facilitator.${end}`),
);
const server = createServer({ cert, key }, (incoming, response) => {
  serve(incoming, response).catch(failed(response));
});
const fromCore = createPlain(async (incoming, response) => {
  try {
    onCall(JSON.parse(await text(incoming)));
    response.writeHead(204).end();
  } catch (error) {
    failed(response)(error);
  }
});
// Only the core speaks for calls; terminals reach this address too.
fromCore.on("connection", (from) => {
  if (!from.remoteAddress.startsWith(config.core)) from.destroy();
});
socket.bind(5060, own);
fromCore.listen(config.facilitatorPort, own);
server.listen(new URL(config.facilitator).port, own, () => console.log("the facilitator runs"));
