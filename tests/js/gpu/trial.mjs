// SPDX-License-Identifier: MIT
// Run by trial.test.mjs: opens devices whose trial has a fault built in, and one without; of both trials.

import { create } from 'webgpu';
import { openDevice } from '../../../js/gpu/device.js';
import { tell } from './engines.mjs';

const gpu = create([]);

/** Faults by name: what becomes of the shader. */
const FAULTS = {
  none: [],
  fused: [['k(x * y) + z', 'fused(x, y, z)']],
  order: [['(x + y) + z', 'x + k(y + z)']],
  folded: [['k(x + 12582912.0f) - 12582912.0f', 'x']],
  'approximate quotient': [['bitcast<u32>(divide(x, y))', 'bitcast<u32>(x * bits(bitcast<u32>(divide(1.0f, y))))']],
  'approximate root': [['bitcast<u32>(root(x))', 'bitcast<u32>(root(x)) + 1u']],
  power: [['bitcast<u32>(power(x))', 'bitcast<u32>(exp(x))']],
  rounding: [['round(x)', 'floor(x + 0.5f)']],
  flushed: [['bitcast<u32>(k(x * y))', 'select(bitcast<u32>(k(x * y)), 0u, (bitcast<u32>(k(x * y)) & 0x7F800000u) == 0u)']],
  half: [['half(a, 1u)', 'half(a, 0u)']],
  'half that flushes': [['bitcast<u32>(half(a, 1u))', 'select(bitcast<u32>(half(a, 1u)), 0u, (a & 0x7C000000u) == 0u)']],
  'to half': [['to_half(bitcast<f32>(a))', '(to_half(bitcast<f32>(a)) & 0xFFFEu)']],
  dot: [['dot4(a, b)', 'dot4(a & 0x7F7F7F7Fu, b)']],
};

/** Of fast kernels: faults that no device may have, and what they allow, by the names above. */
const FAST_FAULTS = {
  none: [],
  product: [['k(x * y) + z', 'k(x * y) - z']],
  quotient: [['bitcast<u32>(divide(x, y))', 'bitcast<u32>(1.001f * divide(x, y))']],
  root: [['bitcast<u32>(root(x))', 'bitcast<u32>(0.999f * root(x))']],
  'another power': [['bitcast<u32>(power(x))', 'bitcast<u32>(exp2(x))']],
  'rounding down': [['round(x)', 'floor(x)']],
};
const COMMON = ['half', 'half that flushes', 'to half', 'dot'];
const ALLOWED = ['fused', 'order', 'approximate root', 'power', 'flushed'];
for (const name of [...COMMON, ...ALLOWED]) FAST_FAULTS[name] = FAULTS[name];

/** What a fused product would give where z is minus the rounded product: the error of rounding. */
const FUSED = `
fn split(x: f32) -> vec2f { let c = k(x * 4097.0f); let high = k(c - k(c - x)); return vec2f(high, k(x - high)); }
fn fused(x: f32, y: f32, z: f32) -> f32 {
  let p = k(x * y);
  let a = split(x);
  let b = split(y);
  let rest = k(k(k(k(a.x * b.x) - p) + k(a.x * b.y)) + k(a.y * b.x)) + k(a.y * b.y);
  return k(p + z) + rest;
}
@compute`;

const copies = Number.parseInt(process.versions.node) < 22;

async function attempt(name, changes, fast) {
  const change = (wgsl) => changes.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`the trial has no ${from}`);
    return text.replace(from, to);
  }, wgsl.replace('@compute', FUSED));
  const opened = await openDevice(gpu, { copies, fast, change }).catch((error) => error);
  tell({ name, fast, code: opened.code ?? null, message: opened.message ?? null, exact: opened.facts?.exact ?? null });
  if (!opened.code) opened.close();
}

for (const [name, changes] of Object.entries(FAULTS)) await attempt(name, changes, false);
for (const [name, changes] of Object.entries(FAST_FAULTS)) await attempt(name, changes, true);
process.exit();
