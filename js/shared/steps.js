// SPDX-License-Identifier: MIT
// Work on long texts in steps of at most a millisecond, as generators. Code that must let others run takes a few steps
// at a time (worker/turns.js); other code takes all of them at once.

/** Letters of a text that are processed in one step. */
export const PART = 2 ** 13;

/**
 * Takes all steps of some work at once and returns its result.
 * @template T
 * @param {Iterator<unknown, T, void>} steps
 * @returns {T}
 */
export function atOnce(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return /** @type {T} */ (value);
  }
}

const isHigh = (unit) => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit) => unit >= 0xdc00 && unit < 0xe000;

/** The position in a text, or the next one, where no character is cut. */
export function cutOf(text, at) {
  if (at >= text.length) return text.length;
  return isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1)) ? at + 1 : at;
}

/** Converts a text part by part. @param {string} text @param {(part: string) => string} make */
export function* mapParts(text, make) {
  if (text.length <= PART) return make(text);
  const parts = [];
  for (let at = 0, end; at < text.length; at = end) {
    end = cutOf(text, at + PART);
    parts.push(make(text.slice(at, end)));
    yield;
  }
  return parts.join('');
}
