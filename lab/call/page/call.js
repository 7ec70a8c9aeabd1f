// One peer of a call. The page starts by itself. It sends the camera if the lab asks for it, shows the
// received media, and reports getStats to the lab. The lab's messages are defined in src/message.rs.

import { preferRed, withOptions } from "./opus.js";
import {
  answerOfLayers,
  offerOfLayers,
  offerOfSections,
  orderOf,
  scaleLayers,
  summed,
} from "./simulcast.js";

// Members of getStats that the lab reads, by kind of object. Other members stay in the browser.
const MEMBERS = {
  outbound: [
    "timestamp",
    "ssrc",
    "rtxSsrc",
    "mid",
    "packetsSent",
    "bytesSent",
    "headerBytesSent",
    "retransmittedPacketsSent",
    "retransmittedBytesSent",
    "targetBitrate",
    "frameWidth",
    "frameHeight",
    "framesPerSecond",
    "framesEncoded",
    "keyFramesEncoded",
    "hugeFramesSent",
    "qpSum",
    "totalEncodeTime",
    "totalPacketSendDelay",
    "qualityLimitationReason",
    "qualityLimitationDurations",
    "qualityLimitationResolutionChanges",
    "nackCount",
    "pliCount",
    "encoderImplementation",
  ],
  inbound: [
    "timestamp",
    "ssrc",
    "rtxSsrc",
    "mid",
    "packetsReceived",
    "packetsLost",
    "bytesReceived",
    "headerBytesReceived",
    "jitter",
    "fecBytesReceived",
    "retransmittedBytesReceived",
    "retransmittedPacketsReceived",
    "packetsDiscarded",
    "frameWidth",
    "frameHeight",
    "framesPerSecond",
    "framesReceived",
    "framesDecoded",
    "keyFramesDecoded",
    "qpSum",
    "totalDecodeTime",
    "totalInterFrameDelay",
    "totalSquaredInterFrameDelay",
    "framesDropped",
    "freezeCount",
    "totalFreezesDuration",
    "pauseCount",
    "totalPausesDuration",
    "jitterBufferDelay",
    "jitterBufferEmittedCount",
    "nackCount",
    "pliCount",
  ],
  remoteInbound: [
    "timestamp",
    "roundTripTime",
    "roundTripTimeMeasurements",
    "jitter",
    "fractionLost",
    "packetsLost",
  ],
  pair: [
    "timestamp",
    "packetsSent",
    "bytesSent",
    "packetsReceived",
    "bytesReceived",
    "currentRoundTripTime",
    "responsesReceived",
    "availableOutgoingBitrate",
  ],
  candidate: ["address", "port", "protocol", "candidateType", "relayProtocol"],
  transport: ["srtpCipher", "dtlsCipher", "selectedCandidatePairChanges"],
  mediaSource: ["width", "height", "framesPerSecond"],
  audioOutbound: ["timestamp", "ssrc", "mid", "packetsSent", "bytesSent", "headerBytesSent"],
  audioInbound: [
    "timestamp",
    "ssrc",
    "mid",
    "packetsReceived",
    "packetsLost",
    "bytesReceived",
    "headerBytesReceived",
    "jitter",
    "packetsDiscarded",
    "jitterBufferDelay",
    "jitterBufferTargetDelay",
    "jitterBufferMinimumDelay",
    "jitterBufferEmittedCount",
    "totalSamplesReceived",
    "concealedSamples",
    "silentConcealedSamples",
    "concealmentEvents",
    "insertedSamplesForDeceleration",
    "removedSamplesForAcceleration",
    "fecPacketsReceived",
    "fecPacketsDiscarded",
  ],
};

const element = (id) => document.getElementById(id);
// Time of each step of the set-up, in milliseconds since the page was opened.
const setup = {
  camera: null,
  joined: null,
  start: null,
  described: null,
  ice: null,
  connected: null,
};
let socket = null;
let connection = null;
let ended = false;
let simulcast = null; // The offer of several layers, if this peer made one.
let sightings = null; // Tells which frames pass this page, if the lab asks for it.
let sound = null; // Records what is said and heard, if the lab asks for it.
let terminal = null; // The agent of an IMS, if the signalling goes through one.

