// SPDX-License-Identifier: MIT
// Keeps a reply's calls valid: after the mark that opens a call, the name is one of the tools, and the arguments obey
// that tool's schema. Penalties are off inside calls, since they would spoil the repetitions of JSON. Outside of calls
// a reply is free, unless it must begin with a call, or its text has a format. With a format the reply is either calls
// or a text of that format, and after a call only further calls may follow.

import { addId, allIds, hasId, removeId } from './bits.js';
import { QuernError } from '../shared/errors.js';
import { draftForced } from './guide.js';

/** The text between thinking and the first call, and between two calls, as templates write it. */
const BREAK = '\n\n';
const GAP = '\n';

export class CallGuide {
  #engine;
  #grammar;
  #choice;
  #most;                  // most calls of a reply
  #text;                  // Guide of the text; undefined: the text is free
  #sequence = null;
  #channel;
  #isBare = false;        // the whole reply is a call without marks
  #calls = 0;             // number of calls that have ended
  #state = null;          // state of the grammar in the present call
  #token;                 // last token of that call, if #state does not include it yet
  #isBehind = false;      // the next tokens of the call are not known yet
  #due = [];              // ids that must come next, after thinking

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {any} grammar of Grammars, released with the guide; null: nothing may be called
   * @param {'auto' | 'required' | 'none'} choice
   * @param {{most?: number, text?: import('./guide.js').Guide}} [limits] most: calls of a reply
   */
  constructor(engine, grammar, choice, { most = Infinity, text } = {}) {
    this.#engine = engine;
    this.#grammar = grammar;
    this.#choice = choice;
    this.#most = most;
    this.#text = text;
  }

  /**
   * Continues a text that has begun. Called before begin().
   * @param {string} text
   * @param {import('./guide.js').Slice} slice
   */
  async goOn(text, slice) { await this.#text?.goOn(text, slice); }

  /**
   * @param {import('../engine/sequence.js').Sequence} sequence that has begun
   * @param {import('./chat.js').Prompt} prompt
   */
  begin(sequence, prompt) {
    const { channels, inside, first, begun } = prompt;
    const channel = channels.find(({ begin }) => begin);
    this.#sequence = sequence;
    this.#isBare = Boolean(channel?.bare) && this.#choice === 'required';
    if (this.#isBare) return first ? this.#only([first.open]) : inside ? this.#next(inside) : this.#write();
    this.#channel = channel?.bare ? undefined : channel;
    if (this.#choice === 'required') this.#require(inside ?? first);
    else if (this.#text)
      this.#text.begin(sequence, prompt, this.#choice === 'auto' && !begun ? this.#channel?.open : undefined);
    else if (this.#choice === 'none') this.#forbid();
    if (this.#due.length && first) this.#only([first.open]);
    else if (this.#due.length) this.#next(inside);
  }

  /** @param {boolean} isText @param {import('./text.js').Channel | null} channel of the next token */
  take(id, isText, channel) {
    if (this.#isBare) return channel?.type === 'thinking' ? this.#next(channel) : this.#write(id);
    if (channel && channel === this.#channel) return this.#write(id);
    const isOver = this.#state !== null;
    this.#state = null;
    if (isOver) this.#calls++;
    if (id === this.#due[0]) this.#due.shift();
    if (this.#due.length) return this.#next(channel);
    return this.#calls === 0 ? this.#text?.take(id, isText, channel) : this.#goOn(isOver);
  }

  end() {
    if (this.#grammar) this.#grammar.users--;
    this.#text?.end();
  }

  /** Whether the reply is a complete text of its format. */
  get isWhole() { return this.#calls === 0 && (this.#text?.isWhole ?? false); }

  /**
   * Sets the tokens after a call: only an end if no more calls are possible; an end or another call if the text has a
   * format; otherwise any token.
   */
  #goOn(isOver) {
    const { endTokens } = this.#engine.facts;
    if (this.#calls >= this.#most) return this.#only(endTokens);
    if (!this.#text) return isOver ? this.#sequence.allow(null) : undefined;
    const gap = isOver ? this.#engine.tokenize(GAP) : [];
    return this.#only([...endTokens, this.#channel.open, ...(gap.length === 1 ? gap : [])]);
  }

  /** Forbids all calls. */
  #forbid() {
    if (this.#channel) this.#allow((bits) => removeId(bits, this.#channel.open));
  }

  #require(thinking) {
    if (!this.#channel)
      throw new QuernError('use/param', 'This model has no tokens that mark calls.', {
        detail: { param: 'options.toolChoice' },
      });
    const ids = thinking ? this.#engine.tokenize(BREAK) : [];
    this.#due = [...(ids.length === 1 ? ids : []), this.#channel.open];
  }

  /** Takes a token of a call, or what comes before its first: the mark that opens it, the end of a thought, or nothing. */
  #write(id = undefined) {
    this.#due.length = 0;
    if (this.#state === null) this.#state = this.#grammar.start;
    else this.#token = id;
    this.#isBehind = true;
    this.#sequence.wait();
  }

  /** See Guide. */
  get isBehind() { return this.#isBehind || (this.#text?.isBehind ?? false); }

  pursue(ms) {
    if (!this.#isBehind) return this.#text.pursue(ms);
    const end = performance.now() + ms;
    do {
      const state = this.#token === undefined ? this.#state : this.#grammar.take(this.#state, this.#token);
      if (state === 0) continue;
      this.#state = state;
      this.#token = undefined;
      const mask = this.#grammar.mask(state);
      if (mask) return this.#limit(mask);
    } while (performance.now() < end);
  }

  #limit(mask) {
    this.#isBehind = false;
    const { endTokens } = this.#engine.facts;
    const mayEnd = !this.#isBare && endTokens.some((end) => hasId(mask, end));
    this.#sequence.allow(mayEnd ? this.#closing(mask) : mask, true);
    draftForced(this.#engine, this.#sequence, this.#grammar, this.#state);
  }

  /** The set with the mark that closes a call instead of the tokens that end a reply. */
  #closing(mask) {
    const bits = mask.slice();
    for (const end of this.#engine.facts.endTokens) removeId(bits, end);
    addId(bits, this.#channel.close);
    return bits;
  }

  /** Requires the next due token. Thinking may go on first, but the reply may not end in it. */
  #next(thinking) {
    if (thinking)
      return this.#allow((bits) => { for (const end of this.#engine.facts.endTokens) removeId(bits, end); });
    this.#only([this.#due[0]]);
    return this.#sequence.draft(this.#due);
  }

  #only(ids) {
    this.#allow((bits) => {
      bits.fill(0);
      for (const id of ids) addId(bits, id);
    });
  }

  /** Allows all tokens, after `change` has changed the set. */
  #allow(change) {
    const bits = allIds(this.#engine.facts.tokens);
    change(bits);
    this.#sequence.allow(bits);
  }
}
