// A controller of Weir for one video sender of werift: its packets leave at the pacing rate, and the receiver's
// transport-wide feedback drives the target.

import { Sender } from "./sender.mjs";

const TRANSPORT_WIDE = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
/** IPv4, UDP, and the authentication tag of SRTP. */
const OVERHEAD_BYTES = 20 + 8 + 10;
/** A timer of Node is late by up to a millisecond; waiting less long than this is not worth one. */
const SHORTEST_WAIT_MS = 1;
/** A change of what the encoder may make is told from this share of it on. */
const WORTH_TELLING = 0.02;
/** Packets that are queued in one call: more may not fit into it. */
const MOST_AT_ONCE = 150;

/** States of a transport, after which there is no other. */
const ENDED = ["closed", "failed"];

/** The headers of packets, before encryption. `header` is werift's. */
function withHeader(header, payload) {
  return Buffer.concat([header.serialize(header.serializeSize), payload]);
}

/** RTCP in whole words. werift does not write the zeros at the end of feedback whose writer did not announce them. */
function wholeWords(bytes) {
  const missing = -bytes.length & 3;
  if (missing === 0) return bytes;
  const whole = Buffer.concat([bytes, Buffer.alloc(missing)]);
  whole.writeUInt16BE(whole.length / 4 - 1, 2);
  return whole;
}

/**
 * Takes over what a sender (`RTCRtpSender`) sends. Call it when the connection is up and before the sender has sent anything,
 * with werift's own module: the peer must have agreed to RTX and to transport-wide feedback. `onTarget(change)` gets each
 * change of the target (`fromBps`, `toBps`), of what the encoder may make of it (`mediaBps`): what was sent again in the
 * last second, and what waits, is taken off; and of whether it should make pictures at all (`wantsFrame`). A transport has one at a time. It ends with its transport, or by `close()`.
 */
export class Congestion {
  #sender;
  #transport;
  #werift;
  #weir;
  #send;
  #extensionId;
  #frame = [];
  #timestamp;
  #timer;
  #rtxNumber;
  #mediaBps;
  #wantsFrame = true;
  #onTarget;
  #subscriptions;
  #isClosed = false;

  constructor(werift, rtpSender, algorithm, options, onTarget = () => {}) {
    const extension = rtpSender.headerExtensions.find(({ uri }) => uri === TRANSPORT_WIDE);
    if (!extension) throw new Error("weir: the peers have not agreed to transport-wide feedback");
    if (rtpSender.rtxPayloadType === undefined)
      throw new Error("weir: the peers have not agreed to RTX, which carries probes");
    [this.#werift, this.#sender, this.#onTarget] = [werift, rtpSender, onTarget];
    this.#transport = rtpSender.dtlsTransport;
    if (ENDED.includes(this.#transport.state))
      throw new Error(`weir: the transport is ${this.#transport.state}`);
    if (Object.hasOwn(this.#transport, "sendRtp"))
      throw new Error("weir: this transport has a controller: close() it first");
    // Repeats and padding share a stream, so their numbers are given here, from where the stack is.
    [this.#rtxNumber, this.#extensionId] = [rtpSender.rtxSequenceNumber, extension.id];
    this.#weir = new Sender(algorithm, performance.now(), {
      ...options,
      ssrc: rtpSender.ssrc,
      paddingSsrc: rtpSender.rtxSsrc,
      paddingPayloadType: rtpSender.rtxPayloadType,
      transportSequenceNumberId: extension.id,
      overheadBytes: OVERHEAD_BYTES,
    });
    this.#mediaBps = this.mediaBitrate;
    this.#send = this.#transport.sendRtp.bind(this.#transport);
    this.#transport.sendRtp = (payload, header) => this.#take(payload, header);
    this.#subscriptions = [
      this.#transport.onRtcp.subscribe((packet) => this.#hear(packet)),
      this.#transport.onStateChange.subscribe((state) => {
        if (ENDED.includes(state)) this.close();
      }),
    ];
  }

  /** The target in bit/s, headers included. */
  get bitrate() {
    return this.#weir.target().bitrate;
  }

  /** What the encoder may make of the target: what was sent again in the last second, and what waits, is taken off. */
  get mediaBitrate() {
    return this.#weir.mediaBitrate();
  }

  /** Whether a picture that is taken now should be encoded. It would be late if too much waits. */
  get wantsFrame() {
    return this.#weir.wantsFrame();
  }

  /** The target for a source that can leave pictures out: lower while too much is in flight. */
  get sourceBitrate() {
    return this.#weir.target().sourceBitrate;
  }

  /** The controller's internals, for a log: see `Sender.metrics`. */
  metrics() {
    return this.#weir.metrics();
  }

  /** Packets take another route from now on, as after an ICE restart. */
  onRouteChange() {
    this.#weir.onRouteChange(performance.now());
    this.#pump();
  }

  /** The application changed the range of the target: `{ minBitrate, startBitrate, maxBitrate }`. */
  setLimits(limits) {
    this.#weir.setLimits(performance.now(), limits);
    this.#pump();
  }

  /** The most that the source could use now; `undefined` for an unknown amount. */
  setDesiredBitrate(bitrate) {
    this.#weir.setDesiredBitrate(performance.now(), bitrate);
    this.#pump();
  }

  /** Discards what waits, as when a newer picture replaces it. Ask for a key frame then. */
  clearQueue() {
    this.#frame = [];
    this.#weir.clearQueue(performance.now());
  }

  /** Gives the sender back. Packets in the queue are lost. */
  close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const { unSubscribe } of this.#subscriptions) unSubscribe();
    delete this.#transport.sendRtp;
    this.#sender.rtxSequenceNumber = this.#rtxNumber;
  }

