// The page under a policy that forbids all it does not need, and its signalling: messages wait for a name.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src 'none'";
const files = { "/": ["index.html", "text/html"], "/app.js": ["app.js", "text/javascript"] };
const waiting = { p1: [], p2: [] };
const asking = {};

function deliver(name) {
  if (!asking[name] || waiting[name].length === 0) return;
  asking[name].end(JSON.stringify(waiting[name].splice(0)));
  delete asking[name];
}

createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://x");
  const [, what, name] = pathname.split("/");
  response.setHeader("content-security-policy", POLICY);
  if (what === "to") {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      waiting[name].push(JSON.parse(body));
      response.end();
      deliver(name);
    });
  } else if (what === "for") {
    asking[name]?.end("[]");
    asking[name] = response;
    deliver(name);
  } else if (files[pathname]) {
    const [file, type] = files[pathname];
    response.setHeader("content-type", type);
    response.end(readFileSync(new URL(file, import.meta.url)));
  } else response.writeHead(404).end();
}).listen(9000);
