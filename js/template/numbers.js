// SPDX-License-Identifier: MIT
// Python's numbers: an int is a bigint, a float a number. Both languages use the shortest digits, but write them
// differently.

import { TemplateError } from './meter.js';
import { asNumber } from './values.js';

/** Most bits of a whole number; larger ones fail. */
const MOST_BITS = 2 ** 17;

const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

export const isFloat = (v) => typeof v === 'number';
export const amount = (v) => (v < 0n ? -v : v);
const bitsOf = (v) => (amount(v) <= SAFE ? 53 : 4 * amount(v).toString(16).length);

/** float(v) of a whole number. */
function real(v) {
  const x = Number(v);
  if (!Number.isFinite(x) && typeof v !== 'number')
    throw new TemplateError('a whole number is too large for a float');
  return x;
}

// --- writing ---

/** Inserts a point after the first `places` digits, with zeros if necessary. */
export function pointed(digits, places) {
  if (places <= 0) return `0.${'0'.repeat(-places)}${digits}`;
  if (places < digits.length) return `${digits.slice(0, places)}.${digits.slice(places)}`;
  return `${digits}${'0'.repeat(places - digits.length)}`;
}

export const exponentText = (exponent) => `e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;

export const special = (x) => (Number.isNaN(x) ? 'nan' : x > 0 ? 'inf' : '-inf');

/** repr() of a float: 1e+16, 0.1, -0.0. */
export function floatText(x) {
  if (!Number.isFinite(x)) return special(x);
  const [, sign, first, more = '', exponent] = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(x.toExponential());
  const minus = sign || Object.is(x, -0) ? '-' : '';
  const places = Number(exponent) + 1;
  if (places > 16 || places < -3) return `${minus}${first}${more && `.${more}`}${exponentText(places - 1)}`;
  const text = pointed(first + more, places);
  return `${minus}${text}${text.includes('.') ? '' : '.0'}`;
}

// --- reading ---

/**
 * Converts digits of all scripts to ASCII. Digits of a script are consecutive code points, so the value of a digit is
 * the number of digits directly before it, 9 at most.
 */
const latin = (text) =>
  text.replace(/\p{Nd}/gu, (letter) => {
    let value = 0;
    for (let point = letter.codePointAt(0) - 1; value < 9 && /\p{Nd}/u.test(String.fromCodePoint(point)); point--)
      value++;
    return value;
  });

/** Longer texts are not numbers in Python either, unless they have white space around them. */
const MOST_LETTERS = 5000;

/** Removes white space around a text, and single '_' between digits. */
function tidy(text) {
  if (text.length > MOST_LETTERS) return '';
  return latin(text.replace(/^(?:(?!\ufeff)[\s\x85])+|(?<![\s\x85])(?:(?!\ufeff)[\s\x85])+$/g, '')).replace(
    /(?<=[\da-z])_(?=[\da-z])/gi,
    '',
  );
}

const PREFIXES = { 2: 'b', 8: 'o', 16: 'x' };

/** Python's int(text, base); undefined if the text is not one. @returns {bigint | undefined} */
export function readInt(text, base) {
  const [, sign, prefix, rest] = /^([+-]?)(?:0([box])_?)?([\da-z]+)$/i.exec(tidy(text)) ?? [];
  if (rest === undefined || base === 1 || base > 36) return undefined;
  const own = Object.keys(PREFIXES).find((key) => PREFIXES[key] === prefix?.toLowerCase());
  const isPrefix = prefix && (base === 0 || Number(own) === base);
  const digits = prefix && !isPrefix ? `0${prefix}${rest}` : rest;
  const radix = isPrefix ? Number(own) : base || 10;
  if (base === 0 && !prefix && /^0+[1-9]/.test(digits)) return undefined;
  const all = wholeOf(digits.toLowerCase(), radix);
  return sign === '-' && all !== undefined ? -all : all;
}

function wholeOf(digits, radix) {
  if (radix === 10) return /^\d+$/.test(digits) && digits.length <= 4300 ? BigInt(digits) : undefined;
  let all = 0n;
  for (const digit of digits) {
    const value = parseInt(digit, 36);
    if (!(value < radix) || digits.length > MOST_BITS / 8) return undefined;
    all = all * BigInt(radix) + BigInt(value);
  }
  return all;
}

/** Python's float(text); undefined if the text is not one. @returns {number | undefined} */
export function readFloat(text) {
  const word = tidy(text);
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(word)) return Number(word);
  const [, sign, name] = /^([+-]?)(inf|infinity|nan)$/i.exec(word) ?? [];
  if (!name) return undefined;
  return name[0].toLowerCase() === 'n' ? NaN : sign === '-' ? -Infinity : Infinity;
}

// --- arithmetic ---

function withinBits(bits) {
  if (bits > MOST_BITS) throw new TemplateError('a whole number is too large');
}

function notZero(v) {
  if (Number(v) === 0) throw new TemplateError('division by zero');
}

/** a / b of whole numbers, rounded once. */
function quotient(a, b) {
  if (amount(a) <= SAFE && amount(b) <= SAFE) return Number(a) / Number(b);
  const shift = BigInt(Math.max(0, bitsOf(b) - bitsOf(a) + 120));
  const [much, by] = [amount(a) << shift, amount(b)];
  const sticky = much % by ? 1n : 0n;
  const x = Number(((much / by) << 1n) | sticky) / 2 ** (Number(shift) + 1);
  if (!Number.isFinite(x)) throw new TemplateError('a quotient is too large for a float');
  return (a < 0n) === (b < 0n) ? x : -x;
}

const INTS = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => {
    withinBits(bitsOf(a) + bitsOf(b) - 53);
    return a * b;
  },
  '/': quotient,
  '//': (a, b) => a / b - (a % b && (a < 0n) !== (b < 0n) ? 1n : 0n),
  '%': (a, b) => { const rest = a % b; return rest && (rest < 0n) !== (b < 0n) ? rest + b : rest; },
  '**': (a, b, meter) => {
    if (b < 0n) return FLOATS['**'](real(a), real(b));
    if (amount(a) < 2n) return b && (b % 2n || !a) ? a : 1n;
    const bits = amount(a).toString(2).length * Number(b);
    withinBits(bits);
    meter.count(bits / 32);
    return a ** b;
  },
};

const isAcross = (rest, b) => rest !== 0 && (rest < 0) !== (b < 0);

function modulo(a, b) {
  const rest = a % b;
  if (rest === 0) return b < 0 ? -0 : 0;
  return isAcross(rest, b) ? rest + b : rest;
}

function floorDivided(a, b) {
  const rest = a % b;
  const exact = (a - rest) / b - (isAcross(rest, b) ? 1 : 0);
  const floor = Math.floor(exact);
  if (exact === 0) return a / b < 0 || Object.is(a / b, -0) ? -0 : 0;
  return exact - floor > 0.5 ? floor + 1 : floor;
}

const FLOATS = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '//': floorDivided,
  '%': modulo,
  '**': (a, b) => {
    if (a === 0 && b < 0) notZero(0);
    if (a === 1) return 1;
    if (a < 0 && Number.isFinite(b) && !Number.isInteger(b) && Number.isFinite(a))
      throw new TemplateError('a power is not a real number');
    const x = a === -1 && !Number.isFinite(b) ? 1 : a ** b;
    if (!Number.isFinite(x) && Number.isFinite(a) && Number.isFinite(b))
      throw new TemplateError('a power is too large for a float');
    return x;
  },
};

/** Applies an operator (+ - * / // % **) to two numbers. */
export function arithmetic(meter, sign, a, b) {
  meter.count(1);
  const [one, other] = [asNumber(a), asNumber(b)];
  if (['/', '//', '%'].includes(sign)) notZero(other);
  if (isFloat(one) || isFloat(other)) return FLOATS[sign](real(one), real(other));
  const [x, y] = [bitsOf(one), bitsOf(other)];
  if (x + y > 106) meter.count((x + y) / 512 + (sign === '+' || sign === '-' ? 0 : (x * y) / 2 ** 20));
  return INTS[sign](one, other, meter);
}

