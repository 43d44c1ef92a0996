// SPDX-License-Identifier: MIT
// Operands of expressions in jinja2's grammar: literals, names, calls, subscripts, filters and tests.

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
 * The parts of a call that are on the stack: positional arguments, named ones, a list and a dict of more, a caller.
 * @typedef {{n: number, names: string[], star?: boolean, starStar?: boolean, caller?: boolean}} Shape
 */

export class Operands extends Writer {
  /**
   * inner: levels below the outermost one, which have names of their own; loops: loops around; branches: conditions at
   * the outermost level; own: names that it sets before it reads them.
   */
  inner = 0;
  loops = 0;
  branches = 0;
  own = new Set();
  /** Conditions around: there an unknown filter fails only when it is used. */
  soft = 0;
  /** The innermost macro, which must know which names its body uses. @type {{asks: Set<string>} | null} */
  macro = null;
  #used = new Set();
  unknown = 0;            // number of unknown filters and tests
  callEnd = -1;           // position after the last instruction, if that is a call and the whole expression

  /** @abstract */
  expression() {}

  /** An expression without `if`. */
  or() {}

  /** Reads a word that is a constant. @returns {boolean} whether there was one */
  #constantWord() {
    if (!this.is('name') || !WORDS.has(this.token.text)) return false;
    this.emit('constant', WORDS.get(this.next().text));
    return true;
  }

  /** The name of a variable that is set. */
  ownName() {
    if (WORDS.has(this.token.text)) this.wrong('a constant cannot be set');
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

  /** Reads `start:stop:step`; a missing part is None. @returns {boolean} false: it is only an expression */
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

  /** Reads the arguments in the brackets of a call. @returns {Shape} */
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

  /** Finds a filter or test by its name, which may have dots; an unknown one fails where it is used. */
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
   * Notes a use of a name. A name that the outermost level sets before it reads it is undefined until then, even if
   * there is a variable with that name; other levels see the same.
   */
  note(name, sets) {
    if (sets && this.loops && name === 'loop') this.wrong("the name 'loop' is reserved in a loop");
    if (this.inner) return;
    if (sets && !this.#used.has(name) && !this.branches) this.own.add(name);
    this.#used.add(name);
  }

  /** Removes the call at the end of an expression from the program. @returns {object | null} its shape */
  takeCall() { return this.callEnd === this.code.length ? this.code.pop().n : null; }

  tupleEnds(stop = '') { return this.is('end', ')') || this.isWord(stop); }

  /** Several expressions with commas are a tuple; a single one is itself. */
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
