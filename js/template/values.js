// SPDX-License-Identifier: MIT
// Python's values as templates see them. None is null, an int a bigint, a float a number, a str a string, a list an
// array; the others are the classes below. Values are immutable, except for namespaces and the position of a generator.

import { TemplateError } from './meter.js';

/** A text that is safe in HTML: Python's Markup. */
export class Safe {
  constructor(text) { this.text = text; }
}

/** The approximate length of the text that represents a value in a key. NaN: the value cannot be in a key. */
function weightOf(v) {
  if (!isKey(v)) return NaN;
  return v instanceof Tuple ? v.weight : isText(v) ? 8 + textOf(v).length : isSmall(v) ? 8 : isHuge(v) ? Infinity : 512;
}

export class Tuple {
  /**
   * @param {any[]} items
   * @param {boolean} [isGroup] whether it is one of groupby's, which has names for its two items
   */
  constructor(items, isGroup = false) {
    this.items = items;
    this.isGroup = isGroup;
    this.weight = items.reduce((sum, one) => sum + weightOf(one), 8);
  }
}

export class Undefined {
  /** @param {string} name of the missing thing, for messages */
  constructor(name) { this.name = name; }
}

/** Keys, values or items of a dict. */
export class View {
  /** @param {Dict} dict @param {'keys' | 'values' | 'items'} kind */
  constructor(dict, kind) {
    this.dict = dict;
    this.kind = kind;
  }
}

export class Range {
  /** All arguments are numbers. */
  constructor(start, stop, step, length) {
    Object.assign(this, { start, stop, step, length });
  }
}

/** Numbers from start up to, but not including, stop. */
export function rangeOf(start, stop, step) {
  return new Range(start, stop, step, Math.max(0, Math.ceil((stop - start) / step)));
}

/** A list that can be iterated once, and whose length is unknown. */
export class Generator {
  at = 0;

  constructor(items) { this.items = items; }
}

/** A dict whose members templates may set. */
export class Namespace {
  constructor(dict) { this.dict = dict; }
}

export class Cycler {
  at = 0;

  constructor(items) { this.items = items; }
}

export class Joiner {
  isUsed = false;

  constructor(separator) { this.separator = separator; }

  /** Nothing the first time, then the separator. */
  next() {
    const text = this.isUsed ? this.separator : '';
    this.isUsed = true;
    return text;
  }
}

/** A builtin bound to a value. */
export class Method {
  /** @param {Builtin} builtin @param {any} self the value */
  constructor(builtin, self) {
    this.builtin = builtin;
    this.self = self;
  }
}

/**
 * A filter, test, method or function. `params` has the names of its parameters in Python, separated by spaces. A name
 * with `!` at its end is required; a digit is a parameter that cannot be given by name; `*` takes any number of further
 * arguments as an array, and `**` further named ones as a Dict. Arguments that are not given are undefined. The
 * filtered or tested value, or the owner of a method, comes first.
 */
export class Builtin {
  /**
   * @param {string} name
   * @param {string} params
   * @param {(meter: import('./meter.js').Meter, args: any[], how?: any) => any} run
   * @param {any} [how] passed to `run`, which several builtins may share
   */
  constructor(name, params, run, how) {
    Object.assign(this, { name, params: params.split(' ').filter(Boolean), run, how });
  }
}

/** @param {any[][]} rows of Builtin's arguments @returns {Map<string, Builtin>} */
export const table = (rows) =>
  new Map(rows.map(([name, params, run, how]) => [name, new Builtin(name, params, run, how)]));

// --- kinds ---

export const isText = (v) => typeof v === 'string' || v instanceof Safe;
export const textOf = (v) => (v instanceof Safe ? v.text : v);
export const isInt = (v) => typeof v === 'bigint' || typeof v === 'boolean';
export const isNumber = (v) => typeof v === 'number' || isInt(v);
export const isSequence = (v) => Array.isArray(v) || v instanceof Tuple;
/** Items of a list or tuple. @returns {any[]} */
export const itemsOf = (v) => (v instanceof Tuple ? v.items : v);
/** Converts a boolean to a number. */
export const asNumber = (v) => (typeof v === 'boolean' ? BigInt(v) : v);

const TYPES = { bigint: 'int', number: 'float', string: 'str', boolean: 'bool' };
const VIEWS = { keys: 'dict_keys', values: 'dict_values', items: 'dict_items' };

