// SPDX-License-Identifier: MIT
// Sequences of text and tags, the wrappings of bodies, and targets of assignments, which come before the assigned value
// and are read twice.

import { Expressions } from './expressions.js';

export class Bodies extends Expressions {
  /** The innermost loop that `break` would leave. @type {{next: number, breaks: number[]} | null} */
  loop = null;

  /** Reads a tag after its word: up to its end, or up to the end of its closing tag if it has a body. */
  statement() {}

  /** Reads text and tags; with `ends`, up to the word of one of these tags, which comes next. */
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

  /** Reads a body after its opening tag. @returns {string} the word of the closing tag */
  bodyOf(...ends) {
    this.took(':');
    this.endOfTag('%}');
    this.body(...ends);
    return this.next().text;
  }

  /** Reads in a new scope. @param {boolean} [isAlone] if true, only the outermost names are visible in it */
  scope(read, isAlone = false) {
    this.inner++;
    this.emit('scope', isAlone);
    read();
    this.emit('scopeEnd');
    this.inner--;
  }

  /** Reads something that `break` cannot leave. */
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

  /** @returns {number} a position for targetAgain() */
  skipTarget(canBeMember) {
    this.inner++;
    const place = this.skip(() => this.#target(canBeMember));
    this.inner--;
    return place;
  }

  targetAgain(place, canBeMember) { this.again(place, () => this.#target(canBeMember)); }
}
