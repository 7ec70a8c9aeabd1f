// Simulcast from one page to another. A forwarding server would take the layers of one media section apart. Here the
// receiver's page is told of a media section for each layer, with the layer's SSRCs, and so receives all of them, asks for
// lost packets of each, and decodes each. The sender still has one media section.

const lines = (sdp) => sdp.split("\r\n").filter((line) => line !== "");
const text = (lines) => `${lines.join("\r\n")}\r\n`;
const begins = (line, words) => words.some((word) => line.startsWith(word));
const valueOf = (all, name) => all.find((line) => line.startsWith(name))?.slice(name.length);

// The parts of a description: what comes before the first media section, and each section.
function parts(sdp) {
  const all = lines(sdp);
  const starts = all.flatMap((line, index) => (line.startsWith("m=") ? [index] : []));
  const sections = starts.map((start, index) => all.slice(start, starts[index + 1]));
  return { head: all.slice(0, starts[0]), sections };
}

const bundled = (head, mids) =>
  head.map((line) => (line.startsWith("a=group:BUNDLE") ? `a=group:BUNDLE ${mids}` : line));

// The offer with SSRCs for this many layers. The first layer keeps its own.
export function offerOfLayers(sdp, count) {
  const { head, sections } = parts(sdp);
  if (sections.length !== 1) throw new Error("Simulcast needs a call with one video only.");
  const [section] = sections;
  const first = valueOf(section, "a=ssrc-group:FID ")?.split(" ").map(Number);
  if (!first) throw new Error("This browser offers no retransmissions for simulcast.");
  const attributes = section.flatMap((line) => line.split(`a=ssrc:${first[0]} `).slice(1));
  const used = new Set();
  const fresh = (ssrc) => {
    const next = used.has(ssrc) || ssrc > 0xffffffff ? fresh((ssrc + 1) % 0xffffffff) : ssrc;
    used.add(next);
    return next;
  };
  const layers = Array.from({ length: count }, () => first.map(fresh));
  const sources = layers.flatMap((pair) => [
    `a=ssrc-group:FID ${pair.join(" ")}`,
    ...pair.flatMap((ssrc) => attributes.map((attribute) => `a=ssrc:${ssrc} ${attribute}`)),
  ]);
  const group = `a=ssrc-group:SIM ${layers.map(([video]) => video).join(" ")}`;
  const others = section.filter((line) => !line.startsWith("a=ssrc"));
  return text([...head, ...others, ...sources, group]);
}

// The same offer for the receiver: a media section for each layer. Packets carry the sender's only mid, so the
// receiver must not look at it, and tells the layers by their SSRCs.
export function offerOfSections(sdp) {
  const { head, sections } = parts(sdp);
  const [section] = sections;
  const groups = section.flatMap((line) => line.split("a=ssrc-group:FID ").slice(1));
  const own = ["a=ssrc", "a=mid:", "a=msid:"];
  const others = section.filter(
    (line) => !begins(line, own) && !/^a=extmap:\d+ urn:ietf:params:rtp-hdrext:sdes:/.test(line),
  );
  const mids = groups.map((_, index) => index);
  const each = groups.map((pair, index) => [
    ...others,
    `a=mid:${index}`,
    `a=msid:layer${index} layer${index}`,
    `a=ssrc-group:FID ${pair}`,
    ...pair.split(" ").map((ssrc) => `a=ssrc:${ssrc} cname:layers`),
  ]);
  return text([...bundled(head, mids.join(" ")), ...each.flat()]);
}

// The receiver's answer for the sender: its first media section, under the sender's mid.
export function answerOfLayers(sdp, offer) {
  const { head, sections } = parts(sdp);
  const mid = valueOf(lines(offer), "a=mid:");
  const first = sections[0].map((line) => (line.startsWith("a=mid:") ? `a=mid:${mid}` : line));
  return text([...bundled(head, mid), ...first]);
}

// The sizes of the layers, the smallest first. Bitrates are the browser's own for each size.
export async function scaleLayers(sender, divisors, { maxBitrate, frameRate, degradation }) {
  const parameters = sender.getParameters();
  if (parameters.encodings.length !== divisors.length) {
    throw new Error(
      `This browser makes ${parameters.encodings.length} layers of ${divisors.length}.`,
    );
  }
  parameters.degradationPreference = degradation;
  parameters.encodings.forEach((encoding, index) => {
    encoding.scaleResolutionDownBy = divisors[index];
    encoding.maxFramerate = frameRate;
    if (divisors[index] === 1) encoding.maxBitrate = maxBitrate;
  });
  await sender.setParameters(parameters);
}

// The layers of an offer in their order, by SSRC.
export const orderOf = (offer) => valueOf(lines(offer), "a=ssrc-group:SIM ").split(" ").map(Number);

const SUMS = /^(packets|bytes|headerBytes|retransmitted|nack|pli|fec)|targetBitrate/;

// One object for all layers: sums of what they send, and the size of the largest picture that is on. Frames and their
// quantizer are those of the smallest, which is always on: a sum would count each picture more than once.
export function summed(layers) {
  const sum = { ...layers[0] };
  for (const layer of layers.slice(1)) {
    for (const [name, value] of Object.entries(layer)) {
      if (typeof value === "number" && SUMS.test(name)) sum[name] = (sum[name] ?? 0) + value;
    }
    if ((layer.frameWidth ?? 0) > (sum.frameWidth ?? 0)) {
      Object.assign(sum, { frameWidth: layer.frameWidth, frameHeight: layer.frameHeight });
    }
  }
  return sum;
}
