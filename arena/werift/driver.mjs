// Driver of the arena for werift: sends the video of one call at the receiver's estimate.
//
// werift's `senderBWE` measures what arrives, and has no target, so this sender asks for REMB.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import {
  MediaStreamTrack,
  RTCPeerConnection,
  ReceiverEstimatedMaxBitrate,
  RtcpPayloadSpecificFeedback,
  useAbsSendTime,
  useSdesMid,
  useVP8,
} from "werift";

import { serve } from "../node/driver.mjs";
import { Encoder, Packetizer, ReceiverEstimate } from "../node/encoder.mjs";

class Call {
  #connection;
  #encoder;
  #reporter;
  #early = [];

  constructor(settings, reporter) {
    this.#reporter = reporter;
    this.#connection = new RTCPeerConnection({
      codecs: { audio: [], video: [useVP8()] },
      headerExtensions: { audio: [], video: [useSdesMid(), useAbsSendTime()] },
      iceServers: [],
      iceUseIpv6: false,
      iceUseTcp: false,
    });
    const track = new MediaStreamTrack({ kind: "video" });
    const { sender } = this.#connection.addTransceiver(track, { direction: "sendonly" });
    // werift writes number of payload and source itself.
    const packetizer = new Packetizer(1, 96, settings.frameRate);
    this.#encoder = new Encoder(settings, (frame) => {
      for (const packet of packetizer.packets(frame)) track.writeRtp(packet);
    });
    const estimate = new ReceiverEstimate(settings, reporter, this.#encoder);
    sender.onPictureLossIndication.subscribe(() => this.#encoder.key());
    sender.onRtcp.subscribe((packet) => {
      const isRemb =
        packet.type === RtcpPayloadSpecificFeedback.type &&
        packet.feedback.count === ReceiverEstimatedMaxBitrate.count;
      if (isRemb) estimate.set(Number(packet.feedback.bitrate));
    });
    this.#connection.onIceCandidate.subscribe((candidate) => {
      if (candidate) reporter.candidate(candidate.toJSON());
    });
    this.#connection.connectionStateChange.subscribe((state) => {
      if (state === "connected") {
        reporter.connected();
        estimate.start();
      } else if (state === "failed") {
        reporter.failed("no connection to the other peer");
      }
    });
    reporter.mark("camera");
  }

  async start() {
    const offer = await this.#connection.createOffer();
    this.#reporter.offer(offer.sdp);
    await this.#connection.setLocalDescription(offer);
  }

  async answer(sdp) {
    await this.#connection.setRemoteDescription({ type: "answer", sdp });
    for (const candidate of this.#early.splice(0)) await this.candidate(candidate);
  }

  async candidate(candidate) {
    if (!this.#connection.remoteDescription) {
      this.#early.push(candidate);
      return;
    }
    if (/ udp /i.test(candidate.candidate)) await this.#connection.addIceCandidate(candidate);
  }

  async close() {
    this.#encoder.close();
    await this.#connection.close();
  }
}

const manifest = createRequire(import.meta.url)
  .resolve("werift")
  .replace(/\/lib\/.*/, "/package.json");
await serve(
  `werift ${JSON.parse(readFileSync(manifest)).version}`,
  (settings, reporter) => new Call(settings, reporter),
);
