// SPDX-License-Identifier: MIT
// jinja2's tests, which follow `is`. rare-tests.js has those that few templates use.

import { compare, contains, equal } from './compare.js';
import { Loop, Macro } from './lookup.js';
import { fail, tableOf } from './texts.js';
import {
  Builtin, Dict, Generator, Joiner, Method, Range, Safe, Undefined, View, isKey, isNumber, isSequence, isText, textOf,
} from './values.js';

const isCallable = (v) => [Builtin, Joiner, Loop, Macro, Method, Undefined].some((type) => v instanceof type);
const isSized = (v) => isText(v) || isSequence(v) || v instanceof Dict || v instanceof Range || v instanceof Undefined;
export const isWhole = (v) => typeof v === 'bigint';

/** Whether a table has this name. */
export const isKnown = (builtins, v) =>
  isKey(v) ? isText(v) && builtins.has(textOf(v)) : fail('a list or dict is not a name');

/** Tests of a single value. */
const KINDS = {
  boolean: (v) => typeof v === 'boolean',
  callable: isCallable,
  defined: (v) => !(v instanceof Undefined),
  escaped: (v) => v instanceof Safe,
  false: (v) => v === false,
  float: (v) => typeof v === 'number',
  integer: isWhole,
  iterable: (v) => isSized(v) || v instanceof View || v instanceof Generator || v instanceof Loop,
  mapping: (v) => v instanceof Dict,
  none: (v) => v === null,
  number: isNumber,
  sequence: isSized,
  string: isText,
  test: (v) => isKnown(TESTS, v),
  true: (v) => v === true,
  undefined: (v) => v instanceof Undefined,
};

/** Names of each comparison, of which the first is the sign, and the accepted results of compare(). */
const ORDERS = { '< lt lessthan': [-1], '<= le': [-1, 0], '> gt greaterthan': [1], '>= ge': [0, 1] };

const orders = Object.entries(ORDERS).flatMap(([all, accepted]) => all.split(' ').map((name, _, [sign]) => [
  name, 'other!', (meter, [v, other]) => accepted.includes(compare(meter, v, other, sign)),
]));

export const TESTS = tableOf('value!', [
  ...Object.entries(KINDS).map(([name, is]) => [name, '', (_, [v]) => is(v)]),
  ...orders,
  ...['==', 'eq', 'equalto'].map((name) => [name, 'other!', (meter, [v, other]) => equal(meter, v, other)]),
  ...['!=', 'ne'].map((name) => [name, 'other!', (meter, [v, other]) => !equal(meter, v, other)]),
  ['in', 'seq!', (meter, [v, all]) => contains(meter, all, v)],
]);
