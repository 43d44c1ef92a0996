// SPDX-License-Identifier: MIT
// WGSL that reads panels (src/weights/pack.h). It is made from the numbers of a layout, which the engine tells when it
// starts, so this file knows no layout by name.

import { HALVES } from './numbers.js';

/** Words of struct gpu_layout, in order; then its table of 16 values. */
const FIELDS = ['columns', 'bytes', 'kind', 'd', 'head', 'scales', 'block', 'bits', 'offset', 'valueBits', 'hasTable'];
const TABLE = 16;
const PIECES = 6;

/** Of enum kind and enum d_type in src/weights/pack.h. */
const KIND = { float: 0, plain: 1, min: 2, scale: 3, halves: 4, mins: 5, halfMins: 6, halfFloats: 7 };
const D = { f16: 0, bf16: 1, f32: 2, quarter: 3, eighth: 4 };

/**
 * The layouts that the engine has, by their numbers.
 * @param {Int32Array} words from struct gpu_layout [n] on
 * @param {number} n
 * @param {Int32Array} pieces from struct piece [9][PIECES] on
 */
export function layoutsOf(words, n, pieces) {
  const size = FIELDS.length + TABLE;
  return Array.from({ length: n }, (_, i) => {
    const at = words.subarray(i * size, (i + 1) * size);
    const layout = Object.fromEntries(FIELDS.map((name, j) => [name, at[j]]));
    if (!layout.columns) return null;
    return {
      ...layout,
      table: layout.hasTable ? [...at.subarray(FIELDS.length)] : null,
      pieces: Array.from({ length: PIECES }, (_, j) => {
        const [k, from, width, place, to] = pieces.subarray((layout.bits * PIECES + j) * 5);
        return { k, from, width, place, to };
      }).filter(({ width }) => width > 0),
    };
  });
}

const isF8 = ({ kind, d }) => kind === KIND.float && d === D.f32;
export const isFloats = ({ kind }) => kind === KIND.float;
/** Whether the scales of a block's halves are floats: then scales_of() gives their bits. */
export const isHalfFloats = ({ kind }) => kind === KIND.halfFloats;
export const hasMins = ({ kind }) => [KIND.min, KIND.mins, KIND.halfMins].includes(kind);

/** Codes of one bit: a byte for each row has 8 columns. */
const BIT_CODES = `
  let nibble = (w[at + 2u * (j >> 1u) + (r >> 2u)] >> (8u * (r & 3u) + 4u * (j & 1u))) & 15u;
  return (nibble & 1u) | ((nibble & 2u) << 7u) | ((nibble & 4u) << 14u) | ((nibble & 8u) << 21u);`;

/** The codes of four columns of row r as the bytes of a word; j counts these in a block. */
function codes({ bits, pieces }) {
  if (bits === 1) return BIT_CODES;
  const whole = bits >> 1;
  const one = ({ from, width, place, to }) => {
    const isOdd = place >= whole;
    const vector = isOdd ? `${4 * 4 * whole}u + 4u * (step >> 1u)` : `${4 * whole}u * step + ${4 * place}u`;
    const shift = isOdd ? `(4u * (step & 1u) + ${to}u)` : `${to}u`;
    const mask = ((1 << width) - 1) * 0x01010101;
    return `(((w[at + ${vector} + (r & 3u)] >> ${shift}) & ${mask >>> 0}u) << ${from}u)`;
  };
  const group = (k) => pieces.filter((piece) => piece.k === k).map(one).join(' | ');
  return `
  let step = j >> 1u;
  let group = 2u * (r >> 2u) + (j & 1u);
  if (group == 0u) { return ${group(0)}; }
  if (group == 1u) { return ${group(1)}; }
  if (group == 2u) { return ${group(2)}; }
  return ${group(3)};`;
}