function show(text, isError = false) {
  element("state").textContent = text;
  element("state").className = isError ? "error" : "";
}

function tell(message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function end(text, isError = false) {
  if (ended) return;
  ended = true;
  show(text, isError);
  connection?.getSenders().forEach((sender) => sender.track?.stop());
  connection?.close();
  socket?.close(1000);
}

function fail(cause) {
  if (ended) return;
  tell({ type: "failed", cause });
  end(cause, true);
}

const pick = (object, members) =>
  Object.fromEntries(members.filter((m) => object[m] !== undefined).map((m) => [m, object[m]]));

async function collectStats() {
  const stats = await connection.getStats();
  const objects = [...stats.values()];
  const find = (type, kind = "video") =>
    objects.find((o) => o.type === type && (o.kind ?? kind) === kind);
  const report = {};
  const add = (name, object) => {
    if (object) report[name] = pick(object, MEMBERS[name]);
  };
  const all = (type) => objects.filter((o) => o.type === type && o.kind === "video");
  // The browser lists the layers in any order, and a layer that is off has no size.
  const order = simulcast ? orderOf(simulcast) : [];
  const sent = all("outbound-rtp").sort((a, b) => order.indexOf(a.ssrc) - order.indexOf(b.ssrc));
  const outbound = sent.length > 1 ? summed(sent) : sent[0];
  if (sent.length > 1) report.layers = sent.map((layer) => pick(layer, MEMBERS.outbound));
  add("outbound", outbound);
  const { mimeType } = stats.get(outbound?.codecId) ?? {};
  if (mimeType !== undefined) report.outbound.mimeType = mimeType;
  const received = all("inbound-rtp").sort((a, b) => Number(a.mid) - Number(b.mid));
  add("inbound", received.length > 1 ? summed(received) : received[0]);
  add("audioOutbound", find("outbound-rtp", "audio"));
  add("audioInbound", find("inbound-rtp", "audio"));
  add("remoteInbound", find("remote-inbound-rtp"));
  add("mediaSource", find("media-source"));
  // Without a bundle each medium has a transport of its own.
  const video = outbound ?? find("inbound-rtp");
  const transport = stats.get(video?.transportId) ?? find("transport");
  add("transport", transport);
  const pair = stats.get(transport?.selectedCandidatePairId);
  if (pair) {
    add("pair", pair);
    report.pair.local = pick(stats.get(pair.localCandidateId), MEMBERS.candidate);
    report.pair.remote = pick(stats.get(pair.remoteCandidateId), MEMBERS.candidate);
  }
  return report;
}

let previousInbound = null;
function showStats({ outbound, inbound, pair }) {
  const kbps = (bps) => `${Math.round(bps / 1000)} kbit/s`;
  if (outbound?.targetBitrate !== undefined) {
    element("target").textContent = kbps(outbound.targetBitrate);
  }
  if (inbound && previousInbound) {
    const bits = 8 * (inbound.bytesReceived - previousInbound.bytesReceived);
    const seconds = (inbound.timestamp - previousInbound.timestamp) / 1000;
    if (seconds > 0) element("received").textContent = kbps(bits / seconds);
  }
  previousInbound = inbound;
  if (pair?.currentRoundTripTime !== undefined) {
    element("rtt").textContent = `${Math.round(1000 * pair.currentRoundTripTime)} ms`;
  }
  const picture = inbound ?? outbound;
  if (picture?.frameWidth) {
    const { frameWidth, frameHeight, framesPerSecond = 0 } = picture;
    element("picture").textContent = `${frameWidth} x ${frameHeight}, ${framesPerSecond} frames/s`;
  }
}

async function reportStats() {
  const report = await collectStats();
  if (ended) return;
  showStats(report);
  tell({ type: "stats", report });
}

const UNPROCESSED = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };

