// SPDX-License-Identifier: MIT
// Run by doubles.test.mjs: the operations and functions of js/gpu/doubles.js on numbers that reach every branch, beside
// those of JavaScript, whose doubles are the processor's; and the codes of quantised values, next to halves. Tells how
// many results differ in a bit.

import { create, globals } from 'webgpu';
import { DOUBLES, EXP64, GELU_ERF, LOG64 } from '../../../js/gpu/doubles.js';
import { DIVIDE, P, begin, main } from '../../../js/gpu/numbers.js';
import { quantizing } from '../../../js/gpu/quantize.js';
import { random } from '../../fixtures/random.mjs';
import { tell } from './engines.mjs';

Object.assign(globalThis, globals);
globalThis.gpu = create([]);    // the device goes with it
const device = await (await globalThis.gpu.requestAdapter()).requestDevice();

const STORAGE = 128 | 4 | 8;
const UNIFORM = 64;

/** The zero of the guards. */
const command = device.createBuffer({ size: 256, usage: UNIFORM });

/** Runs `body` for each pair of doubles a, b; it sets y. @returns {Promise<BigUint64Array>} */
async function compute(body, pairs, change = (wgsl) => wgsl) {
  const code = change(`${begin()}${DIVIDE}${DOUBLES}${EXP64}${LOG64}${GELU_ERF}${quantizing(64)}
${main(64)}
  let i = 4u * (64u * wg.x + lane);
  let a = vec2u(s[i], s[i + 1u]);
  let b = vec2u(s[i + 2u], s[i + 3u]);
  var y = vec2u(0u, ${P(0)});
  ${body}
  s[i] = y.x;
  s[i + 1u] = y.y;
}`);
  const pipeline = device.createComputePipeline({
    layout: 'auto',
    compute: { module: device.createShaderModule({ code }), entryPoint: 'main' },
  });
  const values = new Float64Array(Math.ceil(pairs.length / 128) * 128);
  values.set(pairs);
  const buffer = device.createBuffer({ size: values.byteLength, usage: STORAGE });
  const read = device.createBuffer({ size: values.byteLength, usage: 1 | 8 });
  device.queue.writeBuffer(buffer, 0, values);
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [{ binding: 0, resource: { buffer } }, { binding: 2, resource: { buffer: command } }],
  }));
  pass.dispatchWorkgroups(values.length / 128);
  pass.end();
  encoder.copyBufferToBuffer(buffer, 0, read, 0, values.byteLength);
  device.queue.submit([encoder.finish()]);
  await read.mapAsync(1);
  const all = new BigUint64Array(read.getMappedRange().slice(0));
  return all.filter((_, i) => i % 2 === 0).subarray(0, pairs.length / 2);
}

/** A generator of whole numbers below 2^32. */
function words(seed) {
  const next = random(seed);
  return () => Math.floor(next() * 2 ** 32);
}

const N = 64 * 256;

/** Pairs of numbers near each other, far apart, with few bits, with equal parts, and zeros. */
function pairs() {
  const next = words(1);
  const number = (near, spread) => {
    const sign = next() & 1 ? -1 : 1;
    const kept = 2 ** (next() % 53);
    const fraction = Math.round(((next() + next() / 2 ** 32) / 2 ** 32) * kept) / kept;
    return sign * (1 + fraction) * 2 ** (near + (next() % (2 * spread + 1)) - spread);
  };
  const all = [0, 0, -0, 0, -0, -0, 1, 0, 0, -1, 1, -1, 1, 1 + 2 ** -52, 1, -1 + 2 ** -53, 2 ** 53, 1, 2 ** 53, 3];
  while (all.length < 2 * N) {
    const near = (next() % 400) - 200;
    const [a, b] = [number(near, 0), number(near, [0, 1, 3, 60][next() % 4])];
    all.push(a, next() % 8 ? b : -a * (1 + (next() % 3 - 1) * 2 ** -52));
  }
  return all;
}

const map2 = (all, f) => Array.from({ length: all.length / 2 }, (_, i) => f(all[2 * i], all[2 * i + 1]));

// --- the functions, as in src/base/num.c ---

const MAGIC = 1.5 * 2 ** 52;
const [HI, LO] = [0.6931471803691238, 1.9082149292705877e-10];
const factorial = (k) => (k < 2 ? 1 : k * factorial(k - 1));

function exp64(x) {
  if (x < -708) return 0;
  if (x > 709) return Infinity;
  const n = x * 1.4426950408889634 + MAGIC - MAGIC;
  const r = x - n * HI - n * LO;
  let p = 0;
  for (let k = 14; k >= 2; k--) p = p * r + 1 / factorial(k);
  return (p * (r * r) + r + 1) * 2 ** n;
}

