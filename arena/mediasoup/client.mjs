// The page of a participant: it sends its camera in three layers, and shows what all others send.

import { Device } from "mediasoup-client";

// Those of examples/sfu, so that the two servers have the same to choose from.
const LAYERS = [
  { rid: "l", scaleResolutionDownBy: 4, maxBitrate: 150_000 },
  { rid: "m", scaleResolutionDownBy: 1.5, maxBitrate: 500_000 },
  { rid: "h", scaleResolutionDownBy: 1, maxBitrate: 1_500_000 },
];
const CAMERA = { width: 960, height: 540, frameRate: 30 };

const find = (id) => document.getElementById(id);

/** Asks the server; paths and answers are those of server.mjs. */
async function ask(path, body = {}) {
  const response = await fetch(path, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/** Lets a transport of the client tell the server its certificate when it connects. */
function connectBy(transport) {
  transport.on("connect", ({ dtlsParameters }, done, failed) => {
    ask("/connect", { transport: transport.id, dtlsParameters }).then(done, failed);
  });
}

async function publish(device, name) {
  const transport = device.createSendTransport(await ask("/transport", { name }));
  connectBy(transport);
  transport.on("produce", ({ kind, rtpParameters }, done, failed) => {
    ask("/produce", { name, transport: transport.id, kind, rtpParameters }).then(done, failed);
  });
  const camera = await navigator.mediaDevices.getUserMedia({ video: CAMERA });
  await transport.produce({ track: camera.getVideoTracks()[0], encodings: LAYERS });
}

/** Shows everybody else, now and later. */
async function subscribe(device, name) {
  const transport = device.createRecvTransport(await ask("/transport", { name }));
  connectBy(transport);
  let known = 0;
  while (true) {
    // The server answers once there is somebody more.
    const producers = await ask("/producers", { known });
    for (const producer of producers.slice(known)) {
      if (producer.name !== name) await show(device, transport, producer, name);
    }
    known = producers.length;
  }
}

async function show(device, transport, producer, name) {
  const { rtpCapabilities } = device;
  const asked = { name, transport: transport.id, producer: producer.id, rtpCapabilities };
  const consumer = await transport.consume(await ask("/consume", asked));
  const video = document.createElement("video");
  Object.assign(video, { autoplay: true, muted: true, playsInline: true });
  video.srcObject = new MediaStream([consumer.track]);
  find("others").append(video);
  await ask("/resume", { consumer: consumer.id });
}

async function join() {
  const name = find("me").value;
  const device = new Device();
  await device.load({ routerRtpCapabilities: await ask("/capabilities") });
  await publish(device, name);
  find("state").textContent = "in the room";
  await subscribe(device, name);
}

find("join").addEventListener("click", () => {
  join().catch((error) => {
    find("state").textContent = String(error);
  });
});
