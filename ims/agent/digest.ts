// Answers to challenges of Digest (RFC 2617, section 3.2.2) and AKA (RFC 3310), and MD5 (RFC 1321), which
// browsers do not offer.

import { hex, milenage } from "./milenage.ts";
import { split } from "./sip.ts";

/** What a user authenticates with. The 32 hexadecimal digits of AKA are those of TS 35.206. */
export type Credentials = { password: string } | { aka: { k: string; opc: string } };

export interface Challenge {
  realm: string;
  nonce: string;
  qop: boolean;
  algorithm: string;
  opaque: string | undefined;
}

/** Reads WWW-Authenticate; `null` if it is no challenge of Digest. */
export function challenge(value: string): Challenge | null {
  const scheme = /^digest\s+/i.exec(value);
  if (!scheme) return null;
  const values = new Map<string, string>();
  for (const part of split(value.slice(scheme[0].length), ",")) {
    const at = part.indexOf("=");
    if (at < 1) continue;
    values.set(part.slice(0, at).trim().toLowerCase(), unquoted(part.slice(at + 1).trim()));
  }
  const [realm, nonce] = [values.get("realm"), values.get("nonce")];
  if (realm === undefined || nonce === undefined) return null;
  const qops = (values.get("qop") ?? "").split(",").map((word) => word.trim());
  const algorithm = values.get("algorithm") ?? "MD5";
  return { realm, nonce, qop: qops.includes("auth"), algorithm, opaque: values.get("opaque") };
}

function unquoted(text: string): string {
  if (!text.startsWith('"')) return text;
  return text.replace(/^"|"$/g, "").replace(/\\(.)/g, "$1");
}

export interface Asked {
  username: string;
  method: string;
  uri: string;
  cnonce: string;
}

/** The Authorization for a challenge. Throws an error with the reason if there can be none. */
export async function authorization(
  asked: Asked,
  to: Challenge,
  credentials: Credentials,
): Promise<string> {
  const { username, method, uri, cnonce } = asked;
  const secret = await secretOf(to, credentials);
  const bytes = new Uint8Array([...utf8(`${username}:${to.realm}:`), ...secret]);
  const [ha1, ha2] = [md5(bytes), md5(utf8(`${method}:${uri}`))];
  const nc = "00000001";
  const middle = to.qop ? `${to.nonce}:${nc}:${cnonce}:auth` : to.nonce;
  const parts = [
    `Digest username="${username}"`,
    `realm="${to.realm}"`,
    `nonce="${to.nonce}"`,
    `uri="${uri}"`,
    `response="${md5(utf8(`${ha1}:${middle}:${ha2}`))}"`,
    `algorithm=${to.algorithm}`,
  ];
  if (to.qop) parts.push("qop=auth", `nc=${nc}`, `cnonce="${cnonce}"`);
  if (to.opaque !== undefined) parts.push(`opaque="${to.opaque}"`);
  return parts.join(",");
}

/** The password of Digest, or RES of AKA after the network has shown that it knows K. */
async function secretOf(to: Challenge, credentials: Credentials): Promise<Uint8Array> {
  const algorithm = to.algorithm.toUpperCase();
  if ("password" in credentials) {
    if (algorithm !== "MD5")
      throw new Error(`the algorithm ${to.algorithm} needs other credentials`);
    return utf8(credentials.password);
  }
  if (algorithm !== "AKAV1-MD5") throw new Error(`the algorithm ${to.algorithm} is not AKA`);
  // RFC 3310, section 3.2: the nonce is RAND and AUTN in base 64.
  let nonce: Uint8Array;
  try {
    nonce = Uint8Array.from(atob(to.nonce), (c) => c.charCodeAt(0));
  } catch {
    throw new Error("the nonce of AKA is not in base 64");
  }
  if (nonce.length < 32) throw new Error("the nonce of AKA is too short");
  const [rand, autn] = [nonce.slice(0, 16), nonce.slice(16, 32)];
  const { k, opc } = credentials.aka;
  const { res, ak, macOf } = await milenage(hex(k), hex(opc), rand);
  const sqn = autn.slice(0, 6).map((byte, index) => byte ^ (ak[index] ?? 0));
  const mac = await macOf(sqn, autn.slice(6, 8));
  if (mac.some((byte, index) => byte !== autn[8 + index])) {
    throw new Error("the network does not know the key of AKA");
  }
  return res;
}

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const SINES = Array.from({ length: 64 }, (_, i) => Math.floor(2 ** 32 * Math.abs(Math.sin(i + 1))));

/** MD5 in hexadecimal (RFC 1321). */
export function md5(bytes: Uint8Array): string {
  const blocks = Math.floor((bytes.length + 8) / 64) + 1;
  const padded = new Uint8Array(64 * blocks);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, bytes.length << 3, true);
  view.setUint32(padded.length - 4, Math.floor(bytes.length / 2 ** 29), true);
  const state = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476] as [
    number,
    number,
    number,
    number,
  ];
  for (let at = 0; at < padded.length; at += 64) {
    let [a, b, c, d] = state;
    for (let i = 0; i < 64; i++) {
      const round = i >> 4;
      const [mixed, word] = [
        [(b & c) | (~b & d), i],
        [(b & d) | (c & ~d), 5 * i + 1],
        [b ^ c ^ d, 3 * i + 5],
        [c ^ (b | ~d), 7 * i],
      ][round] as [number, number];
      const sum = (a + mixed + (SINES[i] ?? 0) + view.getUint32(at + 4 * (word % 16), true)) | 0;
      const shift = SHIFTS[4 * round + (i % 4)] ?? 0;
      [a, d, c, b] = [d, c, b, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0];
    }
    for (const [index, value] of [a, b, c, d].entries()) {
      state[index] = ((state[index] ?? 0) + value) | 0;
    }
  }
  const out = new DataView(new ArrayBuffer(16));
  state.forEach((word, index) => out.setUint32(4 * index, word, true));
  return [...new Uint8Array(out.buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
