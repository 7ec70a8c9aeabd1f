// Runs on one host of the emulated network, and starts what the tests want there: browsers and servers.
//
// Its only argument is the socket of a file on which the tests listen. Lines of JSON in, one line of JSON for each out.
// Such sockets do not cross the emulated network, so the tests' own traffic is not measured.

import { spawn } from "node:child_process";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

import * as playwright from "@playwright/test";

/** How long a server may take until it listens, in ms. */
const PATIENCE_MS = 30_000;
const RETRY_MS = 50;

const [, , controlPath] = process.argv;
const servers = [];
const commands = [];

/** Whether something listens on a port of this host. */
function listens(port, host) {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

/** Starts a shell command, and waits until it listens on its port. */
async function start({ command, port, address }) {
  const env = { ...process.env, WEIR_ADDRESS: address };
  const child = spawn("/bin/sh", ["-c", command], { env, stdio: ["ignore", "inherit", "inherit"] });
  commands.push(child);
  let ended;
  child.once("exit", (code, signal) => {
    ended = `'${command}' ended with ${signal ?? `exit code ${code}`}`;
  });
  for (const end = Date.now() + PATIENCE_MS; ; ) {
    if ((await listens(port, "127.0.0.1")) || (await listens(port, address))) return {};
    if (ended) throw new Error(ended);
    if (Date.now() > end) throw new Error(`'${command}' does not listen on port ${port}`);
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Joins two sockets until one of them ends. */
function join(one, other) {
  one.pipe(other).pipe(one);
  one.on("error", () => other.destroy());
  other.on("error", () => one.destroy());
}

/** Starts a browser. Playwright finds it through the socket of a file. */
async function launch({ browser, options, path }) {
  const server = await playwright[browser].launchServer({ ...options, host: "127.0.0.1" });
  servers.push(server);
  const endpoint = new URL(server.wsEndpoint());
  const listener = createServer((client) => join(client, connect(endpoint.port, "127.0.0.1")));
  await new Promise((resolve) => listener.listen(path, resolve));
  return { path: endpoint.pathname };
}

async function end() {
  for (const server of servers) await server.close();
  for (const command of commands) command.kill();
  process.exit(0);
}

const tasks = { launch, start, end };
const control = connect(controlPath);
control.on("error", end).on("close", end);
for await (const line of createInterface({ input: control })) {
  const { id, task, settings } = JSON.parse(line);
  tasks[task](settings)
    .catch((error) => ({ error: String(error.message).split("\n")[0] }))
    .then((answer) => control.write(`${JSON.stringify({ id, ...answer })}\n`));
}
