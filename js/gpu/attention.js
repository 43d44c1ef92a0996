// SPDX-License-Identifier: MIT
// The kernels around attention, and those that choose experts, as WGSL. Pages have the bytes of src/compute/pages.h.

import { DIVIDE, EXP, HALVES, P, begin, inverseRoot, main, reduce } from './numbers.js';
import { quantized, quantizing } from './quantize.js';

const F32 = 1;    // of enum kv_type

/** Words of one head in a page: two parts of notes for halves, then keys and values. */
const headWords = (dim, type) => (type === F32 ? 64 * dim : 16 + 32 * dim);
const keysAt = (type) => (type === F32 ? 0 : 16);
const valuesAt = (dim, type) => (type === F32 ? 32 * dim : 16 + 16 * dim);

const keyPlace = (position, column, dim) =>
  `((${position} / 16u * ${dim}u + (${column} & 7u) * ${dim / 8}u + (${column} >> 3u)) * 16u + (${position} & 15u))`;
const valuePlace = (position, column) => `((${column} >> 4u) * 512u + ${position} * 16u + (${column} & 15u))`;

/**
 * A workgroup norms and turns one head of q or k of one row, and stores heads of k and v in the cache. Pairs that are
 * neighbours in the row are put half a head apart first.
 * @param {string} pages the type of the pages' words
 * @param {{functions?: string, begin?: string, store?: string, end?: string}} [cache] WGSL that stores: functions; what
 *   comes before and after all columns; what is done with column i, whose value is x
 */
const turning = (pages, { functions = '', begin: before = '', store = '', end = '' } = {}) => `${begin(pages)}${DIVIDE}
var<workgroup> head: array<f32, 1024>;
var<workgroup> sums: array<f32, 8>;
${functions}
${main(64)}
  let n = ${P(2)};
  let all = ${P(7)} + ${P(11)};
  let isQuery = wg.x < ${P(7)};
  let isValue = wg.x >= all;
  let number = wg.x - select(select(${P(7)}, 0u, isQuery), all, isValue);
  let heads = select(${P(11)}, ${P(7)}, isQuery);
  let y = select(select(${P(10)}, ${P(1)}, isQuery), ${P(13)}, isValue) + (wg.y * heads + number) * n;
  let gain = select(select(${P(12)}, ${P(8)}, isQuery), 0u, isValue);
  let half = select(${P(3)}, 0u, isValue);
  ${before}
  for (var i = lane; i < n; i += 64u) { head[i] = f(y + i); }
  workgroupBarrier();
  if (gain != 0u) {
    if (lane < 8u) {
      var sum = 0.0;
      for (var i = lane; i < n; i += 8u) { sum += k(head[i] * head[i]); }
      sums[lane] = sum;
    }
    workgroupBarrier();
    let scale = ${inverseRoot(reduce((i) => `sums[${i}]`), 'n', P(9))};
    for (var i = lane; i < n; i += 64u) { head[i] = k(k(head[i] * scale) * bits(w[gain - 1u + i])); }
    workgroupBarrier();
  }
  for (var i = lane; i < n; i += 64u) {
    var x = head[i];
    if (i < 2u * half) {
      let pair = select(i, i - half, i >= half);
      let first = select(pair, 2u * pair, ${P(6)} != 0u);
      let second = select(half + pair, 2u * pair + 1u, ${P(6)} != 0u);
      x = head[select(first, second, i >= half)];
      if (${P(4)} != 0u) {
        let c = bitcast<f32>(t[${P(4)} + wg.y * half + pair]);
        let d = bitcast<f32>(t[${P(5)} + wg.y * half + pair]);
        if (i < half) { x = k(x * c) - k(head[second] * d); } else { x = k(x * c) + k(head[first] * d); }
      }
    }
    if (!isValue) { put(y + i, x); }
    ${store}
  }
  ${end}
}`;

const rope = () => turning('array<u32>');

/** Two positions share a word of halves, so words are atomic. */
const NOTES = `
var<workgroup> subnormal: atomic<u32>;
var<workgroup> infinite: atomic<u32>;
fn set_part(word: u32, shift: u32, mask: u32, value: u32) {
  atomicAnd(&pages[word], ~(mask << shift));
  atomicOr(&pages[word], value << shift);
}`;

