// SPDX-License-Identifier: MIT
// The kernels around attention, and those that choose experts, as WGSL. Pages have the bytes of src/compute/pages.h.

import { DIVIDE, EXP, HALVES, P, begin, main, reduce } from './numbers.js';

const F32 = 1;    // of enum kv_type

/** Words of one head in a page: two parts of notes for halves, then keys and values. */
const headWords = (dim, type) => (type === F32 ? 64 * dim : 16 + 32 * dim);
const keysAt = (type) => (type === F32 ? 0 : 16);
const valuesAt = (dim, type) => (type === F32 ? 32 * dim : 16 + 16 * dim);

const keyPlace = (position, column, dim) =>
  `((${position} / 16u * ${dim}u + (${column} & 7u) * ${dim / 8}u + (${column} >> 3u)) * 16u + (${position} & 15u))`;
const valuePlace = (position, column) => `((${column} >> 4u) * 512u + ${position} * 16u + (${column} & 15u))`;

/** A workgroup turns one head of one row. Pairs that are neighbours in the row are put half a head apart first. */
const rope = () => `${begin()}
var<workgroup> head: array<f32, 1024>;
${main(64)}
  let half = ${P(3)};
  let x = ${P(1)} + (wg.y * ${P(7)} + wg.x) * ${P(2)};
  for (var i = lane; i < half; i += 64u) {
    if (${P(6)} != 0u) {
      head[i] = f(x + 2u * i);
      head[half + i] = f(x + 2u * i + 1u);
    } else {
      head[i] = f(x + i);
      head[half + i] = f(x + half + i);
    }
  }
  workgroupBarrier();
  for (var i = lane; i < half; i += 64u) {
    let a = head[i];
    let b = head[half + i];
    if (${P(4)} != 0u) {
      let c = bitcast<f32>(t[${P(4)} + wg.y * half + i]);
      let d = bitcast<f32>(t[${P(5)} + wg.y * half + i]);
      put(x + i, k(a * c) - k(b * d));
      put(x + half + i, k(b * c) + k(a * d));
    } else {
      put(x + i, a);
      put(x + half + i, b);
    }
  }
}`;

/** A workgroup stores the key or the value of one head of one row. Two positions share a word, so words are atomic. */
function append({ dim, type }) {
  const head = `${begin('array<atomic<u32>>')}${HALVES}
var<workgroup> halves: array<u32, 256>;
fn set_part(word: u32, shift: u32, mask: u32, value: u32) {
  atomicAnd(&pages[word], ~(mask << shift));
  atomicOr(&pages[word], value << shift);
}
${main(64)}
  let row = ${P(3)} + 2u * wg.y;
  let index = t[row];
  let position = index & 31u;
  let isKey = wg.z == 0u;
  let x = select(${P(2)}, ${P(1)}, isKey) + (wg.y * ${P(4)} + wg.x) * ${dim}u;
  let at = t[t[row + 1u] + index / 32u] * ${P(5)} + wg.x * ${headWords(dim, type)}u;
  let part = at + select(${valuesAt(dim, type)}u, ${keysAt(type)}u, isKey);`;
  const place = (d) => `select(${valuePlace('position', d)}, ${keyPlace('position', d, dim)}, isKey)`;
  if (type === F32) {
    return `${head}
  for (var d = lane; d < ${dim}u; d += 64u) { atomicStore(&pages[part + ${place('d')}], s[x + d]); }
}`;
  }
  return `${head}
  for (var d = lane; d < ${dim}u; d += 64u) {
    let h = to_half(f(x + d));
    let place = ${place('d')};
    halves[d] = h;
    set_part(part + (place >> 1u), 16u * (place & 1u), 0xFFFFu, h);
  }
  workgroupBarrier();
  if (lane == 0u) {
    var count = 0u;
    for (var d = 0u; d < ${dim}u; d++) {
      let rest = halves[d] & 0x7FFFu;
      if (rest >= 0x7C00u) { count = 0x10000u; }
      if (rest > 0u && rest < 0x400u) { count++; }
    }
    set_part(at + select(8u, 0u, isKey) + (position >> 2u), 8u * (position & 3u), 255u, min(count, 255u));
  }
}`;
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
 *   scale: the factor of scores, as bits
 */
export const attention = (dim, { begin: before, page = '', key, value, scale }) => `${DIVIDE}${EXP}
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
  if (column < ${dim}u) { put(y + column, divide(all, all_sum)); }
}`;

function attend({ dim, type }) {
  const at = (base, place) =>
    type === F32 ? `bitcast<f32>(pages[${base} + ${place}])` : `half(pages[${base} + (${place} >> 1u)], ${place})`;
  return `${begin()}${HALVES}${attention(dim, {
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
  })}`;
}

/** One lane chooses the experts of one row: cpu_route() in src/compute/cpu/experts.c. */
const route = () => `${begin()}${DIVIDE}${EXP}
${main(1)}
  let n = ${P(2)};
  let used = ${P(3)};
  let x = ${P(1)} + wg.x * n;
  let place = ${P(4)} + wg.x * used;
  let share = ${P(5)} + wg.x * used;
  var most = f(x);
  for (var i = 1u; i < n; i++) { if (f(x + i) > most) { most = f(x + i); } }
  var sum = 0.0;
  for (var i = 0u; i < n; i++) {
    let e = power(k(f(x + i) - most));
    put(x + i, e);
    sum += e;
  }
  for (var i = 0u; i < n; i++) { put(x + i, divide(f(x + i), sum)); }
  for (var i = 0u; i < used; i++) {
    var best = n;
    for (var e = 0u; e < n; e++) {
      if (s[x + e] != 0xBF800000u && (best == n || f(x + e) > f(x + best))) { best = e; }
    }
    let value = s[x + best];
    s[x + best] = 0xBF800000u;
    var at = i;
    for (; at > 0u && s[place + at - 1u] > best; at--) {
      s[place + at] = s[place + at - 1u];
      s[share + at] = s[share + at - 1u];
    }
    s[place + at] = best;
    s[share + at] = value;
  }
  if (${P(6)} != 0u) {
    var total = 0.0;
    for (var i = 0u; i < used; i++) { total += f(share + i); }
    for (var i = 0u; i < used; i++) { put(share + i, divide(f(share + i), total)); }
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
