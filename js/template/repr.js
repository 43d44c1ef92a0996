// SPDX-License-Identifier: MIT
// Writes values as Python's str() and repr() do.

import { walk, within } from './compare.js';
import { TemplateError } from './meter.js';
import { floatText } from './numbers.js';
import {
  Dict, Namespace, Range, Safe, Tuple, Undefined, View, isSequence, isText, textOf, typeName,
} from './values.js';

/**
 * Noncharacters too: one of them is the sentinel in texts of conversations (reply/chat.js), which must be found again.
 */
const AS_IS = /[ '\ufdd0-\ufdef]/;

const ESCAPES = { '\t': '\\t', '\n': '\\n', '\r': '\\r', '\\': '\\\\' };

export function escaped(letter) {
  const hex = letter.codePointAt(0).toString(16);
  return hex.length <= 2
    ? `\\x${hex.padStart(2, '0')}`
    : hex.length <= 4
      ? `\\u${hex.padStart(4, '0')}`
      : `\\U${hex.padStart(8, '0')}`;
}

function reprText(meter, text) {
  meter.count(text.length >> 2);
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const written = (letter) =>
    letter === quote ? `\\${quote}` : (ESCAPES[letter] ?? (AS_IS.test(letter) ? letter : escaped(letter)));
  return quote + text.replace(/['\\\p{C}\p{Z}]/gu, written) + quote;
}

function reprOther(v) {
  if (v instanceof Range) return `range(${v.start}, ${v.stop}${v.step === 1 ? '' : `, ${v.step}`})`;
  return v.toText?.() ?? `<${typeName(v)}>`;
}

const BRACKETS = { list: '[]', tuple: '()', dict: '{}' };

function reprAll(meter, v, depth) {
  const [open, close] = v instanceof View ? [`${typeName(v)}([`, '])'] : BRACKETS[typeName(v)];
  const one = (item) => repr(meter, item, depth);
  const parts =
    v instanceof Dict ? v.entries().map(([key, value]) => `${one(key)}: ${one(value)}`) : walk(meter, v).map(one);
  const text = `${open}${parts.join(', ')}${v instanceof Tuple && parts.length === 1 ? ',' : ''}${close}`;
  meter.count(text.length >> 6);
  return text;
}

/** @returns {string} */
export function repr(meter, v, depth = 0) {
  within(depth);
  meter.count(8);
  if (v === null) return 'None';
  if (v === true || v === false) return v ? 'True' : 'False';
  if (typeof v === 'bigint') return intText(meter, v);
  if (typeof v === 'number') return floatText(v);
  if (typeof v === 'string') return reprText(meter, v);
  if (v instanceof Safe) return `Markup(${reprText(meter, v.text)})`;
  if (v instanceof Namespace) return `<Namespace ${reprAll(meter, v.dict, depth + 1)}>`;
  if (v instanceof Undefined) return 'Undefined';
  if (isSequence(v) || v instanceof Dict || v instanceof View) return reprAll(meter, v, depth + 1);
  return reprOther(v);
}

/** Python does not write longer ones either. */
const BEYOND = 10n ** 4300n;

export function intText(meter, v) {
  if (v >= BEYOND || v <= -BEYOND) throw new TemplateError('a whole number has too many digits to be written');
  const text = v.toString();
  meter.count(text.length >> 3);
  return text;
}

/** @returns {string} */
export function str(meter, v) {
  if (isText(v)) return textOf(v);
  return v instanceof Undefined ? '' : repr(meter, v);
}