/** The same for layers with a cache. */
function append({ dim, type }) {
  const before = `let row = ${P(14)} + 2u * wg.y;
  let index = t[row];
  let position = index & 31u;
  let at = t[t[row + 1u] + index / 32u] * ${P(15)} + number * ${headWords(dim, type)}u;
  let part = at + select(${keysAt(type)}u, ${valuesAt(dim, type)}u, isValue);`;
  const place = `select(${keyPlace('position', 'i', dim)}, ${valuePlace('position', 'i')}, isValue)`;
  if (type === F32) {
    const store = `if (!isQuery) { atomicStore(&pages[part + ${place}], bitcast<u32>(x)); }`;
    return turning('array<atomic<u32>>', { begin: before, store });
  }
  return turning('array<atomic<u32>>', {
    functions: `${HALVES}${NOTES}`,
    begin: before,
    store: `if (!isQuery) {
      let h = to_half(x);
      let place = ${place};
      set_part(part + (place >> 1u), 16u * (place & 1u), 0xFFFFu, h);
      let rest = h & 0x7FFFu;
      if (rest >= 0x7C00u) { atomicStore(&infinite, 1u); }
      if (rest > 0u && rest < 0x400u) { atomicAdd(&subnormal, 1u); }
    }`,
    end: `workgroupBarrier();
  if (lane == 0u && !isQuery) {
    let count = select(min(atomicLoad(&subnormal), 255u), 255u, atomicLoad(&infinite) != 0u);
    set_part(at + select(0u, 8u, isValue) + (position >> 2u), 8u * (position & 3u), 255u, count);
  }`,
  });
}

/** The scores of a page become weights of the softmax so far. */
const SOFTEN = `      var most = scores[0];
      for (var i = 1u; i < seen; i++) { if (scores[i] > most) { most = scores[i]; } }
      if (base == first) {
        top = most;
      } else if (most > top) {
        let shrink = power(k(top - most));
        sum = k(sum * shrink);
        out = k(out * shrink);
        top = most;
      }
      workgroupBarrier();
      if (lane < seen) { scores[lane] = power(k(scores[lane] - top)); }
      workgroupBarrier();`;

/** The softmax of 512 positions joins those before. */
const MERGE = `    if (first == 0u) {
      all_top = top; all_sum = sum; all = out;
    } else {
      let most = select(top, all_top, all_top > top);
      let a = power(k(all_top - most));
      let b = power(k(top - most));
      all_sum = k(all_sum * a) + k(sum * b);
      all = k(all * a) + k(out * b);
      all_top = most;
    }`;

/**
 * Attention of one query in a workgroup: 32 positions x 8 partial sums of a score at a time, then a lane for each
 * column. After each 512 positions a new softmax begins, and they are merged in order.
 * @param {number} dim columns of a head
 * @param {object} how begin: WGSL that sets length, the place x of the query, y of the result, and the lane's column;
 *   page: what it sets for the 32 positions from `base` on; key, value: one of them, of position and column;
 *   scale: the factor of scores, as bits; end: what follows with `out`, the result of the lane's column
 */
export const attention = (dim, { begin: before, page = '', key, value, scale, end = '' }) => `${DIVIDE}${EXP}
var<workgroup> query: array<f32, ${dim}>;
var<workgroup> parts: array<f32, 256>;
var<workgroup> scores: array<f32, 32>;
${main(256)}
  ${before}
  for (var c = lane; c < ${dim}u; c += 256u) { query[c] = f(x + c); }
  workgroupBarrier();
  let position = lane & 31u;
  var all_top = 0.0; var all_sum = 0.0; var all = 0.0;
  for (var first = 0u; first < length; first += 512u) {
    var top = 0.0; var sum = 0.0; var out = 0.0;
    let end = min(length, first + 512u);
    for (var base = first; base < end; base += 32u) {
      let seen = min(32u, end - base);
      ${page}
      if (position < seen) {
        var part = 0.0;
        for (var c = lane >> 5u; c < ${dim}u; c += 8u) { part += k(query[c] * ${key('position', 'c')}); }
        parts[lane] = part;
      }
      workgroupBarrier();
      if (lane < seen) { scores[lane] = k(${reduce((i) => `parts[${32 * i}u + lane]`)} * bits(${scale})); }
      workgroupBarrier();
${SOFTEN}
      if (column < ${dim}u) {
        for (var i = 0u; i < seen; i++) {
          sum += scores[i];
          out += k(scores[i] * ${value('i', 'column')});
        }
      }
      workgroupBarrier();
    }
${MERGE}
  }
  let out = divide(all, all_sum);
  if (column < ${dim}u) { put(y + column, out); }
  ${end}
}`;

