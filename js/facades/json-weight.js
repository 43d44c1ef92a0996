// SPDX-License-Identifier: MIT
// Estimates the work of processing JSON from its bytes, before it is parsed. A megabyte of one text costs a
// millisecond, a megabyte of names a quarter of a second; converting the values costs as much again.

const [QUOTE, BACKSLASH] = [0x22, 0x5c];

/**
 * Weights of bytes outside of texts: a value (the comma before it) is 1, a text 2 more, an array or object 4, a name 14
 * in addition to its text.
 */
const WEIGHTS = new Uint8Array(256);
for (const [letter, weight] of Object.entries({ ',': 1, '"': 2, '[': 4, '{': 4, ':': 14 }))
  WEIGHTS[letter.charCodeAt(0)] = weight;

/**
 * Half a million numbers, or 30,000 names with values: at most a tenth of a second each for parsing and for converting.
 */
export const MOST_WEIGHT = 2 ** 19;

/** Weighs JSON that comes in pieces. */
export class JsonWeight {
  #isText = false;
  #isEscaped = false;

  /** The weight so far. */
  sum = 0;

  /** @param {Uint8Array} bytes the next ones @returns {number} the sum */
  add(bytes) {
    let { sum } = this;
    let isText = this.#isText;
    let at = this.#isEscaped ? 1 : 0;
    for (; at < bytes.length; at++) {
      const byte = bytes[at];
      if (!isText) sum += WEIGHTS[byte];
      if (byte === QUOTE) isText = !isText;
      else if (isText && byte === BACKSLASH) at++;
    }
    this.#isEscaped = at > bytes.length;
    this.#isText = isText;
    this.sum = sum;
    return sum;
  }
}

/** @param {string} text JSON */
export const weightOf = (text) => new JsonWeight().add(new TextEncoder().encode(text));
