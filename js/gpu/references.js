// SPDX-License-Identifier: MIT
// The engine's functions of floats as JavaScript computes them, with Math.fround() after each operation. The trial of a
// device (trial.js) compares shaders with these.

const { abs, fround } = Math;
const words = new Uint32Array(2);
const floats = new Float32Array(words.buffer);
const doubles = new Float64Array(words.buffer);

export const bitsOf = (x) => { floats[0] = x; return words[0]; };
export const floatOf = (u) => { words[0] = u; return floats[0]; };
/** The two words of a double, the low one first. */
export const wordsOf = (x) => { doubles[0] = x; return [...words]; };
export const doubleOf = (low, high) => { words.set([low, high]); return doubles[0]; };

/** An even number is nearer if both are equally near. */
export function nearest(x) {
  const low = Math.floor(x);
  return x - low === 0.5 ? low + (low & 1) : Math.round(x);
}

/** num_exp() in src/base/num.h. */
export function exp(x) {
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

const onePlus = (x) => fround(1 + exp(x));
export const sigmoid = (x) => fround(1 / onePlus(-x));
export const silu = (x) => fround(x / onePlus(-x));

/** num_gelu_tanh() in src/base/num.h. */
export function gelu(x) {
  const inner = fround(fround(1.5957691) + fround(fround(0.07135482) * fround(x * x)));
  return fround(x / onePlus(-fround(x * inner)));
}

/** The number that 16 bits hold as a half. */
export function halfOf(h) {
  const sign = h & 0x8000 ? -1 : 1;
  const exponent = (h >> 10) & 31;
  const fraction = h & 1023;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

/** The half nearest to a number whose half is finite. */
export function toHalf(x) {
  const size = abs(x);
  const step = 2 ** (Math.max(-14, Math.floor(Math.log2(size))) - 10);
  const rounded = nearest(size / step) * step;
  const exponent = rounded < 2 ** -14 ? 0 : Math.floor(Math.log2(rounded)) + 15;
  const fraction = exponent ? (rounded / 2 ** (exponent - 15) - 1) * 1024 : rounded * 2 ** 24;
  return (x < 0 ? 0x8000 : 0) | (exponent << 10) | fraction;
}

/** The number that a byte holds in the format E4M3; not of the two that are NaN. */
export function e4m3(b) {
  const exponent = (b >> 3) & 15;
  const fraction = b & 7;
  return (b & 128 ? -1 : 1) * (exponent ? (1 + fraction / 8) * 2 ** (exponent - 7) : fraction * 2 ** -9);
}
