// SPDX-License-Identifier: MIT
// The state of a machine: its stack, the scopes of names, and the text written so far.

import { find } from './late.js';
import { TemplateError } from './meter.js';
import { Dict, Undefined } from './values.js';

/** Most letters of a rendered text. */
const MOST_TEXT = 2 ** 26;

export class Scope {
  names = new Map();

  /**
   * @param {Scope | null} outer scope for names that are not in this one
   * @param {Scope} back scope that is restored at the end
   */
  constructor(outer, back) {
    this.outer = outer;
    this.back = back;
  }
}

export class State {
  /** @type {Scope | null} */
  scope = null;
  /** @type {any[]} */
  stack = [];
  out = '';
  /** Text written before each capture began. @type {string[]} */
  captures = [];

  /** @param {import('./meter.js').Meter} meter @param {[string, any][]} names visible in all scopes */
  constructor(meter, names) {
    this.meter = meter;
    this.outermost = new Map(names);
  }

  push(v) { this.stack.push(v); }

  pop() { return this.stack.pop(); }

  write(text) {
    this.meter.count(text.length >> 6);
    this.out += text;
    if (this.out.length > MOST_TEXT) throw new TemplateError('the text is too long');
  }

  load(name) {
    for (let scope = this.scope; scope; scope = scope.outer) {
      const v = scope.names.get(name);
      if (v !== undefined) return v;
    }
    const v = find('function', this.outermost, name);
    return v === undefined ? new Undefined(name) : v;
  }

  store(name, v) { (this.scope?.names ?? this.outermost).set(name, v); }

  capture() {
    this.captures.push(this.out);
    this.out = '';
  }

  captured() {
    const text = this.out;
    this.out = this.captures.pop();
    return text;
  }

  /** Takes the last n values. */
  list(n) {
    this.meter.count(n);
    return n ? this.stack.splice(this.stack.length - n, n) : [];
  }

  dict(n) {
    const all = this.list(2 * n);
    return new Dict(Array.from({ length: n }, (_, i) => [all[2 * i], all[2 * i + 1]]));
  }
}
