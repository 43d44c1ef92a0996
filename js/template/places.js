// SPDX-License-Identifier: MIT
// Places for values in texts: width, padding, and the form of numbers. A part of template-rare.js.

import { exponentialText, fixedText, generalText } from './digits.js';
import { floatText } from './numbers.js';
import { escaped, intText, repr, str } from './repr.js';
import { fail } from './texts.js';
import { letterCount, letters } from './values.js';

/** Most letters of padding. */
const MOST_WIDTH = 2 ** 24;

/**
 * @typedef {object} Spec
 * @property {string} fill
 * @property {string} align '<', '>', '^', or '=': padding after the sign
 * @property {string} sign '+', ' ' or ''
 * @property {string} group ',', '_' or ''
 * @property {string} type
 * @property {boolean} alternate '#'
 * @property {boolean} positive whether -0 is written as 0
 * @property {number} width
 * @property {number} precision -1: not given
 * @property {number} least least digits of a whole number
 */
const PLAIN = {
  fill: ' ',
  align: '',
  sign: '',
  group: '',
  type: '',
  alternate: false,
  positive: false,
  width: 0,
  precision: -1,
  least: 0,
};

export const spec = (given) => ({ ...PLAIN, ...given });

// --- filling a place ---

/** @param {string} head a sign and a prefix */
export function put(meter, { fill, align, width }, text, head = '') {
  const room = Math.max(0, width - letterCount(meter, head + text));
  if (room > MOST_WIDTH) fail('a width is too large');
  meter.count((room + text.length) >> 6);
  const left = align === '<' ? 0 : align === '^' ? room >> 1 : room;
  const rest = fill.repeat(room - left);
  return align === '=' ? head + fill.repeat(left) + text + rest : fill.repeat(left) + head + text + rest;
}

export function putText(meter, s, text) {
  const isCut = s.precision >= 0 && s.precision < letterCount(meter, text);
  return put(meter, s, isCut ? letters(meter, text).slice(0, s.precision).join('') : text);
}

export function putLetter(meter, s, v) {
  if (v < 0n || v > 0x10ffffn) fail('a number is not a code point');
  return put(meter, s, String.fromCodePoint(Number(v)));
}

const BASES = { b: 2, o: 8, x: 16, X: 16 };

function realText(x, { type, precision, alternate }) {
  const digits = precision < 0 ? 6 : precision;
  if (digits > 5000) fail('a precision is too large');
  const withPoint = (text) =>
    alternate && Number.isFinite(x) && !text.includes('.') ? text.replace(/(?=e|$)/, '.') : text;
  switch (type.toLowerCase()) {
    case '': return precision < 0 ? floatText(x) : dotted(x, precision || 1, alternate);
    case 'e': return withPoint(exponentialText(x, digits));
    case 'f': return withPoint(fixedText(x, digits));
    case '%': return `${withPoint(fixedText(x * 100, digits))}%`;
    default: return generalText(x, digits, alternate);
  }
}

/** Without a type: as 'g', but with a digit after the point, and with an exponent if more digits would be needed. */
function dotted(x, precision, keeps) {
  const text = generalText(x, precision, keeps, precision - 1 || 1);
  const isBare = Number.isFinite(x) && !/[.e]/.test(text);
  return isBare ? `${text}.0` : text;
}

function grouped(digits, { group, fill, align, width }, size, others) {
  if (!group) return digits;
  let all = digits;
  while (fill === '0' && align === '=' && all.length + Math.floor((all.length - 1) / size) < width - others)
    all = `0${all}`;
  const parts = [];
  for (let end = all.length; end > 0; end -= size) parts.push(all.slice(Math.max(0, end - size), end));
  return parts.reverse().join(group);
}

export function putNumber(meter, s, v, isReal) {
  const base = isReal ? 10 : BASES[s.type] ?? 10;
  const whole = isReal ? 0n : typeof v === 'number' ? BigInt(Math.trunc(v)) : v;
  const lower = isReal ? realText(Number(v), s) : base === 10 ? intText(meter, whole) : whole.toString(base);
  meter.count(lower.length);
  const text = /[A-Z]/.test(s.type) ? lower.toUpperCase() : lower;
  const isNegative = text.startsWith('-');
  const bare = isNegative ? text.slice(1) : text;
  const isNothing = s.positive && !/[1-9]/.test(bare.replace(/e.*/i, ''));
  const sign = isNegative && !isNothing ? '-' : s.sign;
  const head = sign + (s.alternate && base !== 10 ? `0${s.type}` : '');
  const [digits] = isReal ? /^\d*/.exec(bare) : [bare];
  const rest = bare.slice(digits.length);
  if (s.width > MOST_WIDTH || s.least > MOST_WIDTH) fail('a width is too large');
  meter.count(s.width + s.least);
  const filled = digits && grouped(digits.padStart(s.least, '0'), s, base === 10 ? 3 : 4, head.length + rest.length);
  return put(meter, s, filled + rest, head);
}

const ascii = (text) => text.replace(/[^\0-\x7f]/gu, escaped);     // eslint-disable-line no-control-regex

/** Converts a value as %s, %r and %a, or !s, !r and !a do. */
export function converted(meter, v, how) {
  if (how === 's') return str(meter, v);
  const text = repr(meter, v);
  meter.count(text.length >> 1);
  return how === 'a' ? ascii(text) : text;
}
