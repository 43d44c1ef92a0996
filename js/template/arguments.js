// SPDX-License-Identifier: MIT
// Arguments of calls, and how a macro receives them.

import { walk } from './compare.js';
import { TemplateError } from './meter.js';
import { Dict, Tuple, Undefined } from './values.js';

/** A parameter that was not given. */
export const missing = new Undefined('a parameter that was not given');

function addNamed(named, name, value) {
  if (typeof name !== 'string') throw new TemplateError('names of arguments must be texts');
  if (named.has(name)) throw new TemplateError('an argument is given twice');
  named.set(name, value);
}

/** Binds the arguments of a macro to names in its scope. */
export function bind(scope, { params, asks }, given, named = new Dict()) {
  const used = new Set();
  for (const [i, { name }] of params.entries()) {
    if (named.has(name)) used.add(name);
    if (used.has(name) && i < given.length) throw new TemplateError('a macro is given an argument twice');
    scope.names.set(name, i < given.length ? given[i] : named.get(name) ?? (used.has(name) ? null : missing));
  }
  if (asks.has('caller') && !scope.names.has('caller')) {
    used.add('caller');
    scope.names.set('caller', named.get('caller') ?? missing);
  }
  if (asks.has('varargs')) scope.names.set('varargs', new Tuple(given.slice(params.length)));
  else if (given.length > params.length) throw new TemplateError('a macro is given too many arguments');
  const others = named.entries().filter(([name]) => !used.has(name));
  if (asks.has('kwargs')) scope.names.set('kwargs', new Dict(others));
  else if (others.length) throw new TemplateError('a macro is given an unknown named argument');
}

/**
 * Takes the arguments of a call from a stack: positional ones, pairs of name and value, a list and a dict of more, a
 * caller.
 * @param {import('./operands.js').Shape} shape
 * @returns {{given: any[], named?: Dict}}
 */
export function takeArguments(meter, stack, { n, names, star, starStar, caller }) {
  const called = caller ? stack.pop() : undefined;
  const dict = starStar ? stack.pop() : undefined;
  const list = star ? stack.pop() : undefined;
  const values = names.length ? stack.splice(stack.length - names.length) : [];
  const given = n ? stack.splice(stack.length - n) : [];
  if (list !== undefined) given.push(...walk(meter, list));
  if (!names.length && dict === undefined && !caller) return { given };
  const named = new Dict();
  meter.count(names.length + 4 * (dict?.size ?? 0));
  for (const [i, name] of names.entries()) addNamed(named, name, values[i]);
  if (dict !== undefined && !(dict instanceof Dict)) throw new TemplateError('what follows ** must be a dict');
  for (const [name, value] of dict?.entries() ?? []) addNamed(named, name, value);
  if (caller) addNamed(named, 'caller', called);
  return { given, named };
}
