// SPDX-License-Identifier: MIT
// Statements: compiles a template's text to a program in one pass. Where a tag begins with what is done last (targets
// of `set`), tokens are read again.

import { Loops } from './loops.js';
import { tokensOf } from './lexer.js';

/** Tags that use other templates. */
const OTHERS = ['include', 'import', 'from', 'extends'];

const MOST_PARAMETERS = 255;

class Statements extends Loops {
  #blocks = new Set();

  statement() {
    const { text, type } = this.token;
    const read = type === 'name' && STATEMENTS.get(text);
    if (!read) this.wrong('there is no such tag:');
    this.next();
    read(this);
  }

  #captured(end) {
    this.emit('capture');
    this.scope(() => this.bodyOf(end));
    this.emit('captured');
  }

  #filters() { while (this.took('|')) this.filter(); }

  set() {
    const to = this.skipTarget(true);
    if (this.took('=')) this.tuple();
    else {
      const filters = this.skip(() => this.#filters());
      this.#captured('endset');
      this.again(filters, () => this.#filters());
    }
    this.targetAgain(to, true);
  }

  if() {
    const done = [];
    this.soft++;
    this.branches++;
    for (let word = 'elif'; word === 'elif';) {
      this.tuple({ conditional: false });
      const skip = this.emit('jumpFalse');
      word = this.bodyOf('elif', 'else', 'endif');
      if (word !== 'endif') done.push(this.emit('jump'));
      this.link(skip);
      if (word === 'else') this.bodyOf('endif');
    }
    for (const jump of done) this.link(jump);
    this.branches--;
    this.soft--;
  }

  with() {
    const targets = [];
    while (!this.is('end', 'over')) {
      if (targets.length) this.expect(',', 'a comma');
      targets.push(this.skipTarget(false));
      this.expect('=', 'a =');
      this.expression();
    }
    this.scope(() => {
      for (const target of targets.reverse()) this.targetAgain(target, false);
      this.bodyOf('endwith');
    });
  }

  /** Reads the parameters of a macro, and writes code for their defaults. */
  #signature() {
    const params = [];
    let hasDefault = false;
    this.expect('(', 'a (');
    while (!this.is(')')) {
      if (params.length) this.expect(',', 'a comma or )');
      if (params.length === MOST_PARAMETERS) this.wrong('a macro has too many parameters');
      const name = this.ownName();
      if (params.some((param) => param.name === name)) this.wrong('a parameter occurs twice');
      params.push({ name, hasDefault: this.is('=') });
      if (this.took('=')) {
        const given = this.emit('default', { name, jump: 0 });
        this.expression();
        this.emit('store', name);
        this.link(given);
        hasDefault = true;
      } else if (hasDefault) this.wrong('a parameter without a default follows one with a default');
    }
    this.next();
    return params;
  }

  #skipSignature() {
    this.inner++;
    const place = this.skip(() => this.#signature());
    this.inner--;
    return place;
  }

  /**
   * Writes the code of a macro, or of the body that a `call` passes to one, and the instruction that makes it a value.
   */
  #macro(name, signature, end) {
    const macro = { name, params: [], asks: new Set(), entry: 0 };
    const outer = this.macro;
    this.macro = macro;
    this.inner++;
    this.emit('macro', macro);
    const skip = this.emit('jump');
    macro.entry = this.code.length;
    const { soft } = this;
    this.soft = 0;
    if (signature !== undefined) this.again(signature, () => { macro.params = this.#signature(); });
    this.closed(() => this.bodyOf(end));
    this.soft = soft;
    this.emit('return');
    this.link(skip);
    this.inner--;
    this.macro = outer;
    for (const asked of macro.asks) outer?.asks.add(asked);
    const caller = macro.params.find((param) => param.name === 'caller');
    if (caller && !caller.hasDefault && macro.asks.has('caller')) this.wrong("the parameter 'caller' needs a default");
  }

  macroTag() {
    const name = this.ownName();
    this.#macro(name, this.#skipSignature(), 'endmacro');
    this.note(name, true);
    this.emit('store', name);
  }

  call() {
    const signature = this.is('(') ? this.#skipSignature() : undefined;
    this.expression();
    const shape = this.takeCall();
    if (!shape) this.wrong('a call is missing');
    this.#macro('caller', signature, 'endcall');
    this.emit('call', { ...shape, caller: true });
    this.emit('print');
  }

  filterTag() {
    const chain = () => {
      const { soft } = this;
      this.soft = 0;
      this.filter();
      this.#filters();
      this.soft = soft;
    };
    const place = this.skip(chain);
    this.#captured('endfilter');
    this.again(place, chain);
    this.emit('printText');
  }

  print() {
    if (this.is('end')) return;
    do {
      this.expression();
      this.emit('print');
    } while (this.took(','));
  }

  block() {
    const name = this.name();
    if (this.#blocks.has(name)) this.wrong('a block occurs twice');
    this.#blocks.add(name);
    const isScoped = this.tookWord('scoped');
    this.closed(() => this.scope(() => this.bodyOf('endblock'), !isScoped));
    this.tookWord(name);
  }

  /** transformers' mark of the assistant's text. */
  generation() { this.closed(() => this.scope(() => this.bodyOf('endgeneration'))); }

  autoescape() {
    if (!this.tookWord('false') && !this.tookWord('False')) this.wrong("only 'autoescape false' is supported");
    this.scope(() => this.bodyOf('endautoescape'));
  }

  /** Other templates do not exist. */
  other() {
    while (!this.is('end', 'over')) this.next();
    this.emit('fail', 'a chat template cannot use other templates');
  }
}

const NAMED = ['set', 'if', 'for', 'break', 'continue', 'with', 'call', 'print', 'block', 'generation', 'autoescape'];

/** @type {Map<string, (s: Statements) => void>} */
const STATEMENTS = new Map([
  ...NAMED.map((name) => [name, (s) => s[name]()]), ...OTHERS.map((name) => [name, (s) => s.other()]),
  ['macro', (s) => s.macroTag()], ['filter', (s) => s.filterTag()],
]);

/** @typedef {{code: import('./writer.js').Instruction[], own: Set<string>}} Program own: names that hide variables */

/** @param {string} source @returns {Program} */
export function compile(source) {
  const statements = new Statements(tokensOf(source));
  statements.body();
  statements.emit('end');
  return { code: statements.code, own: statements.own };
}
