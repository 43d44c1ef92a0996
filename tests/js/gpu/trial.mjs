// SPDX-License-Identifier: MIT
// Run by trial.test.mjs: opens devices whose trial has faults built in, and one without; of both trials.

import { create, globals } from 'webgpu';
import { openDevice } from '../../../js/gpu/choice.js';
import { DOUBLES } from '../../../js/gpu/doubles.js';
import { DIVIDE } from '../../../js/gpu/numbers.js';
import { Pipelines } from '../../../js/gpu/pipelines.js';
import { FAMILIES } from '../../../js/gpu/trial-cases.js';
import { faultsOf, runnerOf } from '../../../js/gpu/trial.js';
import { tell } from './engines.mjs';

Object.assign(globalThis, globals);
const gpu = create([]);

/** By the case that must find them: what a compiler or a driver might make of the right expression of a float. */
const FLOATS = {
  fused: ['fused(x, y, z)'],
  order: ['x + k(y + z)'],
  folded: ['x'],
  quotient: ['x * bits(bitcast<u32>(divide(1.0f, y)))', 'divide(x, y) * 1.0000001f'],
  root: ['x * divide(1.0f, root(x))'],
  power: ['exp(x)'],
  sigmoid: ['divide(1.0f, k(1.0f + exp(-x)))', 'k(1.0f - divide(1.0f, k(1.0f + power(x))))'],
  silu: ['divide(x, k(1.0f + exp(-x)))', 'x * sigmoid(x)'],
  gelu: ['divide(x, k(1.0f + exp(-x * (1.5957691f + 0.07135482f * x * x))))', 'x * sigmoid(k(x * fused(0.07135482f, k(x * x), 1.5957691f)))'],
  rounding: ['floor(x + 0.5f)', 'trunc(x)'],
  sum: ['fused_sums(at)', 'k(eight_sums(at, 3u, 2u) + eight_sums(at, 1u, 0u))'],
  rows: ['fused_rows(at)'],
  eight: ['in_order(at)', 'k(eight_pair(at, 0u) + eight_pair(at, 2u))'],
  'scales of halves': ['k(k(x * f32(i32(y) & -2)) + k(z * f32(i32(u))))'],
  turn: ['fused(x, y, -k(z * u))', 'fused(-z, u, k(x * y))'],
  state: ['fused(k(k(x * y) + k(z * u)), x, y)', 'k(fused(x, y, k(z * u)) * x) + y'],
  norm: ['fused(k(k(x - y) * z), u, x)', 'k(k(x - y) * k(z * u)) + x'],
};

/** The same of words. */
const WORDS = {
  integer: ['bitcast<u32>(f32(bitcast<i32>(a) & -2))'],
  half: ['bitcast<u32>(half(a, 0u))', 'select(bitcast<u32>(half(a, 1u)), 0u, (a & 0x7C000000u) == 0u)'],
  'to half': ['to_half(x) & 0xFFFEu', 'select(to_half(x), 0u, (to_half(x) & 0x7C00u) == 0u)'],
  dot: ['bitcast<u32>(dot4(a & 0x7F7F7F7Fu, b))'],
  'float of 8 bits': ['bitcast<u32>(select(e4m3(i32(a)), 0.0f, (a & 0x78u) == 0u))'],
  'value of a code': ['looked(a & 0x07070707u)', 'looked(a) & 0x7F7F7F7Fu'],
  'signed byte': ['bitcast<u32>(byte(at, b & 3u))'],
  'part of a half': ['bitcast<u32>(half(a & select(0x80008000u, 0xFFFFFFFFu, (a & 0x7C00u) != 0u), 0u) * 0.125f)'],
};

const asWord = (code) => `bitcast<u32>(${code})`;
const EXPRESSIONS = { ...Object.fromEntries(Object.entries(FLOATS).map(([name, all]) => [name, all.map(asWord)])), ...WORDS };

/** By the case that must find them: what becomes of the functions behind it. */
const FUNCTIONS = {
  'double sum': [
    ['select(0u, 1u, x < a.x)', '0u'],
    ['select(0u, 1u, a.x < b.x)', '0u'],
    ['rest > 4u || (rest == 4u && (m.x & 8u) != 0u)', 'rest >= 4u'],
    ['countLeadingZeros(m.y), 32u +', 'countLeadingZeros(m.y), 31u +'],
  ],
  'double product': [
    ['+ (c4 >> 14u)', ''],
    ['((c0 | c1 | c2) & 0x3FFFu) | (c3 & 127u)', 'c3 & 127u'],
  ],
  'double quotient': [['fn sticky(lost: u32) -> u32 { return', 'fn sticky(lost: u32) -> u32 { return 0u *'], ['i < 56', 'i < 54']],
  'double share': [['(rest << 16u)', '0u']],
  'float to double': [['return vec2i(1 - i32(shift), i32(u << shift));', 'return vec2i(0, 0x800000);']],
  'double to float': [['max(0, 1 - e)', '0'], ['(m & 3u) == 3u || (m & 7u) == 6u', '(m & 3u) >= 2u']],
};

