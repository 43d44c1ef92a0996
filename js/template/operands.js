// SPDX-License-Identifier: MIT
// What expressions are made of: literals, names, calls, subscripts, filters and tests, as jinja2's grammar has them.

import { FILTERS } from './filters.js';
import { find } from './late.js';
import { unescaped } from './lexer.js';
import { readFloat, readInt } from './numbers.js';
import { TESTS } from './tests.js';
import { Writer } from './writer.js';

const WORDS = new Map([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', null],
  ['None', null],
]);

/**
 * What of a call is on the stack: arguments without names, with names, a list and a dict of more, a caller.
 * @typedef {{n: number, names: string[], star?: boolean, starStar?: boolean, caller?: boolean}} Shape
 */

export class Operands extends Writer {
  /**
   * Levels below the outermost one, whose names are their own; loops around; conditions at the outermost level; names
   * that it sets before it reads them.
   */
  inner = 0;
  loops = 0;
  branches = 0;
  own = new Set();
  /** Conditions around: filters that do not exist fail only where they are used. */
  soft = 0;
  /** The innermost macro, which must know of what it asks for. @type {{asks: Set<string>} | null} */
  macro = null;
  #used = new Set();
  unknown = 0;            // filters and tests that do not exist
  callEnd = -1;           // behind the last instruction, where that is a call and the whole expression

  /** @abstract */
  expression() {}

  /** An expression without `if`. @abstract */
  or() {}

