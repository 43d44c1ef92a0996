// SPDX-License-Identifier: MIT
// Keeps the text of a reply to a grammar. The grammar applies to the text only: thinking is free except that it must
// end, and between thinking and text there may be as many newlines as templates write. If the grammar is difficult,
// finding the tokens that may come next takes a while; then the reply waits, and others continue (worker/runner.js).

import { addId, allIds, noIds, removeId } from './bits.js';
import { badParam } from '../shared/errors.js';

/** Newlines that may come between thinking and the text. */
const BREAK = '\n\n';

/** Drafts the tokens of the text that must follow, if the grammar leaves no other. */
export function draftForced(engine, sequence, grammar, state) {
  const ids = grammar.forced(state, (text) => engine.tokenize(text));
  if (ids) sequence.draft(ids);
}

export class Guide {
  #engine;
  #grammar;
  #looser;                // a grammar for a continued text with white space
  #state;
  #sequence = null;
  #breaks = new Map();    // tokens of newlines only -> their number of newlines
  #room = 0;              // newlines that may still come; 0 once the text has begun
  #instead;               // a token that may come instead of the text
  #token;                 // last token, if #state does not include it yet

  /** Whether the tokens that may come next are not known yet. */
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
   * Continues a text that has begun; the grammar describes the whole text. Called before begin().
   * @param {string} text @param {Slice} slice
   * @typedef {(act: (ms: number) => void) => Promise<void>} Slice runs `act`, for that many milliseconds, when there is
   *   time for it
   */
  async goOn(text, slice) {
    if (await this.#reads(text, slice)) return;
    if (this.#looser) {
      [this.#grammar, this.#looser] = [this.#looser, this.#grammar];
      if (await this.#reads(text, slice)) return;
    }
    throw badParam('messages', 'end with a text that cannot begin a reply of this format');
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

  /** @returns {boolean} whether the state after the token is known */
  #takes(id) {
    const state = this.#grammar.take(this.#state, id);
    if (state === 0) return false;
    this.#state = state;
    return true;
  }

  /**
   * @param {import('../engine/sequence.js').Sequence} sequence that has begun
   * @param {import('./chat.js').Prompt} prompt
   * @param {number} [instead] a token that may come instead of the text
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
   * @param {boolean} isText whether the token belongs to the text
   * @param {object | null} aside channel of the next token; null: the next token is text
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

  /** Searches for the tokens that may come next, for that many milliseconds. Sets isBehind to false when it is done. */
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

  /** Whether the text is complete. */
  get isWhole() { return this.#grammar.accepts(this.#state); }

  #wait() {
    this.isBehind = true;
    this.#sequence.wait();
  }

  #limit(mask) {
    this.isBehind = false;
    this.#sequence.allow(this.#room === 0 && this.#instead === undefined ? mask : this.#widened(mask));
    draftForced(this.#engine, this.#sequence, this.#grammar, this.#state);
  }

  /** The set with the tokens that may come before the text, or instead of it. */
  #widened(mask) {
    const bits = mask.slice();
    if (this.#instead !== undefined) addId(bits, this.#instead);
    for (const [id, n] of this.#breaks) if (n <= this.#room) addId(bits, id);
    return bits;
  }

  /** Allows all tokens except an end, since the text has not begun. */
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
