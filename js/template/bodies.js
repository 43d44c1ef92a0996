// SPDX-License-Identifier: MIT
// Text and tags in a row, what their bodies are wrapped in, and targets of assignments, which stand before what is
// assigned and are read twice.

import { Expressions } from './expressions.js';

export class Bodies extends Expressions {
  /** The innermost loop that `break` would leave. @type {{next: number, breaks: number[]} | null} */
  loop = null;

  /**
   * Reads a tag behind its word, up to its end or, where it has a body, to the end of the tag that ends that. @abstract
   */
  statement() {}

  /** Text and tags; with `ends` up to the word of one of these, which comes next. */
  body(...ends) {
    this.inside(() => {
      while (!this.is('over')) {
        if (this.is('data')) this.emit('data', this.next().text);
        else if (this.took('variable')) {
          this.tuple();
          this.emit('print');
          this.endOfTag('}}');
        } else {
          this.next();
          if (this.isWord(...ends)) return;
          this.statement();
          this.endOfTag('%}');
        }
      }
      if (ends.length) this.wrong(`a tag is missing (${ends.join(', ')})`);
    });
  }

  endOfTag(mark) {
    if (this.token.text === mark) this.expect('end', mark);
    else this.wrong(`${mark} is missing`);
  }

  /** Behind the tag that opens it. @returns {string} the word of the tag that ends it */
  bodyOf(...ends) {
    this.took(':');
    this.endOfTag('%}');
    this.body(...ends);
    return this.next().text;
  }

  /** In a scope of its own. @param {boolean} [isAlone] only the outermost names are seen in it */
  scope(read, isAlone = false) {
    this.inner++;
    this.emit('scope', isAlone);
    read();
    this.emit('scopeEnd');
    this.inner--;
  }

  /** What cannot be left by `break`. */
  closed(read) {
    const loop = this.loop;
    this.loop = null;
    read();
    this.loop = loop;
  }

  #target(canBeMember) {
    this.inside(() => {
      const unpack = this.emit('unpack');
      let n = 0;
      do {
        this.#targetPart(canBeMember);
        n++;
      } while (this.took(','));
      this.code[unpack] = n > 1 ? { op: 'unpack', n } : { op: 'jump', n: 0 };
    });
  }

  #targetPart(canBeMember) {
    if (this.took('(')) {
      this.#target(false);
      this.expect(')', 'a )');
      return;
    }
    const name = this.ownName();
    if (canBeMember && this.took('.')) {
      this.emit('setMember', { of: name, name: this.name() });
      return;
    }
    this.note(name, true);
    this.emit('store', name);
  }

  /** @returns {number} a place for targetAgain() */
  skipTarget(canBeMember) {
    this.inner++;
    const place = this.skip(() => this.#target(canBeMember));
    this.inner--;
    return place;
  }

  targetAgain(place, canBeMember) { this.again(place, () => this.#target(canBeMember)); }
}
