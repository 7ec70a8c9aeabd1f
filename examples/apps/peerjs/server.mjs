// The server of the example: PeerJS's own signalling server, the page, and PeerJS's own client.

import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PeerServer } from "peer";

const here = dirname(fileURLToPath(import.meta.url));
const client = createRequire(import.meta.url)
  .resolve("peerjs")
  .replace(/dist\/.*/, "dist/peerjs.min.js");
const files = {
  "/": [join(here, "index.html"), "text/html"],
  "/peerjs.min.js": [client, "text/javascript"],
};

PeerServer({ port: 9001, path: "/" });
createServer((request, response) => {
  const found = files[new URL(request.url, "http://x").pathname];
  if (!found) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": found[1] });
  createReadStream(found[0]).pipe(response);
}).listen(9000);
