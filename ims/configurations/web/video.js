// The page behind the facilitator's link: video that begins when the telephone call is answered, and ends with
// it. The voice stays in the telephone call.

/** What this side wants to receive, in kbit/s. */
const VIDEO_KBPS = 2500;
const state = document.getElementById("state");
/** What has happened, for whoever drives the page. */
const video = { events: [], connection: null };
window.video = video;
const happened = (type) => {
  video.events.push({ time: Date.now(), type });
  state.textContent = type;
};
const here = location.pathname;

const connection = new RTCPeerConnection();
video.connection = connection;
const stream = await navigator.mediaDevices.getUserMedia({ video: true });
for (const track of stream.getTracks()) connection.addTrack(track, stream);
connection.addEventListener("track", ({ streams }) => {
  document.getElementById("remote").srcObject = streams[0];
});

/** Makes our description, with all candidates and the rate that Rx needs (TS 24.229, 6.1.1). */
async function describe() {
  await connection.setLocalDescription();
  if (connection.iceGatheringState !== "complete") {
    await new Promise((resolve) => {
      connection.addEventListener("icegatheringstatechange", () => {
        if (connection.iceGatheringState === "complete") resolve();
      });
    });
  }
  const { sdp } = connection.localDescription;
  const body = sdp.replace(/(m=video [^\r]*\r\nc=[^\r]*\r\n)/, `$1b=AS:${VIDEO_KBPS}\r\n`);
  await fetch(`${here}/description`, { method: "POST", body });
}

const events = new EventSource(`${here}/events`);
events.addEventListener("joined", () => happened("joined"));
events.addEventListener("offer", () => void describe());
events.addEventListener("describe", async ({ data }) => {
  const description = JSON.parse(data);
  await connection.setRemoteDescription(description);
  if (description.type === "offer") await describe();
  happened("connected");
});
events.addEventListener("ended", () => {
  events.close();
  connection.close();
  for (const track of stream.getTracks()) track.stop();
  happened("ended");
});
