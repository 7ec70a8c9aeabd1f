// A controller of Weir for one video sender of werift: its packets leave at the pacing rate, and the receiver's
// transport-wide feedback drives the target.

import { Sender } from "./sender.mjs";

const TRANSPORT_WIDE = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
/** IPv4, UDP, and the authentication tag of SRTP. */
const OVERHEAD_BYTES = 20 + 8 + 10;
/** A timer of Node is late by up to a millisecond; waiting less long than this is not worth one. */
const SHORTEST_WAIT_MS = 1;

/** The headers of packets, before encryption. `header` is werift's. */
function withHeader(header, payload) {
  return Buffer.concat([header.serialize(header.serializeSize), payload]);
}

/**
 * Takes over what a sender (`RTCRtpSender`) sends. Call it when the connection is up, with werift's own module: the peer
 * must have agreed to RTX and to transport-wide feedback. `onTarget(change)` gets each change of the target.
 */
export class Congestion {
  #sender;
  #transport;
  #werift;
  #weir;
  #send;
  #frame = [];
  #timer;
  #rtxNumber = Math.floor(Math.random() * 0x8000);
  #onTarget;

  constructor(werift, rtpSender, algorithm, options, onTarget = () => {}) {
    const extension = rtpSender.headerExtensions.find(({ uri }) => uri === TRANSPORT_WIDE);
    if (!extension) throw new Error("weir: the peers have not agreed to transport-wide feedback");
    if (rtpSender.rtxPayloadType === undefined)
      throw new Error("weir: the peers have not agreed to RTX, which carries probes");
    [this.#werift, this.#sender, this.#onTarget] = [werift, rtpSender, onTarget];
    this.#transport = rtpSender.dtlsTransport;
    this.#weir = new Sender(algorithm, performance.now(), {
      ...options,
      ssrc: rtpSender.ssrc,
      paddingSsrc: rtpSender.rtxSsrc,
      paddingPayloadType: rtpSender.rtxPayloadType,
      transportSequenceNumberId: extension.id,
      overheadBytes: OVERHEAD_BYTES,
    });
    this.#send = this.#transport.sendRtp.bind(this.#transport);
    this.#transport.sendRtp = (payload, header) => this.#take(payload, header);
    this.#transport.onRtcp.subscribe((packet) => this.#hear(packet));
  }

  /** The target in bit/s, headers included. */
  get bitrate() {
    return this.#weir.target().bitrate;
  }

  /** Gives the sender back. Packets in the queue are lost. */
  close() {
    clearTimeout(this.#timer);
    this.#transport.sendRtp = this.#send;
  }

  /** A packet that werift wants to send. Those of other streams leave at once. */
  async #take(payload, header) {
    const { ssrc, rtxSsrc } = this.#sender;
    if (header.ssrc !== ssrc && header.ssrc !== rtxSsrc) return this.#send(payload, header);
    const packet = withHeader(header, payload);
    if (header.ssrc === rtxSsrc) {
      this.#weir.enqueueUrgent(performance.now(), [packet]);
    } else {
      // The controller hears of a frame at once, so its packets are kept until the last one.
      this.#frame.push(packet);
      if (header.marker) this.#weir.enqueue(performance.now(), this.#frame.splice(0));
    }
    this.#pump();
    return packet.length;
  }

  #hear(packet) {
    try {
      this.#weir.onRtcp(performance.now(), packet.serialize());
    } catch {
      // werift cannot write each kind that it can read. Feedback it can.
      return;
    }
    this.#pump();
  }

  /** Sends what may leave now, and comes back when more may. */
  #pump() {
    clearTimeout(this.#timer);
    const now = performance.now();
    this.#weir.onTimeout(now);
    for (;;) {
      const packet = this.#weir.nextPacket(performance.now());
      if (!packet) break;
      this.#leave(packet.bytes);
    }
    for (let change = this.#weir.takeChange(); change; change = this.#weir.takeChange())
      this.#onTarget(change);
    const wait = this.#weir.nextTimeout() - performance.now();
    if (Number.isFinite(wait))
      this.#timer = setTimeout(() => this.#pump(), Math.max(wait, SHORTEST_WAIT_MS));
  }

  #leave(bytes) {
    const header = this.#werift.RtpHeader.deSerialize(bytes);
    // Repeats and padding share a stream, so their numbers are given here.
    if (header.ssrc === this.#sender.rtxSsrc) {
      header.sequenceNumber = this.#rtxNumber;
      this.#rtxNumber = (this.#rtxNumber + 1) & 0xffff;
    }
    // Padding, which werift's packets have apart, stays in the payload.
    void this.#send(bytes.subarray(header.payloadOffset), header);
  }
}
