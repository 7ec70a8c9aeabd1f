// A call between p1 and p2. The page has no style, no worker and no script but this one.
const query = new URLSearchParams(location.search);
const me = query.get("me");
const other = me === "p1" ? "p2" : "p1";
const send = (message) => fetch(`/to/${other}`, { method: "POST", body: JSON.stringify(message) });

function show(stream) {
  const video = document.createElement("video");
  Object.assign(video, { autoplay: true, muted: true, playsInline: true, srcObject: stream });
  document.getElementById("videos").append(video);
}

async function main() {
  const camera = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 360 } });
  // As applications do, the page shows its own camera, too.
  show(camera);
  const connection = new RTCPeerConnection();
  connection.onicecandidate = ({ candidate }) => candidate && send({ candidate });
  connection.onconnectionstatechange = () => {
    document.getElementById("state").textContent = connection.connectionState;
  };
  connection.ontrack = ({ track }) => show(new MediaStream([track]));
  for (const track of camera.getTracks()) connection.addTrack(track, camera);
  if (me === "p2") {
    await connection.setLocalDescription();
    send({ description: connection.localDescription });
  }
  const early = [];
  for (;;) {
    for (const { description, candidate } of await (await fetch(`/for/${me}`)).json()) {
      if (candidate && !connection.remoteDescription) early.push(candidate);
      else if (candidate) await connection.addIceCandidate(candidate);
      if (!description) continue;
      await connection.setRemoteDescription(description);
      for (const candidate of early.splice(0)) await connection.addIceCandidate(candidate);
      if (description.type !== "offer") continue;
      await connection.setLocalDescription();
      send({ description: connection.localDescription });
    }
  }
}

// A page without a name waits to be told it.
if (me) {
  main().catch((error) => {
    document.getElementById("state").textContent = String(error);
  });
}
