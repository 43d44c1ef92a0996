// SPDX-License-Identifier: MIT
// Writes numbers with any number of digits, rounded as Python does: exactly, halves to even. A part of
// template-rare.js.

import { TemplateError } from './meter.js';
import { amount, exponentText, isFloat, pointed, special } from './numbers.js';

/** Splits a double exactly: `whole` times two to the power of `exponent`, which is at most 0. */
function parts(x) {
  let [whole, exponent] = [x, 0];
  while (!Number.isInteger(whole)) {
    whole *= 2 ** 32;
    exponent -= 32;
  }
  return [BigInt(whole), exponent];
}

/** a / b, rounded to nearest, halves to even; b is positive. */
function nearest(a, b) {
  const twice = 2n * (amount(a) % b);
  const quotient = amount(a) / b;
  const isUp = twice > b || (twice === b && quotient % 2n === 1n);
  const all = isUp ? quotient + 1n : quotient;
  return a < 0n ? -all : all;
}

/** x times ten to the power of `digits`, rounded to a whole number. */
function scaled(x, digits) {
  const [whole, exponent] = parts(x);
  const ten = 10n ** BigInt(Math.abs(digits));
  const half = 1n << BigInt(-exponent);
  return digits < 0 ? nearest(whole, half * ten) : nearest(whole * ten, half);
}

const minusOf = (x) => (x < 0 || Object.is(x, -0) ? '-' : '');

/** Writes x with this many digits after the point. */
export function fixedText(x, digits) {
  if (!Number.isFinite(x)) return special(x);
  const all = scaled(Math.abs(x), digits).toString().padStart(digits + 1, '0');
  return `${minusOf(x)}${digits ? pointed(all, all.length - digits) : all}`;
}

/** The first n digits of a number that is not negative, and its exponent. */
function digitsOf(x, n) {
  let exponent = x === 0 ? 0 : Number(/e(.*)$/.exec(x.toExponential())[1]);
  let all = scaled(x, n - 1 - exponent).toString();
  if (all.length > n) {
    exponent++;
    all = scaled(x, n - 1 - exponent).toString();
  }
  return [all.padStart(n, '0'), exponent];
}

/** Writes x with this many digits after the point and an exponent. */
export function exponentialText(x, digits) {
  if (!Number.isFinite(x)) return special(x);
  const [all, exponent] = digitsOf(Math.abs(x), digits + 1);
  return `${minusOf(x)}${all[0]}${digits ? `.${all.slice(1)}` : ''}${exponentText(exponent)}`;
}

/**
 * Writes x with this many digits in all, in the shorter form; `keeps` keeps zeros at the end. From the exponent `least`
 * on, the form has an exponent.
 */
export function generalText(x, digits, keeps = false, least = digits || 1) {
  if (!Number.isFinite(x)) return special(x);
  const n = digits || 1;
  const [all, exponent] = digitsOf(Math.abs(x), n);
  const kept = keeps ? all : all.replace(/(?<=.)0+$/, '');
  if (exponent < -4 || exponent >= least) {
    const more = kept.length > 1 ? `.${kept.slice(1)}` : keeps ? '.' : '';
    return `${minusOf(x)}${kept[0]}${more}${exponentText(exponent)}`;
  }
  const text = pointed(kept, exponent + 1);
  return minusOf(x) + (keeps && !text.includes('.') ? `${text}.` : text);
}

/** Python's round(x, digits). @param {number | bigint} x */
export function roundTo(x, digits) {
  if (!isFloat(x)) {
    const ten = 10n ** BigInt(Math.min(5000, Math.max(0, -digits)));
    return digits >= 0 ? x : nearest(x, ten) * ten;
  }
  if (!Number.isFinite(x) || digits > 323) return x;
  if (digits < -309) return x * 0;
  const all = Number(`${scaled(x, digits)}e${-digits}`);
  if (!Number.isFinite(all)) throw new TemplateError('a rounded number is too large for a float');
  return all === 0 ? x * 0 : all;
}