  /** A word that means a value. @returns {boolean} whether there was one */
  #constantWord() {
    if (!this.is('name') || !WORDS.has(this.token.text)) return false;
    this.emit('constant', WORDS.get(this.next().text));
    return true;
  }

  /** The name of something that is set. */
  ownName() {
    if (WORDS.has(this.token.text)) this.wrong('a word that means a value cannot be set');
    return this.name();
  }

  primary() {
    if (this.#constantWord()) return;
    const { type, text } = this.token;
    if (type === 'name') {
      this.next();
      this.macro?.asks.add(text);
      this.note(text, false);
      this.emit('load', text);
    } else if (type === 'string') this.emit('constant', this.#string());
    else if (type === 'int' || type === 'float') this.emit('constant', this.#number());
    else if (this.took('(')) {
      this.tuple({ inBrackets: true });
      this.expect(')', 'a )');
    } else if (this.took('[')) this.emit('list', this.#listed(']', () => this.expression()));
    else if (this.took('{')) this.emit('dict', this.#listed('}', () => this.#pair()));
    else this.wrong('an expression is missing');
  }

  #string() {
    let text = '';
    while (this.is('string')) text += unescaped(this.next().text);
    return text;
  }

  #number() {
    const { type, text } = this.next();
    const digits = text.replaceAll('_', '');
    return type === 'int' ? readInt(digits, 0) : readFloat(digits);
  }

  #listed(end, part) {
    let n = 0;
    for (; !this.is(end); n++) {
      part();
      if (!this.is(end)) this.expect(',', `a comma or ${end}`);
    }
    this.next();
    return n;
  }

  #pair() {
    this.expression();
    this.expect(':', 'a colon');
    this.expression();
  }

  postfix() {
    for (;;) {
      if (this.is('(')) this.#call();
      else if (this.took('.')) this.#member();
      else if (this.took('[')) this.#subscript();
      else return;
    }
  }

  #member() {
    if (!this.is('int')) {
      this.emit('member', this.name());
      return;
    }
    this.emit('constant', this.#number());
    this.emit('item');
  }

  #subscript() {
    let isSlice = false;
    let n = 0;
    do {
      isSlice = this.#slice() || isSlice;
      n++;
    } while (this.took(','));
    this.expect(']', 'a ]');
    if (isSlice && n > 1) this.wrong('a slice cannot be a part of a key');
    if (n !== 1) this.emit('tuple', n);
    this.emit(isSlice ? 'slice' : 'item');
  }

  /** `start:stop:step`, None where one is left out. @returns {boolean} false: it is an expression alone */
  #slice() {
    let colons = 0;
    const part = (...ends) => {
      if (this.is(':', ...ends)) this.emit('constant', null);
      else this.expression();
    };
    part();
    for (; colons < 2 && this.took(':'); colons++) part(']', ',');
    if (colons === 1) this.emit('constant', null);
    return colons > 0;
  }

  #call() {
    this.emit('call', this.#arguments());
    this.callEnd = this.code.length;
  }

  /** What is between the brackets of a call. @returns {Shape} */
  #arguments() {
    const shape = { n: 0, names: [], star: false, starStar: false };
    this.expect('(', 'a (');
    while (!this.is(')')) {
      const isNamed = this.is('name') && this.look().type === '=';
      if (shape.starStar || (shape.star && !this.is('**')) || (shape.names.length && !isNamed && !this.is('*', '**'))) {
        this.wrong('an argument is at a wrong place');
      }
      if (this.took('*')) shape.star = true;
      else if (this.took('**')) shape.starStar = true;
      else if (isNamed) {
        shape.names.push(this.name());
        this.next();
      } else shape.n++;
      this.expression();
      if (!this.is(')')) this.expect(',', 'a comma or )');
    }
    this.next();
    return shape;
  }

  noBuiltin() { this.wrong('there is no such filter or test:'); }

  /** A filter or test by a name, which may have dots; without one it fails where it is used. */
  #builtin(kind, known) {
    let name = this.name();
    while (this.took('.')) name += `.${this.name()}`;
    const builtin = find(kind, known, name);
    if (!builtin) this.unknown++;
    if (!builtin && !this.soft) this.noBuiltin();
    return { builtin, name };
  }

  filter() {
    const builtin = this.#builtin('filter', FILTERS);
    this.emit('builtin', { ...builtin, shape: this.is('(') ? this.#arguments() : { n: 0, names: [] } });
  }

  #test() {
    const isNegated = this.tookWord('not');
    const builtin = this.#builtin('test', TESTS);
    let shape = { n: 0, names: [] };
    if (this.is('(')) shape = this.#arguments();
    else if (this.is('string', 'int', 'float', '[', '{') || (this.is('name') && !this.isWord('else', 'or', 'and'))) {
      if (this.isWord('is')) this.wrong('tests cannot be chained');
      this.primary();
      this.postfix();
      shape.n = 1;
    }
    this.emit('builtin', { ...builtin, shape });
    if (isNegated) this.emit('not');
  }

  filterOrTest() {
    if (this.took('|')) this.filter();
    else if (this.tookWord('is')) this.#test();
    else if (this.is('(')) this.#call();
    else return false;
    return true;
  }

  /**
   * A name that the outermost level sets before it reads it is undefined until then, whatever the variables say; so
   * others see it too.
   */
  note(name, sets) {
    if (sets && this.loops && name === 'loop') this.wrong("a loop keeps the name 'loop' for itself");
    if (this.inner) return;
    if (sets && !this.#used.has(name) && !this.branches) this.own.add(name);
    this.#used.add(name);
  }

  /** Takes the call that an expression is back out of the program. @returns {object | null} its shape */
  takeCall() { return this.callEnd === this.code.length ? this.code.pop().n : null; }

  tupleEnds(stop = '') { return this.is('end', ')') || this.isWord(stop); }

  /** Expressions with commas between them are a tuple, one alone is itself. */
  tuple({ inBrackets = false, conditional = true, stop = '' } = {}) {
    let n = 0;
    let comma = false;
    for (; !this.tupleEnds(stop); comma = true) {
      if (conditional) this.expression();
      else this.or();
      n++;
      if (!this.took(',')) break;
    }
    if (n === 0 && !inBrackets) this.wrong('an expression is missing');
    if (comma || n === 0) this.emit('tuple', n);
  }
}
