// Says what limits a call while it runs. The rules are those of `weir analyze`, in this page.
//
//   import { watch } from "./watch.js";
//   const call = await watch(peerConnection, (findings) => show(findings.map((it) => it.cause)));
//   call.add(another);   more connections of the same call
//   call.stop();         when the call is over
//
// `tell` gets the findings that hold, after each report: an empty list if nothing limits the call.
const STATES = { iceconnectionstatechange: "iceConnectionState", connectionstatechange: "connectionState" };

export async function watch(first, tell, options = {}) {
  const { wasm = new URL("weir-watch.wasm", import.meta.url), every = 1000, window = 60 } = options;
  const bytes = await (await fetch(wasm)).arrayBuffer();
  const rules = (await WebAssembly.instantiate(bytes)).instance.exports;
  const call = rules.weir_watch_begin(window);
  const connections = new Map();
  let stopped = false;

  function take(name, connection, value) {
    if (stopped) return;
    const event = new TextEncoder().encode(JSON.stringify([name, connection, value, Date.now()]));
    const place = rules.weir_watch_alloc(event.length);
    new Uint8Array(rules.memory.buffer, place, event.length).set(event);
    const answer = rules.weir_watch_take(call, place, event.length);
    rules.weir_watch_free(place, event.length);
    const start = Number((answer >> 32n) & 0xffffffffn);
    const length = Number(answer & 0xffffffffn);
    const text = new TextDecoder().decode(new Uint8Array(rules.memory.buffer, start, length));
    rules.weir_watch_free(start, length);
    const { findings, error } = JSON.parse(text);
    if (error) console.warn(`weir-watch: ${error}`);
    else tell(findings.filter((it) => it.holds));
  }

  async function report(connection, name) {
    take("getStats", name, Object.fromEntries(await connection.getStats()));
  }

  function add(connection) {
    const name = String(connections.size);
    connections.set(connection, name);
    for (const [event, state] of Object.entries(STATES)) {
      connection.addEventListener(event, () => take(`on${event}`, name, connection[state]));
      take(`on${event}`, name, connection[state]);
    }
  }

  if (first) add(first);
  const timer = setInterval(() => {
    for (const [connection, name] of connections) {
      if (connection.connectionState !== "closed") report(connection, name).catch(() => {});
    }
  }, every);

  function stop() {
    if (stopped) return;
    stopped = true;
    clearInterval(timer);
    rules.weir_watch_end(call);
  }
  return { add, stop };
}
