// SPDX-License-Identifier: MIT
// JSON as Python's json module writes and reads it: whole numbers of any size, dicts in their order; of repeated keys
// the last value counts.

import { compare, walk, within } from './compare.js';
import { floatText } from './numbers.js';
import { intText } from './repr.js';
import { fail, isGiven } from './texts.js';
import { Dict, integer, isSequence, isText, itemsOf, textOf, typeName } from './values.js';
import { stringEnd, unquoted } from '../shared/raw-json.js';
import { atOnce } from '../shared/steps.js';

// --- writing ---

const SHORT = { '"': '\\"', '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\b': '\\b', '\f': '\\f' };

const escaped = (unit) => SHORT[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

function quoted(meter, text, ascii) {
  meter.count(text.length >> 6);
  if (!ascii && !/\p{Cs}/u.test(text)) return JSON.stringify(text);
  meter.count(text.length);
  // eslint-disable-line no-control-regex
  return `"${text.replace(ascii ? /["\\]|[^ -~]/g : /["\\\0-\x1f]/g, escaped)}"`;
}

/** Writes null, a truth value or a number; undefined for other values. */
function word(meter, v) {
  if (v === null) return 'null';
  if (typeof v === 'boolean') return String(v);
  if (typeof v === 'bigint') return intText(meter, v);
  return typeof v !== 'number'
    ? undefined
    : Number.isFinite(v)
      ? floatText(v)
      : Number.isNaN(v)
        ? 'NaN'
        : v > 0
          ? 'Infinity'
          : '-Infinity';
}

function keyText(meter, key, ascii) {
  if (isText(key)) return quoted(meter, textOf(key), ascii);
  const text = word(meter, key);
  return text === undefined ? fail(`a key of the type '${typeName(key)}' cannot be written as JSON`) : `"${text}"`;
}

function value(meter, v, form, depth) {
  meter.count(6);
  within(depth);
  if (isText(v)) return quoted(meter, textOf(v), form.ascii);
  if (v instanceof Dict) {
    const entries = form.sorted ? v.entries().sort(([a], [b]) => compare(meter, a, b, '<')) : v.entries();
    const parts = entries.map(
      ([key, one]) => keyText(meter, key, form.ascii) + form.key + value(meter, one, form, depth + 1),
    );
    return block(meter, '{}', parts, form, depth);
  }
  if (isSequence(v))
    return block(
      meter,
      '[]',
      itemsOf(v).map((one) => value(meter, one, form, depth + 1)),
      form,
      depth,
    );
  return word(meter, v) ?? fail(`a value of the type '${typeName(v)}' cannot be written as JSON`);
}

function block(meter, [open, close], parts, { indent, item }, depth) {
  if (!parts.length) return open + close;
  const line = indent === undefined ? '' : `\n${indent.repeat(depth)}`;
  const inner = line && line + indent;
  meter.count(parts.reduce((sum, part) => sum + (part.length + inner.length + item.length) / 64, parts.length));
  return open + inner + parts.join(item + inner) + line + close;
}

function indentOf(meter, v) {
  if (!isGiven(v)) return undefined;
  if (isText(v)) return textOf(v);
  const n = Math.max(0, integer(v));
  meter.count(n >> 6);
  return ' '.repeat(n);
}

/**
 * @param {import('./meter.js').Meter} meter
 * @param {any} v
 * @param {{indent?: any, separators?: any, ascii?: boolean, sorted?: boolean}} options as in Python; the first two are
 *   values of the template
 */
export function jsonWrite(meter, v, { indent, separators, ascii = false, sorted = false } = {}) {
  if (isText(v)) return quoted(meter, textOf(v), ascii);
  const by = indentOf(meter, indent);
  const marks = isGiven(separators) ? walk(meter, separators) : [by === undefined ? ', ' : ',', ': '];
  if (marks.length !== 2 || !marks.every(isText)) fail('separators are two texts');
  const [item, key] = marks.map(textOf);
  return value(meter, v, { indent: by, item, key, ascii, sorted }, 0);
}

// --- reading ---

/** The last three are Python's own. */
const WORDS = {
  __proto__: null,
  null: null,
  true: true,
  false: false,
  NaN: NaN,
  Infinity: Infinity,
  '-Infinity': -Infinity,
};

/** Python reads no longer whole numbers either. */
const MOST_DIGITS = 4300;

/** A conversation of a thousand messages has about ten thousand. */
const MOST_VALUES = 2 ** 16;

/** Values that are read in one step. */
const STEP = 256;

/** A text being read, and the position in it. @typedef {{text: string, at: number, values: number}} Source */

/** @returns {never} */
const broken = (source) => fail(`the JSON text is broken at ${source.at}`);

const SPACE = /[ \t\n\r]*/y;
const PLAIN = /"[^"\\\0-\x1f]*"/y;     // eslint-disable-line no-control-regex
const SIMPLE = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|-?[a-zA-Z]+/y;

/** Takes what a pattern matches here; '' if nothing. */
function taken(source, pattern) {
  pattern.lastIndex = source.at;
  const [found] = pattern.exec(source.text) ?? [''];
  source.at += found.length;
  return found;
}

/** The next letter that is not white space. */
function next(source) {
  if (source.text[source.at] <= ' ') taken(source, SPACE);
  return source.text[source.at];
}

function take(source, mark) {
  const isThere = next(source) === mark;
  if (isThere) source.at++;
  return isThere;
}

/** Reads a string; JSON.parse() reads it as Python does. */
function* string(source) {
  const plain = taken(source, PLAIN);
  if (plain) return plain.slice(1, -1);
  const { text, at } = source;
  try {
    source.at = yield* stringEnd(text, at);
    return yield* unquoted(text.slice(at, source.at));
  } catch {
    return broken(source);
  }
}

function simple(source) {
  const found = taken(source, SIMPLE);
  if (found in WORDS) return WORDS[found];
  if (!/\d/.test(found)) broken(source);
  if (/[.eE]/.test(found)) return Number(found);
  return found.length <= MOST_DIGITS ? BigInt(found) : fail('a whole number has too many digits to be read');
}

/** Reads the elements between two marks, separated by commas. */
function* readAll(source, close, one) {
  source.at++;
  if (take(source, close)) return;
  do yield* one();
  while (take(source, ','));
  if (!take(source, close)) broken(source);
}

function* member(source, dict, depth) {
  if (next(source) !== '"') broken(source);
  const key = yield* string(source);
  if (!take(source, ':')) broken(source);
  dict.set(key, yield* read(source, depth));
}

function* read(source, depth) {
  const mark = next(source);
  within(depth);
  if (++source.values > MOST_VALUES) fail('there are too many values');
  if (source.values % STEP === 0) yield;
  if (mark === '"') return yield* string(source);
  if (mark !== '[' && mark !== '{') return simple(source);
  const [items, dict] = [[], new Dict()];
  if (mark === '[') yield* readAll(source, ']', function* item() { items.push(yield* read(source, depth + 1)); });
  else yield* readAll(source, '}', () => member(source, dict, depth + 1));
  return mark === '[' ? items : dict;
}

/** Reads the JSON of a value, in steps. @param {string} text @returns {Generator<void, any>} */
export function* readSteps(text) {
  const source = { text, at: 0, values: 0 };
  const v = yield* read(source, 1);
  return next(source) === undefined ? v : broken(source);
}

/** Does the same at once. @param {string} text */
export const jsonRead = (text) => atOnce(readSteps(text));
