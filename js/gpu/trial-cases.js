// SPDX-License-Identifier: MIT
// The cases of a device's trial (trial.js), by family; each family is a shader. A case has the expression of a shader,
// and what JavaScript computes in its place, for numbers that were chosen so that a fault shows in their result. The
// expressions are of the functions and the patterns that kernels consist of.

import { DOUBLES } from './doubles.js';
import { DIVIDE, GELU, HALVES, SIGMOID, reduce } from './numbers.js';
import { BYTES, DOT4, E4M3, values } from './panels.js';
import {
  bitsOf, doubleOf, e4m3, exp, floatOf, gelu, halfOf, nearest, sigmoid, silu, toHalf, wordsOf,
} from './references.js';

const { fround, sqrt } = Math;

/** Numbers that look random and are the same each time. */
export class Chance {
  #seed = 1;

  word() {
    this.#seed = (Math.imul(this.#seed, 1664525) + 1013904223) >>> 0;
    return (this.#seed ^ (this.#seed >>> 16)) >>> 0;
  }

  between(low, high) { return fround(low + ((high - low) * this.word()) / 2 ** 32); }

  floats(n, low, high) { return Array.from({ length: n }, () => this.between(low, high)); }

  /** A double of this exponent, with few or many bits. */
  double(exponent) {
    const bits = 2 ** (this.word() % 53);
    const fraction = Math.floor(((this.word() + this.word() / 2 ** 32) / 2 ** 32) * bits) / bits;
    return (this.word() & 4 ? -1 : 1) * (1 + fraction) * 2 ** exponent;
  }
}

/** The most by which a float of fast kernels may differ, relative to its size. WGSL allows 2e-5 for exp(-80). */
const ERROR = 1e-4;

/** Given floats x, y, z, u ...; gives a float. size: of the numbers that are rounded on the way, if they are larger. */
const floats = (code, given, compute, size = 0) => ({
  code: `vec2u(bitcast<u32>(${code}), 0u)`,
  given: (chance) => { const all = given(chance); return { all, words: all.map(bitsOf) }; },
  expected: (all) => [bitsOf(compute(...all)), 0],
  isNear: (wanted, found) => {
    const expected = floatOf(wanted);
    return Math.abs(floatOf(found) - expected) <= ERROR * Math.max(size, Math.abs(expected));
  },
});

/** Given words a, b ...; gives a word. */
const words = (code, given, compute) => ({
  code: `vec2u(${code}, 0u)`,
  given: (chance) => { const all = given(chance).map((word) => word >>> 0); return { all, words: all }; },
  expected: (all) => [compute(...all) >>> 0, 0],
});

/** Given doubles d and e; gives a double. */
const doubles = (code, given, compute) => ({
  code,
  given: (chance) => { const all = given(chance); return { all, words: all.flatMap(wordsOf) }; },
  expected: (all) => wordsOf(compute(...all)),
});

const added = (...all) => all.reduce((sum, x) => fround(sum + x));
const times = (x, y) => fround(x * y);
const signed = (word, i) => (word << (24 - 8 * i)) >> 24;
const FOUR = [0, 1, 2, 3];

/** Sums as products make them: in a loop, of four rows at once, and of eight partial sums. */
const SUMS = `
fn float_at(i: u32) -> f32 { return bitcast<f32>(t[i]); }
fn sums(at: u32) -> f32 {
  var sum = 0.0f;
  for (var i = 0u; i < 4u; i++) { sum += k(float_at(at + i) * float_at(at + 4u + i)); }
  return sum;
}
fn rows(at: u32) -> f32 {
  let a = vec4f(float_at(at), float_at(at + 1u), float_at(at + 2u), float_at(at + 3u));
  let b = vec4f(float_at(at + 4u), float_at(at + 5u), float_at(at + 6u), float_at(at + 7u));
  var y = a;
  y += k4(b * k4(a * b.x));
  return k(k(k(y.x + y.y) + y.z) + y.w);
}
fn eight(at: u32) -> f32 { return ${reduce((i) => `float_at(at + ${i}u)`)}; }
`;

function rowsOf(...all) {
  const [a, b] = [all.slice(0, 4), all.slice(4)];
  return added(...FOUR.map((i) => added(a[i], times(b[i], times(a[i], b[0])))));
}

function eightOf(...all) {
  const pair = (i, j) => added(all[i], all[j]);
  return added(added(pair(0, 4), pair(2, 6)), added(pair(1, 5), pair(3, 7)));
}

const numbers = ({ packed }) => ({
  code: `${SIGMOID}${GELU}${HALVES}${DOT4(packed)}${SUMS}`,
  cases: {
    fused: floats('k(x * y) + z', (c) => { const [x, y] = c.floats(2, 1, 2); return [x, y, -times(x, y)]; },
      (x, y, z) => added(times(x, y), z), 1),
    order: floats('(x + y) + z', (c) => [c.between(1, 2), ...c.floats(2, 3e-8, 9e-8)], added, 1),
    folded: floats('k(x + 12582912.0f) - 12582912.0f', (c) => [c.between(-120, 120)],
      (x) => added(x, 12582912, -12582912), 12582912),
    quotient: floats('divide(x, y)', (c) => [c.between(-100, 100), c.between(0.001, 3)], (x, y) => fround(x / y)),
    root: floats('root(x)', (c) => [c.between(1e-6, 50)], (x) => fround(sqrt(x))),
    power: floats('power(x)', (c) => [c.between(-80, 2)], exp),
    sigmoid: floats('sigmoid(x)', (c) => [c.between(-20, 20)], sigmoid),
    silu: floats('silu(x)', (c) => [c.between(-20, 20)], silu),
    gelu: floats('gelu(x)', (c) => [c.between(-6, 6)], gelu),
    rounding: floats('round(x)', (c) => [nearest(c.between(1, 120)) + 0.5], nearest),
    subnormal: floats('k(x * y)', (c) => [c.between(1, 2), fround(2 ** -130 * (1 + (c.word() & 7)))], times, 1),
    sum: floats('sums(at)', (c) => c.floats(8, -2, 2),
      (...all) => added(0, ...FOUR.map((i) => times(all[i], all[4 + i]))), 16),
    rows: floats('rows(at)', (c) => c.floats(8, -2, 2), rowsOf, 16),
    eight: floats('eight(at)', (c) => c.floats(8, -2, 2), eightOf, 16),
    turn: floats('k(x * y) - k(z * u)',
      (c) => { const [x, y, z] = c.floats(3, 1, 2); return [x, y, z, fround(times(x, y) / z)]; },
      (x, y, z, u) => added(times(x, y), -times(z, u)), 4),
    state: floats('k(k(k(x * y) + k(z * u)) * x) + y', (c) => c.floats(4, -2, 2),
      (x, y, z, u) => added(times(added(times(x, y), times(z, u)), x), y), 16),
    norm: floats('k(k(k(x - y) * z) * u) + x', (c) => c.floats(4, -2, 2),
      (x, y, z, u) => added(times(times(added(x, -y), z), u), x), 16),
    integer: words('bitcast<u32>(f32(bitcast<i32>(a)))', (c) => [(c.word() | 0) >> 7], (a) => bitsOf(a | 0)),
    half: words('bitcast<u32>(half(a, 1u))', (c) => [(c.word() & 0x83FF0000) | (c.word() & 1 ? 0 : 0x3C000000)],
      (a) => bitsOf(halfOf(a >>> 16))),
    'to half': words('to_half(x)', (c) => [bitsOf(fround(c.between(-2, 2) * 2 ** -(c.word() & 15)))],
      (a) => toHalf(floatOf(a))),
    dot: words('bitcast<u32>(dot4(a, b))', (c) => [c.word(), c.word()],
      (a, b) => FOUR.reduce((sum, i) => sum + signed(a, i) * signed(b, i), 0)),
  },
});

/** Of a table as layouts have them. */
const TABLE = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

const panels = () => ({
  code: `${HALVES}${BYTES}${E4M3}${values({ table: TABLE })}`,
  cases: {
    'float of 8 bits': words('bitcast<u32>(e4m3(i32(a)))', (c) => [(c.word() & 128) | (c.word() % 127)],
      (a) => bitsOf(e4m3(a))),
    'value of a code': words('looked(a)', (c) => [c.word() & 0x0F0F0F0F],
      (a) => FOUR.reduce((sum, i) => sum | ((TABLE[(a >>> (8 * i)) & 15] & 255) << (8 * i)), 0)),
    'signed byte': words('bitcast<u32>(signed_byte(at, b & 3u))', (c) => [c.word(), c.word()],
      (a, b) => signed(a, b & 3)),
    'part of a half': words('bitcast<u32>(half(a, 0u) * 0.125f)', (c) => [c.word() & 0x83FF],
      (a) => bitsOf(halfOf(a) / 8)),
    'scales of halves': floats('k(k(x * f32(i32(y))) + k(z * f32(i32(u))))',
      (c) => [e4m3(c.word() & 63), nearest(c.between(-2e5, 2e5)), e4m3(c.word() & 63), nearest(c.between(-2e5, 2e5))],
      (x, y, z, u) => added(times(x, y), times(z, u)), 4e5),
  },
});

/** Two doubles: near to each other in size, or far. */
function two(c) {
  const exponent = (c.word() % 80) - 40;
  return [c.double(exponent), c.double(exponent + [0, 1, -3, 40, -57][c.word() % 5])];
}

/** Two doubles of which the second is nearly the first one's negative, or half of its last bit. */
function near(c) {
  const x = c.double(3);
  if (c.word() & 8) return [x, x < 0 ? -(2 ** -50) : 2 ** -50];
  return [x, -x * (1 + ((c.word() % 5) - 2) * 2 ** -52)];
}

/** Two doubles whose product lies between two others: in the middle, or beside it by the last of all bits. */
const between = (c) => [1 + (1 + 2 * (c.word() & 7)) * 2 ** -52, 1.5 + (c.word() & 3) * 2 ** -52];

/** A double in the middle between two floats. */
const middle = (c) => 1 + (1 + 2 * (c.word() & 1023)) * 2 ** -24;

/** All functions of doubles consist of these, and these of integers. */
const operations = () => ({
  code: `${DIVIDE}${DOUBLES}`,
  cases: {
    'double sum': doubles('add(d, e)', (c) => (c.word() & 16 ? two(c) : near(c)), (d, e) => d + e),
    'double product': doubles('mul(d, e)', (c) => (c.word() & 16 ? two(c) : between(c)), (d, e) => d * e),
    'double quotient': doubles('quotient(d, e)', two, (d, e) => d / e),
    'double share': doubles('share(d, 3u + (b & 63u))', (c) => [c.double(2)], (d) => d / (3 + (wordsOf(d)[1] & 63))),
    'float to double': doubles('wide(bitcast<f32>(narrow(d)))', (c) => [fround(c.double((c.word() % 40) - 147))],
      (d) => d),
    'double to float': words('narrow(vec2u(a, b))',
      (c) => wordsOf(c.word() & 16 ? c.double((c.word() % 40) - 147) : middle(c)),
      (a, b) => bitsOf(doubleOf(a, b))),
  },
});

/** A family is {code: what expressions need, cases}, for what wgslOf() is given. */
export const FAMILIES = [numbers, panels, operations];
