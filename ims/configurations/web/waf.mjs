// The WebRTC authorization function (WAF): an OpenID provider that gives tokens to the web server (W4) and
// tells the eP-CSCF what they are worth (W5).
//
//   node waf.mjs web.json

import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import Provider from "oidc-provider";
import { noter } from "./note.mjs";

const config = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const client = (client_id) => ({
  client_id,
  client_secret: config.secrets[client_id],
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
  id_token_signed_response_alg: "ES256",
});
const provider = new Provider(config.waf, {
  clients: [client("wwsf"), client("epcscf")],
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), use: "sig", alg: "ES256" }] },
  clientAuthMethods: ["client_secret_basic"],
  cookies: { keys: [config.secrets.wwsf] },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    // RFC 7662, section 2.1: only the eP-CSCF may ask.
    introspection: {
      enabled: true,
      allowedPolicy: (_context, asking) => asking.clientId === "epcscf",
    },
    revocation: { enabled: true },
  },
  // The web server says for whom a token is. Nobody else's token has identities.
  extraTokenClaims(context, token) {
    if (token.clientId !== "wwsf") return undefined;
    const { impi, impu } = context.oidc.body;
    return { impi, impu };
  },
  ttl: { ClientCredentials: config.tokenSeconds },
});
const [cert, key] = ["crt", "key"].map((end) => readFileSync(`${config.folder}/waf.${end}`));
const note = noter(config.folder, "waf");
const answer = provider.callback();
const server = createServer({ cert, key }, (incoming, response) => {
  const { pathname } = new URL(incoming.url, config.waf);
  // The other requests are those of the web server, which notes them.
  if (pathname === "/token/introspection") {
    note("epcscf", "waf", "HTTP", `POST ${pathname}`, "");
    response.on("finish", () =>
      note("waf", "epcscf", "HTTP", `${response.statusCode} ${pathname}`, ""),
    );
  }
  return answer(incoming, response);
});
// Terminals reach this address too.
server.on("connection", (socket) => {
  if (!socket.remoteAddress.startsWith(config.core)) socket.destroy();
});
server.listen(new URL(config.waf).port, config.addresses.waf, () => console.log("the WAF runs"));
