// The server of the example: LiveKit's own server, the page with LiveKit's own client, and tokens for its room.

import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const program = process.env.LIVEKIT_SERVER ?? join(here, "livekit-server");
const address = process.env.WEIR_ADDRESS ?? "127.0.0.1";
const [key, secret] = ["weir", "a secret of at least thirty-two characters"];
const TOKEN_LIFE_S = 3600;

if (!existsSync(program)) {
  console.error("run get-server.sh, or name LiveKit's server in LIVEKIT_SERVER");
  process.exit(1);
}

// Media goes to the address that everybody reaches. A way around it over TCP is closed.
const config = {
  port: 7880,
  bind_addresses: [address],
  rtc: {
    udp_port: 7882,
    tcp_port: 0,
    node_ip: address,
    use_external_ip: false,
    allow_tcp_fallback: false,
    // Otherwise it is the receivers' estimate (REMB).
    congestion_control: { use_send_side_bwe: process.env.LIVEKIT_SEND_SIDE === "1" },
  },
  keys: { [key]: secret },
  logging: { level: "error" },
};
const server = spawn(program, ["--config-body", JSON.stringify(config)], { stdio: "ignore" });
server.on("exit", (code) => {
  console.error(`livekit-server ended (${code})`);
  process.exit(1);
});
process.on("exit", () => server.kill("SIGKILL"));

/** A token that lets its holder into the room [RFC7519]. */
function token(identity) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: key,
    sub: identity,
    nbf: now - 60,
    exp: now + TOKEN_LIFE_S,
    video: { room: "room", roomJoin: true },
  };
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

const client = createRequire(import.meta.url)
  .resolve("livekit-client")
  .replace(/dist\/.*/, "dist/livekit-client.umd.js");
const files = {
  "/": [join(here, "index.html"), "text/html"],
  "/livekit-client.js": [client, "text/javascript"],
};

createServer((request, response) => {
  const url = new URL(request.url, "http://x");
  if (url.pathname === "/token") {
    response.writeHead(200, { "content-type": "text/plain" });
    return response.end(token(url.searchParams.get("name")));
  }
  const found = files[url.pathname];
  if (!found) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": found[1] });
  createReadStream(found[0]).pipe(response);
}).listen(9000);
