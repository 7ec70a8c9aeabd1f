// A process of ../encoder.py, and its frames in packets.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../encoder.py", import.meta.url));
/** Payload of a packet of at most 1,192 bytes with IP, as libwebrtc's. */
const PAYLOAD_BYTES = 1_127;
/** IPv4, UDP, RTP with extensions, the descriptor of VP8, and the authentication tag of SRTP. */
const HEADER_BYTES = 20 + 8 + 24 + 3 + 10;
const VIDEO_CLOCK = 90_000;
const RTP_HEADER_BYTES = 12;

export class Encoder {
  #process;
  #settings;
  #buffered = Buffer.alloc(0);
  #onFrame;
  #wantsFrame = true;

  /** Starts it. `onFrame` gets each frame; an empty one for a picture that was left out. */
  constructor(settings, onFrame) {
    this.#settings = settings;
    this.#onFrame = onFrame;
    // Debian's Python, which has the binding of GStreamer.
    this.#process = spawn("/usr/bin/python3", [SCRIPT, JSON.stringify(settings)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    // An encoder that ended says why on standard error.
    this.#process.stdin.on("error", () => {});
    this.#process.stdout.on("data", (bytes) => this.#read(bytes));
  }

  start() {
    this.#say("start");
  }

  key() {
    this.#say("key");
  }

  /** Sets the encoder's part of a target that includes headers. */
  target(bitrate) {
    const { frameRate } = this.#settings;
    const packets = Math.ceil(bitrate / 8 / frameRate / PAYLOAD_BYTES);
    const headers = 8 * packets * HEADER_BYTES * frameRate;
    this.#say(`rate ${Math.round(Math.max(bitrate - headers, bitrate / 2))}`);
  }

  /** Whether pictures should be encoded, or left out. */
  wants(wantsFrame) {
    if (wantsFrame !== this.#wantsFrame) this.#say(wantsFrame ? "take" : "skip");
    this.#wantsFrame = wantsFrame;
  }

  close() {
    this.#process.kill();
  }

  #say(line) {
    this.#process.stdin.write(`${line}\n`);
  }

  #read(bytes) {
    this.#buffered = Buffer.concat([this.#buffered, bytes]);
    while (this.#buffered.length >= 4) {
      const end = 4 + this.#buffered.readUInt32BE(0);
      if (this.#buffered.length < end) return;
      this.#onFrame(this.#buffered.subarray(4, end));
      this.#buffered = this.#buffered.subarray(end);
    }
  }
}

/** Makes RTP packets of frames, without header extensions [RFC 7741]. */
export class Packetizer {
  #ssrc;
  #payloadType;
  #frameRate;
  #sequence = Math.floor(Math.random() * 0x8000);
  #frames = 0;

  constructor(ssrc, payloadType, frameRate) {
    this.#ssrc = ssrc;
    this.#payloadType = payloadType;
    this.#frameRate = frameRate;
  }

  packets(frame) {
    const timestamp = Math.floor((this.#frames * VIDEO_CLOCK) / this.#frameRate);
    this.#frames += 1;
    if (frame.length === 0) return [];
    const count = Math.ceil(frame.length / PAYLOAD_BYTES);
    // Packets of nearly one size.
    const size = Math.ceil(frame.length / count);
    const packets = [];
    for (let index = 0; index < count; index += 1) {
      const header = Buffer.alloc(RTP_HEADER_BYTES + 1);
      const marker = index === count - 1 ? 0x80 : 0;
      header[0] = 0x80;
      header[1] = marker | this.#payloadType;
      header.writeUInt16BE(this.#sequence, 2);
      header.writeUInt32BE(timestamp >>> 0, 4);
      header.writeUInt32BE(this.#ssrc, 8);
      // The descriptor says where a partition starts.
      header[RTP_HEADER_BYTES] = index === 0 ? 0x10 : 0;
      this.#sequence = (this.#sequence + 1) & 0xffff;
      packets.push(Buffer.concat([header, frame.subarray(index * size, (index + 1) * size)]));
    }
    return packets;
  }
}

/** The target of a sender, told to the encoder and to the lab. */
export class Target {
  #settings;
  #reporter;
  #encoder;
  #target;

  constructor(settings, reporter, encoder) {
    this.#settings = settings;
    this.#reporter = reporter;
    this.#encoder = encoder;
    this.#target = settings.startBitrate;
  }

  /** The call is up. */
  start() {
    this.#encoder.target(this.#target);
    this.#encoder.start();
  }

  /** Follows a controller of Weir, which leaves the encoder a part of its target. */
  follow({ toBps, mediaBps, wantsFrame }) {
    if (toBps !== this.#target) this.#reporter.target(this.#target, toBps);
    this.#target = toBps;
    this.#encoder.target(mediaBps);
    this.#encoder.wants(wantsFrame);
  }

  /** Sets the bitrate, within the limits. */
  set(bitrate) {
    const { minBitrate, maxBitrate } = this.#settings;
    const target = Math.round(Math.min(Math.max(bitrate, minBitrate), maxBitrate));
    if (target === this.#target) return;
    this.#reporter.target(this.#target, target);
    this.#target = target;
    this.#encoder.target(target);
  }
}
