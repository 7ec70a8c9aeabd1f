// Driver of the arena for libdatachannel, by node-datachannel: sends the video of one call at the receiver's estimate,
// or receives it.
//
// libdatachannel makes no packets of VP8 and controls no rate; both are its application's part. It encrypts, answers
// NACKs, and hands the receiver's feedback over.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import {
  PeerConnection,
  RtcpNackResponder,
  Video,
  cleanup,
  getLibraryVersion,
} from "node-datachannel";

import { serve } from "../node/driver.mjs";
import { Encoder, Packetizer, Target } from "../node/encoder.mjs";
import { Receiver } from "./receiver.mjs";

const SSRC = 0x5e1f;
const PAYLOAD_TYPE = 96;
const SEND_TIME = 2;
const SEND_TIME_URI = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time";
const RTP_HEADER_BYTES = 12;
/** RTCP of payload-specific feedback, and its formats [RFC 4585]. */
const PAYLOAD_FEEDBACK = 206;
const PICTURE_LOSS = 1;
const APPLICATION = 15;

class Call {
  #connection = new PeerConnection("arena", { iceServers: [] });
  #encoder;
  #early = [];

  constructor(settings, reporter) {
    const video = new Video("video", "SendOnly");
    video.addVP8Codec(PAYLOAD_TYPE);
    video.addSSRC(SSRC, "arena", "arena", "video");
    video.parseSdpLine(`a=extmap:${SEND_TIME} ${SEND_TIME_URI}`);
    const track = this.#connection.addTrack(video);
    track.setMediaHandler(new RtcpNackResponder());
    const packetizer = new Packetizer(SSRC, PAYLOAD_TYPE, settings.frameRate);
    this.#encoder = new Encoder(settings, (frame) => {
      if (!track.isOpen()) return;
      for (const packet of packetizer.packets(frame)) track.sendMessageBinary(withSendTime(packet));
    });
    const estimate = new Target(settings, reporter, this.#encoder);
    track.onMessage((bytes) => this.#onRtcp(bytes, estimate));
    this.#connection.onLocalDescription((sdp) => reporter.offer(sdp));
    this.#connection.onLocalCandidate((candidate, sdpMid) => {
      reporter.candidate({ candidate: candidate.replace(/^a=/, ""), sdpMid, sdpMLineIndex: 0 });
    });
    this.#connection.onStateChange((state) => {
      if (state === "failed") reporter.failed("no connection to the other peer");
    });
    track.onOpen(() => {
      reporter.connected();
      estimate.start();
    });
    reporter.mark("camera");
  }

  start() {
    this.#connection.setLocalDescription("offer");
  }

  answer(sdp) {
    this.#connection.setRemoteDescription(sdp, "answer");
    for (const candidate of this.#early.splice(0)) this.candidate(candidate);
  }

  candidate(candidate) {
    if (!this.#connection.remoteDescription()) {
      this.#early.push(candidate);
    } else if (/ udp /i.test(candidate.candidate)) {
      this.#connection.addRemoteCandidate(candidate.candidate, candidate.sdpMid ?? "video");
    }
  }

  close() {
    this.#encoder.close();
    this.#connection.close();
    cleanup();
  }

  /** Reads a compound packet. */
  #onRtcp(bytes, estimate) {
    for (let at = 0; at + 8 <= bytes.length; ) {
      const length = 4 * (1 + bytes.readUInt16BE(at + 2));
      const packet = bytes.subarray(at, at + length);
      const format = bytes[at] & 0x1f;
      if (bytes[at + 1] === PAYLOAD_FEEDBACK && format === PICTURE_LOSS) this.#encoder.key();
      const isRemb = bytes[at + 1] === PAYLOAD_FEEDBACK && format === APPLICATION;
      if (isRemb && packet.toString("latin1", 12, 16) === "REMB") estimate.set(remb(packet));
      at += length;
    }
  }
}

/** The bitrate of a REMB packet: exponent of 6 bits, mantissa of 18. */
function remb(packet) {
  const mantissa = ((packet[17] & 3) << 16) | packet.readUInt16BE(18);
  return mantissa * 2 ** (packet[17] >> 2);
}

/** The packet with the time at which it is sent: 24 bits of seconds with 18 behind the point. */
function withSendTime(packet) {
  const extension = Buffer.alloc(8);
  extension.writeUInt16BE(0xbede, 0);
  extension.writeUInt16BE(1, 2);
  extension[4] = (SEND_TIME << 4) | 2;
  extension.writeUIntBE(Math.floor((performance.now() % 64_000) * 262.144), 5, 3);
  packet[0] |= 0x10;
  return Buffer.concat([
    packet.subarray(0, RTP_HEADER_BYTES),
    extension,
    packet.subarray(RTP_HEADER_BYTES),
  ]);
}

const require = createRequire(import.meta.url);
const manifest = require.resolve("node-datachannel").replace(/\/dist\/.*/, "/package.json");
const { version } = JSON.parse(readFileSync(manifest));
await serve(
  `libdatachannel ${getLibraryVersion()} (node-datachannel ${version})`,
  (settings, reporter) =>
    settings.role === "receiver" ? new Receiver(settings, reporter) : new Call(settings, reporter),
);
