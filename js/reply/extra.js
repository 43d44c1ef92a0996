// SPDX-License-Identifier: MIT
// What goes with a reply that asks for more than its text (generation.js calls it, token by token): the probabilities of its tokens, and a grammar
// that its text obeys. The grammar holds for the text alone: thinking is free, but for its end, and what a model writes between the two is newlines,
// as many as templates do.

import { logprobs } from './logprobs.js';

const bitsOf = (n) => new Uint32Array(Math.ceil(n / 32));
const add = (bits, id) => { bits[id >>> 5] |= 1 << (id & 31); };
const remove = (bits, id) => { bits[id >>> 5] &= ~(1 << (id & 31)); };

/** Line ends that may stand between thinking and the text. */
const BREAK = '\n\n';

/** Keeps the text of a reply to a grammar. */
export class Guide {
  #engine;
  #grammar;
  #state;
  #sequence = null;
  #breaks = new Map();    // how many line ends a token is that is nothing else
  #room = 0;              // for line ends: none once the text has begun

  /** @param {import('../engine/engine.js').Engine} engine @param {any} grammar of Grammars, released with the guide */
  constructor(engine, grammar) {
    this.#engine = engine;
    this.#grammar = grammar;
    this.#state = grammar.start;
  }

  /** @param {import('../engine/sequence.js').Sequence} sequence that has begun @param {import('./chat.js').Prompt} prompt */
  begin(sequence, { inside, first }) {
    this.#sequence = sequence;
    for (let n = 1; n <= BREAK.length; n++) {
      const ids = this.#engine.tokenize(BREAK.slice(0, n));
      if (ids.length === 1) this.#breaks.set(ids[0], n);
    }
    this.#room = inside || first ? BREAK.length : 0;
    if (inside) this.#free();
    else if (first) this.#only(first.open);
    else this.#limit();
  }

  /** @param {boolean} isText whether the token is of the text @param {object | null} aside the channel of what follows, which then is none */
  take(id, isText, aside) {
    if (aside) return this.#free();
    if (isText && this.#breaks.get(id) <= this.#room) {
      this.#room -= this.#breaks.get(id);
      return this.#limit();
    }
    if (isText) {
      this.#room = 0;
      this.#state = this.#grammar.take(this.#state, id);
    }
    return this.#limit();
  }

  end() { this.#grammar.users--; }

  /** Whether the text is whole. */
  get isWhole() { return this.#grammar.accepts(this.#state); }

  #limit() {
    const mask = this.#grammar.mask(this.#state);
    if (this.#room === 0) return this.#sequence.allow(mask);
    const bits = mask.slice();
    for (const [id, n] of this.#breaks) if (n <= this.#room) add(bits, id);
    return this.#sequence.allow(bits);
  }

  /** Anything but an end: nothing is said yet. */
  #free() {
    const bits = bitsOf(this.#engine.facts.tokens).fill(0xffffffff);
    for (const id of this.#engine.facts.endTokens) remove(bits, id);
    this.#sequence.allow(bits);
  }

  #only(id) {
    const bits = bitsOf(this.#engine.facts.tokens);
    add(bits, id);
    this.#sequence.allow(bits);
  }
}

export class Extra {
  #engine;
  #sequence;
  #most;                  // likeliest tokens; undefined: none are told
  #thoughts = [];
  #told = 0;              // of them, by events
  #guide;                 // that says what may follow; undefined: anything
  #value;
  #notes;                 // on schemas, of which something was passed over

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {{logprobs?: number, guide?: any, value?: 'json' | 'text', notes?: object[]}} asked guide: a Guide or a CallGuide; value: what the
   *   text is made, once whole
   */
  constructor(engine, { logprobs: most, guide, value, notes = [] }) {
    this.#engine = engine;
    this.#most = most;
    this.#guide = guide;
    this.#value = value;
    this.#notes = notes;
  }

  begin(sequence, prompt) {
    this.#sequence = sequence;
    this.#guide?.begin(sequence, prompt);
  }

  /** Right after the step that wrote it. See Guide. */
  take(id, isText, aside) {
    if (isText && this.#most !== undefined) this.#think(id);
    this.#guide?.take(id, isText, aside);
  }

  #think(id) {
    const row = this.#sequence.logits().rows.subarray(0, this.#engine.facts.tokens);
    const [own, ...top] = logprobs(row, id, this.#most).map((one) => ({ ...one, text: this.#engine.detokenize([one.id]) }));
    this.#thoughts.push({ ...own, top });
  }

  /** An event of text has what was thought of it. */
  told(event) {
    if (event.type !== 'text' || this.#told === this.#thoughts.length) return event;
    const fresh = this.#thoughts.slice(this.#told);
    this.#told = this.#thoughts.length;
    return { ...event, logprobs: fresh };
  }

  end() { this.#guide?.end(); }

  /**
   * What the result has in addition; `isJson`: the page makes the value of the text, since what is nested deeply cannot be sent.
   * @param {string} text @param {boolean} byItself whether nothing cut it off
   */
  result(text, byItself) {
    const value = byItself && this.#guide?.isWhole ? this.#value : undefined;
    return {
      ...(this.#most !== undefined && { logprobs: this.#thoughts }),
      ...(this.#notes.length > 0 && { schemaNotes: this.#notes }),
      ...(value === 'json' && { isJson: true }), ...(value === 'text' && { value: text }),
    };
  }
}
