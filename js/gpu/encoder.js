// SPDX-License-Identifier: MIT
// The kernels of an encoder of images as WGSL: src/compute/cpu/encode.c, and the norm and the gelus that only encoders
// have. Keys and values are those of gpu_head_words() in src/compute/gpu/gpu.h: lanes with neighbouring positions read
// neighbouring keys, and lanes with neighbouring columns neighbouring values.

import { MERGE, SOFTEN } from './attention.js';
import { DOUBLES, EXP64, GELU_ERF } from './doubles.js';
import { DIVIDE, EXP, P, SIGMOID, begin, main, reduce } from './numbers.js';
import { EACH } from './shaders.js';

/** A workgroup for each row; the bias is the binding `pages`. */
const layernorm = () => `${begin()}${DIVIDE}
var<workgroup> sums: array<f32, 8>;
var<workgroup> squares: array<f32, 8>;
${main(64)}
  let row = wg.y * ${P(6)} + wg.x;
  let n = ${P(3)};
  let x = ${P(2)} + row * n;
  let live = row < ${P(5)};
  if (lane < 8u && live) {
    var sum = 0.0;
    for (var i = lane; i < n; i += 8u) { sum += f(x + i); }
    sums[lane] = sum;
  }
  workgroupBarrier();
  let mean = divide(${reduce((i) => `sums[${i}]`)}, f32(i32(n)));
  if (lane < 8u && live) {
    var sum = 0.0;
    for (var i = lane; i < n; i += 8u) {
      let d = k(f(x + i) - mean);
      sum += k(d * d);
    }
    squares[lane] = sum;
  }
  workgroupBarrier();
  let scale = divide(1.0f, root(k(divide(${reduce((i) => `squares[${i}]`)}, f32(i32(n))) + bits(${P(4)}))));
  if (live) {
    for (var i = lane; i < n; i += 64u) {
      put(${P(1)} + row * n + i, k(k(k(f(x + i) - mean) * scale) * bits(w[i])) + bits(pages[i]));
    }
  }
}`;

/** num_gelu_tanh() */
const gelu = () => `${begin()}${SIGMOID}${EACH(`
    let x = f(${P(1)} + i);
    let z = k(x * k(1.5957691f + k(0.07135482f * k(x * x))));
    put(${P(1)} + i, divide(x, k(1.0f + power(-z))));`)}`;

const geluErf = () =>
  `${begin()}${DIVIDE}${DOUBLES}${EXP64}${GELU_ERF}${EACH(`s[${P(1)} + i] = gelu_erf(f(${P(1)} + i));`)}`;

const keep = () => `${begin()}${main(64)}
  let c = wg.x * 64u + lane;
  let dim = ${P(7)};
  if (c >= ${P(5)}) { return; }
  let position = ${P(4)} + wg.y;
  let head = ${P(1)} + c / dim * ${P(6)};
  let column = c % dim;
  s[head + (position / 32u * dim + column) * 32u + (position & 31u)] = s[${P(2)} + wg.y * ${P(5)} + c];
  s[head + ${P(6)} / 2u + position * dim + column] = s[${P(3)} + wg.y * ${P(5)} + c];
}`;

/** A workgroup computes 256 columns of one query, as in attention over pages. */
const attendAll = ({ dim }) => `${begin()}${DIVIDE}${EXP}
var<workgroup> query: array<f32, ${dim}>;
var<workgroup> parts: array<f32, 256>;
var<workgroup> scores: array<f32, 32>;
${main(256)}
  let length = ${P(5)};
  let keys = ${P(3)} + wg.x * ${P(6)};
  let values = keys + ${P(6)} / 2u;
  let x = (wg.y * ${P(4)} + wg.x) * ${dim}u;
  for (var c = lane; c < ${dim}u; c += 256u) { query[c] = f(${P(2)} + x + c); }
  workgroupBarrier();
  let position = lane & 31u;
  let column = 256u * wg.z + lane;
  var all_top = 0.0; var all_sum = 0.0; var all = 0.0;
  for (var first = 0u; first < length; first += 512u) {
    var top = 0.0; var sum = 0.0; var out = 0.0;
    let end = min(length, first + 512u);
    for (var base = first; base < end; base += 32u) {
      let seen = min(32u, end - base);
      if (position < seen) {
        var part = 0.0;
        for (var c = lane >> 5u; c < ${dim}u; c += 8u) {
          part += k(query[c] * f(keys + (base / 32u * ${dim}u + c) * 32u + position));
        }
        parts[lane] = part;
      }
      workgroupBarrier();
      if (lane < seen) { scores[lane] = k(${reduce((i) => `parts[${32 * i}u + lane]`)} * bits(${P(7)})); }
      workgroupBarrier();
${SOFTEN}
      if (column < ${dim}u) {
        for (var i = 0u; i < seen; i++) {
          sum += scores[i];
          out += k(scores[i] * f(values + (base + i) * ${dim}u + column));
        }
      }
      workgroupBarrier();
    }
${MERGE}
  }
  if (column < ${dim}u) { put(${P(1)} + x + column, divide(all, all_sum)); }
}`;

export const encoderShaders = { layernorm, gelu, gelu_erf: geluErf, keep, attend_all: attendAll };
