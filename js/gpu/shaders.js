// SPDX-License-Identifier: MIT
// The kernels of src/compute/gpu/port.h as WGSL; products and attention are in files of their own. Each computes what
// the CPU's scalar kernel of the same name computes, value by value in the same order. Workgroups and lanes share out
// rows and columns; where an order of additions is prescribed, one lane adds. Params are those that
// src/compute/gpu/record.c sets.

import { DIVIDE, P, SIGMOID, begin, main, reduce } from './numbers.js';
import { columnValue, ofPanels } from './panels.js';
import { productShaders } from './products.js';

/** Runs `body` for each value i, by lanes over all workgroups. */
export const EACH = (body) => `${main(64)}
  let i = (wg.y * ${P(5)} + wg.x * 64u) + lane;
  if (i < ${P(3)}) { ${body} }
}`;

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

/** A lane for each block of 32. The columns may come in another order, which may be another one for each expert. */
const quantize = () => `${begin()}${DIVIDE}
fn value(b: u32, c: u32) -> u32 {
  let blocks = ${P(7)};
  if (blocks == 0u) { return s[${P(1)} + 32u * b + c]; }
  let row = b / blocks;
  var order = 32u * (b % blocks) + c;
  if (${P(8)} != 0u) { order += s[${P(8)} + row] * 32u * blocks; }
  return s[${P(1)} + 32u * blocks * row + w[order]];
}
${main(64)}
  let b = wg.x * 64u + lane;
  if (b >= ${P(2)}) { return; }
  var top = 0u;
  for (var c = 0u; c < 32u; c++) { top = max(top, value(b, c) & 0x7FFFFFFFu); }
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
        let v = i32(round(clamp(divide(bits(value(b, 16u * h + 4u * g + c)), scale), -127.0f, 127.0f)));
        sum += v;
        word |= (u32(v) & 255u) << (8u * c);
      }
      s[${P(3)} + 8u * b + 4u * h + g] = word;
    }
    s[${P(5)} + 2u * b + h] = bitcast<u32>(sum);
  }
}`;

const combine = () => `${begin()}${main(64)}
  let c = wg.x * 64u + lane;
  if (c >= ${P(3)}) { return; }
  var y = 0.0;
  for (var i = wg.y * ${P(4)}; i < (wg.y + 1u) * ${P(4)}; i++) {
    y += k(f(${P(6)} + i) * f(${P(2)} + s[${P(5)} + i] * ${P(3)} + c));
  }
  put(${P(1)} + wg.y * ${P(3)} + c, y);
}`;

/** Heads of units that have come apart from their codes: words n of each unit, in the matrix that is bound as pages. */
const heads = () => `${begin()}${EACH(`
    let unit = i / ${P(1)};
    pages[unit / ${P(6)} * ${P(4)} + unit % ${P(6)} * ${P(2)} + i % ${P(1)}] = w[${P(7)} + i];`)}`;

const gather = () => `${begin()}${main(64)}
  let c = wg.x * 64u + lane;
  if (c < ${P(3)}) { s[${P(1)} + s[${P(5)} + wg.y] * ${P(3)} + c] = s[${P(2)} + wg.y / ${P(4)} * ${P(3)} + c]; }
}`;

export const shaders = {
  ...productShaders, embed, pick, rmsnorm, quantize, gather, combine, heads,
  swiglu: () => `${begin()}${SIGMOID}${EACH(`put(${P(1)} + i, k(silu(f(${P(1)} + i))) * f(${P(2)} + i));`)}`,
  gate: () => `${begin()}${SIGMOID}${EACH(`put(${P(1)} + i, f(${P(1)} + i) * sigmoid(f(${P(2)} + i)));`)}`,
  add: () => `${begin()}${EACH(`put(${P(1)} + i, f(${P(1)} + i) + f(${P(2)} + i));`)}`,
  bias: () => `${begin()}${EACH(`put(${P(1)} + i, f(${P(1)} + i) + bits(w[i % ${P(4)}]));`)}`,
};
