// SPDX-License-Identifier: MIT
// Probabilities of tokens: a log-softmax of logits. Math.exp and Math.log differ between browsers in the last bit, so
// these functions repeat the engine's (src/base/num.c) step by step and give the same numbers everywhere. They are here
// and not in the engine because few replies need them.

const [LN2_HI, LN2_LO, LOG2E] = [0.6931471803691238, 1.9082149292705877e-10, 1.4426950408889634];
/** Adding and subtracting this rounds a number to an integer. */
const MAGIC = 6755399441055744;

/** 1 / 14! to 1 / 2!. */
const INVERSE_FACTORIALS = Float64Array.from([
  87178291200, 6227020800, 479001600, 39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2,
], (factorial) => 1 / factorial);

/** 2 to the powers of -1022 to 0; a softmax needs no others. */
const LEAST = -1022;
const POWERS = Float64Array.from({ length: 1 - LEAST }, (_, i) => 2 ** (i + LEAST));

const double = new Float64Array(1);
const words = new Uint32Array(double.buffer);   // lower word first: WebAssembly runs on little-endian machines only

/** The exponential of a number up to 0. Called for every token of the vocabulary, so it uses tables. */
export function exp(x) {
  if (x < -708) return 0;
  const n = (x * LOG2E + MAGIC) - MAGIC;
  const r = x - n * LN2_HI - n * LN2_LO;
  let p = 0;
  for (let i = 0; i < INVERSE_FACTORIALS.length; i++) p = p * r + INVERSE_FACTORIALS[i];
  return (p * (r * r) + r + 1) * POWERS[n - LEAST];
}

/** The natural logarithm of a normal number above 0. */
export function log(x) {
  double[0] = x;
  let exponent = (words[1] >>> 20) - 1023;
  words[1] = (words[1] & 0xfffff) | (1023 << 20);
  let [m] = double;
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent++;
  }
  const s = (m - 1) / (m + 1);
  const s2 = s * s;
  let p = 0;
  for (let k = 23; k >= 1; k -= 2) p = p * s2 + 1 / k;
  return exponent * LN2_HI + (2 * s * p + exponent * LN2_LO);
}

/** The ids of the n largest numbers of a row, best first; of equal numbers the lower id comes first. */
function largest(row, n) {
  const best = [];
  let least = n ? -Infinity : Infinity;     // the smallest of the best, once there are n
  for (let id = 0; id < row.length; id++) {
    if (row[id] <= least) continue;
    let at = best.length;
    while (at > 0 && row[best[at - 1]] < row[id]) at--;
    best.splice(at, 0, id);
    best.length = Math.min(best.length, n);
    if (best.length === n) least = row[best[n - 1]];
  }
  return best;
}

/**
 * Natural logarithms of the probabilities of a token and of the n likeliest ones.
 * @param {Float32Array} row logits, one for each token
 * @returns {{id: number, logprob: number}[]} the token `id` first
 */
export function logprobs(row, id, n) {
  let most = -Infinity;
  for (let i = 0; i < row.length; i++) if (row[i] > most) most = row[i];
  let sum = 0;
  for (let i = 0; i < row.length; i++) sum += exp(row[i] - most);
  const rest = log(sum);
  return [id, ...largest(row, n)].map((one) => ({ id: one, logprob: row[one] - most - rest }));
}

/** The same with texts: a Logprob of index.d.ts. @param {import('../engine/engine.js').Engine} engine */
export function thoughtOf(engine, row, id, n) {
  const [own, ...top] = logprobs(row.subarray(0, engine.facts.tokens), id, n).map((one) => ({
    ...one,
    text: engine.detokenize([one.id]),
  }));
  return { ...own, top };
}