/** Python's name of a value's type. */
export function typeName(v) {
  if (v === null) return 'NoneType';
  if (Array.isArray(v)) return 'list';
  if (v instanceof View) return VIEWS[v.kind];
  if (v instanceof Dict || v instanceof Tuple || v instanceof Range || v instanceof Generator || v instanceof Method)
    return v.kindName;
  return TYPES[typeof v] ?? (v instanceof Builtin ? 'function' : (v.constructor.title ?? v.kindName ?? 'object'));
}

/** Converts an int to a JavaScript number. */
export function integer(v) {
  if (!isInt(v)) throw new TemplateError(`a whole number is needed here, not '${typeName(v)}'`);
  return Number(v);
}

// --- dicts ---

const UNDEFINED_KEY = Symbol('undefined');

/** Limits of keys: the weight of a tuple, and whole numbers. Both are read at every lookup. */
const MOST_WEIGHT = 2 ** 10;
const HUGE = 2n ** 1024n;

const isHuge = (v) => typeof v === 'bigint' && (v >= HUGE || v <= -HUGE);
const tooLarge = () => { throw new TemplateError('a value is too large for a key'); };

/** Maps do not distinguish whole numbers beyond their last 64 bits. */
const isSmall = (v) => typeof v !== 'bigint' || BigInt.asIntN(54, v) === v;
const intKey = (v) => (isSmall(v) ? v : isHuge(v) ? tooLarge() : `\0i${v}`);

/** Encodes an item in the key of a tuple. */
function partOf(item) {
  const key = keyOf(item);
  const text = String(key);
  return `${typeof key} ${text.length} ${text}`;
}

/** Returns the same for keys that are equal in Python: 1, 1.0 and True. */
function keyOf(key) {
  if (typeof key === 'string') return key[0] === '\0' ? `\0s${key}` : key;
  if (key instanceof Safe) return keyOf(key.text);
  if (isInt(key)) return intKey(asNumber(key));
  if (typeof key === 'number') return Number.isInteger(key) ? intKey(BigInt(key)) : key;
  if (key instanceof Tuple && key.weight > MOST_WEIGHT) tooLarge();
  if (key instanceof Tuple && isKey(key)) return `\0t${key.items.map(partOf).join()}`;
  if (key instanceof Undefined) return UNDEFINED_KEY;
  if (!isKey(key)) throw new TemplateError(`a value of the type '${typeName(key)}' cannot be a key`);
  return key;
}

export const isKey = (v) =>
  !(Array.isArray(v) || v instanceof Dict || v instanceof View || (v instanceof Tuple && Number.isNaN(v.weight)));

export class Dict {
  #entries = new Map();   // result of keyOf() -> [key, value]

  /** @param {Iterable<[any, any]>} [entries] */
  constructor(entries = []) {
    for (const [key, value] of entries) this.set(key, value);
  }

  get size() { return this.#entries.size; }

  get(key) { return isKey(key) ? this.#entries.get(keyOf(key))?.[1] : undefined; }

  has(key) { return isKey(key) && this.#entries.has(keyOf(key)); }

  set(key, value) {
    const place = keyOf(key);
    const entry = this.#entries.get(place);
    if (entry) entry[1] = value;
    else this.#entries.set(place, [key, value]);
    return this;
  }

  /** @returns {[any, any][]} */
  entries() { return [...this.#entries.values()]; }

  keys() { return this.entries().map(([key]) => key); }

  values() { return this.entries().map(([, value]) => value); }
}

for (const [type, name] of [
  [Dict, 'dict'],
  [Tuple, 'tuple'],
  [Range, 'range'],
  [Generator, 'generator'],
  [Method, 'builtin_function_or_method'],
  [Undefined, 'Undefined'],
  [Namespace, 'Namespace'],
  [Cycler, 'Cycler'],
  [Joiner, 'Joiner'],
  [Safe, 'Markup'],
])
  type.prototype.kindName = name;

export const viewItems = ({ dict, kind }) =>
  kind === 'items' ? dict.entries().map((entry) => new Tuple(entry)) : dict[kind]();

// --- letters ---

const PAIRS = /[\ud800-\udbff]/;

/** Whether each letter, a code point, is one unit of the string. */
export function isPlain(meter, text) {
  meter.count(text.length >> 8);
  return !PAIRS.test(text);
}

/** @returns {string[]} */
export function letters(meter, text) {
  const all = isPlain(meter, text);
  meter.count(text.length >> (all ? 3 : 2));
  return all ? text.split('') : Array.from(text);
}

export function letterCount(meter, text) {
  if (isPlain(meter, text)) return text.length;
  meter.count(text.length >> 3);
  let n = 0;
  for (const _ of text) n++;
  return n;
}
