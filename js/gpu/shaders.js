// SPDX-License-Identifier: MIT
// The kernels of src/compute/gpu/port.h as WGSL. Each computes what the CPU's scalar kernel of the same name computes,
// value by value in the same order. Workgroups and lanes share out rows and columns; where an order of additions is
// prescribed, one lane adds. Params are those that src/compute/gpu/record.c sets.

import { DIVIDE, EXP, HALVES, P, begin, main, reduce } from './numbers.js';
import { columnValue, floatAt, hasMins, isFloats, readers } from './panels.js';

/** Lanes of workgroups for products of few rows: a multiple of 8. */
const LANES = 64;

const needsHalves = (layout) => !isFloats(layout) || layout.bytes === 16;

const ofPanels = (layout, packed) => (needsHalves(layout) ? HALVES : '') + (isFloats(layout) ? '' : readers(layout, packed));

/** Runs `body` for each value i, by lanes over all workgroups. */
const EACH = (body) => `${main(64)}
  let i = (wg.y * ${P(5)} + wg.x * 64u) + lane;
  if (i < ${P(3)}) { ${body} }
}`;

const SILU = `${DIVIDE}${EXP}fn silu(x: f32) -> f32 { return divide(x, k(1.0f + power(-x))); }`;

function embed({ layout, packed }) {
  return `${begin()}${ofPanels(layout, packed)}${columnValue(layout)}
${main(64)}
  let c = wg.x * 64u + lane;
  let id = t[${P(2)} + wg.y];
  let panel = id / 8u;
  if (c < ${P(3)} && panel >= ${P(4)} && panel - ${P(4)} < ${P(5)}) {
    put(${P(1)} + wg.y * ${P(3)} + c, at((panel - ${P(4)}) * ${P(6)}, id & 7u, c));
  }
}`;
}

const pick = () => `${begin()}${main(64)}
  let c = wg.x * 64u + lane;
  if (c < ${P(4)}) { s[${P(1)} + wg.y * ${P(4)} + c] = s[${P(2)} + t[${P(3)} + wg.y] * ${P(4)} + c]; }
}`;

const rmsnorm = () => `${begin()}${DIVIDE}
var<workgroup> parts: array<f32, 8>;
${main(64)}
  let row = wg.y * ${P(6)} + wg.x;
  let n = ${P(3)};
  let x = ${P(2)} + row * n;
  let live = row < ${P(5)};
  if (lane < 8u && live) {
    var sum = 0.0;
    for (var i = lane; i < n; i += 8u) { sum += k(f(x + i) * f(x + i)); }
    parts[lane] = sum;
  }
  workgroupBarrier();
  let sum = ${reduce((i) => `parts[${i}]`)};
  let scale = divide(1.0f, root(k(divide(sum, f32(i32(n))) + bits(${P(4)}))));
  if (live) { for (var i = lane; i < n; i += 64u) { put(${P(1)} + row * n + i, k(f(x + i) * scale) * bits(w[i])); } }
}`;

/** A lane for each block of 32. */
const quantize = () => `${begin()}${DIVIDE}
${main(64)}
  let b = wg.x * 64u + lane;
  if (b >= ${P(2)}) { return; }
  let x = ${P(1)} + 32u * b;
  var top = 0u;
  for (var c = 0u; c < 32u; c++) { top = max(top, s[x + c] & 0x7FFFFFFFu); }
  let finite = top < 0x7F800000u;
  var scale = bits(0x7FC00000u);
  if (finite) { scale = divide(bits(top), bits(${P(6)})); }
  put(${P(4)} + b, scale);
  let live = finite && bitcast<u32>(scale) != 0u;
  for (var h = 0u; h < 2u; h++) {
    var sum = 0;
    for (var g = 0u; g < 4u; g++) {
      var word = 0u;
      for (var c = 0u; live && c < 4u; c++) {
        let v = i32(round(clamp(divide(f(x + 16u * h + 4u * g + c), scale), -127.0f, 127.0f)));
        sum += v;
        word |= (u32(v) & 255u) << (8u * c);
      }
      s[${P(3)} + 8u * b + 4u * h + g] = word;
    }
    s[${P(5)} + 2u * b + h] = bitcast<u32>(sum);
  }
}`;

/** The sums of a block's products and mins as integers, of weights `of` and of sums of codes a, b. */
const whole = (is) => `(all.x * (${is(0)}.x - OFFSET * q.x) + all.y * (${is(0)}.y - OFFSET * q.y))`;

