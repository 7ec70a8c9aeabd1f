// The end that receives the video with werift. It has no decoder.

import * as werift from "werift";

import { Inbound } from "../node/inbound.mjs";

/** What werift offers a receiver: transport-wide feedback, NACK with a stream of repeats, and PLI. */
function configuration() {
  const { useAbsSendTime, useNACK, usePLI, useSdesMid, useTWCC, useTransportWideCC } = werift;
  const vp8 = werift.useVP8({ rtcpFeedback: [useNACK(), usePLI(), useTWCC()] });
  const rtx = new werift.RTCRtpCodecParameters({ mimeType: "video/rtx", clockRate: 90_000 });
  return {
    iceServers: [],
    iceUseIpv6: false,
    iceUseTcp: false,
    codecs: { audio: [], video: [vp8, rtx] },
    headerExtensions: { audio: [], video: [useSdesMid(), useAbsSendTime(), useTransportWideCC()] },
  };
}

export class Receiver {
  #connection = new werift.RTCPeerConnection(configuration());
  #inbound;
  #reporter;
  #early = [];
  #ask = () => {};

  constructor(settings, reporter) {
    this.#reporter = reporter;
    this.#inbound = new Inbound(settings, reporter, () => this.#ask());
    this.#connection.onTrack.subscribe((track) => this.#read(track));
    this.#connection.onIceCandidate.subscribe((candidate) => {
      if (candidate) reporter.candidate(candidate.toJSON());
    });
    this.#connection.connectionStateChange.subscribe((state) => {
      if (state === "connected") {
        reporter.connected();
        this.#inbound.start();
      } else if (state === "failed") {
        reporter.failed("no connection to the other peer");
      }
    });
  }

  #read(track) {
    const receiver = this.#connection.getReceivers().find(({ tracks }) => tracks.includes(track));
    track.onReceiveRtp.subscribe(({ header, payload }) => {
      this.#ask = () => receiver?.sendRtcpPLI(header.ssrc);
      this.#inbound.add({
        ssrc: header.ssrc,
        sequence: header.sequenceNumber,
        timestamp: header.timestamp,
        marker: header.marker,
        headerBytes: header.serializeSize,
        payload,
      });
    });
  }

  async offer(sdp) {
    await this.#connection.setRemoteDescription({ type: "offer", sdp });
    const answer = await this.#connection.createAnswer();
    this.#reporter.answer(answer.sdp);
    await this.#connection.setLocalDescription(answer);
    for (const candidate of this.#early.splice(0)) await this.candidate(candidate);
  }

  async candidate(candidate) {
    if (!this.#connection.remoteDescription) {
      this.#early.push(candidate);
      return;
    }
    if (/ udp /i.test(candidate.candidate)) await this.#connection.addIceCandidate(candidate);
  }

  tell() {
    this.#inbound.tell();
  }

  async close() {
    this.#inbound.close();
    await this.#connection.close();
  }
}
