// SPDX-License-Identifier: MIT
// The kernels of src/compute/gpu/port.h as WGSL; products and attention are in files of their own. Each computes what
// the CPU's scalar kernel of the same name computes, value by value in the same order. Workgroups and lanes share out
// rows and columns; where an order of additions is prescribed, one lane adds. Params are those that
// src/compute/gpu/record.c sets.

import { DIVIDE, P, SIGMOID, begin, inverseRoot, main, reduce } from './numbers.js';
import { columnValue, ofPanels } from './panels.js';
import { productShaders } from './products.js';
import { quantized, quantizing } from './quantize.js';

/** Runs `body` for each value i, by lanes over all workgroups. */
export const EACH = (body) => `${main(64)}
  let i = (wg.y * ${P(5)} + wg.x * 64u) + lane;
  if (i < ${P(3)}) { ${body} }
}`;

/** The same for kernels that compute y by `value`; products may read y next. */
export const EACH_VALUE = (value) => `${quantizing(64)}${main(64)}
  let i = (wg.y * ${P(5)} + wg.x * 64u) + lane;
  let live = i < ${P(3)};
  var value = 0.0;
  if (live) {
    value = ${value};
    put(${P(1)} + i, value);
  }
  ${quantized('i', 'value', 'live')}
}`;

function embed({ layout, packed }) {
  return `${begin()}${ofPanels(layout, packed)}${columnValue(layout)}
${main(64)}
  let c = wg.x * 64u + lane;
  let id = t[${P(2)} + wg.y];
  let panel = id / 8u;
  if (c < ${P(3)} && panel >= ${P(4)} && panel - ${P(4)} < ${P(5)}) {
    put(${P(1)} + wg.y * ${P(3)} + c, at(${P(7)} + (panel - ${P(4)}) * ${P(6)}, id & 7u, c));
  }
}`;
}

const pick = () => `${begin()}${main(64)}
  let c = wg.x * 64u + lane;
  if (c < ${P(4)}) { s[${P(1)} + wg.y * ${P(4)} + c] = s[${P(2)} + t[${P(3)} + wg.y] * ${P(4)} + c]; }
}`;

/** Lanes of a workgroup that norms a row. */
export const ROW = 256;

/** A workgroup of `norm` stores the normed values of a row; `value` is that of column i. */
export const normed = (value) => `
  for (var first = 0u; first < n; first += ${ROW}u) {
    let i = first + lane;
    let written = live && i < n;
    var value = 0.0;
    if (written) {
      value = ${value};
      put(${P(1)} + row * n + i, value);
    }
    ${quantized('row * n + i', 'value', 'written')}
  }`;

const rmsnorm = () => `${begin()}${DIVIDE}${quantizing(ROW)}
var<workgroup> parts: array<f32, 8>;
${main(ROW)}
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
  let scale = ${inverseRoot('sum', 'n', P(4))};
  ${normed(`k(f(x + i) * scale) * bits(w[${P(7)} + i])`)}
}`;

/** The columns may come in another order, which may be another one for each expert. */
const quantize = () => `${begin()}${DIVIDE}${quantizing(64)}
fn value(i: u32) -> u32 {
  let columns = 32u * ${P(7)};
  if (columns == 0u) { return s[${P(1)} + i]; }
  let row = i / columns;
  var order = i % columns;
  if (${P(8)} != 0u) { order += s[${P(8)} + row] * columns; }
  return s[${P(1)} + columns * row + w[order]];
}
${main(64)}
  let i = (wg.y * ${P(5)} + wg.x * 64u) + lane;
  let live = i < ${P(3)};
  var u = 0u;
  if (live) { u = value(i); }
  quantize(i >> 5u, lane, u, live);
}`;

const combine = () => `${begin()}${main(64)}
  let c = wg.x * 64u + lane;
  if (c >= ${P(3)}) { return; }
  var y = 0.0;
  for (var i = wg.y * ${P(4)}; i < (wg.y + 1u) * ${P(4)}; i++) {
    y += k(f(${P(6)} + i) * f(${P(2)} + s[${P(5)} + i] * ${P(3)} + c));
  }
  let at = wg.y * ${P(3)} + c;
  put(${P(1)} + at, y);
  if (${P(7)} != 0u) { put(${P(7)} - 1u + at, f(${P(7)} - 1u + at) + k(y)); }
}`;

/** Heads of units that have come apart from their codes: words n of each unit, in the matrix that is bound as pages. */
const heads = () => `${begin()}${EACH(`
    let unit = i / ${P(1)};
    pages[${P(8)} + unit / ${P(6)} * ${P(4)} + unit % ${P(6)} * ${P(2)} + i % ${P(1)}] = w[${P(7)} + i];`)}`;

const gather = () => `${begin()}${DIVIDE}${quantizing(64)}${main(64)}
  let c = wg.x * 64u + lane;
  let live = c < ${P(3)};
  let at = s[${P(5)} + wg.y] * ${P(3)} + c;
  var value = 0.0;
  if (live) {
    value = f(${P(2)} + wg.y / ${P(4)} * ${P(3)} + c);
    put(${P(1)} + at, value);
  }
  ${quantized('at', 'value', 'live')}
}`;

export const shaders = {
  ...productShaders, embed, pick, rmsnorm, quantize, gather, combine, heads,
  swiglu: () => `${begin()}${SIGMOID}${EACH_VALUE(`k(silu(f(${P(1)} + i))) * f(${P(2)} + i)`)}`,
  gate: () => `${begin()}${SIGMOID}${EACH_VALUE(`f(${P(1)} + i) * sigmoid(f(${P(2)} + i))`)}`,
  add: () => `${begin()}${EACH(`put(${P(1)} + i, f(${P(1)} + i) + f(${P(2)} + i));`)}`,
  bias: () => `${begin()}${EACH(`put(${P(1)} + i, f(${P(1)} + i) + bits(pages[${P(6)} + i % ${P(4)}]));`)}`,
};
