// The WebRTC web server function (WWSF): a log-in page, and a page that is a terminal of the IMS (W1).
//
//   node wwsf.mjs web.json
//
//   browser -- W1: name and password, or a visitor --> WWSF -- W4: for whom --> WAF
//   browser <-- identity and token --------------------+

import { randomBytes, timingSafeEqual, createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:https";
import { noter } from "./note.mjs";

const config = JSON.parse(readFileSync(process.argv[2], "utf8"));
const file = (path) => readFileSync(new URL(path, import.meta.url));
const pages = {
  "/": ["text/html", file("login.html")],
  "/phone": ["text/html", file("phone.html")],
  "/phone.js": ["text/javascript", file("phone.js")],
  "/wic.js": ["text/javascript", readFileSync(config.agent)],
};
const note = noter(config.folder, "wwsf");
/** The terminal of a connection. */
const terminalOf = ({ socket }) => config.terminals[socket.remoteAddress] ?? socket.remoteAddress;
const COOKIE = "__Host-session";
const MOST_BYTES = 4096;
/** Users by the secret of their session. A session ends when its first token would. */
const sessions = new Map();
const certificate = (name, end) => readFileSync(`${config.folder}/${name}.${end}`);

/** A token of the WAF for this user (W4: RFC 6749, section 4.4). */
function token({ impi, impu }) {
  const body = new URLSearchParams({ grant_type: "client_credentials", impi, impu }).toString();
  const options = {
    method: "POST",
    auth: `wwsf:${config.secrets.wwsf}`,
    ca: certificate("waf", "crt"),
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
  };
  note("wwsf", "waf", "HTTP", "POST /token", body);
  return new Promise((resolve, reject) => {
    const asked = request(`${config.waf}/token`, options, async (response) => {
      let text = "";
      for await (const part of response) text += part;
      // The answer is the token.
      note("waf", "wwsf", "HTTP", `${response.statusCode} /token`, "");
      if (response.statusCode === 200) resolve(JSON.parse(text).access_token);
      else reject(new Error(`the WAF answers ${response.statusCode}: ${text}`));
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

const digest = (text) => createHash("sha256").update(text).digest();

/** The user of this name and password, or undefined. */
function authenticated(name, password) {
  const user = config.users.find((one) => one.name === name && one.password);
  const isIt = timingSafeEqual(digest(password), digest(user?.password ?? randomBytes(8)));
  return isIt ? user : undefined;
}

/** An identity of the pool that no visitor has; undefined if all are taken. */
function visitor() {
  const taken = new Set([...sessions.values()].map((user) => user.impi));
  return config.pool.find((one) => !taken.has(one.impi));
}

function sessionOf(incoming) {
  const cookies = (incoming.headers.cookie ?? "").split(/; */);
  const value = cookies.find((one) => one.startsWith(`${COOKIE}=`));
  return value?.slice(COOKIE.length + 1);
}

async function form(incoming) {
  let text = "";
  for await (const part of incoming) {
    text += part;
    if (text.length > MOST_BYTES) throw new Error("the form is too long");
  }
  return new URLSearchParams(text);
}

function begin(response, user) {
  const secret = randomBytes(24).toString("base64url");
  sessions.set(secret, user);
  setTimeout(() => sessions.delete(secret), 1000 * config.tokenSeconds).unref();
  const cookie = `${COOKIE}=${secret}; Path=/; Secure; HttpOnly; SameSite=Strict`;
  response.writeHead(303, { "Set-Cookie": cookie, Location: "/phone" }).end();
}

const refuse = (response, code, text) =>
  response.writeHead(code, { "Content-Type": "text/plain" }).end(`${text}\n`);

async function account(incoming, response, user) {
  const address = incoming.socket.remoteAddress;
  const { impi, impu } = user;
  const credentials = { token: await token(user) };
  const answer = {
    url: config.epcscf,
    // The network's store of contacts knows only addresses: the terminal's, as it is seen here.
    account: { private: impi, public: impu, realm: config.realm, address, credentials },
  };
  response.writeHead(200, { "Content-Type": "application/json", "Cache-Control": "no-store" });
  response.end(JSON.stringify(answer));
}

async function serve(incoming, response) {
  const { method } = incoming;
  const { pathname } = new URL(incoming.url, config.wwsf);
  const secret = sessionOf(incoming);
  const user = sessions.get(secret);
  const terminal = terminalOf(incoming);
  if (method === "POST" || pathname === "/account") {
    note(terminal, "wwsf", "HTTP", `${method} ${pathname}`, "");
    response.on("finish", () =>
      note("wwsf", terminal, "HTTP", `${response.statusCode} ${pathname}`, ""),
    );
  }
  if (method === "POST" && pathname === "/login") {
    const asked = await form(incoming);
    const found = authenticated(asked.get("name") ?? "", asked.get("password") ?? "");
    return found ? begin(response, found) : refuse(response, 401, "name or password is wrong");
  }
  if (method === "POST" && pathname === "/visit") {
    const found = visitor();
    return found ? begin(response, found) : refuse(response, 503, "no identity is free");
  }
  if (method === "POST" && pathname === "/logout") {
    sessions.delete(secret);
    return response.writeHead(303, { Location: "/" }).end();
  }
  if (method !== "GET") return refuse(response, 405, "not allowed");
  if (pathname !== "/" && !user) return response.writeHead(303, { Location: "/" }).end();
  if (pathname === "/account") return account(incoming, response, user);
  const page = pages[pathname];
  if (!page) return refuse(response, 404, "not here");
  response.writeHead(200, { "Content-Type": `${page[0]}; charset=utf-8` }).end(page[1]);
}

const options = { cert: certificate("wwsf", "crt"), key: certificate("wwsf", "key") };
const server = createServer(options, (incoming, response) => {
  serve(incoming, response).catch((error) => {
    console.error(error.message);
    if (!response.headersSent) refuse(response, 502, "no token");
  });
});
const { port } = new URL(config.wwsf);
server.listen(port, config.addresses.wwsf, () => console.log("the WWSF runs"));