/** Bytes of codes become the bytes of their values. */
export function values({ table }) {
  if (!table) return '';
  const word = (i) => table.slice(4 * i, 4 * i + 4).reduce((sum, v, j) => sum + (v & 255) * 2 ** (8 * j), 0);
  return `
fn value(code: u32) -> u32 {
  let low = select(${word(0)}u, ${word(1)}u, (code & 4u) != 0u);
  let high = select(${word(2)}u, ${word(3)}u, (code & 4u) != 0u);
  return (select(low, high, (code & 8u) != 0u) >> (8u * (code & 3u))) & 255u;
}
fn looked(c: u32) -> u32 {
  let low = value(c & 15u) | (value((c >> 8u) & 15u) << 8u);
  return low | (value((c >> 16u) & 15u) << 16u) | (value((c >> 24u) & 15u) << 24u);
}`;
}

export const BYTES = `
fn byte(at: u32, i: u32) -> i32 { return i32((w[at + (i >> 2u)] >> (8u * (i & 3u))) & 255u); }
fn signed_byte(at: u32, i: u32) -> i32 { return i32(w[at + (i >> 2u)] << (24u - 8u * (i & 3u))) >> 24u; }`;

/** The value of a byte: f32_from_e4m3() in src/base/num.h. */
export const E4M3 = `
fn e4m3(b: i32) -> f32 {
  let sign = (u32(b) & 0x80u) << 24u;
  let rest = u32(b) & 0x7Fu;
  if (rest == 0x7Fu) { return bits(sign | 0x7FC00000u); }
  if (rest >= 8u) { return bits(sign | ((rest << 20u) + 0x3C000000u)); }
  return bits(sign | bitcast<u32>(f32(rest) * 0.001953125f));
}`;

const SIGNED = 'fn signed(word: u32, i: u32) -> i32 { return i32(word << (24u - 8u * i)) >> 24u; }';

/** The product of two words of four signed bytes. */
export const DOT4 = (packed) =>
  packed
    ? `${SIGNED}
fn dot4(a: u32, b: u32) -> i32 { return dot4I8Packed(a, b); }`
    : `${SIGNED}
fn dot4(a: u32, b: u32) -> i32 {
  var sum = 0;
  for (var i = 0u; i < 4u; i++) { sum += signed(a, i) * signed(b, i); }
  return sum;
}`;

/** The f32 that 16 bits at `unit` hold, or that lies there: d, or dmin `words` further. */
function scale({ d }, words = 0) {
  if (d === D.f32) return `bits(w[unit + ${2 * words}u + r])`;
  const word = `w[unit + ${words}u + (r >> 1u)]`;
  if (d === D.bf16 && !words) return `bits(select(${word} << 16u, ${word} & 0xFFFF0000u, (r & 1u) != 0u))`;
  const part = words ? '' : { [D.quarter]: ' * 0.25f', [D.eighth]: ' * 0.125f' }[d] ?? '';
  return `half(${word}, r)${part}`;
}

/** Scales and mins of both halves of a block, as vec4i. */
const scales = ({ kind }) =>
  ({
    [KIND.plain]: 'vec4i(1, 1, 0, 0)',
    [KIND.min]: 'vec4i(1, 1, 1, 1)',
    [KIND.scale]: 'vec4i(vec2i(signed_byte(at, r)), 0, 0)',
    [KIND.halves]: 'vec4i(signed_byte(at, r), signed_byte(at, 8u + r), 0, 0)',
    [KIND.mins]: 'vec4i(vec2i(byte(at, r)), vec2i(byte(at, 8u + r)))',
    [KIND.halfFloats]: 'vec4i(bitcast<vec2i>(vec2f(e4m3(byte(at, r)), e4m3(byte(at, 8u + r)))), 0, 0)',
    [KIND.halfMins]: 'vec4i(byte(at, r) & 15, byte(at, 8u + r) & 15, byte(at, r) >> 4u, byte(at, 8u + r) >> 4u)',
  })[kind];

/**
 * Functions that read a panel of codes: unit_of(panel, b), block_of(unit, b), scales_of(at, r), d_of and n_of(unit, r),
 * word(at, r, j): the values of four columns, without the offset.
 */