function log64(x) {
  let exponent = Math.floor(Math.log2(x));
  let m = x / 2 ** exponent;
  if (m > 1.4142135623730951) { m *= 0.5; exponent++; }
  const s = (m - 1) / (m + 1);
  let p = 0;
  for (let k = 23; k >= 1; k -= 2) p = p * (s * s) + 1 / k;
  return exponent * HI + (2 * s * p + exponent * LO);
}

function geluErf(x) {
  const z = Math.abs(x) * 0.7071067811865476;
  let e = 1;
  if (z < 4) {
    let [term, sum] = [1, 1];
    const zz2 = 2 * z * z;
    for (let k = 1; k < 48; k++) {
      const last = sum;
      term = (term * zz2) / (2 * k + 1);
      sum += term;
      if (sum === last && zz2 < 2 * k + 1) break;
    }
    e = 1.1283791670955126 * z * exp64(-z * z) * sum;
  }
  return Math.fround(0.5 * x * (1 + (x < 0 ? -e : e)));
}

// --- comparisons ---

async function compare(name, body, given, wanted, change) {
  const found = await compute(body, given, change);
  const expected = new BigUint64Array(Float64Array.from(map2(given, wanted)).buffer);
  tell({ name, n: found.length, differ: found.reduce((sum, word, i) => sum + (word !== expected[i]), 0) });
}

const all = pairs();
await compare('add', 'y = add(a, b);', all, (a, b) => a + b);
await compare('mul', 'y = mul(a, b);', all, (a, b) => a * b);
const divisors = map2(all, (a, b) => [a, b || 3]).flat();
await compare('quotient', 'y = quotient(a, b);', divisors, (a, b) => a / b);
const small = map2(all, (a, b) => [a, 3 + (Math.abs(Math.round(b)) % 125 || 0)]).flat();
await compare('share', 'y = share(a, u32(bitcast<f32>(narrow(b))));', small, (a, b) => a / b);

const next = words(2);
const float = () => new Float32Array(new Uint32Array([next() & (next() & 7 ? -1 : 0x807FFFFF)]).buffer)[0];
const floats = Array.from({ length: 2 * N }, float).map((x) => (Number.isNaN(x) ? 0 : x));
const finer = floats.map((x) => (Number.isFinite(x) ? x * (1 + ((next() % 65) - 32) * 2 ** -29) : x));
const nearest = 'y = wide(bitcast<f32>(narrow(a)));';
await compare('wide', nearest, floats, (a) => a);
await compare('narrow', nearest, finer, Math.fround);

const unit = () => next() / 2 ** 32;
const powers = Array.from({ length: 2 * N }, (_, i) => (unit() - 0.5) * [2, 40, 1500, 1e-9][(i >> 1) % 4]);
powers.push(0, 0, -0, 0, 709, 0, 710, 0, -708, 0, -709, 0, Infinity, 0, -Infinity, 0);
await compare('exp64', 'y = exp64(a);', powers, exp64);
const logs = Array.from({ length: 2 * N }, (_, i) => 1 + unit() * [1e9, 3, 1e-3, 1e-15][(i >> 1) % 4]);
logs.push(1, 0, 2, 0, 1.4142135623730951, 0);
await compare('log64', 'y = log64(a);', logs, log64);
const gelus = Array.from({ length: 2 * N }, (_, i) => Math.fround((unit() - 0.5) * [20, 2, 12, 1e-30][(i >> 1) % 4]));
gelus.push(0, 0, -0, 0, 1e-45, 0, -1e-45, 0, Infinity, 0, 6e-39, 0, 5.656854, 0, 5.6568546, 0);
await compare('gelu_erf', 'y = wide(bitcast<f32>(gelu_erf(bitcast<f32>(narrow(a)))));', gelus, geluErf);

/** Values and scales whose quotients are near an integer and a half, or anywhere; the last are those of small scales. */
const codes = Array.from({ length: N }, (_, i) => {
  const scale = Math.fround((1 + unit()) * 2 ** [-8, 3, -99, -120][i % 4]);
  const quotient = i % 3 ? (next() % 255) - 127.5 : (unit() - 0.5) * 254;
  return [Math.fround(quotient * scale * (1 + ((next() % 9) - 4) * 2 ** -24)), scale];
}).flat();
const codeOf = (x, scale) => {
  const quotient = Math.max(-127, Math.min(127, Math.fround(x / scale)));
  const low = Math.floor(quotient);
  return quotient - low === 0.5 ? low + (low & 1) : Math.round(quotient) + 0;
};
const coded = 'y = wide(f32(code_of(bitcast<f32>(narrow(a)), bitcast<f32>(narrow(b)))));';
await compare('code', coded, codes, codeOf);
const badly = (wgsl) => wgsl.replace('round(x / scale)', 'round(x / scale + 0.05f)');
await compare('code of a bad quotient', coded, codes, codeOf, badly);
process.exit();
