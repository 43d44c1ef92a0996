// SPDX-License-Identifier: MIT
// Products of rows with matrices as WGSL. For codes, both factors are integers within a block of 32 columns, so lanes
// may share a block's sum in any way; the floats of the blocks are added in order. For floats, one lane adds all
// columns.

import { P, begin, main, vectorOf } from './numbers.js';
import { floatAt, hasMins, ofPanels, wholeOf } from './panels.js';

/** Lanes of a workgroup for few rows, eight for each block. */
const LANES = 64;
const BLOCKS = LANES / 8;

/** A command has up to four products of the same rows: finds that of a workgroup, each of which has `each` rows of it. */
const PART = (each) => `var group = wg.x;
  var part = 0u;
  for (var i = 1u; i < ${P(4)}; i++) {
    let n = (part_of(part).y + ${each - 1}u) / ${each}u;
    if (group < n) { break; }
    group -= n;
    part += 2u;
  }
  let to = part_of(part);
  let more = part_of(part + 1u);`;

/**
 * A part of a command, two vectors: the place of y, rows of the matrix, columns of y, place of the first panel; a bias
 * and values to which the results are added too, as places from 1 on, 0 being none.
 */
const FINISH = `
fn part_of(i: u32) -> vec4u { return p.v[${vectorOf(16)}u + i]; }
fn finish(to: vec4u, more: vec4u, token: u32, row: u32, result: f32) {
  let at = token * to.z + row;
  var y = result;
  if (more.x != 0u) { y = k(y) + bits(pages[more.x - 1u + row]); }
  put(to.x + at, y);
  if (more.y != 0u) { put(more.y - 1u + at, f(more.y - 1u + at) + k(y)); }
}
`;

/** Place of a panel of the product; that of a place of experts is one of its expert. */
const PANEL = (number) => `var number = ${number};
  if (${P(11)} != 0u) { number += s[${P(11)} + wg.y] * (to.y / 8u); }
  let live = number >= ${P(9)} && number - ${P(9)} < ${P(10)};
  let panel = to.w + (number - ${P(9)}) * ${P(13)};`;

/** The sums of codes of the row's block `at`, one for each half. */
const sums = (at) => `vec2i(bitcast<i32>(s[${P(3)} + 2u * ${at}]), bitcast<i32>(s[${P(3)} + 2u * ${at} + 1u]))`;

/** Computes the products of row r with the row's block b, and gives their float, and that of the mins, to `add`. */
const block = (layout, add) => `
      let at = wg.y * blocks + b;
      let unit = unit_of(panel, b);
      let block = block_of(unit, b);
      let q = ${sums('at')};
      let xs = f(${P(2)} + at);
      let all = scales_of(block, r);
      var sum = vec2i();
      for (var j = 0u; j < 4u; j++) {
        sum.x += dot4(word(block + CODES, r, j), s[${P(1)} + 8u * at + j]);
        sum.y += dot4(word(block + CODES, r, j + 4u), s[${P(1)} + 8u * at + j + 4u]);
      }
      sum -= OFFSET * q;
      ${add(
        `k(${wholeOf(layout, ['all.x', 'all.y'], ['sum.x', 'sum.y'])} * k(d_of(unit, r) * xs))`,
        hasMins(layout) ? 'k(f32(all.z * q.x + all.w * q.y) * k(n_of(unit, r) * xs))' : '',
      )}`;

/** The floats of the blocks are added in order, by one lane for each row. */
function inOrder(layout) {
  const ifMins = (text) => (hasMins(layout) ? text : '');
  return `for (var first = 0u; first < blocks; first += ${BLOCKS}u) {
    let b = first + (lane >> 3u);
    if (b < blocks && live) {${block(layout, (term, min) => `terms[lane] = ${term}; ${min && `less[lane] = ${min};`}`)}
    }
    workgroupBarrier();
    if (lane < 8u) {
      let n = min(${BLOCKS}u, blocks - first);
      for (var i = 0u; i < n; i++) { y += terms[8u * i + lane]; ${ifMins('m += less[8u * i + lane];')} }
    }
    workgroupBarrier();
  }
  ${ifMins('y -= m;')}`;
}

/** Each lane adds the floats of its blocks, and one lane for each row adds these sums. */
const inAnyOrder = (layout) => `for (var b = lane >> 3u; b < blocks && live; b += ${BLOCKS}u) {
    ${block(layout, (term, min) => `y += ${term}; ${min && `m += ${min};`}`)}
  }
  terms[lane] = y - m;
  workgroupBarrier();
  y = 0.0;
  for (var i = 0u; i < ${BLOCKS}u; i++) { y += terms[8u * i + r]; }`;

/** A workgroup multiplies the 8 rows of a panel with one row; a lane has one row in every eighth block. */
function product({ layout, packed, fast }) {
  return `${begin()}${ofPanels(layout, packed)}${FINISH}
var<workgroup> terms: array<f32, ${LANES}>;
${hasMins(layout) ? `var<workgroup> less: array<f32, ${LANES}>;` : ''}
${main(LANES)}
  let blocks = ${P(5)} / 32u;
  ${PART(8)}
  ${PANEL('group')}
  let r = lane & 7u;
  var y = 0.0;
  var m = 0.0;
  ${fast ? inAnyOrder(layout) : inOrder(layout)}
  if (lane < 8u && live && group * 8u + r < to.y) { finish(to, more, wg.y, group * 8u + r, y); }
}`;
}

