// SPDX-License-Identifier: MIT
// What goes with a reply that asks for more than its text (generation.js calls it, token by token): the probabilities of its tokens, and a grammar
// that its text obeys. The grammar holds for the text alone: thinking is free, but for its end, and what a model writes between the two is newlines,
// as many as templates do.

import { fillIn } from './fill-in.js';
import { thoughtOf } from './logprobs.js';
import { PromptScores } from './prompt-scores.js';
import { badParam } from '../shared/errors.js';

const bitsOf = (n) => new Uint32Array(Math.ceil(n / 32));
const add = (bits, id) => { bits[id >>> 5] |= 1 << (id & 31); };
const remove = (bits, id) => { bits[id >>> 5] &= ~(1 << (id & 31)); };

/** Line ends that may stand between thinking and the text. */
const BREAK = '\n\n';

/** Keeps the text of a reply to a grammar. */
export class Guide {
  #engine;
  #grammar;
  #looser;                // another one, for a text that is begun with white space
  #state;
  #sequence = null;
  #breaks = new Map();    // how many line ends a token is that is nothing else
  #room = 0;              // for line ends: none once the text has begun
  #instead;               // until the text has begun

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

  /** What there is of the text already counts: the whole of it is what the grammar describes. Before begin(). */
  goOn(text) {
    if (this.#reads(text)) return;
    if (this.#looser) {
      [this.#grammar, this.#looser] = [this.#looser, this.#grammar];
      if (this.#reads(text)) return;
    }
    throw badParam('messages', 'end with a text that does not begin what the reply is held to');
  }

  #reads(text) {
    let state = this.#grammar.start;
    try {
      for (const id of this.#engine.tokenize(text)) state = this.#grammar.take(state, id);
    } catch (error) {
      if (error.code === 'use/param') return false;
      throw error;
    }
    this.#state = state;
    return true;
  }

  /**
   * @param {import('../engine/sequence.js').Sequence} sequence that has begun @param {import('./chat.js').Prompt} prompt
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
      this.#instead = undefined;
      this.#state = this.#grammar.take(this.#state, id);
    }
    return this.#limit();
  }

  end() {
    this.#grammar.users--;
    if (this.#looser) this.#looser.users--;
  }

  /** Whether the text is whole. */
  get isWhole() { return this.#grammar.accepts(this.#state); }

  #limit() {
    const mask = this.#grammar.mask(this.#state);
    if (this.#room === 0 && this.#instead === undefined) return this.#sequence.allow(mask);
    const bits = mask.slice();
    if (this.#instead !== undefined) add(bits, this.#instead);
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
  #ofPrompt;              // the same of the prompt's
  #isPlain = false;       // a completion: each token counts, shown or not, and the one that ends it
  #promptThoughts;
  #suffix;
  #thoughts = [];
  #told = 0;              // of them, by events
  #guide;                 // that says what may follow; undefined: anything
  #value;
  #notes;                 // on schemas, of which something was passed over
  #begun = '';            // of the text, before the reply

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {{logprobs?: number, promptLogprobs?: number, suffix?: string, guide?: any, value?: 'json' | 'text', notes?: object[]}} asked
   *   guide: a Guide or a CallGuide; value: what the text is made, once whole
   */
  constructor(engine, { logprobs: most, promptLogprobs, suffix, guide, value, notes = [] }) {
    this.#engine = engine;
    this.#most = most;
    this.#ofPrompt = promptLogprobs;
    this.#suffix = suffix;
    this.#guide = guide;
    this.#value = value;
    this.#notes = notes;
  }

  /**
   * The prompt of a completion.
   * @param {import('./chat.js').Chat} chat @param {string | Int32Array} given @param {import('./chat.js').Asker} asker
   */
  async prompt(chat, given, asker) {
    this.#isPlain = true;
    return this.#suffix === undefined ? chat.plain(given, asker) : fillIn(this.#engine, chat, given, this.#suffix, asker);
  }

  /**
   * What is thought of a prompt, where that is wanted, before its reply begins.
   * @param {import('./chat.js').Prompt} prompt @param {{place: object, read: (done: number, began: number) => void}} reply
   * @param {(work: PromptScores) => Promise<object[]>} run
   * @param {(event: object) => void} emit
   */
  async read({ ids }, reply, run, emit) {
    if (this.#ofPrompt === undefined) return;
    const scores = new PromptScores(this.#engine, ids, {
      ...reply.place, most: this.#ofPrompt, onRead: (done, began) => reply.read(done, began),
    });
    const thoughts = ids.length > 1 ? await run(scores) : scores.stop();
    if (thoughts.length < ids.length) return;
    this.#promptThoughts = thoughts;
    emit({ type: 'prompt', logprobs: thoughts });
  }

  /** The reply is the rest of a text. */
  goOn(text) {
    this.#begun = text;
    this.#guide?.goOn?.(text);
  }

  begin(sequence, prompt) {
    this.#sequence = sequence;
    this.#guide?.begin(sequence, prompt);
  }

  /** Right after the step that wrote it. See Guide. */
  take(id, isText, aside) {
    if (isText || this.#isPlain) this.#think(id);
    this.#guide?.take(id, isText, aside);
  }

  /** The token that ended it, which it does not have. */
  last(id) {
    if (this.#isPlain) this.#think(id);
  }

  #think(id) {
    if (this.#most !== undefined) this.#thoughts.push(thoughtOf(this.#engine, this.#sequence.logits().rows, id, this.#most));
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
   * What the result has in addition; `begun`: the page makes the value of this and the text, since what is nested deeply cannot be sent.
   * @param {string} text @param {boolean} byItself whether nothing cut it off
   */
  result(text, byItself) {
    const value = byItself && this.#guide?.isWhole ? this.#value : undefined;
    return {
      ...(this.#most !== undefined && { logprobs: this.#thoughts }), ...(this.#promptThoughts && { promptLogprobs: this.#promptThoughts }),
      ...(this.#notes.length > 0 && { schemaNotes: this.#notes }),
      ...(value === 'json' && { begun: this.#begun }), ...(value === 'text' && { value: this.#begun + text }),
    };
  }
}