/** A workgroup multiplies the 8 rows of a panel with one row; a lane has a row of every eighth block. */
function product({ layout, packed }) {
  const mins = hasMins(layout);
  const blocks = LANES / 8;
  return `${begin()}${ofPanels(layout, packed)}
var<workgroup> terms: array<f32, ${LANES}>;
${mins ? `var<workgroup> less: array<f32, ${LANES}>;` : ''}
${main(LANES)}
  let blocks = ${P(5)} / 32u;
  let row = wg.y;
  var number = ${P(6)} + wg.x;
  if (${P(11)} != 0u) { number += s[${P(11)} + row] * (${P(7)} / 8u); }
  let live = number >= ${P(9)} && number - ${P(9)} < ${P(10)};
  let panel = (number - ${P(9)}) * ${P(13)};
  let r = lane & 7u;
  var y = 0.0;
  var m = 0.0;
  for (var first = 0u; first < blocks; first += ${blocks}u) {
    let b = first + (lane >> 3u);
    if (b < blocks && live) {
      let at = row * blocks + b;
      let unit = unit_of(panel, b);
      let block = block_of(unit, b);
      let q = vec2i(bitcast<i32>(s[${P(3)} + 2u * at]), bitcast<i32>(s[${P(3)} + 2u * at + 1u]));
      let xs = f(${P(2)} + at);
      let all = scales_of(block, r);
      var is = vec2i();
      for (var j = 0u; j < 4u; j++) {
        is.x += dot4(word(block + CODES, r, j), s[${P(1)} + 8u * at + j]);
        is.y += dot4(word(block + CODES, r, j + 4u), s[${P(1)} + 8u * at + j + 4u]);
      }
      terms[lane] = k(f32(${whole(() => 'is')}) * k(d_of(unit, r) * xs));
      ${mins ? 'less[lane] = k(f32(all.z * q.x + all.w * q.y) * k(n_of(unit, r) * xs));' : ''}
    }
    workgroupBarrier();
    if (lane < 8u) {
      let n = min(${blocks}u, blocks - first);
      for (var i = 0u; i < n; i++) { y += terms[8u * i + lane]; ${mins ? 'm += less[8u * i + lane];' : ''} }
    }
    workgroupBarrier();
  }
  if (lane < 8u && live && wg.x * 8u + r < ${P(7)}) { put(${P(4)} + row * ${P(8)} + wg.x * 8u + r, ${mins ? 'y - m' : 'y'}); }
}`;
}

/** 64 rows of the matrix x 32 rows; a lane has 4 x 2 of the results. */
function tile({ layout, packed }) {
  const mins = hasMins(layout);
  const c = (j) => `vec4i(dot4(c.x, ${j}), dot4(c.y, ${j}), dot4(c.z, ${j}), dot4(c.w, ${j}))`;
  const half = (name, from) => `for (var j = ${from}u; j < ${from + 4}u; j++) {
      let at = j * 64u + 4u * rows;
      let c = vec4u(codes[at], codes[at + 1u], codes[at + 2u], codes[at + 3u]);
      let q0 = row_codes[j * 32u + 2u * pair];
      let q1 = row_codes[j * 32u + 2u * pair + 1u];
      ${name}0 += ${c('q0')};
      ${name}1 += ${c('q1')};
    }`;
  const add = (i) => `let x${i} = row_scales[2u * pair + ${i}u];
    let u${i} = row_sums[2u * pair + ${i}u];
    y${i} += k4(vec4f(a * (low${i} - vec4i(OFFSET * u${i}.x)) + b * (high${i} - vec4i(OFFSET * u${i}.y))) * k4(d * x${i}));
    ${mins ? `m${i} += k4(vec4f(ma * u${i}.x + mb * u${i}.y) * k4(n * x${i}));` : ''}`;
  const each = (of) => `vec4i(${[0, 1, 2, 3].map((i) => `scale[4u * rows + ${i}u].${of}`).join(', ')})`;
  const eachFloat = (of) => `vec4f(${[0, 1, 2, 3].map((i) => `factor[4u * rows + ${i}u].${of}`).join(', ')})`;
  const store = (i) => `if (token + ${i}u < ${P(12)}) {
    for (var j = 0u; j < 4u; j++) {
      let number = ${P(6)} + wg.x * 8u + ((4u * rows + j) >> 3u);
      let row = wg.x * 64u + 4u * rows + j;
      if (row < ${P(7)} && number >= ${P(9)} && number - ${P(9)} < ${P(10)}) {
        put(${P(4)} + (token + ${i}u) * ${P(8)} + row, ${mins ? `y${i}[j] - m${i}[j]` : `y${i}[j]`});
      }
    }
  }`;
  return `${begin()}${ofPanels(layout, packed)}
var<workgroup> codes: array<u32, 512>;
var<workgroup> row_codes: array<u32, 256>;
var<workgroup> factor: array<vec2f, 64>;
var<workgroup> scale: array<vec4i, 64>;
var<workgroup> row_scales: array<f32, 32>;
var<workgroup> row_sums: array<vec2i, 32>;
${main(256)}
  let blocks = ${P(5)} / 32u;
  let rows = lane & 15u;
  let pair = lane >> 4u;
  var y0 = vec4f(); var y1 = vec4f(); var m0 = vec4f(); var m1 = vec4f();
  for (var b = 0u; b < blocks; b++) {
    for (var i = lane; i < 512u; i += 256u) {
      let row = i & 63u;
      let r = row & 7u;
      let number = clamp(${P(6)} + wg.x * 8u + (row >> 3u), ${P(9)}, ${P(9)} + ${P(10)} - 1u);
      let unit = unit_of((number - ${P(9)}) * ${P(13)}, b);
      let block = block_of(unit, b);
      codes[i] = word(block + CODES, r, i >> 6u);
      if (i < 64u) {
        factor[row] = vec2f(d_of(unit, r), n_of(unit, r));
        scale[row] = scales_of(block, r);
      }
    }
    let at = min(wg.y * 32u + (lane & 31u), ${P(12)} - 1u) * blocks + b;
    row_codes[lane] = s[${P(1)} + 8u * at + (lane >> 5u)];
    if (lane < 32u) {
      row_scales[lane] = f(${P(2)} + at);
      row_sums[lane] = vec2i(bitcast<i32>(s[${P(3)} + 2u * at]), bitcast<i32>(s[${P(3)} + 2u * at + 1u]));
    }
    workgroupBarrier();
    var low0 = vec4i(); var low1 = vec4i(); var high0 = vec4i(); var high1 = vec4i();
    ${half('low', 0)}
    ${half('high', 4)}
    let d = ${eachFloat('x')};
    let a = ${each('x')};
    let b2 = ${each('y')};
    ${mins ? `let n = ${eachFloat('y')}; let ma = ${each('z')}; let mb = ${each('w')};` : ''}
    ${add(0).replaceAll(' b * (', ' b2 * (')}
    ${add(1).replaceAll(' b * (', ' b2 * (')}
    workgroupBarrier();
  }
  let token = wg.y * 32u + 2u * pair;
  ${store(0)}
  ${store(1)}
}`;
}