  /** A packet that werift wants to send. Those of other streams leave at once. Like werift's own, it does not throw. */
  async #take(payload, header) {
    const { ssrc, rtxSsrc } = this.#sender;
    if (header.ssrc !== ssrc && header.ssrc !== rtxSsrc) {
      // The transport-wide numbers are the controller's.
      header.extensions = header.extensions.filter(({ id }) => id !== this.#extensionId);
      return this.#send(payload, header);
    }
    // werift has taken the padding off a packet that is passed on, but not its mark.
    header.padding = false;
    const packet = withHeader(header, payload);
    try {
      this.#queue(packet, header, header.ssrc === rtxSsrc);
    } catch {
      return 0;
    }
    this.#pump();
    return packet.length;
  }

  #queue(packet, { timestamp, marker }, isRepeat) {
    if (isRepeat) {
      this.#weir.enqueueUrgent(performance.now(), [packet]);
      return;
    }
    // The controller hears of a frame at once, so its packets are kept until the last one, or the next frame.
    if (timestamp !== this.#timestamp) this.#queueFrame();
    this.#timestamp = timestamp;
    this.#frame.push(packet);
    if (marker) this.#queueFrame();
  }

  #queueFrame() {
    const now = performance.now();
    while (this.#frame.length > 0) this.#weir.enqueue(now, this.#frame.splice(0, MOST_AT_ONCE));
  }

  #hear(packet) {
    let bytes;
    try {
      bytes = wholeWords(packet.serialize());
    } catch {
      // werift cannot write each kind that it can read. Feedback it can.
      return;
    }
    this.#weir.onRtcp(performance.now(), bytes);
    this.#pump();
  }

  /** Tells of a change. What the application throws is its own, and ends nothing here. */
  #tell() {
    const { bitrate, mediaBitrate, wantsFrame } = this;
    let change = this.#weir.takeChange();
    const moved = Math.abs(mediaBitrate - this.#mediaBps);
    const isNews = wantsFrame !== this.#wantsFrame || moved > WORTH_TELLING * this.#mediaBps;
    if (!change && !isNews) return;
    const same = { fromBps: bitrate, toBps: bitrate, reason: "encoder's part", state: "" };
    change ??= { ...same, mediaBps: mediaBitrate, wantsFrame };
    [this.#mediaBps, this.#wantsFrame] = [change.mediaBps, change.wantsFrame];
    try {
      this.#onTarget(change);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  /** Sends what may leave now, and comes back when more may. */
  #pump() {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const now = performance.now();
    this.#weir.onTimeout(now);
    for (;;) {
      const packet = this.#weir.nextPacket(performance.now());
      if (!packet) break;
      this.#leave(packet.bytes);
    }
    this.#tell();
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    const wait = this.#weir.nextTimeout() - performance.now();
    if (Number.isFinite(wait))
      this.#timer = setTimeout(() => this.#pump(), Math.max(wait, SHORTEST_WAIT_MS)).unref();
  }

  #leave(bytes) {
    const header = this.#werift.RtpHeader.deSerialize(bytes);
    if (header.ssrc === this.#sender.rtxSsrc) {
      header.sequenceNumber = this.#rtxNumber;
      this.#rtxNumber = (this.#rtxNumber + 1) & 0xffff;
    }
    // Padding, which werift's packets have apart, stays in the payload.
    void this.#send(bytes.subarray(header.payloadOffset), header);
  }
}
