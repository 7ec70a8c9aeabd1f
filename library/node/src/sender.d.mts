/** The name of a controller. */
export type Algorithm = "gcc" | "nada" | "scream" | "scream-v2" | "sluice";

/** What a packet carries: audio leaves at once, then packets that are sent again, then pictures. */
export type PacketKind = "audio" | "repair" | "video";

export interface SenderOptions {
  /** The lowest target, in bit/s. The default is 150,000. */
  minBitrate?: number;
  /** The target before the first feedback, in bit/s. The default is 300,000. */
  startBitrate?: number;
  /** The highest target, in bit/s. The default is 2,500,000. */
  maxBitrate?: number;
  /** SSRC of the media. The default is 1. */
  ssrc?: number;
  /** SSRC of packets that only probe. Media must not use it. The default is 2. */
  paddingSsrc?: number;
  /** Payload type of packets that only probe. Media must not use it. The default is 127. */
  paddingPayloadType?: number;
  /** Id of the header extension with the transport-wide sequence number. The default is 1. */
  transportSequenceNumberId?: number;
  /** Bytes that other layers add to a packet. The default is 28: IPv4 and UDP. */
  overheadBytes?: number;
}

export interface Target {
  /** What all packets should take, headers included, in bit/s. */
  bitrate: number;
  /** The same for a source that can leave pictures out: lower while too much is in flight. */
  sourceBitrate: number;
  /** The rate at which queued packets leave, in bit/s. */
  pacingRate: number;
}

export interface Change {
  fromBps: number;
  toBps: number;
  /** `mediaBitrate()` now. */
  mediaBps: number;
  /** `wantsFrame()` now. */
  wantsFrame: boolean;
  reason: string;
  state: string;
}

export interface Metrics {
  rttMs: number | undefined;
  queuingDelayMs: number | undefined;
  ackedBps: number | undefined;
  lossRatio: number;
  reason: string;
  state: string;
  signals: Record<string, number>;
}

/** What the receiver asks for: a packet that it misses, or a key frame if there is no number. */
export interface Request {
  mediaSsrc: number;
  sequenceNumber?: number;
}

/** Controller, history and pacer of one flow. Times are in ms from a clock that never goes back. */
export class Sender {
  constructor(algorithm: Algorithm, now: number, options?: SenderOptions);
  enqueue(now: number, packets: Uint8Array[]): void;
  enqueueUrgent(now: number, packets: Uint8Array[]): void;
  enqueueAs(now: number, kind: PacketKind, packets: Uint8Array[]): void;
  nextPacket(now: number): { bytes: Buffer; isPadding: boolean } | undefined;
  onRtcp(now: number, datagram: Uint8Array): boolean;
  nextRequest(): Request | undefined;
  onTimeout(now: number): void;
  nextTimeout(): number;
  target(): Target;
  takeChange(): Change | undefined;
  mediaBitrate(): number;
  wantsFrame(): boolean;
  queued(): number;
  setLimits(
    now: number,
    limits: { minBitrate: number; startBitrate?: number; maxBitrate: number },
  ): void;
  setDesiredBitrate(now: number, bitrate: number | undefined): void;
  onReceiverLimit(now: number, bitrate: number | undefined): void;
  onRouteChange(now: number): void;
  onRoundTripTime(now: number, rtt: number): void;
  metrics(): Metrics;
  clearQueue(now: number): void;
}
