import type { Algorithm, Change, Metrics, SenderOptions } from "./sender.mjs";

/** A controller for what one video sender (`RTCRtpSender`) of werift sends. */
export class Congestion {
  /** `werift` is the module itself, `rtpSender` a sender of it whose connection is up. */
  constructor(
    werift: object,
    rtpSender: object,
    algorithm: Algorithm,
    options?: SenderOptions,
    onTarget?: (change: Change) => void,
  );
  get bitrate(): number;
  get sourceBitrate(): number;
  get mediaBitrate(): number;
  get wantsFrame(): boolean;
  metrics(): Metrics;
  onRouteChange(): void;
  setLimits(limits: { minBitrate: number; startBitrate?: number; maxBitrate: number }): void;
  setDesiredBitrate(bitrate: number | undefined): void;
  clearQueue(): void;
  /** Gives the sender back. Packets in the queue are lost. */
  close(): void;
}
