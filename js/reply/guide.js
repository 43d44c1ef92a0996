// SPDX-License-Identifier: MIT
// Keeps the text of a reply to a grammar. The grammar holds for the text alone: thinking is free, but for its end, and
// what a model writes between the two is newlines, as many as templates do. What may follow a token takes a while to
// find out where the grammar is hard: until then the reply waits, and others go on (worker/runner.js).

import { addId, allIds, noIds, removeId } from './bits.js';
import { badParam } from '../shared/errors.js';

/** Line ends that may stand between thinking and the text. */
const BREAK = '\n\n';

export class Guide {
  #engine;
  #grammar;
  #looser;                // another one, for a text that is begun with white space
  #state;
  #sequence = null;
  #breaks = new Map();    // how many line ends a token is that is nothing else
  #room = 0;              // for line ends: none once the text has begun
  #instead;               // until the text has begun
  #token;                 // that the state does not know yet

  /** It is not known yet what may follow. */
  isBehind = false;

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {{grammar: any, looser?: any}} limits of Grammars, released with the guide
   */
  constructor(engine, { grammar, looser }) {
    this.#engine = engine;
    this.#grammar = grammar;
    this.#looser = looser;
    this.#state = grammar.start;
  }

  /**
   * What there is of the text already counts: the whole of it is what the grammar describes. Before begin().
   * @param {string} text @param {Slice} slice
   * @typedef {(act: (ms: number) => void) => Promise<void>} Slice does something for so many milliseconds, when there
   *   is time for it
   */
  async goOn(text, slice) {
    if (await this.#reads(text, slice)) return;
    if (this.#looser) {
      [this.#grammar, this.#looser] = [this.#looser, this.#grammar];
      if (await this.#reads(text, slice)) return;
    }
    throw badParam('messages', 'end with a text that does not begin what the reply is held to');
  }

  async #reads(text, slice) {
    const ids = this.#engine.tokenize(text);
    let at = 0;
    this.#state = this.#grammar.start;
    const some = (ms) => {
      const end = performance.now() + ms;
      while (at < ids.length && this.#takes(ids[at])) {
        at++;
        if (performance.now() > end) return;
      }
    };
    try {
      while (at < ids.length) await slice(some);
    } catch (error) {
      if (error.code === 'use/param') return false;
      throw error;
    }
    return true;
  }

  /** @returns {boolean} whether the state behind it is known by now */
  #takes(id) {
    const state = this.#grammar.take(this.#state, id);
    if (state === 0) return false;
    this.#state = state;
    return true;
  }

  /**
   * @param {import('../engine/sequence.js').Sequence} sequence that has begun
   * @param {import('./chat.js').Prompt} prompt
   * @param {number} [instead] a token that may come in place of the text
   */
  begin(sequence, { inside, first }, instead) {
    this.#sequence = sequence;
    this.#instead = instead;
    for (let n = 1; n <= BREAK.length; n++) {
      const ids = this.#engine.tokenize(BREAK.slice(0, n));
      if (ids.length === 1) this.#breaks.set(ids[0], n);
    }
    this.#room = inside || first ? BREAK.length : 0;
    if (inside) this.#free();
    else if (first) this.#only(first.open);
    else this.#wait();
  }

  /**
   * @param {boolean} isText whether the token is of the text
   * @param {object | null} aside the channel of what follows, which then is none
   */
  take(id, isText, aside) {
    if (aside) return this.#free();
    if (isText && this.#breaks.get(id) <= this.#room) {
      this.#room -= this.#breaks.get(id);
    } else if (isText) {
      this.#room = 0;
      this.#instead = undefined;
      this.#token = id;
    }
    this.#wait();
  }

  /**
   * Finds out what may follow, for so many milliseconds; then it is not behind any more, or goes on with the next call.
   */
  pursue(ms) {
    const end = performance.now() + ms;
    do {
      if (this.#token !== undefined && !this.#takes(this.#token)) continue;
      this.#token = undefined;
      const mask = this.#grammar.mask(this.#state);
      if (mask) this.#limit(mask);
    } while (this.isBehind && performance.now() < end);
  }

  end() {
    this.#grammar.users--;
    if (this.#looser) this.#looser.users--;
  }

  /** Whether the text is whole. */
  get isWhole() { return this.#grammar.accepts(this.#state); }

  #wait() {
    this.isBehind = true;
    this.#sequence.wait();
  }

  #limit(mask) {
    this.isBehind = false;
    if (this.#room === 0 && this.#instead === undefined) return this.#sequence.allow(mask);
    const bits = mask.slice();
    if (this.#instead !== undefined) addId(bits, this.#instead);
    for (const [id, n] of this.#breaks) if (n <= this.#room) addId(bits, id);
    return this.#sequence.allow(bits);
  }

  /** Anything but an end: nothing is said yet. */
  #free() {
    const bits = allIds(this.#engine.facts.tokens);
    for (const id of this.#engine.facts.endTokens) removeId(bits, id);
    this.#sequence.allow(bits);
  }

  #only(id) {
    const bits = noIds(this.#engine.facts.tokens);
    addId(bits, id);
    this.#sequence.allow(bits);
  }
}
