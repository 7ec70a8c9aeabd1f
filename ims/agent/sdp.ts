// Session descriptions of a call with preconditions (RFC 3312, section 5): what a browser writes, with the
// lines that an IMS wants.

/** Where the resources stand, as the author of a description sees it. */
export interface Resources {
  local: boolean;
  remote: boolean;
}

/** What a description says about them. */
export interface Preconditions extends Resources {
  /** Whether the author asks to be told when the other side has its resources. */
  asksConfirmation: boolean;
}

/** Rates in kbit/s by kind of medium: what this side wants to receive. Those of Opus and video are without headers. */
export type Rates = Record<string, number>;

/** Directions of media, as their author sees them (RFC 4566, section 6). */
export type Direction = "sendrecv" | "sendonly" | "recvonly" | "inactive";

export interface Wanted {
  rates: Rates;
  resources: Resources;
  /** The answerer needs the resources of both sides (RFC 3312, section 6). */
  isAnswer: boolean;
  /** Version in `o=`, one more with each change (RFC 3264, section 8). */
  version: number;
  /** Where media go: `sendonly` holds the other party. */
  direction?: Direction;
}

// `b=AS` counts the headers of IP, UDP and RTP (RFC 3550, section 6.2), and so does a bearer; the limit that a browser
// makes of `b=AS` is that of the encoder, without them.
/** Headers around 50 packets of Opus a second, 80 bytes each, in kbit/s. */
const OPUS_HEADERS = 32;
/** Headers around a packet of video of 1,100 bytes: 20 of IP, 8 of UDP, 28 of RTP with extensions, and 10 of SRTP. */
const VIDEO_HEADERS = 0.06;
/** Lowest rate of Opus, in kbit/s (RFC 6716, section 2.1.1). */
const LOWEST_OPUS = 6;

interface Section {
  first: string;
  lines: string[];
}

function sections(sdp: string): { session: string[]; media: Section[] } {
  const session: string[] = [];
  const media: Section[] = [];
  for (const line of sdp.split(/\r?\n/).filter((line) => line !== "")) {
    const last = media.at(-1);
    if (line.startsWith("m=")) media.push({ first: line, lines: [] });
    else (last?.lines ?? session).push(line);
  }
  return { session, media };
}

/**
 * Adds to a browser's description what an IMS wants: `b=AS` and preconditions for each medium, and a `c=` of
 * the session, which Kamailio's policy needs. Takes BUNDLE away: each medium has ports of its own.
 */
export function decorate(sdp: string, wanted: Wanted): string {
  const { session, media } = sections(sdp);
  const isConnection = (line: string) => line.startsWith("c=");
  const connection = media.flatMap(({ lines }) => lines).find(isConnection);
  const head = session
    .filter((line) => !line.startsWith("a=group:BUNDLE"))
    .map((line) =>
      line.replace(/^(o=\S+ \S+) \d+/, (_, before: string) => `${before} ${wanted.version}`),
    );
  if (connection && !head.some(isConnection)) {
    const name = head.findIndex((line) => line.startsWith("s="));
    head.splice(name + 1, 0, connection);
  }
  const lines = media.flatMap((section) => [section.first, ...decorated(section, wanted)]);
  return `${[...head, ...lines].join("\r\n")}\r\n`;
}

function decorated({ first, lines }: Section, wanted: Wanted): string[] {
  const kind = first.slice(2).split(" ")[0] ?? "";
  const isOld = (line: string) =>
    /^a=(curr|des|conf):qos /.test(line) || line.startsWith("b=") || line === "a=bundle-only";
  const kept = lines
    .filter((line) => !isOld(line))
    .map((line) => (line === "a=sendrecv" ? `a=${wanted.direction ?? "sendrecv"}` : line));
  const wantedRate = wanted.rates[kind];
  const rate = wantedRate === undefined ? undefined : withHeaders(wantedRate, { first, lines });
  // RFC 4566, section 5: b= comes behind i= and c=, and before the attributes.
  const at = kept.findIndex((line) => !/^[ic]=/.test(line));
  kept.splice(at < 0 ? kept.length : at, 0, ...(rate === undefined ? [] : [`b=AS:${rate}`]));
  const state = (isThere: boolean) => (isThere ? "sendrecv" : "none");
  const { resources, isAnswer } = wanted;
  kept.push(
    `a=curr:qos local ${state(resources.local)}`,
    `a=curr:qos remote ${state(resources.remote)}`,
    "a=des:qos mandatory local sendrecv",
    `a=des:qos ${isAnswer ? "mandatory" : "optional"} remote sendrecv`,
  );
  if (isAnswer && !resources.remote) kept.push("a=conf:qos remote sendrecv");
  return kept;
}

/** Whether a medium begins with Opus. */
function isOpus(first: string, lines: string[]): boolean {
  const type = /^m=audio \S+ \S+ (\d+)/.exec(first)?.[1];
  return lines.some((line) => line.toLowerCase().startsWith(`a=rtpmap:${type} opus/`));
}

function withHeaders(rate: number, { first, lines }: Section): number {
  if (first.startsWith("m=video ")) return Math.ceil(rate * (1 + VIDEO_HEADERS));
  return isOpus(first, lines) ? rate + OPUS_HEADERS : rate;
}

function withoutHeaders(rate: number, { first, lines }: Section): number {
  if (first.startsWith("m=video ")) return Math.floor(rate / (1 + VIDEO_HEADERS));
  return isOpus(first, lines) ? Math.max(LOWEST_OPUS, rate - OPUS_HEADERS) : rate;
}

/** The other side's description as a browser takes it: rates of Opus and video are without headers. */
export function forBrowser(sdp: string): string {
  const parts = sdp.split(/^(?=m=)/m);
  const limited = parts.map((part) => {
    const [first = "", ...lines] = part.split(/\r?\n/);
    return part.replace(/^b=AS:(\d+)/m, (_, rate: string) => {
      return `b=AS:${withoutHeaders(Number(rate), { first, lines })}`;
    });
  });
  return limited.join("");
}

/** The preconditions of a description; `null` if it has none. */
export function preconditions(sdp: string): Preconditions | null {
  const lines = sdp.split(/\r?\n/);
  const has = (line: string) => lines.includes(line);
  if (!lines.some((line) => line.startsWith("a=curr:qos "))) return null;
  return {
    local: !has("a=curr:qos local none"),
    remote: !has("a=curr:qos remote none"),
    asksConfirmation: has("a=conf:qos remote sendrecv"),
  };
}

/** Whether a description could be one: a session with at least one medium. */
export function isDescription(sdp: string): boolean {
  return /^v=0\r?\n/.test(sdp) && /^m=(audio|video|application) \d{1,5} /m.test(sdp);
}