function readers(layout, packed) {
  const blocks = layout.columns / 32;
  const signed = layout.table ? 'looked(raw(at, r, j))' : 'raw(at, r, j)';
  return `${BYTES}${isHalfFloats(layout) ? E4M3 : ''}
${DOT4(packed)}
fn raw(at: u32, r: u32, j: u32) -> u32 {${codes(layout)}
}${values(layout)}
fn unit_of(panel: u32, b: u32) -> u32 { return panel + b / ${blocks}u * ${layout.bytes / 4}u; }
fn block_of(unit: u32, b: u32) -> u32 { return unit + ${layout.head / 4}u + b % ${blocks}u * ${layout.block / 4}u; }
fn scales_of(at: u32, r: u32) -> vec4i { return ${scales(layout)}; }
fn d_of(unit: u32, r: u32) -> f32 { return ${scale(layout)}; }
fn n_of(unit: u32, r: u32) -> f32 { return ${hasMins(layout) ? scale(layout, 4) : '0.0'}; }
fn word(at: u32, r: u32, j: u32) -> u32 { return ${signed}; }
const OFFSET = ${layout.offset};
const CODES = ${layout.scales / 4}u;
`;
}

/** What a shader needs that reads panels of a layout. */
export function ofPanels(layout, packed) {
  if (!isFloats(layout)) return HALVES + readers(layout, packed);
  if (isF8(layout)) return BYTES + E4M3;
  return layout.bytes === 32 ? '' : HALVES;
}

/**
 * The float that a block's integers are together: scales a and b of its halves, times `low` and `high`. Products with
 * half floats are exact, so only their sum rounds.
 * @param {'' | '4'} wide whether all are vectors of four
 */
export function wholeOf(layout, [a, b], [low, high], wide = '') {
  const float = wide ? 'vec4f' : 'f32';
  if (!isHalfFloats(layout)) return `${float}(${a} * ${low} + ${b} * ${high})`;
  const one = (scale, sum) => `k${wide}(bitcast<${float}>(${scale}) * ${float}(${sum}))`;
  return `k${wide}(${one(a, low)} + ${one(b, high)})`;
}

/** The value of column c of row r of a panel, as unpack_panel_row() gives it. */
export function columnValue(layout) {
  if (isFloats(layout))
    return `fn at(panel: u32, r: u32, c: u32) -> f32 { return ${floatAt(layout, 'panel', 'r', 'c')}; }`;
  const isSigned = layout.table || layout.bits === 8;
  const value = isSigned ? 'signed(code, c & 3u)' : 'i32((code >> (8u * (c & 3u))) & 255u) - OFFSET';
  const min = hasMins(layout) ? ' - k(n_of(unit, r) * f32(select(all.z, all.w, (c & 16u) != 0u)))' : '';
  return `fn at(panel: u32, r: u32, c: u32) -> f32 {
  let unit = unit_of(panel, c >> 5u);
  let block = block_of(unit, c >> 5u);
  let all = scales_of(block, r);
  let code = word(block + CODES, r, (c >> 2u) & 7u);
  let scale = select(all.x, all.y, (c & 16u) != 0u);
  let scaled = ${isHalfFloats(layout) ? `k(bitcast<f32>(scale) * f32(${value}))` : `f32(scale * (${value}))`};
  return k(d_of(unit, r) * scaled)${min};
}`;
}

/** A float of a panel of floats: 8 rows for each column. */
export function floatAt(layout, panel, r, c) {
  const { bytes, d } = layout;
  if (isF8(layout)) {
    const unit = `(${panel} + ${c} / ${layout.columns}u * ${bytes / 4}u)`;
    const code = `byte(${unit} + ${layout.head / 4}u, 8u * (${c} % ${layout.columns}u) + ${r})`;
    return `k(e4m3(${code}) * bits(w[${unit} + ${r}]))`;
  }
  if (bytes === 32) return `bits(w[${panel} + 8u * ${c} + ${r}])`;
  const word = `w[${panel} + 4u * ${c} + (${r} >> 1u)]`;
  if (d === D.bf16) return `bits(select(${word} << 16u, ${word} & 0xFFFF0000u, (${r} & 1u) != 0u))`;
  return `half(${word}, ${r})`;
}