/** What a compiler would make that fuses, or adds in another order. */
const FAULTY = `
fn fused(x: f32, y: f32, z: f32) -> f32 { return bitcast<f32>(narrow(add(mul(wide(x), wide(y)), wide(z)))); }
fn fused_sums(at: u32) -> f32 {
  var sum = 0.0f;
  for (var i = 0u; i < 4u; i++) { sum = fused(float_at(at + i), float_at(at + 4u + i), sum); }
  return sum;
}
fn eight_sums(at: u32, i: u32, j: u32) -> f32 {
  return k(k(float_at(at + i) * float_at(at + 4u + i)) + k(float_at(at + j) * float_at(at + 4u + j)));
}
fn fused_rows(at: u32) -> f32 {
  var sum = 0.0f;
  for (var i = 0u; i < 4u; i++) {
    let a = float_at(at + i);
    sum += fused(float_at(at + 4u + i), k(a * float_at(at + 4u)), a);
  }
  return sum;
}
fn in_order(at: u32) -> f32 {
  var sum = 0.0f;
  for (var i = 0u; i < 8u; i++) { sum = k(sum + float_at(at + i)); }
  return sum;
}
fn eight_pair(at: u32, i: u32) -> f32 {
  return k(k(float_at(at + i) + float_at(at + i + 1u)) + k(float_at(at + i + 4u) + float_at(at + i + 5u)));
}
`;

const lineOf = (name) => new RegExp(`(case \\d+u: \\{ found = vec2u\\()(.*)(, 0u\\); \\} // ${name})$`, 'm');

const withCase = (shader, name, code) => shader.replace(lineOf(name), (_, before, __, after) => before + code + after);

/** Puts number `round` of its wrong expressions into each case of a shader; shaders without one are left out. */
function wrong(shader, round) {
  const changed = Object.entries(EXPRESSIONS).filter(([name, all]) => all.length > round && lineOf(name).test(shader));
  if (!changed.length) return null;
  const needs = shader.includes('fn mul(') ? '' : `${shader.includes('fn divide(') ? '' : DIVIDE}${DOUBLES}`;
  const sums = shader.includes('fn float_at(') ? '' : 'fn float_at(i: u32) -> f32 { return bitcast<f32>(t[i]); }\n';
  const text = changed.reduce((all, [name, codes]) => withCase(all, name, codes[round]), shader);
  return text.replace('@compute', `${needs}${sums}${FAULTY}@compute`);
}

/** The shader that has the case gets another text, and others are left out. */
const replaced = (name, from, to) => (shader) => {
  if (!shader.includes(`// ${name}\n`)) return null;
  if (!shader.includes(from)) throw new Error(`the trial has no ${from}`);
  return shader.replaceAll(from, to);
};

/** Opens a device whose trial has changed shaders. */
async function tryDevice(change, fast = false) {
  const opened = await openDevice(gpu, { copies: Number.parseInt(process.versions.node) < 22, fast, change }).catch((error) => error);
  tell({ code: opened.code ?? null, message: opened.message ?? '', exact: opened.facts?.exact ?? null });
  if (!opened.code) opened.close();
}

const changed = (name, code) => (shader) => (lineOf(name).test(shader) ? withCase(shader, name, code) : null);

await tryDevice();
await tryDevice(changed('subnormal', 'select(bitcast<u32>(k(x * y)), 0u, (bitcast<u32>(k(x * y)) & 0x7F800000u) == 0u)'));
await tryDevice(changed('root', 'bitcast<u32>(root(x)) + 1u'));

/** Of fast kernels: the case that must find it, and what no device may make of it; or what is only another rounding. */
const FAST = {
  product: ['fused', 'bitcast<u32>(k(x * y) - z)'], quotient: ['quotient', 'bitcast<u32>(1.001f * divide(x, y))'],
  root: ['root', 'bitcast<u32>(0.999f * root(x))'], power: ['power', 'bitcast<u32>(exp2(x))'],
  rounding: ['rounding', 'bitcast<u32>(floor(x))'], half: ['half', WORDS.half[0]], 'half that flushes': ['half', WORDS.half[1]],
  'to half': ['to half', WORDS['to half'][0]], dot: ['dot', WORDS.dot[0]],
};
const ROUNDED = {
  'approximate root': ['root', 'bitcast<u32>(root(x)) + 1u'], 'native power': ['power', 'bitcast<u32>(exp(x))'],
  order: ['order', 'bitcast<u32>(x + k(y + z))'], flushed: ['subnormal', '0u'], silu: ['silu', 'bitcast<u32>(x * sigmoid(x))'],
};
await tryDevice(undefined, true);
for (const [name, code] of Object.values(FAST)) await tryDevice(changed(name, code), true);
for (const [name, code] of Object.values(ROUNDED)) await tryDevice(changed(name, code), true);
tell({ fast: Object.values(FAST).map(([name]) => name), rounded: Object.keys(ROUNDED) });

const device = await (await gpu.requestAdapter()).requestDevice();
const packed = gpu.wgslLanguageFeatures.has('packed_4x8_integer_dot_product');
const run = runnerOf(device, new Pipelines(device, { packed, fast: false }));

/** The trial with changed shaders, of which the named cases must find the faults. */
async function tryCases(change, expected) {
  tell({ expected, found: await faultsOf({ packed, fast: false }, run, change) });
}

for (const round of [0, 1])
  await tryCases((shader) => wrong(shader, round), Object.keys(EXPRESSIONS).filter((name) => EXPRESSIONS[name].length > round));
for (const [name, changes] of Object.entries(FUNCTIONS))
  for (const [from, to] of changes) await tryCases(replaced(name, from, to), [name]);
const names = FAMILIES.flatMap((family) => Object.keys(family({ packed }).cases));
tell({ without: names.filter((name) => name !== 'subnormal' && !Object.hasOwn({ ...EXPRESSIONS, ...FUNCTIONS }, name)) });
process.exit();
