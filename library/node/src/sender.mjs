// The sending half of a media flow: RTP packets and RTCP datagrams in, paced RTP out. It is `weir_sender` of libweir,
// compiled to WebAssembly; the offsets are those of `weir.h` where pointers have 32 bits.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** In the package, or where `scripts/build/go-wasm.sh` of the project puts it. */
const PLACES = ["../weir.wasm", "../../go/weir.wasm"];
const PAGE_BYTES = 65_536;
const SETTINGS_BYTES = 48;
const CONFIG_BYTES = 40;
const PACKET_BYTES = 40;
const TARGET_BYTES = 96;
const METRICS_BYTES = 752;
const REQUEST_BYTES = 20;
const SIGNALS_AT = 112;
const SIGNAL_BYTES = 40;
/** Places in the scratch memory. */
const NAME_AT = 1_024;
const HANDLE_AT = 1_088;
const NUMBERS_AT = 1_096;
const BYTES_AT = 16_384;
/** Of an entry of a list of packets. */
const ENTRY_BYTES = 8;
const NOTHING = 1;
/** Kinds of packets, and of requests, as numbers of `weir.h`. */
const KINDS = { video: 0, repair: 1, audio: 2 };
const RETRANSMIT = 1;
const NO_VALUE = 0xffff_ffff_ffff_ffffn;
/** The largest time, which means never, and the smallest one, in ns. The smallest is a time that does not exist, too. */
const NEVER = 0x7fff_ffff_ffff_ffffn;
const FIRST = -NEVER - 1n;

let compiled;

/** The library, compiled once in a process. */
function library() {
  if (compiled) return compiled;
  const files = PLACES.map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const file = files.find(existsSync);
  if (!file)
    throw new Error(
      "weir: there is no weir.wasm beside the package: scripts/build/go-wasm.sh of the project makes it, with Rust",
    );
  compiled = new WebAssembly.Module(readFileSync(file));
  return compiled;
}

/** A number of 64 bits as a number of JavaScript; `undefined` if it does not exist. */
function known(value) {
  return value === NO_VALUE ? undefined : Number(value);
}

/**
 * Controller, history and pacer of one flow. It has no clock and no timer: `now` is in milliseconds from a clock that
 * never goes back, such as `performance.now()`. Bitrates are in bit/s.
 */
export class Sender {
  #functions;
  #memory;
  #scratch;
  #room;
  /** Memory for the packets of one call. */
  #packets = { at: 0, length: 0 };
  #handle = 0;

  /**
   * `algorithm` is `gcc`, `nada`, `scream`, `scream-v2` or `sluice`. Options: `minBitrate`, `startBitrate`,
   * `maxBitrate` (150,000, 300,000 and 2,500,000); `ssrc` of the media (1); `paddingSsrc` (2) and `paddingPayloadType`
   * (127) of packets that only probe, which media must not use; `transportSequenceNumberId` of the header extension (1);
   * `overheadBytes` that other layers add to a packet (28).
   */
  constructor(algorithm, now, options = {}) {
    const { exports } = new WebAssembly.Instance(library(), {});
    this.#functions = exports;
    this.#memory = exports.memory;
    this.#scratch = this.#grow(2);
    this.#room = 2 * PAGE_BYTES - BYTES_AT;
    const at = this.#scratch;
    this.#call("weir_settings_init", at, SETTINGS_BYTES);
    this.#call("weir_sender_config_init", at + SETTINGS_BYTES, CONFIG_BYTES);
    this.#fill(options);
    const name = new TextEncoder().encode(`${algorithm}\0`);
    if (name.length > HANDLE_AT - NAME_AT) throw new Error("weir: no controller has this name");
    this.#bytes(at + NAME_AT, name.length).set(name);
    const [settings, config, handle] = [at, at + SETTINGS_BYTES, at + HANDLE_AT];
    this.#call("weir_sender_new", ns(now), at + NAME_AT, settings, config, handle);
    this.#handle = this.#view().getUint32(handle, true);
  }

