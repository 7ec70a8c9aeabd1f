// A mahimahi trace of an invented uplink on a train: node make-trace.mjs | gzip -9n > train.mahi.gz
//
// The rate wanders between 0.5 and 5 Mbit/s, a step each 250 ms, and there is a tunnel from 30 to 32 s in
// which nothing gets through. Nothing here was measured. Equal seeds give equal bytes.

const SEED = 20_261_122;
const STEPS = 240;
const STEP_MS = 250;
const [LOWEST_BPS, START_BPS, HIGHEST_BPS] = [500_000, 2_500_000, 5_000_000];
const TUNNEL_MS = [30_000, 32_000];
const OPPORTUNITY_BITS = 1500 * 8;

/** Numbers from 0 to 1, from a linear congruential generator: enough for a rate that wanders. */
let state = SEED;
function random() {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

let rate = START_BPS;
let sentBits = 0;
const lines = [];
for (let step = 0; step < STEPS; step += 1) {
  rate = Math.min(HIGHEST_BPS, Math.max(LOWEST_BPS, rate * (0.75 + random() / 2)));
  for (let ms = step * STEP_MS + 1; ms <= (step + 1) * STEP_MS; ms += 1) {
    const isInTunnel = ms > TUNNEL_MS[0] && ms <= TUNNEL_MS[1];
    sentBits += isInTunnel ? 0 : rate / 1000;
    for (; sentBits >= OPPORTUNITY_BITS; sentBits -= OPPORTUNITY_BITS) {
      lines.push(ms);
    }
  }
}
console.log(lines.join("\n"));
