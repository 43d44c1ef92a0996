// SPDX-License-Identifier: MIT
// What goes with a reply that asks for more than its text (generation.js calls it, token by token): the probabilities
// of its tokens, and who keeps its text or its calls to a grammar (guide.js, call-guide.js).

import { fillIn } from './fill-in.js';
import { thoughtOf } from './logprobs.js';
import { PromptScores } from './prompt-scores.js';

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
   * @param {{logprobs?: number, promptLogprobs?: number, suffix?: string, guide?: any, value?: 'json' | 'text', notes?:
   *   object[]}} asked guide: a Guide or a CallGuide; value: what the text is made, once whole
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
    return this.#suffix === undefined
      ? chat.plain(given, asker)
      : fillIn(this.#engine, chat, given, this.#suffix, asker);
  }

  /**
   * What is thought of a prompt, where that is wanted, before its reply begins.
   * @param {import('./chat.js').Prompt} prompt
   * @param {{place: object, read: (done: number, began: number) => void}} reply
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

  /** The reply is the rest of a text, which is looked at in slices. See Guide. */
  async goOn(text, slice) {
    this.#begun = text;
    await this.#guide?.goOn(text, slice);
  }

  /** It is not known yet what may follow, and the reply waits: pursue() finds out, for so many milliseconds. */
  get isBehind() { return this.#guide?.isBehind ?? false; }
  pursue(ms) { this.#guide.pursue(ms); }

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
    if (this.#most !== undefined)
      this.#thoughts.push(thoughtOf(this.#engine, this.#sequence.logits().rows, id, this.#most));
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
   * What the result has in addition; `begun`: the page makes the value of this and the text, since what is nested
   * deeply cannot be sent.
   * @param {string} text @param {boolean} byItself whether nothing cut it off
   */
  result(text, byItself) {
    const value = byItself && this.#guide?.isWhole ? this.#value : undefined;
    return {
      ...(this.#most !== undefined && { logprobs: this.#thoughts }),
      ...(this.#promptThoughts && { promptLogprobs: this.#promptThoughts }),
      ...(this.#notes.length > 0 && { schemaNotes: this.#notes }),
      ...(value === 'json' && { begun: this.#begun }), ...(value === 'text' && { value: this.#begun + text }),
    };
  }
}
