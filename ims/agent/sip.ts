// SIP messages: reading and writing (RFC 3261, section 7). The reader takes any text and never throws.

export interface Request {
  kind: "request";
  method: string;
  uri: string;
  headers: Header[];
  body: string;
}

export interface Response {
  kind: "response";
  code: number;
  reason: string;
  headers: Header[];
  body: string;
}

export type Message = Request | Response;
export type Header = [name: string, value: string];

/** Longest message that is read: the largest frame that a P-CSCF sends. */
export const MOST_CHARACTERS = 65_536;
const MOST_HEADERS = 200;

/** Compact forms of header names (RFC 3261, section 7.3.3). */
const COMPACT: Record<string, string> = {
  b: "Referred-By",
  c: "Content-Type",
  e: "Content-Encoding",
  f: "From",
  i: "Call-ID",
  k: "Supported",
  l: "Content-Length",
  m: "Contact",
  o: "Event",
  s: "Subject",
  t: "To",
  u: "Allow-Events",
  v: "Via",
};

/** Reads a message; `null` if the text is none. */
export function parse(text: string): Message | null {
  if (text.length > MOST_CHARACTERS) return null;
  const end = /\r?\n\r?\n/.exec(text);
  if (!end) return null;
  // A line that begins with white space continues the one before (RFC 3261, section 7.3.1).
  const head = text.slice(0, end.index).replace(/\r?\n[ \t]+/g, " ");
  const [first = "", ...lines] = head.split(/\r?\n/);
  if (lines.length > MOST_HEADERS) return null;
  const headers: Header[] = [];
  for (const line of lines) {
    const at = line.indexOf(":");
    const name = line.slice(0, at).trim();
    if (at < 1 || !/^[\w.!%*+`'~-]+$/.test(name)) return null;
    headers.push([COMPACT[name.toLowerCase()] ?? name, line.slice(at + 1).trim()]);
  }
  const rest = text.slice(end.index + end[0].length);
  const message = start(first, headers, rest);
  if (!message || !isWhole(message)) return null;
  return message;
}

function start(line: string, headers: Header[], rest: string): Message | null {
  const status = /^SIP\/2\.0 ([1-6]\d\d) ?(.*)$/.exec(line);
  const body = cut(rest, headers);
  if (body === null) return null;
  if (status) {
    const [, code = "", reason = ""] = status;
    return { kind: "response", code: Number(code), reason, headers, body };
  }
  const request = /^([A-Z][A-Za-z.!%*_+`'~-]*) (\S+) SIP\/2\.0$/.exec(line);
  if (!request) return null;
  const [, method = "", uri = ""] = request;
  return { kind: "request", method, uri, headers, body };
}

/** The body by its Content-Length, which counts bytes; without one it is all that follows. */
function cut(rest: string, headers: Header[]): string | null {
  const given = headers.find(([name]) => name.toLowerCase() === "content-length")?.[1];
  if (given === undefined) return rest;
  if (!/^\d{1,6}$/.test(given)) return null;
  const bytes = new TextEncoder().encode(rest);
  if (bytes.length < Number(given)) return null;
  return new TextDecoder().decode(bytes.slice(0, Number(given)));
}

/** Whether the headers are there that every message has (RFC 3261, section 8.1.1). */
function isWhole(message: Message): boolean {
  const needed = ["Via", "From", "To", "Call-ID"];
  return needed.every((name) => header(message, name)) && sequence(message) !== null;
}

/** The text of a message. */
export function write(message: Message): string {
  const first =
    message.kind === "request"
      ? `${message.method} ${message.uri} SIP/2.0`
      : `SIP/2.0 ${message.code} ${message.reason}`;
  const length = new TextEncoder().encode(message.body).length;
  const headers = message.headers.filter(([name]) => name.toLowerCase() !== "content-length");
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  return [first, ...lines, `Content-Length: ${length}`, "", message.body].join("\r\n");
}

/** The first header of this name. */
export function header(message: Message, name: string): string | undefined {
  return all(message, name)[0];
}

/** All headers of this name, in order. */
export function all(message: Message, name: string): string[] {
  const wanted = name.toLowerCase();
  return message.headers.filter(([of]) => of.toLowerCase() === wanted).map(([, value]) => value);
}

/** The values of headers that are lists, such as Record-Route. */
export function list(message: Message, name: string): string[] {
  return all(message, name)
    .flatMap((value) => split(value, ","))
    .filter((value) => value !== "");
}

/** Splits at a character that is neither in quotes nor in angle brackets. */
export function split(text: string, at: string): string[] {
  const parts: string[] = [];
  let [part, quoted, depth] = ["", false, 0];
  for (let index = 0; index < text.length; index++) {
    const c = text.charAt(index);
    if (quoted && c === "\\") {
      part += c + text.charAt(++index);
      continue;
    }
    if (c === '"') quoted = !quoted;
    if (!quoted && c === "<") depth++;
    if (!quoted && c === ">") depth = Math.max(0, depth - 1);
    if (c === at && !quoted && depth === 0) {
      parts.push(part.trim());
      part = "";
    } else part += c;
  }
  return [...parts, part.trim()];
}

/** The address in `"Name" <sip:a@b>;tag=1` or `sip:a@b;tag=1`. */
export function addressOf(value: string): string {
  const bracketed = /<([^<>]*)>/.exec(value)?.[1];
  return bracketed ?? (split(value, ";")[0] ?? "").trim();
}

/** A parameter behind a value, such as the tag of From. */
export function parameter(value: string, name: string): string | undefined {
  const parts = split(value, ";").slice(1);
  const wanted = `${name.toLowerCase()}=`;
  const found = parts.find((part) => part.toLowerCase().startsWith(wanted));
  return found?.slice(wanted.length);
}

/** Number and method of CSeq; `null` if there is none. */
export function sequence(message: Message): { number: number; method: string } | null {
  const found = /^(\d{1,10})\s+([A-Za-z.!%*_+`'~-]+)$/.exec(header(message, "CSeq") ?? "");
  return found ? { number: Number(found[1]), method: found[2] ?? "" } : null;
}

/** A response to a request (RFC 3261, section 8.2.6). */
export function respond(request: Request, code: number, reason: string, tag?: string): Response {
  const copied = ["Via", "Record-Route", "From", "To", "Call-ID", "CSeq"];
  const headers: Header[] = request.headers
    .filter(([name]) => copied.some((of) => of.toLowerCase() === name.toLowerCase()))
    .map(([name, value]) => {
      const isBare = name.toLowerCase() === "to" && parameter(value, "tag") === undefined;
      return [name, isBare && tag ? `${value};tag=${tag}` : value];
    });
  return { kind: "response", code, reason, headers, body: "" };
}