/** The lanes bring the codes and scales of a block: of 64 rows of the matrix, and of 32 rows. */
const BRING = `for (var i = lane; i < 512u; i += 256u) {
      let row = i & 63u;
      let r = row & 7u;
      let unit = unit_of(to.w + min(group * 8u + (row >> 3u), last) * ${P(13)}, b);
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
      row_sums[lane] = ${sums('at')};
    }
    workgroupBarrier();`;

const FOUR = [0, 1, 2, 3];
const TWO = [0, 1];

/** Adds the products of one half of a block to the integers named `name`. */
function half(name, from) {
  const four = (q) => `vec4i(dot4(c.x, ${q}), dot4(c.y, ${q}), dot4(c.z, ${q}), dot4(c.w, ${q}))`;
  return `for (var j = ${from}u; j < ${from + 4}u; j++) {
      let at = j * 64u + 4u * rows;
      let c = vec4u(codes[at], codes[at + 1u], codes[at + 2u], codes[at + 3u]);
      ${TWO.map((i) => `${name}${i} += ${four(`row_codes[j * 32u + 2u * pair + ${i}u]`)};`).join(' ')}
    }`;
}

/** Adds a block to the results of row i of a lane. */
const addBlock = (i, layout) => `let x${i} = row_scales[2u * pair + ${i}u];
    let u${i} = row_sums[2u * pair + ${i}u];
    low${i} -= vec4i(OFFSET * u${i}.x);
    high${i} -= vec4i(OFFSET * u${i}.y);
    y${i} += k4(${wholeOf(layout, ['a', 'b2'], [`low${i}`, `high${i}`], '4')} * k4(d * x${i}));
    ${hasMins(layout) ? `m${i} += k4(vec4f(ma * u${i}.x + mb * u${i}.y) * k4(n * x${i}));` : ''}`;

const store = (i, mins) => `if (token + ${i}u < ${P(12)}) {
    for (var j = 0u; j < 4u; j++) {
      let row = group * 64u + 4u * rows + j;
      if (row < to.y) { finish(to, more, token + ${i}u, row, ${mins ? `y${i}[j] - m${i}[j]` : `y${i}[j]`}); }
    }
  }`;

/** A workgroup multiplies 64 rows of the matrix with 32 rows; a lane has 4 x 2 of the results. */
function tile({ layout, packed }) {
  const mins = hasMins(layout);
  const each = (type, list, of) => `${type}(${FOUR.map((i) => `${list}[4u * rows + ${i}u].${of}`).join(', ')})`;
  const names = ['y0', 'y1', ...(mins ? ['m0', 'm1'] : [])];
  return `${begin()}${ofPanels(layout, packed)}${FINISH}
var<workgroup> codes: array<u32, 512>;
var<workgroup> row_codes: array<u32, 256>;
var<workgroup> factor: array<vec2f, 64>;
var<workgroup> scale: array<vec4i, 64>;
var<workgroup> row_scales: array<f32, 32>;
var<workgroup> row_sums: array<vec2i, 32>;
${main(256)}
  let blocks = ${P(5)} / 32u;
  ${PART(64)}
  let last = (to.y - 1u) / 8u;
  let rows = lane & 15u;
  let pair = lane >> 4u;
  ${names.map((name) => `var ${name} = vec4f();`).join(' ')}
  for (var b = 0u; b < blocks; b++) {
    ${BRING}
    var low0 = vec4i(); var low1 = vec4i(); var high0 = vec4i(); var high1 = vec4i();
    ${half('low', 0)}
    ${half('high', 4)}
    let d = ${each('vec4f', 'factor', 'x')};
    let a = ${each('vec4i', 'scale', 'x')};
    let b2 = ${each('vec4i', 'scale', 'y')};
    ${mins ? `let n = ${each('vec4f', 'factor', 'y')};` : ''}
    ${mins ? `let ma = ${each('vec4i', 'scale', 'z')}; let mb = ${each('vec4i', 'scale', 'w')};` : ''}
    ${TWO.map((i) => addBlock(i, layout)).join('\n    ')}
    workgroupBarrier();
  }
  let token = wg.y * 32u + 2u * pair;
  ${TWO.map((i) => store(i, mins)).join('\n  ')}
}`;
}

/** Lanes for each row of the matrix, which add the columns in turn: one, so that they are added in order, or four. */
function floats({ layout, packed, fast }) {
  const each = fast ? 4 : 1;
  const rest = [1, 2, 3].slice(0, each - 1).map((i) => ` + parts[lane + ${8 * i}u]`).join('');
  return `${begin()}${ofPanels(layout, packed)}${FINISH}
var<workgroup> parts: array<f32, ${64 * each}>;
${main(64 * each)}
  ${PART(64)}
  let row = group * 64u + lane / ${8 * each}u * 8u + (lane & 7u);
  let first = lane / 8u % ${each}u;
  ${PANEL('(row >> 3u)')}
  let x = ${P(1)} + wg.y * ${P(5)};
  var y = 0.0;
  if (row < to.y && live) {
    for (var c = first; c < ${P(5)}; c += ${each}u) {
      y += k(${floatAt(layout, 'panel', '(row & 7u)', 'c')} * f(x + c));
    }
  }
  parts[lane] = y;
  workgroupBarrier();
  if (first == 0u && row < to.y && live) { finish(to, more, wg.y, row, parts[lane]${rest}); }
}`;
}

export const productShaders = { product, tile, floats };
