// SPDX-License-Identifier: MIT
// Adds the tokens that a model's file wants before and behind a plain text (facts.added). A chat's template writes its
// own tokens.

/**
 * @param {Int32Array} ids
 * @param {{before?: ArrayLike<number>, after?: ArrayLike<number>}} added
 * @returns {Int32Array}
 */
export function around(ids, { before = [], after = [] }) {
  if (before.length + after.length === 0) return ids;
  const all = new Int32Array(before.length + ids.length + after.length);
  all.set(before);
  all.set(ids, before.length);
  all.set(after, before.length + ids.length);
  return all;
}
