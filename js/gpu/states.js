// SPDX-License-Identifier: MIT
// The kernels of layers with states as WGSL: src/compute/cpu/linear.c. The binding `pages` is one layer's part of all
// slots, or what slots have behind the layers. record.c puts the runs into the table: of each row the first row of its
// chain, the slot from which the chain starts, and the slot that gets the state after the row; slots count from 1.

import { DOUBLES, EXP64, LOG64 } from './doubles.js';
import { P, SIGMOID, begin, main, reduce } from './numbers.js';

const TAPS = 4;
const HEAD_MOST = 256;

/** A workgroup computes one head of one row; queries and keys get the norm 1. */
const convolve = () => `${begin()}${SIGMOID}
var<workgroup> head: array<f32, ${HEAD_MOST}>;
var<workgroup> sums: array<f32, 8>;
${main(64)}
  let dim = ${P(5)};
  let channels = ${P(4)};
  let place = ${P(3)} + 3u * wg.y;
  let seen = wg.y - t[place];
  let start = (t[place + 1u] - 1u) * ${P(7)} + ${P(8)};
  let end = (t[place + 2u] - 1u) * ${P(7)} + ${P(8)};
  for (var i = lane; i < dim; i += 64u) {
    let c = wg.x * dim + i;
    var sum = 0.0;
    for (var tap = 0u; tap < ${TAPS}u; tap++) {
      let back = ${TAPS - 1}u - tap;
      var x = 0u;
      if (back <= seen) {
        x = s[${P(2)} + (wg.y - back) * channels + c];
      } else if (t[place + 1u] != 0u) {
        x = pages[start + (seen + tap) * channels + c];
      }
      sum += k(bits(w[${P(11)} + tap * channels + c]) * bits(x));
      if (tap > 0u && t[place + 2u] != 0u) { pages[end + (tap - 1u) * channels + c] = x; }
    }
    head[i] = silu(k(sum));
  }
  workgroupBarrier();
  let y = ${P(1)} + wg.y * channels + wg.x * dim;
  if (wg.x >= 2u * ${P(6)}) {
    for (var i = lane; i < dim; i += 64u) { put(y + i, head[i]); }
    return;
  }
  if (lane < 8u) {
    var sum = 0.0;
    for (var i = lane; i < dim; i += 8u) { sum += k(head[i] * head[i]); }
    sums[lane] = sum;
  }
  workgroupBarrier();
  let inverse = divide(1.0f, root(k(${reduce((i) => `sums[${i}]`)} + bits(${P(9)}))));
  let scale = select(1.0f, bits(${P(10)}), wg.x < ${P(6)});
  for (var i = lane; i < dim; i += 64u) { put(y + i, k(k(head[i] * inverse) * scale)); }
}`;

/** A lane for each value head of each row: decay_of(), and the sigmoid of beta behind all decays. */
const decay = () => `${begin()}${SIGMOID}${DOUBLES}${EXP64}${LOG64}
fn decay_of(z: f32, rate: f32) -> u32 {
  let u = bitcast<u32>(z);
  if ((u & 0x7FFFFFFFu) > 0x7F800000u) { return u; }
  var x = wide(z);
  if (z <= 20.0f) { x = log64(add(vec2u(0u, 0x3FF00000u), exp64(x))); }
  x = exp64(mul(wide(rate), x));
  let decay = narrow(x);
  return select(decay, 0u, decay < 0x0D800000u);
}
${main(64)}
  let i = wg.x * 64u + lane;
  if (i >= ${P(3)}) { return; }
  let h = i % ${P(4)};
  s[${P(1)} + i] = decay_of(k(f(${P(2)} + i) + bits(pages[${P(6)} + h])), bits(w[${P(5)} + h]));
  put(${P(1)} + ${P(3)} + i, sigmoid(f(${P(2)} + ${P(3)} + i)));
}`;

/** A workgroup computes some columns of one value head of one chain, in order; a lane has a column of the state. */
function delta({ dim }) {
  const columns = dim <= 128 && dim % 32 === 0 ? 32 : 16;
  const each = (body) => `for (var i = 0u; i < ${dim}u; i++) { ${body} }`;
  const state = `state[i * ${columns}u + lane]`;
  return `${begin()}
var<workgroup> state: array<f32, ${dim * columns}>;
${main(columns)}
  let head = wg.x / ${dim / columns}u;
  let column = wg.x % ${dim / columns}u * ${columns}u + lane;
  let key = select(head % ${P(7)}, head / (${P(8)} / ${P(7)}), ${P(9)} != 0u) * ${dim}u;
  let place = head * ${dim * dim}u + column;
  let first = t[${P(5)} + wg.y];
  let end = t[${P(5)} + wg.y + 1u];
  let start = t[${P(4)} + 4u * first + 2u];
  ${each(`
    var x = 0u;
    if (start != 0u) { x = pages[(start - 1u) * ${P(10)} + place + i * ${dim}u]; }
    ${state} = bits(x);`)}
  for (var r = first; r < end; r++) {
    let run = ${P(4)} + 4u * r;
    for (var row = t[run]; row < t[run] + t[run + 1u]; row++) {
      let q = ${P(2)} + row * ${P(6)} + key;
      let v = ${P(2)} + row * ${P(6)} + (2u * ${P(7)} + head) * ${dim}u + column;
      let pair = ${P(3)} + row * ${P(8)} + head;
      let decay = f(pair);
      var sum = 0.0;
      ${each(`sum += k(k(${state} * decay) * f(q + ${P(7)} * ${dim}u + i));`)}
      let change = k(k(f(v) - sum) * f(pair + ${P(11)}));
      var y = 0.0;
      ${each(`
        let next = k(k(${state} * decay) + k(f(q + ${P(7)} * ${dim}u + i) * change));
        y += k(next * f(q + i));
        ${state} = next;`)}
      put(${P(1)} + (row * ${P(8)} + head) * ${dim}u + column, y);
    }
    ${each(`pages[(t[run + 3u] - 1u) * ${P(10)} + place + i * ${dim}u] = bitcast<u32>(${state});`)}
  }
}`;
}

const later = () => `${begin()}${main(64)}
  let i = wg.x * 64u + lane;
  let dim = ${P(4)};
  if (i >= dim) { return; }
  let place = ${P(3)} + 3u * wg.y;
  var x = 0u;
  if (wg.y > t[place]) {
    x = s[${P(2)} + (wg.y - 1u) * dim + i];
  } else if (t[place + 1u] != 0u) {
    x = pages[(t[place + 1u] - 1u) * ${P(5)} + ${P(6)} + i];
  }
  s[${P(1)} + wg.y * dim + i] = x;
  if (t[place + 2u] != 0u) { pages[(t[place + 2u] - 1u) * ${P(5)} + ${P(6)} + i] = s[${P(2)} + wg.y * dim + i]; }
}`;

const join = () => `${begin()}${main(64)}
  let c = wg.x * 64u + lane;
  let half = ${P(4)};
  if (c >= 2u * half) { return; }
  s[${P(1)} + 2u * wg.y * half + c] = s[select(${P(3)} - half, ${P(2)}, c < half) + wg.y * half + c];
}`;

export const stateShaders = { convolve, decay, delta, later, join };
