// What a receiver without a decoder knows about the video that arrives: packets, and the pictures that are complete.

const CLOCK = 90_000;
/** A picture that is incomplete this long after a newer one is lost. */
const LOST_AFTER = CLOCK;
/** A receiver asks for a key frame again after this time, in ms. */
const KEY_INTERVAL = 1_000;
/** A freeze, by the rule of the W3C's statistics (webrtc-stats, freezeCount): gaps of the mean, and ms beyond it. */
const GAPS_OF_MEAN = 30;
const LEAST_EXTRA = 150;

/** How far `to` is ahead of `from`, in numbers of this many bits that start again at 0. */
function ahead(from, to, bits) {
  return bits === 16 ? ((to - from) << 16) >> 16 : (to - from) | 0;
}

/** Counts gaps between pictures that are freezes. */
class Freezes {
  count = 0;
  total = 0;
  #gaps = [];
  #last;

  add(now) {
    if (this.#last !== undefined) {
      const gap = now - this.#last;
      if (this.#gaps.length === GAPS_OF_MEAN) {
        const mean = this.#gaps.reduce((sum, one) => sum + one, 0) / GAPS_OF_MEAN;
        if (gap > Math.max(3 * mean, mean + LEAST_EXTRA)) {
          this.count += 1;
          this.total += gap;
        }
        this.#gaps.shift();
      }
      this.#gaps.push(gap);
    }
    this.#last = now;
  }
}

/** A picture of which some packets are there. */
class Picture {
  #numbers = new Set();
  #first;
  #last;
  isCounted = false;

  /** Adds a packet of VP8, whose descriptor says whether it begins the picture [RFC 7741]. */
  add({ sequence, marker, payload }) {
    this.#numbers.add(sequence);
    const isFirst = (payload[0] & 0x17) === 0x10;
    if (isFirst) this.#first = sequence;
    if (marker) this.#last = sequence;
  }

  get isComplete() {
    if (this.#first === undefined || this.#last === undefined) return false;
    return ahead(this.#first, this.#last, 16) + 1 === this.#numbers.size;
  }
}

export class Inbound {
  #settings;
  #reporter;
  #onLost;
  #timer;
  #ssrc = 0;
  #packets = 0;
  #bytes = 0;
  #headers = 0;
  #frames = 0;
  #highest;
  #expected = 0;
  #pictures = new Map();
  #freezes = new Freezes();
  #asked = Number.NEGATIVE_INFINITY;

  /** `onLost` is called when a key frame is needed. */
  constructor(settings, reporter, onLost) {
    [this.#settings, this.#reporter, this.#onLost] = [settings, reporter, onLost];
  }

  /** The call is up. */
  start() {
    this.#timer = setInterval(() => this.tell(), this.#settings.statsInterval);
  }

  close() {
    clearInterval(this.#timer);
  }

  /** A packet arrived: `ssrc`, `sequence`, `timestamp`, `marker`, `payload` and `headerBytes`. */
  add(packet) {
    const { ssrc, sequence, payload, headerBytes } = packet;
    if (this.#highest === undefined) {
      [this.#highest, this.#expected] = [sequence, 1];
    }
    const step = ahead(this.#highest, sequence, 16);
    if (step > 0) {
      this.#highest = sequence;
      this.#expected += step;
    }
    this.#ssrc = ssrc;
    this.#packets += 1;
    this.#bytes += payload.length;
    this.#headers += headerBytes;
    // Padding has no part of a picture.
    if (payload.length > 0) this.#addToPicture(packet);
  }

  #addToPicture(packet) {
    const { timestamp } = packet;
    let picture = this.#pictures.get(timestamp);
    if (picture === undefined) {
      picture = new Picture();
      this.#pictures.set(timestamp, picture);
    }
    picture.add(packet);
    const now = performance.now();
    if (picture.isComplete && !picture.isCounted) {
      picture.isCounted = true;
      this.#frames += 1;
      if (this.#frames === 1) this.#reporter.playing();
      this.#freezes.add(now);
    }
    if (this.#forgetUpTo(timestamp) && now - this.#asked > KEY_INTERVAL) {
      this.#asked = now;
      this.#onLost();
    }
  }

  /** Forgets pictures that are old. Returns whether one of them was incomplete. */
  #forgetUpTo(timestamp) {
    let isLost = false;
    for (const [time, { isCounted }] of this.#pictures) {
      if (ahead(time, timestamp, 32) < LOST_AFTER) continue;
      this.#pictures.delete(time);
      isLost ||= !isCounted;
    }
    return isLost;
  }

  /** Tells the lab. */
  tell() {
    this.#reporter.inbound({
      ssrc: this.#ssrc,
      packetsReceived: this.#packets,
      packetsLost: this.#expected - this.#packets,
      bytesReceived: this.#bytes,
      headerBytesReceived: this.#headers,
      framesReceived: this.#frames,
      freezeCount: this.#freezes.count,
      totalFreezesDuration: this.#freezes.total / 1e3,
    });
  }
}