  /** Writes what differs from the defaults. */
  #fill(options) {
    const view = this.#view();
    const rates = { 8: options.minBitrate, 16: options.startBitrate, 24: options.maxBitrate };
    for (const [offset, rate] of Object.entries(rates))
      if (rate !== undefined) view.setBigUint64(this.#scratch + Number(offset), bps(rate), true);
    const config = this.#scratch + SETTINGS_BYTES;
    const numbers = { 16: options.ssrc, 20: options.paddingSsrc, 28: options.overheadBytes };
    for (const [offset, number] of Object.entries(numbers))
      if (number !== undefined)
        view.setUint32(config + Number(offset), whole(number, 0xffff_ffff), true);
    const { transportSequenceNumberId: id, paddingPayloadType: type } = options;
    if (id !== undefined) view.setUint8(config + 32, whole(id, 0xff));
    if (type !== undefined) view.setUint8(config + 34, whole(type, 0xff));
    // The host's RTP stack sends its own reports.
    view.setUint8(config + 35, 0);
  }

  /**
   * Puts the packets of a picture at the end of the queue. Each has room for the header extension. Sound that is passed
   * here waits behind the pictures: use `enqueueAs`.
   */
  enqueue(now, packets) {
    this.enqueueAs(now, "video", packets);
  }

  /** Puts packets that are sent again before the pictures. */
  enqueueUrgent(now, packets) {
    this.enqueueAs(now, "repair", packets);
  }

  /** Puts packets of this kind into the queue: `"audio"` leaves at once, then `"repair"`, then `"video"`. */
  enqueueAs(now, kind, packets) {
    if (!Object.hasOwn(KINDS, kind))
      throw new Error(`weir: a kind of packet is audio, repair or video, not ${kind}`);
    this.#enqueue(KINDS[kind], now, packets);
  }