// The tracks that this peer sends, by kind.
async function openDevices({ video, audio, width, height, frameRate, contentHint, draws }) {
  const drawn = draws ? await (await import("./camera.js")).drawnCamera(frameRate) : null;
  if (drawn && !audio.sends) {
    setup.camera = performance.now();
    drawn.contentHint = contentHint;
    return { video: drawn };
  }
  if (!video.sends && !audio.sends) return {};
  if (!navigator.mediaDevices) {
    throw new Error(
      "Browsers give no camera to this page: its address is neither 127.0.0.1 nor https.",
    );
  }
  const picture = {
    width: { ideal: width },
    height: { ideal: height },
    frameRate: { ideal: frameRate },
  };
  let media;
  try {
    media = await navigator.mediaDevices.getUserMedia({
      video: video.sends && !drawn && picture,
      // A recording has no echo and no noise, and what removes them would change it.
      audio: audio.sends && (sound === null || UNPROCESSED),
    });
  } catch (error) {
    throw new Error(`The camera or the microphone cannot be used: ${error.message}`);
  }
  setup.camera = performance.now();
  if (drawn) media.addTrack(drawn);
  for (const track of media.getVideoTracks()) track.contentHint = contentHint;
  return Object.fromEntries(media.getTracks().map((track) => [track.kind, track]));
}

// The wanted codec first; the repair formats and the other codecs keep their order behind it.
function preferCodec(transceiver, name) {
  const { codecs } = RTCRtpReceiver.getCapabilities("video");
  const isWanted = (codec) => codec.mimeType.toUpperCase() === `VIDEO/${name}`;
  if (!codecs.some(isWanted)) throw new Error(`This browser has no ${name}.`);
  const others = codecs.filter((codec) => !isWanted(codec));
  transceiver.setCodecPreferences([...codecs.filter(isWanted), ...others]);
}

async function limitSender(sender, { maxBitrate, frameRate, degradation }) {
  const parameters = sender.getParameters();
  parameters.degradationPreference = degradation;
  for (const encoding of parameters.encodings) {
    encoding.maxBitrate = maxBitrate;
    encoding.maxFramerate = frameRate;
  }
  await sender.setParameters(parameters);
}

function watch(config) {
  connection.addEventListener("icecandidate", ({ candidate }) => {
    // The peer does not need the end-of-candidates mark, because all host candidates come at once.
    if (candidate?.candidate && !config.ims) tell({ type: "candidate", candidate });
  });
  connection.addEventListener("iceconnectionstatechange", () => {
    if (connection.iceConnectionState === "connected") setup.ice ??= performance.now();
    if (connection.iceConnectionState === "disconnected" && config.restartsItself) {
      guard(restartIce)(config);
    }
  });
  connection.addEventListener("connectionstatechange", () => {
    show(`Call is ${connection.connectionState}`);
    const mayComeBack = config.restarts && setup.connected !== null;
    if (connection.connectionState === "failed" && !mayComeBack) {
      fail(`No connection to the other peer: ICE is ${connection.iceConnectionState}.`);
    }
    if (connection.connectionState === "connected" && setup.connected === null) {
      setup.connected = performance.now();
      tell({ type: "connected", setup });
      // The first report is sent immediately, so that every interval starts with a report.
      guard(reportStats)();
      setInterval(() => ended || guard(reportStats)(), config.statsInterval);
    }
  });
  connection.addEventListener("track", ({ track }) => {
    const video = element("video");
    if (track.kind === "video") sightings?.watchReceived(track, video);
    if (track.kind === "audio") sound?.record(track, "speaker");
    // Audio and video arrive as two tracks. One element plays both.
    if (video.srcObject) return video.srcObject.addTrack(track);
    video.srcObject = new MediaStream([track]);
    video.requestVideoFrameCallback?.((now) => {
      tell({ type: "playing", firstFrame: now });
      // It ends the last phase of a call through an IMS, so it stands among the messages.
      const time = performance.timeOrigin + now;
      if (terminal) tell({ type: "sip", message: { time, isSent: false, text: "first picture" } });
    });
  });
}

