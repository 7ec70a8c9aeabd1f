// The end that receives the video with libdatachannel, which hands over packets of RTP. It has no decoder, and what it
// tells the sender are receiver reports: it asks for no packet again, and measures no rate.

import { PeerConnection, RtcpReceivingSession, cleanup } from "node-datachannel";

import { Inbound } from "../node/inbound.mjs";

const RTP_HEADER_BYTES = 12;
/** Packets with these numbers in their second byte are RTCP [RFC 5761]. */
const RTCP = { from: 192, to: 223 };

export class Receiver {
  #connection = new PeerConnection("arena", { iceServers: [], disableAutoNegotiation: true });
  #track;
  #inbound;
  #early = [];

  constructor(settings, reporter) {
    this.#inbound = new Inbound(settings, reporter, () => this.#track?.requestKeyframe());
    this.#connection.onLocalDescription((sdp) => reporter.answer(sdp));
    this.#connection.onLocalCandidate((candidate, sdpMid) => {
      reporter.candidate({ candidate: candidate.replace(/^a=/, ""), sdpMid, sdpMLineIndex: 0 });
    });
    this.#connection.onStateChange((state) => {
      if (state === "failed") reporter.failed("no connection to the other peer");
    });
    this.#connection.onTrack((track) => {
      // Without a reference the track would be closed.
      this.#track = track;
      track.setMediaHandler(new RtcpReceivingSession());
      track.onMessage((bytes) => this.#read(bytes));
      track.onOpen(() => {
        reporter.connected();
        this.#inbound.start();
      });
    });
  }

  #read(bytes) {
    if (bytes[1] >= RTCP.from && bytes[1] <= RTCP.to) return;
    const headerBytes = sizeOfHeader(bytes);
    const padding = bytes[0] & 0x20 ? bytes[bytes.length - 1] : 0;
    this.#inbound.add({
      ssrc: bytes.readUInt32BE(8),
      sequence: bytes.readUInt16BE(2),
      timestamp: bytes.readUInt32BE(4),
      marker: (bytes[1] & 0x80) !== 0,
      headerBytes,
      payload: bytes.subarray(headerBytes, Math.max(headerBytes, bytes.length - padding)),
    });
  }

  offer(sdp) {
    this.#connection.setRemoteDescription(onlyVp8(sdp), "offer");
    this.#connection.setLocalDescription("answer");
    for (const candidate of this.#early.splice(0)) this.candidate(candidate);
  }

  candidate(candidate) {
    if (!this.#connection.remoteDescription()) {
      this.#early.push(candidate);
    } else if (/ udp /i.test(candidate.candidate)) {
      this.#connection.addRemoteCandidate(candidate.candidate, candidate.sdpMid ?? "video");
    }
  }

  tell() {
    this.#inbound.tell();
  }

  close() {
    this.#inbound.close();
    this.#connection.close();
    cleanup();
  }
}

/** The offer without other codecs. libdatachannel would accept RED and repeats, and hand both over as they are. */
function onlyVp8(sdp) {
  const [, vp8] = /^a=rtpmap:(\d+) VP8\//m.exec(sdp);
  const isOfOther = (line) => {
    const [, number] = /^a=(?:rtpmap|fmtp|rtcp-fb):(\d+) /.exec(line) ?? [];
    return number !== undefined && number !== vp8;
  };
  const lines = sdp.split("\r\n").filter((line) => !isOfOther(line));
  return lines.join("\r\n").replace(/^(m=video \S+ \S+) .*$/m, `$1 ${vp8}`);
}

/** Header with sources and extension [RFC 3550]. */
function sizeOfHeader(bytes) {
  const fixed = RTP_HEADER_BYTES + 4 * (bytes[0] & 0x0f);
  const hasExtension = (bytes[0] & 0x10) !== 0;
  return hasExtension ? fixed + 4 + 4 * bytes.readUInt16BE(fixed + 2) : fixed;
}
