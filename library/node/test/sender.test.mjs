import assert from "node:assert/strict";
import { test } from "node:test";

import { Sender } from "../src/sender.mjs";
import { SSRC, remb } from "../fixture/remb.mjs";

const PADDING_SSRC = 8;

/** An RTP packet of 1,200 bytes with room for the extension of number 1. */
function packet(number) {
  const bytes = Buffer.alloc(1_200);
  bytes.set([0x90, 96]);
  bytes.writeUInt16BE(number, 2);
  bytes.writeUInt32BE(SSRC, 8);
  // The one-byte form with one word: id 1, two bytes, and one of padding.
  bytes.set([0xbe, 0xde, 0, 1, 0x11, 0, 0, 0], 12);
  return bytes;
}

function sender(algorithm = "gcc") {
  const ids = { ssrc: SSRC, paddingSsrc: PADDING_SSRC, transportSequenceNumberId: 1 };
  return new Sender(algorithm, 0, { ...ids, startBitrate: 300_000, maxBitrate: 1_500_000 });
}

/** All packets that leave until a time, each with it. */
function leave(from, until) {
  const left = [];
  for (let now = 0; now <= until; now += 5) {
    from.onTimeout(now);
    for (let one = from.nextPacket(now); one; one = from.nextPacket(now))
      left.push({ now, ...one });
  }
  return left;
}

test("each controller has the start bitrate before feedback", () => {
  for (const algorithm of ["gcc", "nada", "scream", "scream-v2", "sluice"])
    assert.equal(sender(algorithm).target().bitrate, 300_000, algorithm);
});

test("packets leave over time and in their order, with numbers for the feedback", () => {
  const from = sender();
  from.enqueue(
    0,
    Array.from({ length: 30 }, (_, number) => packet(number)),
  );
  assert.ok(from.queued() > 30_000);
  const media = leave(from, 2_000).filter(({ isPadding }) => !isPadding);
  assert.deepEqual(
    media.map(({ bytes }) => bytes.readUInt16BE(2)),
    Array.from({ length: 30 }, (_, number) => number),
  );
  assert.ok(media.at(-1).now - media[0].now > 100, "nothing waited");
  const numbers = media.map(({ bytes }) => bytes.readUInt16BE(17));
  assert.ok(numbers.every((number, index) => index === 0 || number > numbers[index - 1]));
});

test("what is sent again leaves before the media that waits", () => {
  const from = sender();
  from.enqueue(
    0,
    Array.from({ length: 30 }, (_, number) => packet(number)),
  );
  assert.ok(from.nextPacket(0));
  from.enqueueUrgent(0, [packet(999)]);
  const left = leave(from, 2_000).map(({ bytes }) => bytes.readUInt16BE(2));
  assert.ok(left.indexOf(999) < 3, `it left as number ${left.indexOf(999)}`);
});

test("the receiver's limit lowers the target", () => {
  const from = sender();
  assert.ok(from.onRtcp(10, remb(200_000)));
  assert.ok(from.target().bitrate <= 200_000);
  const change = from.takeChange();
  assert.equal(change.fromBps, 300_000);
  assert.equal(change.reason, "receiver limit");
});

test("the range of the target, what the source can use and the queue change in a call", () => {
  const from = sender();
  from.setLimits(10, { minBitrate: 500_000, maxBitrate: 600_000 });
  assert.equal(from.target().bitrate, 500_000);
  const limits = { minBitrate: 500_000, maxBitrate: 100_000 };
  assert.throws(() => from.setLimits(20, limits), /bitrates/);
  from.setDesiredBitrate(30, 200_000);
  from.setDesiredBitrate(40, undefined);
  from.enqueue(50, [packet(0), packet(1)]);
  from.clearQueue(50);
  assert.equal(from.queued(), 0);
});

test("bytes of a stranger are refused without an error", () => {
  const from = sender();
  assert.equal(from.onRtcp(10, Buffer.from("no RTCP at all")), false);
  assert.equal(from.target().bitrate, 300_000);
});

test("what cannot be sent is an error in one line", () => {
  assert.throws(() => sender("quic"), /no controller has this name/);
  assert.throws(() => sender().enqueue(0, [Buffer.alloc(20)]), /not an RTP packet/);
  const limits = { minBitrate: 500_000, startBitrate: 100_000 };
  assert.throws(() => new Sender("gcc", 0, limits), /bitrates/);
});