// New credentials and new candidates for ICE. The peer that offers asks for them.
async function restartIce(config) {
  if (!config.offers || connection.signalingState !== "stable") return;
  connection.restartIce();
  await connection.setLocalDescription();
  tell({ type: "offer", sdp: connection.localDescription.sdp });
}

function directionOf({ sends, receives }) {
  if (sends) return receives ? "sendrecv" : "sendonly";
  return receives ? "recvonly" : "inactive";
}

const isVideo = (transceiver) => transceiver.receiver.track.kind === "video";

const handlers = (config, tracks) => ({
  // Both peers are present and the call is due, so the offerer starts.
  async start() {
    setup.start = performance.now();
    const relay = config.relay;
    connection = new RTCPeerConnection({
      iceServers: relay ? [relay] : [],
      iceTransportPolicy: config.relayOnly ? "relay" : "all",
      bundlePolicy: config.ims ? "max-compat" : "balanced",
    });
    watch(config);
    terminal?.begin();
    if (!config.offers) return;
    for (const kind of ["audio", "video"]) {
      const direction = directionOf(config[kind]);
      if (direction === "inactive") continue;
      const transceiver = connection.addTransceiver(tracks[kind] ?? kind, { direction });
      if (kind === "audio") {
        preferRed(transceiver, config.opus);
        continue;
      }
      preferCodec(transceiver, config.codec);
      if (config.video.sends && config.simulcast.length === 0) {
        await limitSender(transceiver.sender, config);
      }
    }
    if (terminal && config.simulcast.length > 0) {
      throw new Error("Simulcast does not go through an IMS.");
    }
    if (terminal) return terminal.agent.dial(config.ims.target);
    if (config.simulcast.length > 0) {
      const { sdp } = await connection.createOffer();
      await connection.setLocalDescription({
        type: "offer",
        sdp: offerOfLayers(sdp, config.simulcast.length),
      });
      simulcast = connection.localDescription.sdp;
      return tell({ type: "offer", sdp: offerOfSections(simulcast) });
    }
    await connection.setLocalDescription();
    tell({ type: "offer", sdp: connection.localDescription.sdp });
  },
  async offer({ sdp }) {
    const isFirst = connection.remoteDescription === null;
    const theirs = withOptions(sdp, config.opus);
    await connection.setRemoteDescription({ type: "offer", sdp: theirs });
    if (!isFirst) {
      await connection.setLocalDescription();
      return tell({ type: "answer", sdp: connection.localDescription.sdp });
    }
    for (const transceiver of connection.getTransceivers()) {
      const kind = isVideo(transceiver) ? "video" : "audio";
      if (kind === "video") preferCodec(transceiver, config.codec);
      else preferRed(transceiver, config.opus);
      transceiver.direction = directionOf(config[kind]);
      if (tracks[kind]) await transceiver.sender.replaceTrack(tracks[kind]);
    }
    await connection.setLocalDescription();
    setup.described = performance.now();
    // Sent immediately: a candidate that arrives before its description is an error at the other peer.
    if (!terminal) tell({ type: "answer", sdp: connection.localDescription.sdp });
    const video = connection.getTransceivers().find(isVideo);
    if (video && config.video.sends) await limitSender(video.sender, config);
  },
  async answer({ sdp }) {
    const own = simulcast ? answerOfLayers(sdp, simulcast) : withOptions(sdp, config.opus);
    const isFirst = connection.remoteDescription === null;
    await connection.setRemoteDescription({ type: "answer", sdp: own });
    if (simulcast && isFirst) {
      const [sender] = connection.getSenders();
      await scaleLayers(sender, config.simulcast, config);
    }
    setup.described = performance.now();
  },
  async restart() {
    await restartIce(config);
  },
  async candidate({ candidate }) {
    const added = connection.addIceCandidate(candidate);
    // After a restart a candidate of the time before may still arrive.
    await (config.restarts ? added.catch(() => {}) : added);
  },
  async stop() {
    if (setup.connected !== null) await reportStats();
    sightings?.flush();
    await terminal?.end(config.offers);
    end("The call has ended.");
  },
});