/** A lane for each row of the matrix, which adds in the order of the columns. */
function floats({ layout, packed }) {
  return `${begin()}${ofPanels(layout, packed)}
${main(64)}
  let row = wg.x * 64u + lane;
  var number = ${P(6)} + (row >> 3u);
  if (${P(11)} != 0u) { number += s[${P(11)} + wg.y] * (${P(7)} / 8u); }
  if (row >= ${P(7)} || number < ${P(9)} || number - ${P(9)} >= ${P(10)}) { return; }
  let panel = (number - ${P(9)}) * ${P(13)};
  let x = ${P(1)} + wg.y * ${P(5)};
  var y = 0.0;
  for (var c = 0u; c < ${P(5)}; c++) { y += k(${floatAt(layout, 'panel', '(row & 7u)', 'c')} * f(x + c)); }
  put(${P(4)} + wg.y * ${P(8)} + row, y);
}`;
}

const combineRoute = () => `${begin()}${main(64)}
  let c = wg.x * 64u + lane;
  if (c >= ${P(3)}) { return; }
  var y = 0.0;
  for (var i = wg.y * ${P(4)}; i < (wg.y + 1u) * ${P(4)}; i++) { y += k(f(${P(6)} + i) * f(${P(2)} + s[${P(5)} + i] * ${P(3)} + c)); }
  put(${P(1)} + wg.y * ${P(3)} + c, y);
}`;

const gather = () => `${begin()}${main(64)}
  let c = wg.x * 64u + lane;
  if (c < ${P(3)}) { s[${P(1)} + s[${P(5)} + wg.y] * ${P(3)} + c] = s[${P(2)} + wg.y / ${P(4)} * ${P(3)} + c]; }
}`;

export const shaders = {
  embed, pick, rmsnorm, quantize, product, tile, floats, gather,
  combine: combineRoute,
  swiglu: () => `${begin()}${SILU}${EACH(`put(${P(1)} + i, k(silu(f(${P(1)} + i))) * f(${P(2)} + i));`)}`,
  gate: () => `${begin()}${SILU}${EACH(`put(${P(1)} + i, f(${P(1)} + i) * divide(1.0f, k(1.0f + power(-f(${P(2)} + i)))));`)}`,
  add: () => `${begin()}${EACH(`put(${P(1)} + i, f(${P(1)} + i) + f(${P(2)} + i));`)}`,
  bias: () => `${begin()}${EACH(`put(${P(1)} + i, f(${P(1)} + i) + bits(w[i % ${P(4)}]));`)}`,
};
