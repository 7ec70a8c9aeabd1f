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

test("a picture of any size is queued in one call", () => {
  for (const count of [1, 200, 1_000, 4_000]) {
    const from = sender();
    for (let call = 0; call < 2; call++)
      from.enqueue(
        0,
        Array.from({ length: count }, (_, number) => packet(2 * count * call + number)),
      );
    assert.equal(from.queued(), 2 * count * 1_228);
    assert.equal(from.nextPacket(0).bytes.readUInt16BE(2), 0);
  }
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

test("times of any size are taken, and the time that means never", () => {
  const times = [-1e300, -1, 0, 1e12, 1e300, Number.POSITIVE_INFINITY];
  for (const algorithm of ["gcc", "nada", "scream", "scream-v2", "sluice"]) {
    const from = sender(algorithm);
    for (const now of times) {
      from.enqueue(now, [packet(1)]);
      from.onTimeout(now);
      from.nextPacket(now);
      from.onRtcp(now, remb(400_000));
    }
    // A clock that goes back counts as one that stands.
    from.onTimeout(5);
    assert.ok(from.target().bitrate <= 400_000, algorithm);
  }
});

test("numbers that no bitrate, no time and no identifier can be are refused", () => {
  const from = sender();
  for (const odd of [Number.NaN, -1, 2 ** 64, Number.POSITIVE_INFINITY]) {
    assert.throws(() => from.setDesiredBitrate(0, odd), /weir: a bitrate is a number/);
    assert.throws(() => from.setLimits(0, { minBitrate: 1, maxBitrate: odd }), /weir: a bitrate/);
    assert.throws(() => new Sender("gcc", 0, { maxBitrate: odd }), /weir: a bitrate/);
    assert.throws(() => new Sender("gcc", 0, { overheadBytes: odd }), /weir: .* no integer/);
  }
  assert.throws(() => from.onTimeout(Number.NaN), /weir: a time is a number/);
  assert.throws(() => new Sender("gcc", 0, { transportSequenceNumberId: 257 }), /no integer/);
  assert.equal(from.target().bitrate, 300_000);
});

test("sound leaves before the pictures that wait", () => {
  const from = sender();
  from.enqueue(
    0,
    Array.from({ length: 30 }, (_, number) => packet(number)),
  );
  assert.ok(from.nextPacket(0));
  from.enqueueAs(0, "audio", [packet(500)]);
  assert.equal(from.nextPacket(20).bytes.readUInt16BE(2), 500);
  assert.throws(() => from.enqueueAs(0, "sound", [packet(501)]), /a kind of packet is/);
});

test("what the receiver asks for is told", () => {
  const from = sender();
  const nack = Buffer.from([0x81, 205, 0, 3, 0, 0, 0, 9, 0, 0, 0, 0, 1, 244, 0, 1]);
  const loss = Buffer.from([0x81, 206, 0, 2, 0, 0, 0, 9, 0, 0, 0, 0]);
  for (const bytes of [nack, loss]) bytes.writeUInt32BE(SSRC, 8);
  assert.ok(from.onRtcp(10, Buffer.concat([nack, loss])));
  assert.deepEqual(from.nextRequest(), { mediaSsrc: SSRC, sequenceNumber: 500 });
  assert.deepEqual(from.nextRequest(), { mediaSsrc: SSRC, sequenceNumber: 501 });
  assert.deepEqual(from.nextRequest(), { mediaSsrc: SSRC });
  assert.equal(from.nextRequest(), undefined);
});

test("limits need no start, and a missing one is named", () => {
  const from = sender();
  from.setLimits(10, { minBitrate: 500_000, maxBitrate: 600_000 });
  assert.equal(from.target().bitrate, 500_000);
  assert.throws(() => from.setLimits(20, { minBitrate: 1 }), /setLimits needs maxBitrate/);
  from.onRouteChange(30);
  from.onReceiverLimit(40, undefined);
  assert.equal(from.target().sourceBitrate, 500_000);
  assert.equal(from.metrics().lossRatio, 0);
});
