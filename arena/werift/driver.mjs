// Driver of the arena for werift: sends the video of one call at the receiver's estimate, or under a controller of Weir;
// or receives it.
//
//     driver.mjs [CONTROLLER] [--version]
//
// werift's `senderBWE` measures what arrives, and has no target. So a sender without CONTROLLER asks for REMB.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import * as werift from "werift";

import { Congestion } from "../../library/node/src/werift.mjs";
import { serve } from "../node/driver.mjs";
import { Encoder, Packetizer, Target } from "../node/encoder.mjs";
import { Receiver } from "./receiver.mjs";

const controller = process.argv.slice(2).find((word) => !word.startsWith("-"));

/** What werift offers. A controller of Weir needs transport-wide feedback, and RTX for its probes. */
function configuration() {
  const { useAbsSendTime, useNACK, usePLI, useSdesMid, useTWCC, useTransportWideCC } = werift;
  const transport = { iceServers: [], iceUseIpv6: false, iceUseTcp: false };
  if (!controller) {
    const video = [useSdesMid(), useAbsSendTime()];
    const codecs = { audio: [], video: [werift.useVP8()] };
    return { ...transport, codecs, headerExtensions: { audio: [], video } };
  }
  const vp8 = werift.useVP8({ rtcpFeedback: [useNACK(), usePLI(), useTWCC()] });
  const rtx = new werift.RTCRtpCodecParameters({ mimeType: "video/rtx", clockRate: 90_000 });
  const video = [useSdesMid(), useAbsSendTime(), useTransportWideCC()];
  const codecs = { audio: [], video: [vp8, rtx] };
  return { ...transport, codecs, headerExtensions: { audio: [], video } };
}

class Call {
  #connection;
  #sender;
  #settings;
  #encoder;
  #reporter;
  #early = [];

  constructor(settings, reporter) {
    [this.#settings, this.#reporter] = [settings, reporter];
    this.#connection = new werift.RTCPeerConnection(configuration());
    const track = new werift.MediaStreamTrack({ kind: "video" });
    this.#sender = this.#connection.addTransceiver(track, { direction: "sendonly" }).sender;
    // werift writes number of payload and source itself.
    const packetizer = new Packetizer(1, 96, settings.frameRate);
    this.#encoder = new Encoder(settings, (frame) => {
      for (const packet of packetizer.packets(frame)) track.writeRtp(packet);
    });
    this.#sender.onPictureLossIndication.subscribe(() => this.#encoder.key());
    this.#connection.onIceCandidate.subscribe((candidate) => {
      if (candidate) reporter.candidate(candidate.toJSON());
    });
    this.#connection.connectionStateChange.subscribe((state) => {
      if (state === "connected") {
        reporter.connected();
        this.#control();
      } else if (state === "failed") {
        reporter.failed("no connection to the other peer");
      }
    });
    reporter.mark("camera");
  }

  /** Lets the controller, or the receiver's estimate, set the encoder's rate from now on. */
  #control() {
    const target = new Target(this.#settings, this.#reporter, this.#encoder);
    if (controller) {
      const { minBitrate, startBitrate, maxBitrate } = this.#settings;
      const limits = { minBitrate, startBitrate, maxBitrate };
      const follow = (change) => target.follow(change);
      new Congestion(werift, this.#sender, controller, limits, follow);
    } else {
      this.#sender.onRtcp.subscribe((packet) => {
        const isRemb =
          packet.type === werift.RtcpPayloadSpecificFeedback.type &&
          packet.feedback.count === werift.ReceiverEstimatedMaxBitrate.count;
        if (isRemb) target.set(Number(packet.feedback.bitrate));
      });
    }
    target.start();
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
await serve(`werift ${JSON.parse(readFileSync(manifest)).version}`, (settings, reporter) =>
  settings.role === "receiver" ? new Receiver(settings, reporter) : new Call(settings, reporter),
);
