// SPDX-License-Identifier: MIT
// Runs a compiled template: a stack machine that can stop after any instruction and continue later, so that a long
// template blocks nobody. Names are looked up in scopes, which are chains. Macros and recursive loops are frames of the
// machine: nothing here recurses.

import { bind, missing, takeArguments } from './arguments.js';
import { truth, walk } from './compare.js';
import { FUNCTIONS } from './functions.js';
import { Loop, Macro, attribute, call, item, useOf } from './lookup.js';
import { Meter } from './meter.js';
import { binary, compared, signed, sliced } from './operators.js';
import { str } from './repr.js';
import { Scope, State } from './state.js';
import { fail, wantText } from './texts.js';
import { Builtin, Dict, Joiner, Method, Namespace, Tuple, Undefined, typeName } from './values.js';

/** Most nested calls. */
const FRAMES = 200;

export class Machine extends State {
  #code;
  #at = 0;
  /** @type {Loop | null} */
  #loop = null;
  #frames = [];
  #depth = 0;             // depth of the next recursive loop
  isDone = false;

  /**
   * @param {import('./compile.js').Program} program
   * @param {Dict} variables
   * @param {{steps: number, atOnce?: number, now: Date}} how atOnce: most steps of one operation
   */
  constructor({ code, own }, variables, { steps, atOnce, now }) {
    super(
      Object.assign(new Meter(steps, atOnce), { now }),
      [...FUNCTIONS, ...variables.entries()].filter(([name]) => !own.has(name)),
    );
    this.#code = code;
  }

  /** Runs for about this many steps. @returns {boolean} whether the program is done */
  run(steps) {
    const stop = this.meter.left - steps;
    while (!this.isDone && this.meter.left > stop) {
      this.meter.begin();
      const { run, n } = this.#code[this.#at++];
      run(this, n);
    }
    return this.isDone;
  }

  // --- calls ---

  #arguments(shape) { return takeArguments(this.meter, this.stack, shape); }

  #enter(entry, scope) {
    if (this.#frames.length === FRAMES) fail('calls are nested too deep');
    this.#frames.push({ at: this.#at, scope: this.scope, loop: this.#loop });
    this.#at = entry;
    this.scope = scope;
    this.capture();
  }