  /**
   * The next packet that may leave now: `{ bytes, isPadding }`, or `undefined`. Ask until there is none, and send each
   * at once.
   */
  nextPacket(now) {
    const at = this.#scratch;
    this.#view().setUint32(at, PACKET_BYTES, true);
    if (this.#call("weir_sender_next_packet", this.#handle, ns(now), at) === NOTHING) return;
    const view = this.#view();
    const [data, length] = [view.getUint32(at + 4, true), view.getUint32(at + 8, true)];
    // A copy: these bytes are the library's until the next call.
    const bytes = Buffer.from(this.#bytes(data, length));
    return { bytes, isPadding: view.getUint8(at + 32) === 1 };
  }

  /**
   * An RTCP datagram arrived. Feedback and REMB are used. What the receiver asks for, NACK, PLI and FIR, waits for
   * `nextRequest`. Returns whether it was RTCP.
   */
  onRtcp(now, datagram) {
    if (datagram.length > this.#room) throw new Error("weir: the datagram is too long");
    this.#bytes(this.#scratch + BYTES_AT, datagram.length).set(datagram);
    const status = this.#functions.weir_sender_on_rtcp(
      this.#handle,
      ns(now),
      this.#scratch + BYTES_AT,
      datagram.length,
    );
    // Bytes of a stranger are no error of the host.
    return status >= 0;
  }

  /**
   * What the receiver asks for next, or `undefined`: `{ mediaSsrc, sequenceNumber }` is a packet that it misses, to be
   * queued again as `"repair"`; `{ mediaSsrc }` a key frame that the encoder should make.
   */
  nextRequest() {
    const at = this.#scratch;
    this.#view().setUint32(at, REQUEST_BYTES, true);
    if (this.#call("weir_sender_next_request", this.#handle, at) === NOTHING) return;
    const view = this.#view();
    const mediaSsrc = view.getUint32(at + 8, true);
    if (view.getUint32(at + 4, true) !== RETRANSMIT) return { mediaSsrc };
    return { mediaSsrc, sequenceNumber: view.getUint16(at + 12, true) };
  }

  onTimeout(now) {
    this.#call("weir_sender_on_timeout", this.#handle, ns(now));
  }

  /** When `onTimeout` and `nextPacket` are due, in ms; `Infinity` for never. It may lie in the past. */
  nextTimeout() {
    this.#call("weir_sender_next_timeout", this.#handle, this.#scratch);
    const due = this.#view().getBigInt64(this.#scratch, true);
    return due === NEVER ? Number.POSITIVE_INFINITY : Number(due) / 1e6;
  }

  /**
   * What all packets should take, headers included, and the pacing rate, in bit/s. A source that can leave pictures out
   * follows `sourceBitrate`, which is lower while too much is in flight.
   */
  target() {
    this.#view().setUint32(this.#scratch, TARGET_BYTES, true);
    this.#call("weir_sender_target", this.#handle, this.#scratch);
    const view = this.#view();
    const bitrate = Number(view.getBigUint64(this.#scratch + 8, true));
    const [sourceBitrate, pacingRate] = [16, 24].map((offset) =>
      Number(view.getBigUint64(this.#scratch + offset, true)),
    );
    return { bitrate, sourceBitrate, pacingRate };
  }

  /**
   * The change of the target since the last call, or `undefined`. `mediaBps` is `mediaBitrate()`, `wantsFrame` is
   * `wantsFrame()`.
   */
  takeChange() {
    const [metrics, from, to] = [0, NUMBERS_AT, NUMBERS_AT + 8].map((it) => this.#scratch + it);
    this.#view().setUint32(metrics, METRICS_BYTES, true);
    if (this.#call("weir_sender_take_change", this.#handle, from, to, metrics) === NOTHING) return;
    const view = this.#view();
    const [fromBps, toBps] = [from, to].map((it) => known(view.getBigUint64(it, true)));
    const [reason, state] = [48, 80].map((offset) => this.#text(metrics + offset));
    return {
      fromBps,
      toBps,
      mediaBps: this.mediaBitrate(),
      wantsFrame: this.wantsFrame(),
      reason,
      state,
    };
  }

  /**
   * What the encoder of the pictures should make, in bit/s: the target's bitrate less sound and what was sent again in
   * the last second, and less what waits in the queue for more than 50 ms.
   */
  mediaBitrate() {
    this.#call("weir_sender_media_bitrate", this.#handle, this.#scratch);
    return Number(this.#view().getBigUint64(this.#scratch, true));
  }

  /** Whether a picture that is taken now should be encoded. It would be late if more than 250 ms wait in the queue. */
  wantsFrame() {
    this.#call("weir_sender_wants_frame", this.#handle, this.#scratch);
    return this.#view().getUint8(this.#scratch) === 1;
  }

  /** Bytes in the queue. */
  queued() {
    this.#call("weir_sender_queued", this.#handle, this.#scratch);
    return Number(this.#view().getBigUint64(this.#scratch, true));
  }

  /**
   * The application changed the range of the target. What is known of the path stays known. `startBitrate` counts from
   * the next new route; without it, it is what is nearest to 300,000 in the range.
   */
  setLimits(now, { minBitrate, startBitrate = 0, maxBitrate } = {}) {
    for (const [name, rate] of Object.entries({ minBitrate, maxBitrate }))
      if (rate === undefined) throw new Error(`weir: setLimits needs ${name}, in bit/s`);
    const rates = [minBitrate, startBitrate, maxBitrate].map(bps);
    this.#call("weir_sender_set_limits", this.#handle, ns(now), ...rates);
  }

  /** The receiver limits the bitrate by signalling of the host's own; `undefined` lifts the limit. */
  onReceiverLimit(now, bitrate) {
    const limit = bitrate === undefined ? NO_VALUE : bps(bitrate);
    this.#call("weir_sender_on_receiver_limit", this.#handle, ns(now), limit);
  }

  /**
   * Packets take another route from now on, as after an ICE restart or a change from Wi-Fi to cellular. The controller
   * begins at the start bitrate.
   */
  onRouteChange(now) {
    this.#call("weir_sender_on_route_change", this.#handle, ns(now));
  }

  /** The host's stack measured this round-trip time of the path, in ms. */
  onRoundTripTime(now, rtt) {
    this.#call("weir_sender_on_round_trip_time", this.#handle, ns(now), ns(rtt));
  }

  /**
   * The controller's internals, for a log: `rttMs`, `queuingDelayMs` and `ackedBps` (`undefined` before they are known),
   * `lossRatio`, `reason`, `state`, and `signals` by name.
   */
  metrics() {
    const at = this.#scratch;
    this.#view().setUint32(at, METRICS_BYTES, true);
    this.#call("weir_sender_metrics", this.#handle, at);
    const view = this.#view();
    const [rttMs, queuingDelayMs] = [8, 16].map((offset) => {
      const nanos = view.getBigInt64(at + offset, true);
      return nanos === FIRST ? undefined : Number(nanos) / 1e6;
    });
    const signals = {};
    for (let index = 0; index < view.getUint32(at + 44, true); index++) {
      const row = at + SIGNALS_AT + index * SIGNAL_BYTES;
      signals[this.#text(row)] = view.getFloat64(row + 32, true);
    }
    const lossRatio = view.getFloat64(at + 32, true);
    const ackedBps = known(view.getBigUint64(at + 24, true));
    const [reason, state] = [48, 80].map((offset) => this.#text(at + offset));
    return { rttMs, queuingDelayMs, ackedBps, lossRatio, reason, state, signals };
  }

  /** The most that the source could use now; `undefined` for an unknown amount. */
  setDesiredBitrate(now, bitrate) {
    const desired = bitrate === undefined ? NO_VALUE : bps(bitrate);
    this.#call("weir_sender_set_desired_bitrate", this.#handle, ns(now), desired);
  }

  /** Discards what is queued, as when a newer picture replaces it. Ask for a key frame then. */
  clearQueue(now) {
    this.#call("weir_sender_clear_queue", this.#handle, ns(now));
  }

  #enqueue(kind, now, packets) {
    const length = packets.reduce((sum, packet) => sum + packet.length, 0);
    const list = this.#roomFor(ENTRY_BYTES * packets.length + length);
    let at = list + ENTRY_BYTES * packets.length;
    const view = this.#view();
    for (const [index, packet] of packets.entries()) {
      view.setUint32(list + ENTRY_BYTES * index, at, true);
      view.setUint32(list + ENTRY_BYTES * index + 4, packet.length, true);
      this.#bytes(at, packet.length).set(packet);
      at += packet.length;
    }
    this.#call("weir_sender_enqueue_as", this.#handle, ns(now), kind, list, packets.length);
  }

  /** Memory for packets, which grows to the largest picture. What was too small is not used again. */
  #roomFor(length) {
    if (length > this.#packets.length) {
      const pages = Math.ceil(Math.max(length, 2 * this.#packets.length) / PAGE_BYTES);
      this.#packets = { at: this.#grow(pages), length: pages * PAGE_BYTES };
    }
    return this.#packets.at;
  }

  /** New memory that the library's allocator does not know. */
  #grow(pages) {
    return this.#memory.grow(pages) * PAGE_BYTES;
  }

  /** The memory may grow in any call, so views are made anew. */
  #view() {
    return new DataView(this.#memory.buffer);
  }

  #bytes(at, length) {
    return new Uint8Array(this.#memory.buffer, at, length);
  }

  #text(at) {
    const bytes = this.#bytes(at, 32);
    return Buffer.from(bytes.subarray(0, Math.max(bytes.indexOf(0), 0))).toString();
  }

  #call(name, ...values) {
    const status = this.#functions[name](...values);
    if (status >= 0) return status;
    const at = this.#functions.weir_status_text(status);
    const end = this.#bytes(at, 200).indexOf(0);
    throw new Error(`weir: ${Buffer.from(this.#bytes(at, end)).toString()}`);
  }
}

/** Milliseconds as nanoseconds. `Infinity` is never, and so is what 64 bits cannot hold: they would wrap. */
function ns(ms) {
  const nanos = Math.round(ms * 1e6);
  if (Number.isNaN(nanos)) throw new Error(`weir: a time is a number of milliseconds, not ${ms}`);
  if (nanos >= Number(NEVER)) return NEVER;
  return nanos <= Number(FIRST) ? FIRST : BigInt(nanos);
}

/** A bitrate as an integer. */
function bps(rate) {
  const rounded = Math.round(rate);
  if (!(rounded >= 0 && rounded < Number(NO_VALUE)))
    throw new Error(`weir: a bitrate is a number of bit/s from 0 to 2^64, not ${rate}`);
  return BigInt(rounded);
}

/** An integer from zero to `most`. */
function whole(number, most) {
  if (!Number.isInteger(number) || number < 0 || number > most)
    throw new Error(`weir: ${number} is no integer from 0 to ${most}`);
  return number;
}
