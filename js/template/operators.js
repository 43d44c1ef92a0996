// SPDX-License-Identifier: MIT
// Operators of expressions, for values of all types.

import { compare, contains, equal } from './compare.js';
import { rare } from './late.js';
import { useOf } from './lookup.js';
import { TemplateError } from './meter.js';
import { arithmetic } from './numbers.js';
import { escapeHtml } from './texts.js';
import {
  Range, Safe, Tuple, Undefined, asNumber, integer, isInt, isNumber, isPlain, isSequence, isText, itemsOf, letters,
  rangeOf, textOf, typeName,
} from './values.js';

function repeated(meter, v, times) {
  const n = Math.max(0, integer(times));
  const size = isText(v) ? textOf(v).length : itemsOf(v).length;
  meter.count(isText(v) ? (n * size) / 64 : (n * (size + 1)) / 4);
  if (isText(v)) return textOf(v).repeat(size ? n : 0);
  const items = size ? Array.from({ length: n }, () => itemsOf(v)).flat() : [];
  return v instanceof Tuple ? new Tuple(items) : items;
}

function joined(meter, a, b) {
  if (!isText(a)) {
    meter.count((itemsOf(a).length + itemsOf(b).length) >> 2);
    const items = [...itemsOf(a), ...itemsOf(b)];
    return a instanceof Tuple ? new Tuple(items) : items;
  }
  const isSafe = a instanceof Safe || b instanceof Safe;
  meter.count((textOf(a).length + textOf(b).length) >> (isSafe ? 2 : 10));     // browsers copy nothing yet
  return isSafe ? new Safe(escapeHtml(a) + escapeHtml(b)) : a + b;
}

const isJoinable = (a, b) => (isText(a) && isText(b)) || (isSequence(a) && typeName(a) === typeName(b));
const isRepeatable = (a, b) => (isText(a) || isSequence(a)) && isInt(b);

export function binary(meter, sign, a, b) {
  if (isNumber(a) && isNumber(b)) return arithmetic(meter, sign, a, b);
  if (sign === '+' && isJoinable(a, b)) return joined(meter, a, b);
  if (sign === '*' && isRepeatable(a, b)) return repeated(meter, a, b);
  if (sign === '*' && isRepeatable(b, a)) return repeated(meter, b, a);
  if (sign === '%' && isText(a)) return rare.formatPercent(meter, textOf(a), b);
  throw new TemplateError(`'${sign}' is not supported between '${typeName(a)}' and '${typeName(b)}'`);
}

const ORDERS = {
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
};

export function compared(meter, sign, a, b) {
  if (sign === '==') return equal(meter, a, b);
  if (sign === '!=') return !equal(meter, a, b);
  if (sign === 'in') return contains(meter, b, a);
  if (sign === 'not in') return !contains(meter, b, a);
  return ORDERS[sign](compare(meter, a, b, sign));
}

/** Limits one end of a slice to a sequence of n, as Python does. */
function limited(at, n, step) {
  const place = at < 0 ? at + n : at;
  return step < 0 ? Math.max(-1, Math.min(place, n - 1)) : Math.max(0, Math.min(place, n));
}

export function sliced(meter, v, from, to, by) {
  if (v instanceof Undefined) useOf(v);
  if (!isText(v) && !isSequence(v) && !(v instanceof Range))
    throw new TemplateError(`a value of the type '${typeName(v)}' cannot be sliced`);
  const step = by === null ? 1 : integer(by);
  if (step === 0) throw new TemplateError('a slice cannot have steps of 0');
  const isSimple = isText(v) && isPlain(meter, textOf(v));
  const all = v instanceof Range ? v : !isText(v) ? itemsOf(v) : isSimple ? textOf(v) : letters(meter, textOf(v));
  const start = from === null ? (step < 0 ? all.length - 1 : 0) : limited(integer(from), all.length, step);
  const stop = to === null ? (step < 0 ? -1 : all.length) : limited(integer(to), all.length, step);
  if (v instanceof Range) return rangeOf(v.start + start * v.step, v.start + stop * v.step, v.step * step);
  if (isSimple && step === 1) return all.slice(start, Math.max(start, stop));
  const items = [];
  meter.count(Math.max(0, (stop - start) / step) / 4);
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) items.push(all[i]);
  if (isText(v)) return items.join('');
  return v instanceof Tuple ? new Tuple(items) : items;
}

export function signed(meter, sign, v) {
  if (!isNumber(v)) throw new TemplateError(`a number is needed here, not '${typeName(v)}'`);
  meter.count(1);
  return sign === '-' ? -asNumber(v) : asNumber(v);
}
