// SPDX-License-Identifier: MIT
// Expressions of jinja2's grammar, with one function for each rule, which writes the instructions for what it reads.
// Where an expression begins with what is done last (`a if b`), instructions are reordered.

import { Operands } from './operands.js';
import { Undefined } from './values.js';
import { DEEP } from './writer.js';

const COMPARISONS = ['==', '!=', '<', '<=', '>', '>='];

export class Expressions extends Operands {
  /** `a if b else c`: the instructions of a, which come first, are moved after those of b. */
  expression() {
    this.inside(() => {
      const from = this.code.length;
      const unknown = this.unknown;
      this.soft++;
      this.or();
      let n = 0;
      for (; this.tookWord('if'); n++) this.#condition(from, n);
      this.soft--;
      if (n) this.callEnd = -1;
      else if (!this.soft && this.unknown > unknown) this.noBuiltin();
    });
  }

  /** Wraps the expression that was read before `if`. */
  #condition(from, n) {
    if (n > DEEP) this.wrong('it is nested too deep');
    const middle = this.code.length;
    this.or();
    const size = this.code.length - middle;
    this.emit('jumpFalse');
    this.swap(from, middle);
    const end = this.emit('jump');
    this.link(from + size);
    if (this.tookWord('else')) this.expression();
    else this.emit('constant', new Undefined('the else of a condition'));
    this.link(end);
  }

  #decided(word, op, part) {
    part();
    while (this.tookWord(word)) {
      const jump = this.emit(op);
      part();
      this.link(jump);
      this.callEnd = -1;
    }
  }

  or() { this.inside(() => this.#decided('or', 'or', () => this.#and())); }

  #and() { this.#decided('and', 'and', () => this.#not()); }

  #not() {
    let n = 0;
    while (this.tookWord('not')) n++;
    this.#comparison();
    for (let i = 0; i < Math.min(n, 2 + (n % 2)); i++) this.emit('not');
  }

  #tookComparison() {
    if (COMPARISONS.includes(this.token.type)) return this.next().type;
    if (this.tookWord('in')) return 'in';
    if (!this.isWord('not') || this.look().text !== 'in' || this.look().type !== 'name') return '';
    this.next();
    this.next();
    return 'not in';
  }

  #comparison() {
    const ends = [];
    this.#sum();
    let sign = this.#tookComparison();
    if (!sign) return;
    this.#sum();
    for (let more = this.#tookComparison(); more; more = this.#tookComparison()) {
      ends.push(this.emit('chain', { sign, jump: 0 }));
      sign = more;
      this.#sum();
    }
    this.emit('compare', sign);
    for (const end of ends) this.link(end);
  }

  #binary(signs, part) {
    part();
    while (this.is(...signs)) {
      const sign = this.next().type;
      part();
      this.emit('binary', sign);
    }
  }

  #sum() { this.#binary(['+', '-'], () => this.#concatenation()); }

  #concatenation() {
    let n = 1;
    this.#product();
    for (; this.took('~'); n++) this.#product();
    if (n > 1) this.emit('concat', n);
  }

  #product() { this.#binary(['*', '/', '%', '//'], () => this.#binary(['**'], () => this.#unary(true))); }

  #unary(isFiltered) {
    this.inside(() => {
      if (this.is('-', '+')) {
        const { type } = this.next();
        this.#unary(false);
        this.emit('sign', type);
      } else this.primary();
      this.postfix();
      while (isFiltered && this.filterOrTest());
    });
  }

}
