// SPDX-License-Identifier: MIT
// Checks of values for the rows of tables. A check is a function from a value to a description of the problem, or null.

import { QuernError, badParam, unknownName } from '../shared/errors.js';
import { VISION } from '../shared/options.js';

export const integer = (min, max) => (value) => (Number.isSafeInteger(value) && value >= min && value <= max
  ? null : `must be a whole number from ${min} to ${max === Number.MAX_SAFE_INTEGER ? '2^53-1' : max}`);
export const between = (min, max) => (value) => (typeof value === 'number' && value >= min && value <= max
  ? null : `must be a number from ${min} to ${max}`);
export const above = (min, max) => (value) => (typeof value === 'number' && value > min && value <= max
  ? null : `must be a number above ${min} and up to ${max}`);
export const oneOf = (...names) => (value) => (names.includes(value)
  ? null : `must be one of ${names.map((name) => (typeof name === 'string' ? `'${name}'` : name)).join(', ')}`);
export const ofType = (type, words) => (value) => (typeof value === type ? null : `must be ${words}`);

/** Options of images: resolution, and limits of pixels. */
export const DETAIL = oneOf('low', 'auto', 'high');
export const PIXELS = integer(VISION.maxPixels.least, VISION.maxPixels.most);

/** Most letters and values of a value that is given as JSON; parts that several objects share count each time. */
const MOST_SAID = 2 ** 22;

/**
 * Whether the fields of a value have all of its content. A Map, a date or a promise has no fields, as if it were empty.
 */
export const isFields = (value) => /^\[object (?:Object|Module)\]$/.test(Object.prototype.toString.call(value));

/** Letters that an element of an array counts for. */
const PLACE = 4;

/** Values nested more deeply are checked by JSON.stringify() itself. */
const DEEP = 500;

/** Whether JSON keeps all of an object; false for a Map and other objects whose content JSON would silently drop. */
export function isPlain(value) {
  const parent = Object.getPrototypeOf(value);
  return Array.isArray(value) || !parent || !Object.getPrototypeOf(parent);
}

/**
 * Subtracts the letters and values of a value from `left`, counting as asJson() does; -Infinity if something is not
 * plain, or nested too deeply.
 */
function leftOf(value, left, depth = 0) {
  if (typeof value === 'string') return left - value.length;
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return left;
  if (typeof value !== 'object' || depth > DEEP || !isPlain(value) || value.toJSON) return -Infinity;
  if (!Array.isArray(value))
    for (const key in value) if ((left = leftOf(value[key], left - 1 - key.length, depth + 1)) < 0) return left;
  if (Array.isArray(value)) for (const one of value) if ((left = leftOf(one, left - PLACE, depth + 1)) < 0) return left;
  return left;
}

/**
 * Converts a value to JSON; throws if JSON would not keep all of it. A plain value is written directly, in a tenth of
 * the time.
 */
export function asJson(value) {
  const left = leftOf(value, MOST_SAID);
  const tooMuch = new RangeError(`it has more than ${MOST_SAID} letters`);
  if (left >= 0) return JSON.stringify(value);
  if (left > -Infinity) throw tooMuch;
  let said = 0;
  return JSON.stringify(value, (key, one) => {
    said += 1 + key.length + (typeof one === 'string' ? one.length : 0);
    if (said > MOST_SAID) throw tooMuch;
    const isOdd = typeof one === 'object' ? one && !isPlain(one) : typeof one === 'function' || typeof one === 'symbol';
    if (isOdd) throw new TypeError(`'${key.slice(0, 40)}' is not plain JSON`);
    return one;
  });
}

/** Copies a value through JSON; throws if JSON would not keep all of it. */
export const copied = (value) => (value === undefined ? value : JSON.parse(asJson(value)));

/**
 * Reads a property of the caller's object, whose getter may throw.
 * @param {(value: any) => any} [take] converts the value
 */
export function read(object, key, path, take = (value) => value) {
  try {
    return take(object[key]);
  } catch (error) {
    if (error instanceof QuernError) throw error;
    throw Object.assign(badParam(path, `cannot be read (${String(error?.message ?? error).slice(0, 100)})`), {
      cause: error,
    });
  }
}

/**
 * Returns a checked copy of the fields that are present; null counts as not given.
 * @param {Record<string, ((value: any) => string | null) & {take?: (value: any) => any}>} table the check of each
 *   field, and a conversion of its value
 * @param {string} [what] word for the fields in errors
 * @param {string[]} [others] names that are ignored
 */
export function checkFields(value, table, path, what = 'option', others = []) {
  const copy = {};
  for (const key of Object.keys(value)) {
    if (others.includes(key)) continue;
    const name = `${path}.${key.slice(0, 64)}`;
    if (!Object.hasOwn(table, key)) throw unknownName(name, Object.keys(table), what);
    const found = read(value, key, name, table[key].take);
    const problem = found != null && table[key](found);
    if (problem) throw badParam(name, problem);
    if (found != null) copy[key] = found;
  }
  return copy;
}