function attend({ dim, type }) {
  const at = (base, place) =>
    type === F32 ? `bitcast<f32>(pages[${base} + ${place}])` : `half(pages[${base} + (${place} >> 1u)], ${place})`;
  return `${begin()}${HALVES}${quantizing(256)}${attention(dim, {
    begin: `let row = ${P(3)} + 2u * wg.y;
  let length = t[row] + 1u;
  let table = t[row + 1u];
  let head = wg.x / (${P(4)} / ${P(5)});
  let from_start = (wg.y * ${P(4)} + wg.x) * ${dim}u;
  let x = ${P(2)} + from_start;
  let y = ${P(1)} + from_start;
  let column = lane;`,
    page: `let page = t[table + base / 32u] * ${P(6)} + head * ${headWords(dim, type)}u;`,
    key: (position, c) => at(`page + ${keysAt(type)}u`, keyPlace(position, c, dim)),
    value: (position, c) => at(`page + ${valuesAt(dim, type)}u`, valuePlace(position, c)),
    scale: P(7),
    end: quantized('from_start + column', 'out', `column < ${dim}u`),
  })}`;
}

/**
 * A workgroup chooses the experts of one row: cpu_route() in src/compute/cpu/experts.c. One lane adds. A lane for each
 * expert counts those with a larger share, and then the chosen ones before it. If one share is NaN, all are, and the
 * first experts are chosen. A single row's places are in order.
 */
const route = () => `${begin()}${DIVIDE}${EXP}
var<workgroup> scores: array<f32, 1024>;
var<workgroup> chosen: array<u32, 1024>;
var<workgroup> shares: array<f32, 1024>;
var<workgroup> total: f32;
${main(64)}
  let n = ${P(2)};
  let used = ${P(3)};
  let x = ${P(1)} + wg.x * n;
  let place = ${P(4)} + wg.x * used;
  let share = ${P(5)} + wg.x * used;
  for (var e = lane; e < n; e += 64u) { scores[e] = f(x + e); }
  workgroupBarrier();
  var most = scores[0];
  for (var e = 1u; e < n; e++) { if (scores[e] > most) { most = scores[e]; } }
  workgroupBarrier();
  for (var e = lane; e < n; e += 64u) { scores[e] = power(k(scores[e] - most)); }
  workgroupBarrier();
  if (lane == 0u) {
    var sum = 0.0;
    for (var e = 0u; e < n; e++) { sum += scores[e]; }
    total = sum;
  }
  workgroupBarrier();
  for (var e = lane; e < n; e += 64u) { scores[e] = divide(scores[e], total); }
  workgroupBarrier();
  for (var e = lane; e < n; e += 64u) {
    var before = 0u;
    for (var i = 0u; i < n; i++) {
      if (scores[i] > scores[e] || (i < e && !(scores[e] > scores[i]))) { before++; }
    }
    chosen[e] = select(0u, 1u, before < used);
  }
  workgroupBarrier();
  for (var e = lane; e < n; e += 64u) {
    if (chosen[e] == 0u) { continue; }
    var at = 0u;
    for (var i = 0u; i < e; i++) { at += chosen[i]; }
    shares[at] = scores[e];
    s[place + at] = select(e, at, ${P(7)} != 0u);
    if (${P(7)} != 0u) { s[${P(7)} + at] = e; }
  }
  workgroupBarrier();
  if (lane == 0u && ${P(6)} != 0u) {
    var sum = 0.0;
    for (var i = 0u; i < used; i++) { sum += shares[i]; }
    total = sum;
  }
  workgroupBarrier();
  for (var i = lane; i < used; i += 64u) {
    if (${P(6)} != 0u) { put(share + i, divide(shares[i], total)); } else { put(share + i, shares[i]); }
  }
}`;

/** Experts become places, ordered by expert, then by row; and of each place its expert. */
const places = () => `${begin()}
${main(1)}
  let first = ${P(1)};
  let n = ${P(2)};
  for (var e = 0u; e <= n; e++) { s[first + e] = 0u; }
  for (var i = 0u; i < ${P(3)}; i++) { s[first + s[${P(4)} + i] + 1u]++; }
  for (var e = 0u; e < n; e++) { s[first + e + 1u] += s[first + e]; }
  for (var i = 0u; i < ${P(3)}; i++) {
    let e = s[${P(4)} + i];
    let at = s[first + e];
    s[first + e] = at + 1u;
    s[${P(4)} + i] = at;
    s[${P(5)} + at] = e;
  }
  for (var e = n; e > 0u; e--) { s[first + e] = s[first + e - 1u]; }
  s[first] = 0u;
}`;

export const attentionShaders = { rope, append, attend, route, places };
