// A call between two pages, and its server: the page, and the messages that the pages leave for each other.

import { createServer } from "node:http";

const PAGE = `<!doctype html><title>call</title><video id="seen" autoplay muted playsinline></video>
<p>pictures: <output id="pictures">0</output></p>
<script type="module">
const me = new URLSearchParams(location.search).get("me");
const other = me === "a" ? "b" : "a";
const pc = new RTCPeerConnection();
globalThis.pc = pc;
const tell = (message) => fetch("/for/" + other, { method: "POST", body: JSON.stringify(message) });
pc.onicecandidate = ({ candidate }) => candidate && tell({ candidate });
pc.ontrack = ({ streams }) => { seen.srcObject = streams[0]; };
const camera = await navigator.mediaDevices.getUserMedia({ video: true });
camera.getTracks().forEach((track) => pc.addTrack(track, camera));
const describe = async () => {
  await pc.setLocalDescription();
  tell({ description: pc.localDescription });
};
if (me === "a") await describe();
setInterval(async () => {
  for (const { candidate, description } of await (await fetch("/for/" + me)).json()) {
    if (candidate) await pc.addIceCandidate(candidate);
    if (description) await pc.setRemoteDescription(description);
    if (description?.type === "offer") await describe();
  }
  pictures.value = seen.getVideoPlaybackQuality().totalVideoFrames;
}, 100);
</script>`;

const waiting = { a: [], b: [] };

createServer(async (request, response) => {
  const [, kind, name] = request.url.split("/");
  if (kind !== "for") {
    response.setHeader("content-type", "text/html").end(PAGE);
  } else if (request.method === "POST") {
    let text = "";
    for await (const part of request) text += part;
    waiting[name].push(text);
    response.end();
  } else {
    response.end(`[${waiting[name].splice(0)}]`);
  }
}).listen(9000);
