// One peer of a call. It starts by itself, sends the camera where the lab asks for it, shows what
// arrives, and reports getStats to the lab. The lab's messages are defined in src/message.rs.

// Members that the lab reads, by kind of object; everything else stays in the browser.
const MEMBERS = {
  outbound: [
    "timestamp", "packetsSent", "bytesSent", "headerBytesSent", "retransmittedPacketsSent",
    "retransmittedBytesSent", "targetBitrate", "frameWidth", "frameHeight", "framesPerSecond",
    "framesEncoded", "qpSum", "totalEncodeTime", "totalPacketSendDelay", "qualityLimitationReason",
    "nackCount", "pliCount",
  ],
  inbound: [
    "timestamp", "packetsReceived", "packetsLost", "bytesReceived", "headerBytesReceived",
    "fecBytesReceived", "retransmittedBytesReceived", "frameWidth", "frameHeight",
    "framesPerSecond", "framesReceived", "framesDecoded", "framesDropped", "freezeCount",
    "totalFreezesDuration", "jitterBufferDelay", "jitterBufferEmittedCount", "nackCount",
    "pliCount",
  ],
  remoteInbound: [
    "timestamp", "roundTripTime", "roundTripTimeMeasurements", "fractionLost", "packetsLost",
  ],
  pair: [
    "timestamp", "packetsSent", "bytesSent", "packetsReceived", "bytesReceived",
    "currentRoundTripTime", "responsesReceived", "availableOutgoingBitrate",
  ],
  candidate: ["address", "port", "protocol", "candidateType"],
  transport: ["srtpCipher", "dtlsCipher", "selectedCandidatePairChanges"],
};

const element = (id) => document.getElementById(id);
// Milliseconds since the page was opened, of each step of the set-up.
const setup = { camera: null, joined: null, start: null, ice: null, connected: null };
let socket = null;
let connection = null;
let ended = false;

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
  const find = (type) => objects.find((o) => o.type === type && (o.kind ?? "video") === "video");
  const report = {};
  const add = (name, object) => {
    if (object) report[name] = pick(object, MEMBERS[name]);
  };
  add("outbound", find("outbound-rtp"));
  add("inbound", find("inbound-rtp"));
  add("remoteInbound", find("remote-inbound-rtp"));
  const transport = find("transport");
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

async function openCamera({ width, height, frameRate }) {
  let media;
  try {
    media = await navigator.mediaDevices.getUserMedia({
      video: { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: frameRate } },
    });
  } catch (error) {
    throw new Error(`The camera cannot be used: ${error.message}`);
  }
  setup.camera = performance.now();
  return media.getVideoTracks()[0];
}

// VP8 first; the repair formats and the other codecs keep their order behind it.
function preferVp8(transceiver) {
  const { codecs } = RTCRtpReceiver.getCapabilities("video");
  const isVp8 = (codec) => codec.mimeType === "video/VP8";
  const others = codecs.filter((codec) => !isVp8(codec));
  transceiver.setCodecPreferences([...codecs.filter(isVp8), ...others]);
}

async function limitSender(sender, { maxBitrate, frameRate }) {
  const parameters = sender.getParameters();
  parameters.degradationPreference = "maintain-resolution";
  for (const encoding of parameters.encodings) {
    encoding.maxBitrate = maxBitrate;
    encoding.maxFramerate = frameRate;
  }
  await sender.setParameters(parameters);
}

function watch(config) {
  connection.addEventListener("icecandidate", ({ candidate }) => {
    // The end-of-candidates mark is of no use to the peer: host candidates come at once.
    if (candidate?.candidate) tell({ type: "candidate", candidate });
  });
  connection.addEventListener("iceconnectionstatechange", () => {
    if (connection.iceConnectionState === "connected") setup.ice ??= performance.now();
  });
  connection.addEventListener("connectionstatechange", () => {
    show(`Call is ${connection.connectionState}`);
    if (connection.connectionState === "failed") {
      fail(`No connection to the other peer: ICE is ${connection.iceConnectionState}.`);
    }
    if (connection.connectionState === "connected" && setup.connected === null) {
      setup.connected = performance.now();
      tell({ type: "connected", setup });
      setInterval(() => ended || guard(reportStats)(), config.statsInterval);
    }
  });
  connection.addEventListener("track", ({ track, streams }) => {
    const video = element("video");
    video.srcObject = streams[0] ?? new MediaStream([track]);
    video.requestVideoFrameCallback?.((now) => tell({ type: "playing", firstFrame: now }));
  });
}

const handlers = (config, track) => ({
  // Both peers are there: the offerer begins.
  async start() {
    setup.start = performance.now();
    connection = new RTCPeerConnection({ iceServers: [] });
    watch(config);
    if (!config.offers) return;
    const direction = config.receives ? "sendrecv" : "sendonly";
    const transceiver = connection.addTransceiver(track, { direction });
    preferVp8(transceiver);
    await limitSender(transceiver.sender, config);
    await connection.setLocalDescription();
    tell({ type: "offer", sdp: connection.localDescription.sdp });
  },
  async offer({ sdp }) {
    await connection.setRemoteDescription({ type: "offer", sdp });
    const [transceiver] = connection.getTransceivers();
    preferVp8(transceiver);
    if (config.sends) {
      transceiver.direction = "sendrecv";
      await transceiver.sender.replaceTrack(track);
    }
    await connection.setLocalDescription();
    // At once: a candidate that overtakes its description is an error at the other peer.
    tell({ type: "answer", sdp: connection.localDescription.sdp });
    if (config.sends) await limitSender(transceiver.sender, config);
  },
  async answer({ sdp }) {
    await connection.setRemoteDescription({ type: "answer", sdp });
  },
  async candidate({ candidate }) {
    await connection.addIceCandidate(candidate);
  },
  async stop() {
    if (setup.connected !== null) await reportStats();
    end("The call has ended.");
  },
});

// Turns a rejected promise into a failure that the lab hears of.
const guard = (action) => (...args) =>
  action(...args).catch((error) => ended || fail(error.message));

// The first message is the configuration; the camera is opened before the lab hears that the peer
// is ready, so that the messages that follow find it there.
function join() {
  const url = new URL(`${location.pathname}/socket`, location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(url);
  let handle = null;
  let queue = Promise.resolve(); // Messages are handled one after the other, in order.
  const receive = async (message) => {
    if (message.type === "config") {
      setup.joined = performance.now();
      const track = message.sends ? await openCamera(message) : null;
      handle = handlers(message, track);
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
