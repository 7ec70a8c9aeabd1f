// The plug for werift, over stand-ins for the parts of werift that it touches. Real calls are in
// lab/cli/tests/real/bindings.rs of the project.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { Congestion } from "../src/werift.mjs";
import { SSRC, remb } from "../fixture/remb.mjs";

const [RTX_SSRC, RTX_TYPE, EXTENSION_ID] = [8, 97, 1];
const TRANSPORT_WIDE = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";

/** RTP's header with one extension of the one-byte form: number 1, two bytes. */
class RtpHeader {
  static SIZE = 20;
  padding = false;
  marker = false;
  timestamp = 0;
  sequenceNumber = 0;
  payloadType = 96;
  extensions = [{ id: EXTENSION_ID }, { id: 3 }];
  serializeSize = RtpHeader.SIZE;

  constructor(fields) {
    Object.assign(this, fields);
  }

  static deSerialize(bytes) {
    const [sequenceNumber, timestamp] = [bytes.readUInt16BE(2), bytes.readUInt32BE(4)];
    const [ssrc, marker] = [bytes.readUInt32BE(8), bytes[1] > 127];
    const payloadType = bytes[1] & 127;
    const header = new RtpHeader({ sequenceNumber, timestamp, ssrc, marker, payloadType });
    const words = bytes.readUInt16BE(14);
    return Object.assign(header, { payloadOffset: 16 + 4 * words });
  }

  serialize() {
    const bytes = Buffer.alloc(RtpHeader.SIZE);
    bytes.set([0x90, (this.marker ? 128 : 0) | this.payloadType]);
    bytes.writeUInt16BE(this.sequenceNumber, 2);
    bytes.writeUInt32BE(this.timestamp, 4);
    bytes.writeUInt32BE(this.ssrc, 8);
    bytes.set([0xbe, 0xde, 0, 1, 0x11, 0, 0, 0], 12);
    return bytes;
  }
}

class Event {
  #listeners = new Set();

  subscribe(listener) {
    this.#listeners.add(listener);
    return { unSubscribe: () => this.#listeners.delete(listener) };
  }

  execute(value) {
    for (const listener of this.#listeners) listener(value);
  }
}

class Transport {
  onRtcp = new Event();
  onStateChange = new Event();
  left = [];

  async sendRtp(payload, header) {
    this.left.push({ payload, header });
    return payload.length;
  }
}

function rtpSender(changes = {}) {
  return {
    ssrc: SSRC,
    rtxSsrc: RTX_SSRC,
    rtxPayloadType: RTX_TYPE,
    rtxSequenceNumber: 65_535,
    headerExtensions: [{ uri: TRANSPORT_WIDE, id: EXTENSION_ID }],
    dtlsTransport: new Transport(),
    ...changes,
  };
}

const LIMITS = { minBitrate: 50_000, startBitrate: 300_000, maxBitrate: 1_500_000 };

function control(sender, onTarget) {
  return new Congestion({ RtpHeader }, sender, "gcc", LIMITS, onTarget);
}

function frame(timestamp, packets) {
  return Array.from({ length: packets }, (_, number) => ({
    payload: Buffer.alloc(1_000, number),
    header: new RtpHeader({
      ssrc: SSRC,
      sequenceNumber: number,
      timestamp,
      marker: number + 1 === packets,
    }),
  }));
}

/** Waits until this many packets have left. */
async function until(transport, packets) {
  while (transport.left.length < packets) await wait(5);
}

test("a frame leaves over time, and repeats before what waits, with numbers of the stack", async () => {
  const sender = rtpSender();
  const transport = sender.dtlsTransport;
  const controlled = control(sender);
  for (const { payload, header } of frame(1, 20)) await transport.sendRtp(payload, header);
  assert.ok(transport.left.length < 20, "the whole frame left at once");
  for (const number of [1, 2]) {
    const header = new RtpHeader({ ssrc: RTX_SSRC, payloadType: RTX_TYPE });
    await transport.sendRtp(Buffer.from([0, number]), header);
  }
  assert.ok(controlled.mediaBitrate < controlled.bitrate, "repeats are part of the target");
  await until(transport, 22);
  controlled.close();
  const repeats = transport.left.filter(({ header }) => header.ssrc === RTX_SSRC);
  assert.deepEqual(
    repeats.map(({ header }) => header.sequenceNumber),
    [65_535, 0],
  );
  const media = transport.left.filter(({ header }) => header.ssrc === SSRC);
  assert.deepEqual(
    media.map(({ payload }) => payload[0]),
    Array.from({ length: 20 }, (_, number) => number),
  );
  assert.ok(transport.left.indexOf(repeats[1]) < 20, "repeats left last");
  assert.equal(sender.rtxSequenceNumber, 1);
});

test("packets of other streams leave at once and without a transport-wide number", async () => {
  const sender = rtpSender();
  const controlled = control(sender);
  await sender.dtlsTransport.sendRtp(Buffer.alloc(10), new RtpHeader({ ssrc: 99 }));
  assert.deepEqual(
    sender.dtlsTransport.left[0].header.extensions.map(({ id }) => id),
    [3],
  );
  controlled.close();
});

test("each change of the target is told, with what the encoder may make of it", () => {
  const sender = rtpSender();
  const told = [];
  const controlled = control(sender, (change) => told.push(change));
  sender.dtlsTransport.onRtcp.execute({ serialize: () => remb(200_000) });
  assert.deepEqual([told[0].fromBps, told[0].reason], [300_000, "receiver limit"]);
  assert.ok(told[0].toBps <= 200_000 && told[0].mediaBps === told[0].toBps);
  controlled.setLimits({ minBitrate: 50_000, maxBitrate: 100_000 });
  assert.equal(controlled.bitrate, 100_000);
  assert.equal(told.at(-1).toBps, 100_000);
  controlled.close();
});

test("an end of the transport gives the sender back, and a second end does nothing", async () => {
  const sender = rtpSender();
  const transport = sender.dtlsTransport;
  const controlled = control(sender);
  assert.throws(() => control(sender), /has a controller/);
  for (const { payload, header } of frame(1, 20)) await transport.sendRtp(payload, header);
  controlled.clearQueue();
  transport.onStateChange.execute("closed");
  controlled.close();
  const { length } = transport.left;
  await transport.sendRtp(Buffer.alloc(10), new RtpHeader({ ssrc: SSRC }));
  assert.equal(transport.left.length, length + 1);
  control(sender).close();
});

test("peers that have not agreed to what is needed are an error in one line", () => {
  assert.throws(() => control(rtpSender({ headerExtensions: [] })), /transport-wide feedback/);
  assert.throws(() => control(rtpSender({ rtxPayloadType: undefined })), /RTX/);
});
