// The server of the example: the page, the rules, and the signalling, which passes each message on to
// the other name. What a page finds is printed, one line of JSON each.

import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const crate = join(here, "../../../lab/watch");
const files = {
  "/": [join(here, "index.html"), "text/html"],
  "/watch.js": [join(crate, "watch.js"), "text/javascript"],
  "/weir-watch.wasm": [join(crate, "weir-watch.wasm"), "application/wasm"],
};
// Messages that wait for a name, and the request that waits for them.
const waiting = new Map();
const asking = new Map();

function deliver(name) {
  const response = asking.get(name);
  const messages = waiting.get(name);
  if (!response || !messages) return;
  asking.delete(name);
  waiting.delete(name);
  response.setHeader("content-type", "application/json").end(JSON.stringify(messages));
}

async function bodyOf(request) {
  let body = "";
  for await (const part of request) body += part;
  return body;
}

async function serve(request, response) {
  const { pathname } = new URL(request.url, "http://x");
  const [, what, name] = pathname.split("/");
  if (what === "to" && request.method === "POST") {
    const message = JSON.parse(await bodyOf(request));
    waiting.set(name, [...(waiting.get(name) ?? []), message]);
    response.end();
    deliver(name);
  } else if (what === "for") {
    asking.get(name)?.end("[]");
    asking.set(name, response);
    deliver(name);
  } else if (what === "found" && request.method === "POST") {
    console.log(await bodyOf(request));
    response.end();
  } else if (files[pathname]) {
    const [file, type] = files[pathname];
    const content = createReadStream(file);
    content.on("error", () =>
      response.writeHead(404).end(`there is no ${file}: scripts/build/watch-wasm.sh makes it\n`),
    );
    response.setHeader("content-type", type);
    content.pipe(response);
  } else {
    response.writeHead(404).end();
  }
}

createServer((request, response) => {
  serve(request, response).catch((error) => response.writeHead(400).end(String(error)));
}).listen(Number(process.env.PORT ?? 9000));
