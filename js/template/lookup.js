// SPDX-License-Identifier: MIT
// obj.name and obj[key] as in jinja2's sandbox, and how builtins receive arguments.

import { equal } from './compare.js';
import { TemplateError } from './meter.js';
import { methodOf } from './methods.js';
import { str } from './repr.js';
import {
  Builtin, Dict, Method, Namespace, Range, Tuple, Undefined, isInt, isPlain, isSequence, isText, itemsOf, letters,
  textOf,
} from './values.js';

/** A macro: its parameters and code, and the scope where it was made. */
export class Macro {
  kindName = 'Macro';

  constructor(code, scope) {
    this.code = code;
    this.scope = scope;
  }

  toText() { return `<Macro '${this.code.name}'>`; }

  member(name) {
    const { name: own, params, asks } = this.code;
    const members = {
      __proto__: null,
      name: own,
      arguments: name === 'arguments' && new Tuple(params.map((param) => param.name)),
      caller: asks.has('caller'),
      catch_kwargs: asks.has('kwargs'),
      catch_varargs: asks.has('varargs'),
    };
    return members[name];
  }
}

const cycle = new Builtin('cycle', 'self! *', (_, [loop, values]) => {
  if (!values.length) throw new TemplateError('there is nothing to cycle through');
  return values[(loop.at - 1) % values.length];
});

const changed = new Builtin('changed', 'self! *', (meter, [loop, values]) => {
  const isSame = loop.told !== undefined && equal(meter, loop.told, values);
  loop.told = values;
  return !isSame;
});

/** A running loop: what templates see as `loop`, and the state that the machine returns to. */
export class Loop {
  kindName = 'LoopContext';
  at = 0;                 // number of items taken
  isComplete = false;     // whether its body has run to the end at least once
  told;                   // the last arguments of changed()

  /** @param {any[]} items @param {object} state of the machine */
  constructor(items, state) {
    this.items = items;
    Object.assign(this, state);
  }

  toText() { return `<LoopContext ${this.at}/${this.items.length}>`; }

  member(name) {
    const { at, items, depth } = this;
    switch (name) {
      case 'index': return BigInt(at);
      case 'index0': return BigInt(at - 1);
      case 'revindex': return BigInt(items.length - at + 1);
      case 'revindex0': return BigInt(items.length - at);
      case 'length': return BigInt(items.length);
      case 'depth': return BigInt(depth + 1);
      case 'depth0': return BigInt(depth);
      case 'first': return at === 1;
      case 'last': return at === items.length;
      case 'previtem': return at > 1 ? items[at - 2] : undefined;
      case 'nextitem': return at < items.length ? items[at] : undefined;
      case 'cycle': return new Method(cycle, this);
      case 'changed': return new Method(changed, this);
      default: return undefined;
    }
  }
}

/** @returns {never} */
export function useOf({ name }) {
  throw new TemplateError(`'${name.slice(0, 40)}' is undefined`);
}

/** Python's getattr(); undefined if there is nothing. */
function ownMember(meter, v, name) {
  if (v instanceof Namespace) return v.dict.get(name);
  if (v instanceof Macro || v instanceof Loop) return v.member(name);
  if (v instanceof Tuple && v.isGroup && (name === 'grouper' || name === 'list'))
    return v.items[name === 'list' ? 1 : 0];
  return methodOf(meter, v, name);
}

/** Python's v[key]; undefined if there is nothing. */
function ownItem(meter, v, key) {
  if (v instanceof Dict) return v.get(key);
  if (!isInt(key)) return undefined;
  const at = Number(key);
  if (isText(v)) {
    const text = textOf(v);
    return isPlain(meter, text) ? text.at(at) || undefined : letters(meter, text).at(at);
  }
  if (isSequence(v)) return itemsOf(v).at(at);
  if (!(v instanceof Range)) return undefined;
  const place = at < 0 ? at + v.length : at;
  return place >= 0 && place < v.length ? BigInt(v.start + place * v.step) : undefined;
}

const orUndefined = (meter, v, name) => (v === undefined ? new Undefined(str(meter, name)) : v);

/** obj.name: an attribute in Python's sense, else an item. */
export function attribute(meter, of, name) {
  if (of instanceof Undefined && name !== '__class__') useOf(of);
  const own = ownMember(meter, of, name);
  return own === undefined ? orUndefined(meter, ownItem(meter, of, name), name) : own;
}

/** obj[key]: an item, else an attribute in Python's sense. */
export function item(meter, of, key) {
  if (of instanceof Undefined) useOf(of);
  const own = ownItem(meter, of, key);
  return own === undefined ? orUndefined(meter, isText(key) ? ownMember(meter, of, textOf(key)) : undefined, key) : own;
}

// --- arguments of builtins ---

/**
 * Binds arguments to parameters and runs a builtin.
 * @param {any} self the filtered or tested value, or the owner of the method; undefined for a function
 * @param {any[]} given
 * @param {Dict} [named]
 */
export function call(meter, builtin, self, given, named) {
  const wrong = (why) => new TemplateError(`${builtin.name}() ${why}`);
  meter.count(2);
  const args = [];
  const used = new Set();
  let at = 0;
  for (const param of builtin.params) {
    const isNeeded = param.endsWith('!');
    const name = isNeeded ? param.slice(0, -1) : param;
    if (param === '*') args.push(given.slice(at, at = Math.max(at, given.length)));
    else if (param === '**') args.push(otherNamed(named, used));
    else if (self !== undefined && args.length === 0) args.push(self);
    else {
      const value = named?.get(name);
      if (value !== undefined) used.add(name);
      if (value !== undefined && at < given.length) throw wrong('is given an argument twice');
      args.push(at < given.length ? given[at++] : value);
      if (isNeeded && args.at(-1) === undefined) throw wrong('lacks an argument');
    }
  }
  if (at < given.length) throw wrong('is given too many arguments');
  if (named && used.size < named.size) throw wrong('is given an unknown named argument');
  return builtin.run(meter, args, builtin.how);
}

/** Named arguments that no earlier parameter has taken. */
function otherNamed(named, used) {
  const rest = new Dict((named?.entries() ?? []).filter(([name]) => !used.has(name)));
  for (const name of rest.keys()) used.add(name);
  return rest;
}