// Reports a rejected promise to the lab as a failure.
const guard =
  (action) =>
  (...args) =>
    action(...args).catch((error) => ended || fail(error.message));

// Registers at the IMS. Offer and answer of the call then go through its network.
async function joinIms({ url, account, target, ringingMs }, handle) {
  const { connect, gathered } = await import("./wic.js");
  let begin;
  const begun = new Promise((resolve) => {
    begin = resolve;
  });
  const waiting = new Map(); // By type of event: who waits for it.
  const happens = (type) => new Promise((resolve) => waiting.set(type, resolve));
  let isEnding = false;
  const on = (event) => {
    waiting.get(event.type)?.(event);
    if (isEnding) return;
    if (event.type === "not-registered") fail(`The IMS does not register: ${event.why}.`);
    if (event.type === "failed") fail(`The call to ${target} failed: ${event.code}.`);
    // The lab ends both sides at once. Its word may come after the BYE.
    if (event.type === "ended") setTimeout(() => isEnding || fail("The IMS ended the call."), 2000);
  };
  const media = {
    async offer() {
      await connection.setLocalDescription();
      return gathered(connection);
    },
    async answer(sdp) {
      await begun;
      await handle.offer({ sdp });
      return gathered(connection);
    },
    accept: (sdp) => handle.answer({ sdp }),
  };
  const onMessage = (text, isSent) => {
    const time = performance.timeOrigin + performance.now();
    tell({ type: "sip", message: { time, isSent, text } });
  };
  const onCall = { answerAfterMs: ringingMs };
  const agent = await connect({ url, account, media, onCall, on, onMessage });
  const registered = happens("registered");
  await agent.register(600);
  await registered;
  const end = async (hangsUp) => {
    isEnding = true;
    const within = (ms, what) =>
      Promise.race([what, new Promise((resolve) => setTimeout(resolve, ms))]);
    const over = happens("ended");
    if (hangsUp) await agent.hangUp();
    if (agent.call) await within(1000, over);
    const gone = happens("deregistered");
    await agent.register(0);
    await within(500, gone);
  };
  return { agent, begin, end };
}

// The first message is the configuration. The page opens its devices before it reports that it is
// ready, so that it can handle the messages that follow.
function join() {
  const url = new URL(`${location.pathname}/socket`, location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(url);
  let handle = null;
  let queue = Promise.resolve(); // Messages are handled one after the other, in order.
  const receive = async (message) => {
    if (message.type === "config") {
      setup.joined = performance.now();
      if (message.quality) {
        sightings = new (await import("./quality.js")).Sightings(tell);
        sound = await import("./sound.js");
      }
      const tracks = await openDevices(message);
      if (tracks.video) sightings?.watchCamera(tracks.video);
      if (tracks.audio) sound?.record(tracks.audio, "microphone");
      handle = handlers(message, tracks);
      if (message.ims) terminal = await joinIms(message.ims, handle);
      show("Waiting for the other peer");
      tell({ type: "ready" });
    } else if (message.type === "refused") {
      end(`The lab refused this page: ${message.cause}`, true);
    } else {
      await handle[message.type](message);
    }
  };
  socket.addEventListener("message", ({ data }) => {
    queue = queue.then(() => guard(receive)(JSON.parse(data)));
  });
  socket.addEventListener("close", () => end("The lab has closed the call.", true));
}

window.addEventListener("error", ({ message }) => fail(message));
window.addEventListener("unhandledrejection", ({ reason }) => fail(String(reason)));
show("Joining");
join();
