// A network of `weir link`: two hosts with an emulated path between them.

import { spawn } from "node:child_process";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import * as playwright from "@playwright/test";

const HUB = fileURLToPath(new URL("./hub.mjs", import.meta.url));
/** Addresses of the hosts. The server and the far browser are on the far one. */
const NEAR_ADDRESS = "10.45.0.1";
const FAR_ADDRESS = "10.45.0.2";

/** Lines of JSON to one program and back. */
class Lines {
  #socket;
  #waiting = [];
  #hasEnded = false;
  /** Latest status of the network, if this is the socket of --live. */
  status;

  constructor(socket) {
    this.#socket = socket;
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#hasEnded = true;
      for (const { reject } of this.#waiting.splice(0)) reject(new Error("the network has ended"));
    });
    createInterface({ input: socket }).on("line", (line) => this.#receive(JSON.parse(line)));
  }

  /** Sends a line, and resolves to the answer for which `answers` holds. */
  ask(line, answers) {
    if (this.#hasEnded) return Promise.reject(new Error("the network has ended"));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ answers, resolve, reject });
      this.#socket.write(`${line}\n`);
    });
  }

  end() {
    this.#socket.destroy();
  }

  #receive(object) {
    if (object.status) this.status = object.status;
    const index = this.#waiting.findIndex(({ answers }) => answers(object));
    if (index >= 0) this.#waiting.splice(index, 1)[0].resolve(object);
  }
}

/** A host of the network. Programs on it have no other way to the other host. */
class Host {
  #lines;
  #folder;
  #name;
  #address;
  #count = 0;
  #tunnels = [];

  constructor(name, address, folder, lines) {
    [this.#name, this.#address, this.#folder, this.#lines] = [name, address, folder, lines];
  }

  async #ask(task, settings = {}) {
    const id = ++this.#count;
    const line = JSON.stringify({ id, task, settings });
    const answer = await this.#lines.ask(line, (object) => object.id === id);
    if (answer.error) throw new Error(answer.error);
    return answer;
  }

  async start(command, port) {
    await this.#ask("start", { command, port, address: this.#address });
  }

  /** A browser of Playwright on this host. */
  async browser(browser, options) {
    const socket = join(this.#folder, `${this.#name}-${this.#count}.ws`);
    const { path } = await this.#ask("launch", { browser, options, path: socket });
    const tunnel = createServer((client) => {
      const host = connect(socket);
      client.pipe(host).pipe(client);
      client.on("error", () => host.destroy());
      host.on("error", () => client.destroy());
    });
    await new Promise((resolve) => tunnel.listen(0, "127.0.0.1", resolve));
    this.#tunnels.push(tunnel);
    return playwright[browser].connect(`ws://127.0.0.1:${tunnel.address().port}${path}`);
  }

  async end() {
    await this.#ask("end").catch(() => {});
    for (const tunnel of this.#tunnels) tunnel.close();
  }
}

/** Listens on the socket of a file, for one program. */
async function listen(path) {
  const server = createServer();
  const connected = new Promise((resolve) => {
    server.once("connection", (socket) => {
      server.close();
      resolve(new Lines(socket));
    });
  });
  await new Promise((resolve) => server.listen(path, resolve));
  // A program that never comes keeps no script alive.
  server.unref();
  return connected;
}

/** Two hosts and the path of a scenario between them. */
export class Network {
  #program;
  #ended;
  #live;
  #folder;
  #port;

  /** Builds the network. See the options of the fixtures. */
  static async open({ scenario, weir, server, records, seed }) {
    const network = new Network();
    network.#folder = await mkdtemp(join(tmpdir(), "weir-network-"));
    try {
      await network.#open(scenario, weir, records, seed);
      if (server) {
        network.#port = server.port;
        await network.far.start(server.command, server.port);
      }
    } catch (error) {
      await network.close();
      throw error;
    }
    return network;
  }

  async #open(scenario, weir, records, seed) {
    // --peer is split at spaces, which these paths do not have.
    const [node, hub] = [join(this.#folder, "node"), join(this.#folder, "hub.mjs")];
    await symlink(process.execPath, node);
    await symlink(HUB, hub);
    const socket = (name) => join(this.#folder, name);
    const [near, far, live] = ["near", "far", "live"].map(socket);
    const words = ["link", scenario, "--live", live, "--seed", String(seed)];
    if (records) words.push("--out", records);
    words.push("--peer", `${node} ${hub} ${far}`, "--", node, hub, near);
    const sockets = Promise.all([near, far, live].map(listen));
    this.#program = spawn(weir, words, { stdio: ["ignore", "inherit", "pipe"] });
    const said = [];
    this.#program.stderr.on("data", (bytes) => said.push(bytes) && process.stderr.write(bytes));
    this.#ended = new Promise((resolve) => {
      this.#program.once("error", (error) => resolve(`${weir}: ${error.message}`));
      this.#program.once("close", () => resolve(Buffer.concat(said).toString().trim()));
    });
    const first = await Promise.race([sockets, this.#ended]);
    if (!Array.isArray(first)) throw new Error(first || `${weir} ended at once`);
    this.#live = first[2];
    this.near = new Host("near", NEAR_ADDRESS, this.#folder, first[0]);
    this.far = new Host("far", FAR_ADDRESS, this.#folder, first[1]);
  }

  /** Where the server is: for both pages, and the only secure origin without a certificate. */
  get origin() {
    return this.#port === undefined ? undefined : `http://${FAR_ADDRESS}:${this.#port}`;
  }

  /** Latest status of the link, five times a second. */
  get status() {
    return this.#live.status;
  }

  /** Changes the link at once. */
  async change(line) {
    if (/[\r\n]/.test(line)) throw new Error("a change is one line");
    const answer = await this.#live.ask(line, (object) => object.changed || object.refused);
    if (answer.refused) throw new Error(answer.refused);
  }

  /** Ends all programs on both hosts. Returns how this machine disturbed the emulated network, if it did. */
  async close() {
    await this.far?.end();
    await this.near?.end();
    if (!this.near) this.#program?.kill();
    const said = await this.#ended;
    this.#live?.end();
    await rm(this.#folder, { recursive: true, force: true });
    return said?.match(/this machine disturbed the run: .*/g) ?? [];
  }
}
