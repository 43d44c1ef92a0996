// SPDX-License-Identifier: MIT
// Vectors and ranks without a model: texts with common words have similar vectors, and a document ranks by the share of
// the query's words in it.

const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** FNV-1a. */
function hashOf(word) {
  let hash = 0x811c9dc5;
  for (const letter of word) hash = Math.imul(hash ^ letter.codePointAt(0), 0x01000193) >>> 0;
  return hash;
}

/** @returns {Float32Array} the first `dimensions` of `dim` numbers */
export function vectorOf(text, dim, dimensions, normalize) {
  const all = new Float32Array(dim);
  all[0] = 1;     // also for a text without words
  for (const word of wordsOf(text)) {
    const hash = hashOf(word);
    all[hash % dim] += hash & 0x10000 ? 1 : -1;
  }
  const vector = all.slice(0, dimensions);
  const length = Math.hypot(...vector) || 1;
  return normalize ? vector.map((value) => value / length) : vector;
}

/** @returns {number} the share of the query's words that the document has, 0 to 1 */
export function rankOf(query, document) {
  const wanted = new Set(wordsOf(query));
  const found = new Set(wordsOf(document));
  return wanted.size ? [...wanted].filter((word) => found.has(word)).length / wanted.size : 0;
}
