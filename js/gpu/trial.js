// SPDX-License-Identifier: MIT
// Finds out whether a device computes numbers as the processor does. A shader with the functions of all kernels
// computes cases that were chosen so that each fault gives another number: a product that is fused with a sum, a folded
// constant, an approximate quotient, another order, a wrong half, a flushed subnormal number. The expected numbers are
// computed here, with Math.fround() after each operation. Fast kernels (fastOf in numbers.js) may round in any way, so
// they are allowed the errors that WGSL allows.

import { DIVIDE, EXP, HALVES, P, begin, fastOf, main } from './numbers.js';
import { DOT4 } from './panels.js';

const { fround, sqrt } = Math;
const words = new Uint32Array(1);
const floats = new Float32Array(words.buffer);
const bitsOf = (x) => { floats[0] = x; return words[0]; };
const floatOf = (u) => { words[0] = u; return floats[0]; };

/** An even number is nearer if both are equally near. */
function nearest(x) {
  const low = Math.floor(x);
  return x - low === 0.5 ? low + (low & 1) : Math.round(x);
}

/** num_exp() in src/base/num.h. */
function power(x) {
  if (x < fround(-87.33)) return 0;
  if (x > 88) return Infinity;
  const n = nearest(fround(x * fround(1.44269504089)));
  let r = fround(x - fround(n * fround(0.693359375)));
  r = fround(r - fround(n * fround(-2.12194440e-4)));
  let y = fround(0.00019875691500);
  for (const c of [0.0013981999507, 0.0083334519073, 0.041665795894, 0.16666665459, 0.50000001201])
    y = fround(fround(y * r) + fround(c));
  y = fround(fround(y * fround(r * r)) + r);
  return fround(fround(y + 1) * floatOf((n + 127) << 23));
}

/** The number that 16 bits hold as a half. */
function halfOf(h) {
  const sign = h & 0x8000 ? -1 : 1;
  const exponent = (h >> 10) & 31;
  const fraction = h & 1023;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

/** The half nearest to a number whose half is finite. */
function toHalf(x) {
  const size = Math.abs(x);
  const step = 2 ** (Math.max(-14, Math.floor(Math.log2(size))) - 10);
  const rounded = nearest(size / step) * step;
  const exponent = rounded < 2 ** -14 ? 0 : Math.floor(Math.log2(rounded)) + 15;
  const fraction = exponent ? (rounded / 2 ** (exponent - 15) - 1) * 1024 : rounded * 2 ** 24;
  return (x < 0 ? 0x8000 : 0) | (exponent << 10) | fraction;
}

const signed = (word, i) => (word << (24 - 8 * i)) >> 24;
const dot4 = (a, b) => [0, 1, 2, 3].reduce((sum, i) => sum + signed(a, i) * signed(b, i), 0);

/** By name: the shader's expression of x, y and z (floats) or a and b (words), and the same here. */
const FLOATS = {
  fused: ['k(x * y) + z', (x, y, z) => fround(fround(x * y) + z)],
  order: ['(x + y) + z', (x, y, z) => fround(fround(x + y) + z)],
  folded: ['k(x + 12582912.0f) - 12582912.0f', (x) => fround(fround(x + 12582912) - 12582912)],
  quotient: ['divide(x, y)', (x, y) => fround(x / y)],
  root: ['root(x)', (x) => fround(sqrt(x))],
  power: ['power(x)', power],
  rounding: ['round(x)', nearest],
  subnormal: ['k(x * y)', (x, y) => fround(x * y)],
};
const WORDS = {
  half: ['bitcast<u32>(half(a, 1u))', (a) => bitsOf(halfOf(a >>> 16))],
  'to half': ['to_half(bitcast<f32>(a))', (a) => toHalf(floatOf(a))],
  dot: ['bitcast<u32>(dot4(a, b))', (a, b) => dot4(a, b) >>> 0],
};
const NAMES = [...Object.keys(FLOATS), ...Object.keys(WORDS)];

/** The most by which a float of fast kernels may differ, relative to its size. WGSL allows 2e-5 for exp(-80). */
const ERROR = 1e-4;
/** The sizes of the numbers that these cases round; of others, the results are not smaller. */
const SIZES = { fused: 1, order: 1, folded: 12582912, subnormal: 1 };

/** Numbers that look random and are the same each time. */
function* chance() {
  for (let seed = 1;;) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    yield seed;
  }
}

