// The server of the example: Debian's Janus with its video room, and Janus's own demo pages.

import { spawn } from "node:child_process";
import {
  createReadStream,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";

const DEMOS = "/usr/share/janus/demos";
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
/** Janus 1.1 sometimes ends at its start, because a transport is not ready when it looks for one. */
const STARTS = 5;

const libraries = readdirSync("/usr/lib")
  .map((name) => join("/usr/lib", name, "janus"))
  .find((path) => existsSync(path));
if (libraries === undefined || !existsSync(DEMOS)) {
  console.error("install Debian's packages janus and janus-demos");
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), "weir-janus-"));
const configure = (name, text) => writeFileSync(join(folder, `${name}.jcfg`), text);
configure(
  "janus",
  `general: { plugins_folder = "${libraries}/plugins" transports_folder = "${libraries}/transports"
  events_folder = "${folder}" loggers_folder = "${folder}" debug_level = 3 }
plugins: { disable = "${readdirSync(`${libraries}/plugins`)
    .filter((name) => name.endsWith(".so") && name !== "libjanus_videoroom.so")
    .join(",")}" }
transports: { disable = "${readdirSync(`${libraries}/transports`)
    .filter((name) => name.endsWith(".so") && name !== "libjanus_http.so")
    .join(",")}" }
media: { ipv6 = false }
`,
);
configure(
  "janus.transport.http",
  'general: { json = "plain" base_path = "/janus" http = true port = 8088 https = false }\n',
);
// `bitrate` is what a publisher may send at most: the demo's own room has 128 kbit/s.
configure(
  "janus.plugin.videoroom",
  'room-1234: { description = "Demo room" publishers = 6 bitrate = 2500000 fir_freq = 10 videocodec = "vp8" }\n',
);

let starts = 0;
const start = () => {
  starts += 1;
  const janus = spawn("janus", ["--configs-folder", folder], { stdio: "ignore" });
  janus.on("exit", (code) => {
    if (starts < STARTS) return start();
    console.error(`janus ended (${code})`);
    process.exit(1);
  });
};
start();
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

// The demo's settings name a STUN server of the Internet, which is not there.
const SETTINGS = `var server = "http://" + window.location.hostname + ":8088/janus";
var iceServers = [];
var token = "";
var apisecret = "";
`;

createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
  const type = { "content-type": TYPES[extname(path)] ?? "application/octet-stream" };
  if (path === "/settings.js") return response.writeHead(200, type).end(SETTINGS);
  const file = createReadStream(join(DEMOS, path));
  file.on("error", () => response.writeHead(404).end());
  file.on("open", () => {
    response.writeHead(200, type);
    file.pipe(response);
  });
}).listen(9000);
