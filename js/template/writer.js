// SPDX-License-Identifier: MIT
// A program being written: instructions, and a list of tokens that can be read again. Jumps are relative to the next
// instruction, so that instructions can be moved together.

import { TemplateError } from './meter.js';

/** Most nested rules, and instructions. */
export const DEEP = 200;
const MOST_CODE = 2 ** 20;

/** @typedef {{op: string, n: any}} Instruction see machine.js */

export class Writer {
  /** @type {Instruction[]} */
  code = [];
  #tokens;
  #place = 0;
  #depth = 0;

  constructor(tokens) { this.#tokens = tokens; }

  // --- instructions ---

  /** @returns {number} its index */
  emit(op, n = 0) {
    if (this.code.length >= MOST_CODE) throw new TemplateError('it is too large');
    return this.code.push({ op, n }) - 1;
  }

  /** Sets the target of the jump at `place`; by default the next instruction to be written. */
  link(place, to = this.code.length) {
    const { n } = this.code[place];
    const distance = to - place - 1;
    if (typeof n === 'object') n.jump = distance;
    else this.code[place].n = distance;
  }

  /** Moves the instructions between `from` and `middle` to the end. */
  swap(from, middle) { this.code.push(...this.code.splice(from, middle - from)); }

  /** Reads something whose instructions are written later. @returns {number} its position, for again() */
  skip(read) {
    const [place, n] = [this.#place, this.code.length];
    read();
    this.code.length = n;
    return place;
  }

  /** Reads again from a position. */
  again(place, read) {
    const now = this.#place;
    this.#place = place;
    read();
    this.#place = now;
  }

  // --- tokens ---

  get token() { return this.#tokens[this.#place]; }

  get place() { return this.#place; }

  look() { return this.#tokens[this.#place + 1] ?? this.token; }

  next() {
    const { token } = this;
    if (token.type !== 'over') this.#place++;
    return token;
  }

  is(...types) { return types.includes(this.token.type); }

  isWord(...words) { return this.token.type === 'name' && words.includes(this.token.text); }

  took(type) { return this.is(type) && Boolean(this.next()); }

  tookWord(word) { return this.isWord(word) && Boolean(this.next()); }

  expect(type, what) { return this.is(type) ? this.next() : this.wrong(`${what} is missing`); }

  name() { return this.expect('name', 'a name').text; }

  /** @returns {never} */
  wrong(what) {
    const { type, text } = this.token;
    throw new TemplateError(type === 'over' ? `${what} at its end` : `${what} near '${(text || type).slice(0, 40)}'`);
  }

  /** Reads a rule that may contain itself. */
  inside(read) {
    if (++this.#depth > DEEP) this.wrong('it is nested too deep');
    read();
    this.#depth--;
  }
}