const PER_NAME = 64;

/** @returns {{name: string, given: number[], expected: number}[]} words in, and the word that comes out */
function cases() {
  const random = chance();
  const word = () => random.next().value ^ (random.next().value >>> 16);
  const between = (low, high) => fround(low + ((high - low) * (word() >>> 0)) / 2 ** 32);
  const inputs = {
    fused: () => { const [x, y] = [between(1, 2), between(1, 2)]; return [x, y, -fround(x * y)]; },
    order: () => [between(1, 2), between(3e-8, 9e-8), between(3e-8, 9e-8)],
    folded: () => [between(-120, 120)],
    quotient: () => [between(-100, 100), between(0.001, 3)],
    root: () => [between(1e-6, 50)],
    power: () => [between(-80, 2)],
    rounding: () => [nearest(between(-120, 120)) + 0.5],
    subnormal: () => [between(1, 2), fround(2 ** -130 * (1 + (word() & 7)))],
    half: () => [((word() & 0x83FF0000) | (word() & 1 ? 0 : 0x3C000000)) >>> 0],
    'to half': () => [bitsOf(fround(between(-2, 2) * 2 ** -(word() & 15)))],
    dot: () => [word() >>> 0, word() >>> 0],
  };
  return NAMES.flatMap((name) =>
    Array.from({ length: PER_NAME }, () => {
      const given = inputs[name]();
      const isFloats = Object.hasOwn(FLOATS, name);
      const [, compute] = isFloats ? FLOATS[name] : WORDS[name];
      const expected = compute(...given);
      return isFloats ? { name, given: given.map(bitsOf), expected: bitsOf(expected) } : { name, given, expected };
    }),
  );
}

const STRIDE = 3;

/** A lane for each case, and a workgroup for each name. @param {{packed: boolean, fast: boolean}} how of wgslOf() */
export function trialShader({ packed, fast }) {
  const one = (name, i) => {
    const [code] = FLOATS[name] ?? WORDS[name];
    return `if (wg.x == ${i}u) { s[i] = ${FLOATS[name] ? `bitcast<u32>(${code})` : code}; }`;
  };
  const wgsl = `${begin()}${DIVIDE}${EXP}${HALVES}${DOT4(packed)}
${main(PER_NAME)}
  let i = wg.x * ${PER_NAME}u + lane;
  let at = ${P(1)} + ${STRIDE}u * i;
  let a = t[at];
  let b = t[at + 1u];
  let x = bitcast<f32>(a);
  let y = bitcast<f32>(b);
  let z = bitcast<f32>(t[at + 2u]);
  ${NAMES.map(one).join('\n  ')}
}`;
  return fast ? fastOf(wgsl) : wgsl;
}

/** Whether a result will do for fast kernels. */
function isNear({ name, expected }, found) {
  const wanted = floatOf(expected);
  const allowed = ERROR * (SIZES[name] ?? Math.abs(wanted));
  return found === expected || (Object.hasOwn(FLOATS, name) && Math.abs(floatOf(found) - wanted) <= allowed);
}

/**
 * What a device gets wrong.
 * @param {(table: Uint32Array, groups: number, n: number) => Promise<Uint32Array>} run runs the shader: `table` is t,
 *   and s [n] comes back
 * @param {boolean} fast whether the shader is a fast one
 * @returns {Promise<string[]>} names of cases
 */
export async function faultsOf(run, fast) {
  const all = cases();
  const table = new Uint32Array(STRIDE * all.length);
  all.forEach(({ given }, i) => table.set(given, STRIDE * i));
  const found = await run(table, NAMES.length, all.length);
  const isRight = (one, i) => (fast ? isNear(one, found[i]) : found[i] === one.expected);
  return NAMES.filter((name) => all.some((one, i) => one.name === name && !isRight(one, i)));
}
