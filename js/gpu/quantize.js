// SPDX-License-Identifier: MIT
// Quantising as WGSL. Whatever kernel computes rows that products read next also quantises them (record.c and fuse.c in
// src/compute/gpu): a lane for each value, so a workgroup has whole blocks of 32.
// A code is the integer nearest to a quotient. An approximate quotient proposes one, a product proves it; where the
// proof fails, because the quotient is about half an integer, the exact quotient decides.

import { P } from './numbers.js';

/** Params from this number on: the places of codes, scales and sums (0: nothing is quantised), and 127. */
const AT = 48;

/**
 * What a shader needs that quantises, with DIVIDE: quantize(block, lane, value's bits, live). All lanes call it.
 * @param {number} lanes of a workgroup
 */
export const quantizing = (lanes) => `
var<workgroup> tops: array<atomic<u32>, ${lanes / 32}>;
var<workgroup> values: array<i32, ${lanes}>;
fn code_of(x: f32, scale: f32) -> i32 {
  let near = clamp(round(x / scale), -127.0f, 127.0f);
  if (scale > 1e-30f && abs(k(x - k(near * scale))) < k(scale * 0.499f)) { return i32(near); }
  return i32(round(clamp(divide(x, scale), -127.0f, 127.0f)));
}
fn quantize(block: u32, lane: u32, value: u32, live: bool) {
  if (lane < ${lanes / 32}u) { atomicStore(&tops[lane], 0u); }
  workgroupBarrier();
  atomicMax(&tops[lane >> 5u], value & 0x7FFFFFFFu);
  workgroupBarrier();
  let top = atomicLoad(&tops[lane >> 5u]);
  let finite = top < 0x7F800000u;
  var scale = bits(0x7FC00000u);
  var q = 0;
  if (finite) { scale = divide(bits(top), bits(${P(AT + 3)})); }
  if (finite && bitcast<u32>(scale) != 0u) { q = code_of(bits(value), scale); }
  values[lane] = q;
  workgroupBarrier();
  let column = lane & 31u;
  if (live && column == 0u) { put(${P(AT + 1)} + block, scale); }
  if (live && (lane & 3u) == 0u) {
    var word = 0u;
    for (var i = 0u; i < 4u; i++) { word |= (u32(values[lane + i]) & 255u) << (8u * i); }
    s[${P(AT)} + 8u * block + (column >> 2u)] = word;
  }
  if (live && (lane & 15u) == 0u) {
    var sum = 0;
    for (var i = 0u; i < 16u; i++) { sum += values[lane + i]; }
    s[${P(AT + 2)} + 2u * block + (column >> 4u)] = bitcast<u32>(sum);
  }
  workgroupBarrier();
}
`;

/** Quantises value number `i` of the rows that a kernel writes, if its command says so. */
export const quantized = (i, value, live) =>
  `if (${P(AT)} != 0u) { quantize((${i}) >> 5u, lane, bitcast<u32>(${value}), ${live}); }`;
