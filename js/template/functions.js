// SPDX-License-Identifier: MIT
// Functions available in every template: jinja2's, and those that chat templates may also rely on.

import { walk } from './compare.js';
import { Refusal } from './meter.js';
import { str } from './repr.js';
import { fail } from './texts.js';
import { Dict, Namespace, Range, View, integer, isText, table, textOf } from './values.js';

/** Most steps of range(), as in the sandbox. */
const MOST = 100_000;

function range(meter, [first, second, third]) {
  const [start, stop] = second === undefined ? [0, integer(first)] : [integer(first), integer(second)];
  const step = third === undefined ? 1 : integer(third);
  if (step === 0) fail('the step of range() is 0');
  const length = Math.max(0, Math.ceil((stop - start) / step));
  return length > MOST ? fail(`range() has more than ${MOST} steps`) : new Range(start, stop, step, length);
}

/** Returns two values, for dict() and urlencode. @returns {[any, any]} */
export function pairOf(meter, v) {
  meter.count(1);
  const both = walk(meter, v);
  return both.length === 2 ? /** @type {[any, any]} */ (both) : fail('a pair of two values is needed here');
}

const entriesOf = (meter, v) =>
  walk(meter, v instanceof Dict ? new View(v, 'items') : v).map((one) => pairOf(meter, one));

function dict(meter, [from, named]) {
  return new Dict([...from === undefined ? [] : entriesOf(meter, from), ...named.entries()]);
}

function namespace(meter, args) {
  const all = dict(meter, args);
  for (const name of all.keys())
    if (isText(name) && textOf(name).startsWith('_')) fail(`names in a namespace may not begin with '_'`);
  return new Namespace(all);
}

export const FUNCTIONS = table([
  ['dict', '1 **', dict],
  ['namespace', '1 **', namespace],
  ['raise_exception', 'message!', (meter, [message]) => { throw new Refusal(str(meter, message)); }],
  ['range', '1! 2 3', range],
]);
