// What laws of the rate reach on a recorded link that know more than a sender does, for `recorded-links.mjs held`.
//
// A fluid of 5 ms steps: a law sends, a queue of 500 ms of the mean rate waits and drops, the recording serves. Every law knows the queue
// and what it sent itself, late by its lag. The laws differ in what they know of the capacity:
//
//   exact     the rate of the last 50 ms of capacity, whether it was used or not
//   smoothed  the mean of the last 500 ms
//   busy      the rate of the last 50 ms in which a queue stood. Without a queue the law grows, as it must

/** Length of a step in s, and of a bin of the capacity in steps: 50 ms. */
const STEP_S = 0.005;
const BIN = 10;
/** Size of a packet of a recording in bits. */
const PACKET_BITS = 1504 * 8;
/** Limits of the flow in bit/s, and what the queue holds in s of the mean rate: as in the scenario. */
const [LEAST, MOST, START] = [50e3, 6e6, 300e3];
const QUEUE_S = 0.5;

/** What the fitted constants may be: queue that is kept in s, time in which a deviation is corrected in s, growth per s. */
const HOLDS_S = [0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3, 0.4, 0.6];
const CORRECTIONS_S = [0.05, 0.1, 0.2, 0.4];
const SHARES = [0.4, 0.7, 0.85, 1];
const GROWTHS = [0.9, 2, 4, 8];

/** The laws, in the order of the table. `lag_s` is the time after which a sender knows. */
export const LAWS = [
  { name: "exact, 85 ms late", knows: "exact", lag_s: 0.085 },
  { name: "exact, a round trip later", knows: "exact", lag_s: 0.145 },
  { name: "smoothed over 500 ms", knows: "smoothed", lag_s: 0.085 },
  { name: "busy bins only", knows: "busy", lag_s: 0.085 },
  { name: "busy bins only, a round trip later", knows: "busy", lag_s: 0.145 },
];

/** Bits that may leave in each step of `duration_s`; a recording that ends begins again. */
export function capacity(text, duration_s) {
  const times = text.trim().split("\n").map(Number);
  const bits = new Float64Array(Math.round(duration_s / STEP_S));
  const length_ms = times.at(-1);
  for (let round_ms = 0; round_ms < duration_s * 1e3; round_ms += length_ms) {
    for (const time of times) {
      const step = Math.floor((round_ms + time) / 1e3 / STEP_S);
      if (step < bits.length) bits[step] += PACKET_BITS;
    }
  }
  return bits;
}

/** Mean capacity over the `steps` steps before `end`, in bit/s. */
function rateBefore(sums, end, steps) {
  const begin = Math.max(end - steps, 0);
  return end > begin ? (sums[end] - sums[begin]) / ((end - begin) * STEP_S) : START;
}

/** The capacity as a law believes it to be at each moment: a function of the step that it sees. */
class Belief {
  constructor(knows, growth) {
    Object.assign(this, { knows, growth, rate: START });
  }

  /** The belief after step `seen`, in which the queue was `queued`. */
  update(sums, seen, queued) {
    if (this.knows === "exact") this.rate = rateBefore(sums, seen, BIN);
    else if (this.knows === "smoothed") this.rate = rateBefore(sums, seen, 10 * BIN);
    else if (queued > 0) this.rate = rateBefore(sums, seen, BIN);
    else this.rate = Math.min(this.rate * Math.exp(this.growth * STEP_S), MOST);
    return this.rate;
  }
}

/** Use and p95 of the wait in ms of one law with these constants. */
function played(bits, sums, law, { hold_s, correction_s, share, growth }) {
  const steps = bits.length;
  const lag = Math.round(law.lag_s / STEP_S);
  const room = (sums[steps] / (steps * STEP_S)) * QUEUE_S;
  const sent = new Float64Array(steps);
  const queues = new Float64Array(steps + 1);
  const belief = new Belief(law.knows, growth);
  // Of what waits, the oldest first: how much entered in which step.
  let oldest = 0;
  const waiting = new Float64Array(steps);
  // The mean wait of what is served in each 50 ms, as a record has it.
  const rows = [];
  let row = { bits: 0, waited: 0 };
  let served = 0;
  for (let step = 0; step < steps; step++) {
    const seen = step - lag;
    let wanted = START;
    if (seen > 0) {
      const rate = belief.update(sums, seen, queues[seen]);
      let queued = queues[seen];
      for (let own = seen; own < step; own++) {
        queued = Math.max(queued + sent[own] - rate * share * STEP_S, 0);
      }
      wanted = rate * share + (hold_s * rate - queued) / correction_s;
    }
    const comes = Math.min(Math.max(wanted, LEAST), MOST) * STEP_S;
    sent[step] = comes;
    waiting[step] = Math.min(comes, Math.max(room - queues[step], 0));
    let left = bits[step];
    queues[step + 1] = queues[step] + waiting[step];
    while (left > 0 && oldest <= step) {
      const leaves = Math.min(left, waiting[oldest]);
      waiting[oldest] -= leaves;
      left -= leaves;
      queues[step + 1] -= leaves;
      served += leaves;
      row.bits += leaves;
      row.waited += leaves * (step - oldest);
      if (waiting[oldest] > 0) break;
      oldest++;
    }
    queues[step + 1] = Math.max(queues[step + 1], 0);
    if (step % BIN === BIN - 1) {
      if (row.bits > 0) rows.push((row.waited / row.bits) * STEP_S * 1e3);
      row = { bits: 0, waited: 0 };
    }
  }
  rows.sort((one, other) => one - other);
  return { use: served / sums[steps], p95_ms: rows[Math.floor(rows.length * 0.95)] ?? 0 };
}

/** The largest use of a law at this p95 of the wait at most, with constants fitted to the recording. */
export function best(bits, law, p95_ms) {
  const sums = new Float64Array(bits.length + 1);
  for (let step = 0; step < bits.length; step++) sums[step + 1] = sums[step] + bits[step];
  let most = 0;
  for (const hold_s of HOLDS_S) {
    for (const correction_s of CORRECTIONS_S) {
      for (const share of SHARES) {
        for (const growth of law.knows === "busy" ? GROWTHS : [0]) {
          const reached = played(bits, sums, law, { hold_s, correction_s, share, growth });
          if (reached.p95_ms <= p95_ms) most = Math.max(most, reached.use);
        }
      }
    }
  }
  return most;
}
