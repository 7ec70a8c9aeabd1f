// A room of mediasoup: its router and one transport each way for each participant. The page asks in JSON over HTTP.
//
// With WEIR_SHADOW=FILE the worker writes to this file what its controller and ours say (see shadow.patch), and
// this server adds the layer that each participant gets.

import { appendFileSync, createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
process.env.MEDIASOUP_WORKER_BIN ??= join(here, "worker", "mediasoup-worker");
const address = process.env.WEIR_ADDRESS ?? "127.0.0.1";
const log = process.env.WEIR_SHADOW;
const LARGEST_REQUEST = 1_000_000;

if (!existsSync(process.env.MEDIASOUP_WORKER_BIN)) {
  console.error("run get-worker.sh, or name mediasoup's worker in MEDIASOUP_WORKER_BIN");
  process.exit(1);
}

// It reads MEDIASOUP_WORKER_BIN when it is loaded.
const mediasoup = await import("mediasoup");
if (process.argv.includes("--version")) {
  console.log(`mediasoup ${mediasoup.version}`);
  process.exit();
}

const bundle = await build({
  entryPoints: [join(here, "client.mjs")],
  bundle: true,
  write: false,
  format: "esm",
  logLevel: "error",
});
// In place of mediasoup's own field trials of libwebrtc. An empty text would leave those on.
const libwebrtcFieldTrials = process.env.MEDIASOUP_FIELD_TRIALS;
const worker = await mediasoup.createWorker({ logLevel: "error", libwebrtcFieldTrials });
worker.on("died", () => {
  console.error("mediasoup's worker ended");
  process.exit(1);
});
const router = await worker.createRouter({
  mediaCodecs: [{ kind: "video", mimeType: "video/VP8", clockRate: 90_000 }],
});

const transports = new Map();
const consumers = new Map();
/** What is sent, in the order in which it began. */
const producers = [];
/** Pages that wait for more of them: number that they know, and their answer. */
let waiting = [];

/** Writes a line beside those of the worker, whose clock is that of the system's monotonic time. */
function note(line) {
  if (log === undefined) return;
  const time = Number(process.hrtime.bigint() / 1_000_000n);
  appendFileSync(log, `${JSON.stringify({ time_ms: time, ...line })}\n`);
}

note({ started: true });

function transportOf(id) {
  const transport = transports.get(id);
  if (transport === undefined) throw new Error("no such transport");
  return transport;
}

async function makeTransport({ name }) {
  const transport = await router.createWebRtcTransport({
    listenInfos: [{ protocol: "udp", ip: address }],
    appData: { name },
  });
  transports.set(transport.id, transport);
  const { id, iceParameters, iceCandidates, dtlsParameters } = transport;
  return { id, iceParameters, iceCandidates, dtlsParameters };
}

async function connect({ transport, dtlsParameters }) {
  await transportOf(transport).connect({ dtlsParameters });
  return {};
}

async function produce({ name, transport, kind, rtpParameters }) {
  const producer = await transportOf(transport).produce({ kind, rtpParameters });
  producers.push({ id: producer.id, name });
  for (const { answer } of waiting) answer(producers);
  waiting = [];
  return { id: producer.id };
}

function newProducers({ known }) {
  if (producers.length > known) return producers;
  return new Promise((answer) => waiting.push({ answer }));
}

/** Transports that carry something to a participant: the worker counts them in this order. */
const carrying = [];

async function consume({ name, transport, producer, rtpCapabilities }) {
  if (!carrying.includes(transport)) {
    carrying.push(transport);
    note({ transport: carrying.length, to: name });
  }
  const consumer = await transportOf(transport).consume({
    producerId: producer,
    rtpCapabilities,
    paused: true,
  });
  consumers.set(consumer.id, consumer);
  const from = producers.find(({ id }) => id === producer)?.name;
  consumer.on("layerschange", (layers) => {
    note({ to: name, from, layer: layers?.spatialLayer ?? null });
  });
  const { id, kind, rtpParameters } = consumer;
  return { id, producerId: producer, kind, rtpParameters };
}

async function resume({ consumer }) {
  await consumers.get(consumer)?.resume();
  return {};
}

const actions = {
  "/capabilities": async () => router.rtpCapabilities,
  "/transport": makeTransport,
  "/connect": connect,
  "/produce": produce,
  "/producers": newProducers,
  "/consume": consume,
  "/resume": resume,
};

async function read(request) {
  let text = "";
  for await (const chunk of request) {
    text += chunk;
    if (text.length > LARGEST_REQUEST) throw new Error("the request is too large");
  }
  return JSON.parse(text);
}

async function act(action, request, response) {
  try {
    const answer = await action(await read(request));
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  } catch (error) {
    response.writeHead(400, { "content-type": "text/plain" }).end(error.message);
  }
}

createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://x");
  const action = actions[pathname];
  if (request.method === "POST" && action) return act(action, request, response);
  if (pathname === "/client.js") {
    return response
      .writeHead(200, { "content-type": "text/javascript" })
      .end(bundle.outputFiles[0].text);
  }
  if (pathname !== "/") return response.writeHead(404).end();
  response.writeHead(200, { "content-type": "text/html" });
  createReadStream(join(here, "index.html")).pipe(response);
}).listen(9000);
