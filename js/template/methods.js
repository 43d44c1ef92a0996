// SPDX-License-Identifier: MIT
// The methods of Python's types that jinja2's sandbox allows. Methods that would change a value are undefined: a call
// of one fails.

import { equal, lengthOf, walk } from './compare.js';
import { find } from './late.js';
import {
  fail, intOr, keeping, runCase, runEnds, runFind, runJoin, runReplace, runSplit, runStrip, runWithout, tableOf,
} from './texts.js';
import { Builtin, Dict, Method, Namespace, Tuple, Undefined, View, asNumber, isKey, typeName } from './values.js';

const self = ([v]) => v;

/** @returns {Dict} */
export const wantDict = (v) => (v instanceof Dict ? v : fail(`a dict is needed here, not '${typeName(v)}'`));

const isOne = (meter, one, other) => one === other || equal(meter, one, other);

const countOf = (meter, [all, one]) => BigInt(walk(meter, all).filter((other) => isOne(meter, other, one)).length);

function indexOf(meter, [all, one, start, end]) {
  const n = lengthOf(meter, all);
  const bound = (v, otherwise) => {
    const at = intOr(v, otherwise);
    return at < 0 ? Math.max(0, at + n) : at;
  };
  const [from, to] = [bound(start, 0), bound(end, n)];
  const at = walk(meter, all).findIndex((other, i) => i >= from && i < to && isOne(meter, other, one));
  return at < 0 ? fail('index() does not find the value') : BigInt(at);
}

function get(meter, [dict, key, otherwise = null]) {
  if (!isKey(key)) fail(`a value of the type '${typeName(key)}' cannot be a key`);
  return dict.get(key) ?? (dict.has(key) ? null : otherwise);
}

function fromKeys(meter, [, keys, value = null]) {
  const all = walk(meter, keys);
  meter.count(all.length);
  return new Dict(all.map((key) => [key, value]));
}

function next(meter, [cycler]) {
  const now = cycler.items[cycler.at];
  cycler.at = (cycler.at + 1) % cycler.items.length;
  return now;
}

function reset(meter, [cycler]) {
  cycler.at = 0;
  return null;
}

function bitLength(meter, [v]) {
  const n = asNumber(v);
  const text = (n < 0n ? -n : n).toString(2);
  meter.count(text.length >> 6);
  return n ? BigInt(text.length) : 0n;
}

/** Methods without parameters that share one function, which gets the name. */
export const family = (names, run) => names.map((name) => [name, '', run, name]);

const OF_SEQUENCE = [['count', '1!', countOf], ['index', '1! 2 3', indexOf]];
const COPY = ['copy', '', (_, args) => self(args)];
const OF_INT = [['bit_length', '', bitLength], ['conjugate', '', (_, [v]) => asNumber(v)]];

const CASES = ['capitalize', 'lower', 'title', 'upper'];

export const METHODS = {
  str: tableOf('self!', [
    ...family(CASES, keeping(runCase)),
    ['endswith', '1! 2 3', runEnds, 'endsWith'],
    ['find', '1! 2 3', runFind, {}],
    ['index', '1! 2 3', runFind, { fails: true }],
    ['join', '1!', keeping(runJoin), true],
    ['lstrip', '1', keeping(runStrip), 'left'],
    ['removeprefix', '1!', keeping(runWithout)],
    ['removesuffix', '1!', keeping(runWithout), true],
    ['replace', '1! 2! 3', keeping(runReplace), true],
    ['rfind', '1! 2 3', runFind, { isLast: true }],
    ['rsplit', 'sep maxsplit', keeping(runSplit), true],
    ['rstrip', '1', keeping(runStrip), 'right'],
    ['split', 'sep maxsplit', keeping(runSplit)],
    ['startswith', '1! 2 3', runEnds, 'startsWith'],
    ['strip', '1', keeping(runStrip)],
  ]),
  list: tableOf('self!', [...OF_SEQUENCE, COPY]),
  tuple: tableOf('self!', OF_SEQUENCE),
  range: tableOf('self!', [OF_SEQUENCE[0], ['index', '1!', indexOf]]),
  dict: tableOf('self!', [
    COPY,
    ['fromkeys', '1! 2', fromKeys],
    ['get', '1! 2', get],
    ...family(['items', 'keys', 'values'], (_, [dict], kind) => new View(dict, kind)),
  ]),
  int: tableOf('self!', OF_INT),
  float: tableOf('self!', [
    ['conjugate', '', (_, args) => self(args)],
    ['is_integer', '', (_, [v]) => Number.isInteger(v)],
  ]),
  Cycler: tableOf('self!', [
    ['next', '', next],
    ['reset', '', reset],
  ]),
};
METHODS.bool = METHODS.int;

/** Methods that change a value. */
const CHANGES = {
  list: ['append', 'clear', 'extend', 'insert', 'pop', 'remove', 'reverse', 'sort'],
  dict: ['clear', 'pop', 'popitem', 'setdefault', 'update'],
};

/** Members that are values, not methods. */
const MEMBERS = {
  int: { __proto__: null, real: asNumber, imag: () => 0n, numerator: asNumber, denominator: () => 1n },
  float: { __proto__: null, real: asNumber, imag: () => 0 },
  range: { __proto__: null, start: (v) => BigInt(v.start), stop: (v) => BigInt(v.stop), step: (v) => BigInt(v.step) },
  Cycler: {
    __proto__: null,
    current: (v) => v.items[v.at],
    items: (v) => new Tuple(v.items),
    pos: (v) => BigInt(v.at),
  },
  Joiner: { __proto__: null, sep: (v) => v.separator, used: (v) => v.isUsed },
};
MEMBERS.bool = MEMBERS.int;

/**
 * The method or member of a value; undefined if it has none. Whatever the sandbox forbids is an Undefined.
 * @param {string} name
 */
export function methodOf(meter, v, name) {
  const type = typeName(v);
  const isOfText = type === 'str' || type === 'Markup';
  const builtin = isOfText ? find('method', METHODS.str, name) : METHODS[type]?.get(name);
  if (builtin) return new Method(builtin, v);
  const member = MEMBERS[type]?.[name];
  if (member) return member(v);
  if (v instanceof Builtin && v.name === 'dict' && name === 'fromkeys') return new Method(METHODS.dict.get(name), v);
  const isPrivate = /^__.*__$/s.test(name) && !(v instanceof Namespace);
  return isPrivate || CHANGES[type]?.includes(name) ? new Undefined(name) : undefined;
}
