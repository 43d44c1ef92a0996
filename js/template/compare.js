// SPDX-License-Identifier: MIT
// Python's operations on values: truth, length, order, membership. Work that grows with the values is counted.

import { TemplateError } from './meter.js';
import {
  Dict, Generator, Range, Safe, Tuple, Undefined, View, asNumber, isKey, isNumber, isSequence, isText, itemsOf,
  letterCount, letters, textOf, typeName, viewItems,
} from './values.js';

/** Most levels of nested values. */
const DEPTH = 128;

export function truth(v) {
  if (v === null || v instanceof Undefined) return false;
  if (typeof v !== 'object') return Boolean(v);
  if (Array.isArray(v) || v instanceof Range) return v.length > 0;
  if (v instanceof Tuple) return v.items.length > 0;
  if (v instanceof Safe) return v.text !== '';
  if (v instanceof Dict) return v.size > 0;
  return !(v instanceof View) || v.dict.size > 0;
}

export function lengthOf(meter, v) {
  if (isText(v)) return letterCount(meter, textOf(v));
  if (isSequence(v)) return itemsOf(v).length;
  if (v instanceof Dict) return v.size;
  if (v instanceof View) return v.dict.size;
  if (v instanceof Range) return v.length;
  if (v instanceof Undefined) return 0;
  if (v?.items && v.isComplete !== undefined) return v.items.length;
  throw new TemplateError(`a value of the type '${typeName(v)}' has no length`);
}

export const within = (depth) => {
  if (depth > DEPTH) throw new TemplateError('values are nested too deep');
};

function equalItems(meter, a, b, depth) {
  meter.count(Math.min(a.length, b.length) >> 3);
  return a.length === b.length && a.every((one, i) => one === b[i] || equal(meter, one, b[i], depth));
}

function equalDicts(meter, a, b, depth) {
  meter.count(a.size);
  return a.size === b.size && a.entries().every(([key, one]) => {
    const other = b.get(key);
    return other !== undefined && (one === other || equal(meter, one, other, depth));
  });
}

/** Returns a == b. */
export function equal(meter, a, b, depth = 0) {
  within(depth);
  meter.count(1);
  if (isNumber(a) && isNumber(b)) return asNumber(a) == asNumber(b);     // eslint-disable-line eqeqeq
  if (isText(a) && isText(b)) {
    const [one, other] = [textOf(a), textOf(b)];
    if (one.length === other.length) meter.count(one.length >> 6);
    return one === other;
  }
  if (Array.isArray(a)) return Array.isArray(b) && equalItems(meter, a, b, depth + 1);
  if (a instanceof Tuple) return b instanceof Tuple && equalItems(meter, a.items, b.items, depth + 1);
  if (a instanceof Dict) return b instanceof Dict && equalDicts(meter, a, b, depth + 1);
  if (a instanceof Undefined) return b instanceof Undefined;
  if (a instanceof View && b instanceof View && a.kind !== 'values' && a.kind === b.kind) {
    return a.dict.size === b.dict.size && viewItems(a).every((one) => contains(meter, b, one));
  }
  if (a instanceof Range && b instanceof Range) {
    return a.length === b.length && (!a.length || (a.start === b.start && (a.length === 1 || a.step === b.step)));
  }
  return a === b;
}

const order = (a, b) => (a < b ? -1 : a > b ? 1 : a == b ? 0 : NaN);     // eslint-disable-line eqeqeq

/** Compares as Python does, by code points: a surrogate pair is above everything else. */
function orderTexts(a, b) {
  let i = 0;
  const n = Math.min(a.length, b.length);
  while (i < n && a[i] === b[i]) i++;
  if (i === n) return order(a.length, b.length);
  const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
  const isPair = (unit) => unit >= 0xd800 && unit < 0xe000;
  return isPair(x) === isPair(y) ? order(x, y) : isPair(x) ? 1 : -1;
}

/**
 * Returns -1, 0 or 1, or NaN if neither is smaller. Throws for values that Python cannot compare, with the sign in the
 * message.
 */
export function compare(meter, a, b, sign, depth = 0) {
  within(depth);
  meter.count(1);
  if (isNumber(a) && isNumber(b)) return order(asNumber(a), asNumber(b));
  if (isText(a) && isText(b)) {
    const [one, other] = [textOf(a), textOf(b)];
    meter.count(Math.min(one.length, other.length) >> 6);
    return orderTexts(one, other);
  }
  if (!isSequence(a) || typeName(a) !== typeName(b)) {
    throw new TemplateError(`'${sign}' is not supported between '${typeName(a)}' and '${typeName(b)}'`);
  }
  const [all, others] = [itemsOf(a), itemsOf(b)];
  const n = Math.min(all.length, others.length);
  meter.count(n >> 3);
  for (let i = 0; i < n; i++) {
    if (all[i] !== others[i] && !equal(meter, all[i], others[i], depth + 1))
      return compare(meter, all[i], others[i], sign, depth + 1);
  }
  return order(all.length, others.length);
}

const nothingIn = (v) => new TemplateError(`a value of the type '${typeName(v)}' cannot be iterated`);

/** Returns the items of a value; of a generator the remaining ones, which are then used up. @returns {any[]} */
export function walk(meter, v) {
  if (isText(v)) return letters(meter, textOf(v));
  meter.count(
    v instanceof Dict ? v.size : v instanceof View ? 2 * v.dict.size : v instanceof Range ? v.length >> 2 : 0,
  );
  const items = walked(v);
  if (!(v instanceof Range)) meter.count(items.length >> 3);
  return items;
}

function walked(v) {
  if (isSequence(v)) return itemsOf(v);
  if (v instanceof Dict) return v.keys();
  if (v instanceof View) return viewItems(v);
  if (v instanceof Range) return Array.from({ length: v.length }, (_, i) => BigInt(v.start + i * v.step));
  if (v instanceof Undefined) return [];
  if (!(v instanceof Generator)) throw nothingIn(v);
  const rest = v.items.slice(v.at);
  v.at = v.items.length;
  return rest;
}

/** Counts a search: it may compare the whole part at each letter of the text. */
export function countSearch(meter, text, part) {
  if (part.length <= text.length) meter.count((text.length * part.length) / 1024);
}

/** Returns `one in all`. */
export function contains(meter, all, one) {
  if (isText(all)) {
    if (!isText(one)) throw new TemplateError(`only a text can be in a text, not '${typeName(one)}'`);
    meter.count(textOf(all).length >> 6);
    countSearch(meter, textOf(all), textOf(one));
    return textOf(all).includes(textOf(one));
  }
  if (all instanceof Dict || (all instanceof View && all.kind === 'keys')) {
    if (!isKey(one)) throw new TemplateError(`a value of the type '${typeName(one)}' cannot be a key`);
    return (all.dict ?? all).has(one);
  }
  if (!(all instanceof Generator)) return walk(meter, all).some((other) => other === one || equal(meter, other, one));
  while (all.at < all.items.length) if (equal(meter, all.items[all.at++], one)) return true;
  return false;
}