  #return() {
    const { at, scope, loop } = this.#frames.pop();
    this.#at = at;
    this.scope = scope;
    this.#loop = loop;
    this.push(this.captured());
  }

  #call(shape) {
    const { given, named } = this.#arguments(shape);
    const called = this.pop();
    if (called instanceof Builtin) this.push(call(this.meter, called, undefined, given, named));
    else if (called instanceof Method) this.push(call(this.meter, called.builtin, called.self, given, named));
    else if (called instanceof Macro) this.#callMacro(called, given, named);
    else if (called instanceof Loop) this.#callLoop(called, given, named);
    else if (called instanceof Joiner) this.push(called.next());
    else if (called instanceof Undefined) useOf(called);
    else fail(`a value of the type '${typeName(called)}' cannot be called`);
  }

  #callMacro({ code, scope }, given, named) {
    this.meter.count(code.params.length);
    this.#enter(code.entry, new Scope(scope, null));
    this.#loop = null;
    bind(this.scope, code, given, named);
  }

  #enterLoop(entry, scope, items) {
    this.#enter(entry, scope);
    this.push(items);
  }

  #callLoop(loop, given, named) {
    if (!loop.entry || given.length !== 1 || named) fail('only a recursive loop can be called, with one argument');
    this.#enterLoop(loop.entry, loop.scope, given[0]);
    this.#depth = loop.depth + 1;
  }

  // --- loops ---

  #begin({ entry, collects }) {
    const items = walk(this.meter, this.pop());
    this.#loop = new Loop(items, {
      outer: this.#loop,
      entry: entry && this.#at - entry,
      kept: collects ? [] : null,
      scope: this.scope,
      stack: this.stack.length,
      captures: this.captures.length,
      depth: entry ? this.#depth : 0,
    });
    if (entry) this.#depth = 0;
  }

  #next(jump) {
    const loop = this.#loop;
    this.scope = loop.scope;
    if (loop.at === loop.items.length) {
      this.#at += jump;
      return;
    }
    this.scope = new Scope(loop.scope, null);
    if (!loop.kept) this.scope.names.set('loop', loop);
    this.push(loop.items[loop.at++]);
  }

  #collect(jump) {
    const { kept, items, at } = this.#loop;
    if (truth(this.pop())) kept.push(items[at - 1]);
    this.#at += jump;
  }

  #again(jump) {
    this.#loop.isComplete = true;
    this.#at += jump;
  }

  /** Returns to the state at the beginning of the loop. */
  #unwind() {
    const { scope, stack, captures } = this.#loop;
    this.scope = scope;
    this.stack.length = stack;
    while (this.captures.length > captures) this.captured();
  }

  #finish(jump) {
    const { outer, scope, kept, isComplete } = this.#loop;
    this.#loop = outer;
    this.scope = scope;
    if (kept) this.push(kept);
    else if (isComplete) this.#at += jump;
  }

  // --- instructions ---

  #unpack(n) {
    const items = walk(this.meter, this.pop());
    if (items.length !== n) fail('the numbers of names and values differ');
    this.stack.push(...[...items].reverse());
  }

  #setMember({ of, name }) {
    const v = this.pop();
    const space = this.load(of);
    if (!(space instanceof Namespace)) fail('only members of a namespace can be set');
    if (name.startsWith('_')) fail("members of a namespace cannot begin with '_'");
    space.dict.set(name, v);
  }

  #chain({ sign, jump }) {
    const b = this.pop();
    const holds = compared(this.meter, sign, this.pop(), b);
    this.push(holds ? b : false);
    if (!holds) this.#at += jump;
  }

  #decide(when, jump) {
    if (truth(this.stack.at(-1)) === when) this.#at += jump;
    else this.pop();
  }

  #builtin({ builtin, name, shape }) {
    const { given, named } = this.#arguments(shape);
    if (!builtin) fail(`there is no filter or test '${name.slice(0, 40)}'`);
    this.push(call(this.meter, builtin, this.pop(), given, named));
  }

  #concatenated(n) {
    const text = this.list(n).reduce((all, v) => all + str(this.meter, v), '');
    this.meter.count(text.length >> 10);
    return text;
  }

  #slice() {
    const [v, from, to, by] = this.list(4);
    return sliced(this.meter, v, from, to, by);
  }

  #two(of) {
    const b = this.pop();
    this.push(of(this.meter, this.pop(), b));
  }

  /** Each takes the machine and the operand of its instruction. @type {Record<string, (m: Machine, n: any) => void>} */
  static operations = {
    constant: (m, n) => m.push(n),
    load: (m, n) => m.push(m.load(n)),
    store: (m, n) => m.store(n, m.pop()),
    data: (m, n) => m.write(n),
    print: (m) => m.write(str(m.meter, m.pop())),
    printText: (m) => m.write(wantText(m.pop())),
    member: (m, n) => m.push(attribute(m.meter, m.pop(), n)),
    item: (m) => m.#two(item),
    slice: (m) => m.push(m.#slice()),
    call: (m, n) => m.#call(n),
    builtin: (m, n) => m.#builtin(n),
    list: (m, n) => m.push(m.list(n)),
    tuple: (m, n) => m.push(new Tuple(m.list(n))),
    dict: (m, n) => m.push(m.dict(n)),
    concat: (m, n) => m.push(m.#concatenated(n)),
    not: (m) => m.push(!truth(m.pop())),
    sign: (m, n) => m.push(signed(m.meter, n, m.pop())),
    binary: (m, n) => m.#two((meter, a, b) => binary(meter, n, a, b)),
    compare: (m, n) => m.#two((meter, a, b) => compared(meter, n, a, b)),
    chain: (m, n) => m.#chain(n),
    jump: (m, n) => { m.#at += n; },
    jumpFalse: (m, n) => { if (!truth(m.pop())) m.#at += n; },
    and: (m, n) => m.#decide(false, n),
    or: (m, n) => m.#decide(true, n),
    for: (m, n) => m.#begin(n),
    next: (m, n) => m.#next(n),
    collect: (m, n) => m.#collect(n),
    again: (m, n) => m.#again(n),
    done: (m, n) => m.#finish(n),
    leave: (m) => m.#unwind(),
    callLoop: (m) => m.#enterLoop(m.#at + 1, m.scope, m.pop()),
    scope: (m, isAlone) => { m.scope = new Scope(isAlone ? null : m.scope, m.scope); },
    scopeEnd: (m) => { m.scope = m.scope.back; },
    capture: (m) => m.capture(),
    captured: (m) => m.push(m.captured()),
    macro: (m, n) => m.push(new Macro(n, m.scope)),
    default: (m, { name, jump }) => { if (m.scope.names.get(name) !== missing) m.#at += jump; },
    return: (m) => m.#return(),
    unpack: (m, n) => m.#unpack(n),
    setMember: (m, n) => m.#setMember(n),
    fail: (_, n) => fail(n),
    end: (m) => { m.isDone = true; },
  };
}

/** Finds the function of each instruction, once. @param {import('./compile.js').Program} program */
export function ready(program) {
  for (const one of program.code) one.run = Machine.operations[one.op];
  return program;
}
