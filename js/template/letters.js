// SPDX-License-Identifier: MIT
// Python's knowledge about letters: case, classes, white space. JavaScript has nearly the same, from the same Unicode
// tables.

const SPACE = /^[\s\x1c-\x1f\x85]$/;

/** str.isspace(); also the white space of strip() and split(). @param {string} letter one code point, here and below */
export const isSpace = (letter) => SPACE.test(letter) && letter !== '\ufeff';

const are = (pattern) => (letter) => pattern.test(letter);

export const isUpper = are(/^\p{Uppercase}$/u);
export const isLower = are(/^\p{Lowercase}$/u);
/** Whether repr() writes a letter as it is. */
export const isPrintable = (letter) => letter === ' ' || !/^[\p{C}\p{Z}]$/u.test(letter);

const CASED = /[\p{Lowercase}\p{Uppercase}\p{Lt}]/u;

/**
 * Letters whose form at the beginning of a word differs from the upper case; JavaScript does not have it. Georgian
 * letters have none.
 */
const TITLES = /^[\u01c4-\u01cc\u01f1-\u01f3]$/;
const SAME = /^[\u10d0-\u10ff]$/;
const IOTAS = /^[\u1f80-\u1f87\u1f90-\u1f97\u1fa0-\u1fa7\u1fb3\u1fc3\u1ff3]$/;

function titled(letter) {
  const point = letter.codePointAt(0);
  if (TITLES.test(letter)) return String.fromCodePoint(titlePoint(point));
  if (SAME.test(letter)) return letter;
  if (IOTAS.test(letter)) return String.fromCodePoint(point < 0x1fb0 ? point | 8 : point + 9);
  const upper = letter.toUpperCase();
  const [first, ...rest] = upper;
  return rest.length && CASED.test(first) ? first + rest.join('').toLowerCase() : upper;
}

/** Three forms follow each other: upper, title, lower. */
const titlePoint = (point) => (point >= 0x1f1 ? 0x1f2 : point - ((point - 0x1c4) % 3) + 1);

const RUNS = /[\p{Lowercase}\p{Uppercase}\p{Lt}]+/gu;
/** A continuation of a word, possibly after characters without case. */
const GOES_ON = /^[\p{M}'.:\xb7\u2019]*[\p{Lowercase}\p{Uppercase}\p{Lt}]/u;

/** Whether a word continues at a position; if not, a final sigma is written differently. */
const goesOn = (text, at) => GOES_ON.test(text.slice(at, at + 8));

/** The first letter in its title form, the others in lower case. */
function titleOf(word, at = 0, text = word) {
  const [first = ''] = word;
  const small = word.toLowerCase().slice(first.toLowerCase().length);
  return titled(first) + (goesOn(text, at + word.length) ? small.replace(/ς$/, 'σ') : small);
}

function swapped(letter, at, text) {
  const isLast = letter === 'Σ' && CASED.test(text[at - 1] ?? '') && !goesOn(text, at + 1);
  if (isLast) return 'ς';
  return isUpper(letter) ? letter.toLowerCase() : letter.toUpperCase();
}

/** @type {Record<string, (text: string) => string>} */
const CASES = {
  upper: (text) => text.toUpperCase(),
  lower: (text) => text.toLowerCase(),
  title: (text) => text.replace(RUNS, titleOf),
  capitalize: (text) => titleOf(text),
  swapcase: (text) => text.replace(/[\p{Lowercase}\p{Uppercase}]/gu, swapped),
  casefold: (text) =>
    Array.from(text, (letter) => (letter === 'ı' ? letter : letter.toUpperCase().toLowerCase()))
      .join('')
      .replaceAll('ς', 'σ'),
};

/** Python's upper(), lower(), title(), capitalize(), swapcase(), casefold(). */
export const changeCase = (text, how) => CASES[how](text);
