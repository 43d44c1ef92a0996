// SPDX-License-Identifier: MIT
// The kernels of an encoder of images as WGSL: src/compute/cpu/encode.c, and the norm and the gelus that only encoders
// have. Keys and values are those of gpu_head_words() in src/compute/gpu/gpu.h: lanes with neighbouring positions read
// neighbouring keys, and lanes with neighbouring columns neighbouring values.

import { attention } from './attention.js';
import { DOUBLES, EXP64, GELU_ERF } from './doubles.js';
import { DIVIDE, GELU, P, SIGMOID, begin, inverseRoot, main, reduce } from './numbers.js';
import { quantizing } from './quantize.js';
import { EACH_VALUE, ROW, normed } from './shaders.js';

/** A workgroup for each row; the bias is the binding `pages`. */
const layernorm = () => `${begin()}${DIVIDE}${quantizing(ROW)}
var<workgroup> sums: array<f32, 8>;
var<workgroup> squares: array<f32, 8>;
${main(ROW)}
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
  let scale = ${inverseRoot(reduce((i) => `squares[${i}]`), 'n', P(4))};
  ${normed(`k(k(k(f(x + i) - mean) * scale) * bits(w[${P(7)} + i])) + bits(pages[${P(8)} + i])`)}
}`;

const gelu = () => `${begin()}${SIGMOID}${GELU}${EACH_VALUE(`gelu(f(${P(1)} + i))`)}`;

const geluErf = () =>
  `${begin()}${DIVIDE}${DOUBLES}${EXP64}${GELU_ERF}${EACH_VALUE(`bitcast<f32>(gelu_erf(f(${P(1)} + i)))`)}`;

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

/** A workgroup computes 256 columns of one query, over all keys and values. */
const attendAll = ({ dim }) => `${begin()}${attention(dim, {
  begin: `let length = ${P(5)};
  let keys = ${P(3)} + wg.x * ${P(6)};
  let values = keys + ${P(6)} / 2u;
  let from_start = (wg.y * ${P(4)} + wg.x) * ${dim}u;
  let x = ${P(2)} + from_start;
  let y = ${P(1)} + from_start;
  let column = 256u * wg.z + lane;`,
  key: (position, c) => `f(keys + (base / 32u * ${dim}u + ${c}) * 32u + ${position})`,
  value: (position, c) => `f(values + (base + ${position}) * ${dim}u + ${c})`,
  scale: P(7),
})}`;

export const encoderShaders = { layernorm, gelu, gelu_erf: geluErf, keep, attend_all: attendAll };
