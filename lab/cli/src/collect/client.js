// Sends what getStats says of a call to `weir collect`, once a second, and again after a break.
// Addresses of the two ends stay here.
//
//   const end = collect("wss://collect.example/c/ROOM/CALL/PEER?token=TOKEN", peerConnection);
//   end.add(another);   more connections of the same end
//   end.stop();         when the call is over
const KEPT = ["type", "timestamp", "protocol", "candidateType", "networkType"];
const LEFT_OUT = ["certificate", "data-channel", "peer-connection", "remote-outbound-rtp"];
const QUEUE = 600;

export function collect(url, first, every = 1000) {
  const connections = new Map();
  let queue = [];
  let socket;
  let wait = 1000;
  let stopped = false;

  function send(name, connection, value) {
    const event = JSON.stringify([name, connection, value, Date.now()]);
    if (socket?.readyState === 1 && socket.bufferedAmount < 1e6) socket.send(event);
    else queue = [...queue.slice(1 - QUEUE), event];
  }

  function connect() {
    socket = new WebSocket(url);
    socket.onopen = () => {
      wait = 1000;
      socket.send(JSON.stringify(["create", null, { userAgent: navigator.userAgent }, Date.now()]));
      for (const event of queue) socket.send(event);
      queue = [];
    };
    socket.onclose = () => {
      if (!stopped) setTimeout(connect, wait * (0.5 + Math.random()));
      wait = Math.min(2 * wait, 30000);
    };
  }

  async function report(connection, name) {
    const objects = {};
    for (const [id, object] of await connection.getStats()) {
      if (LEFT_OUT.includes(object.type)) continue;
      const isPlace = object.type.endsWith("-candidate");
      objects[id] = isPlace ? Object.fromEntries(KEPT.map((it) => [it, object[it]])) : object;
    }
    send("getStats", name, objects);
  }

  function add(connection) {
    const name = String(connections.size);
    connections.set(connection, name);
    const states = { iceconnectionstatechange: "iceConnectionState", connectionstatechange: "connectionState" };
    for (const [event, state] of Object.entries(states)) {
      connection.addEventListener(event, () => send(`on${event}`, name, connection[state]));
      send(`on${event}`, name, connection[state]);
    }
    connection.addEventListener("icecandidateerror", ({ url, errorCode }) =>
      send("onicecandidateerror", name, { url: url.split(":")[0], errorCode }),
    );
  }

  connect();
  if (first) add(first);
  const timer = setInterval(() => {
    for (const [connection, name] of connections) {
      if (connection.connectionState !== "closed") report(connection, name).catch(() => {});
    }
  }, every);

  function stop() {
    stopped = true;
    clearInterval(timer);
    for (const name of connections.values()) send("close", name, null);
    socket.close();
  }
  return { add, stop };
}
