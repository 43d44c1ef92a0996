// SPDX-License-Identifier: MIT
// Work on long texts in steps of a millisecond at most, as generators: who has others to let in takes a few at a time
// (worker/turns.js), who has not takes them at once.

/** Letters of a text that are worked on in a step. */
export const PART = 2 ** 13;

/**
 * The result of some work, whose steps are all taken at once.
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

/** A place in a text, or the next one, where no character is cut. */
export function cutOf(text, at) {
  if (at >= text.length) return text.length;
  return isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1)) ? at + 1 : at;
}

/** A text whose parts are made into others. @param {string} text @param {(part: string) => string} make */
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
