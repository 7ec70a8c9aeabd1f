// A telephone in a page: registers with the token of the log-in, calls and is called.

import { connect, gathered } from "/wic.js";

const REGISTRATION_SECONDS = 600;
/** The time in ms since 1970, with the fractions that the order of messages needs. */
const now = () => performance.timeOrigin + performance.now();
const byId = (id) => document.getElementById(id);
/** What has happened, for whoever drives the page. */
const phone = { events: [], messages: [], connection: null, firstPicture: null };
window.phone = phone;

const answer = await fetch("/account");
const { url, account } = await answer.json();
phone.account = account;
byId("remote").addEventListener("loadeddata", () => {
  phone.firstPicture ??= now();
});
const stream = await navigator.mediaDevices.getUserMedia({ audio: true, video: true });

/** Each call has a connection of its own, with ports of its own for each medium: no BUNDLE. */
function open() {
  phone.connection?.close();
  const connection = new RTCPeerConnection({ bundlePolicy: "max-compat" });
  for (const track of stream.getTracks()) connection.addTrack(track, stream);
  connection.addEventListener("track", ({ streams, track }) => {
    byId("remote").srcObject = streams[0] ?? new MediaStream([track]);
  });
  phone.connection = connection;
  return connection;
}

const media = {
  async offer() {
    const connection = open();
    await connection.setLocalDescription();
    return gathered(connection);
  },
  async answer(sdp) {
    const connection = open();
    await connection.setRemoteDescription({ type: "offer", sdp });
    await connection.setLocalDescription();
    return gathered(connection);
  },
  accept: (sdp) => phone.connection.setRemoteDescription({ type: "answer", sdp }),
};

const agent = await connect({
  url,
  account: { ...account, rates: { audio: 64, video: 2500 } },
  media,
  onCall: { answerAfterMs: 200 },
  on(event) {
    phone.events.push({ time: now(), ...event });
    byId("state").textContent = event.type;
  },
  onMessage: (text, isSent) => phone.messages.push({ time: now(), isSent, text }),
});
phone.agent = agent;
void agent.register(REGISTRATION_SECONDS);
let holds = false;
byId("hold").addEventListener("click", () => {
  holds = !holds;
  void agent.hold(holds);
});
byId("end").addEventListener("click", () => void agent.hangUp());
byId("dial").addEventListener("submit", (event) => {
  event.preventDefault();
  void agent.dial(new FormData(event.target).get("target"));
});
