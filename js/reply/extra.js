// SPDX-License-Identifier: MIT
// The extras of a reply: probabilities of its tokens, and the guide that keeps its text or its calls to a grammar
// (guide.js, call-guide.js). generation.js calls this for each token.

import { fillIn } from './fill-in.js';
import { thoughtOf } from './logprobs.js';
import { PromptScores } from './prompt-scores.js';

export class Extra {
  #engine;
  #sequence;
  #most;                  // number of likeliest tokens per token; undefined: no probabilities
  #ofPrompt;              // the same for the prompt's tokens
  #isPlain = false;       // a completion: every token gets a probability, even a hidden one or the end token
  #promptThoughts;
  #suffix;
  #thoughts = [];
  #told = 0;              // number of #thoughts sent with events
  #guide;                 // decides the next tokens; undefined: any token
  #value;
  #notes;                 // notes on ignored keywords of schemas
  #begun = '';            // beginning of the text that the reply continues

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {{logprobs?: number, promptLogprobs?: number, suffix?: string, guide?: any, value?: 'json' | 'text', notes?:
   *   object[]}} asked guide: a Guide or a CallGuide; value: what a complete text becomes in the result
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
   * Makes the prompt of a completion.
   * @param {import('./chat.js').Chat} chat @param {string | Int32Array} given @param {import('./chat.js').Asker} asker
   */
  async prompt(chat, given, asker) {
    this.#isPlain = true;
    return this.#suffix === undefined
      ? chat.plain(given, asker)
      : fillIn(this.#engine, chat, given, this.#suffix, asker);
  }

  /**
   * Computes the probabilities of a prompt's tokens before its reply begins, if they are wanted.
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

  /** Continues a text that has begun, in slices; see Guide. */
  async goOn(text, slice) {
    this.#begun = text;
    await this.#guide?.goOn(text, slice);
  }

  /** Whether the reply waits because its next tokens are not known; pursue() searches for that many milliseconds. */
  get isBehind() { return this.#guide?.isBehind ?? false; }
  pursue(ms) { this.#guide.pursue(ms); }

  begin(sequence, prompt) {
    this.#sequence = sequence;
    this.#guide?.begin(sequence, prompt);
  }

  /** Takes a token right after the step that wrote it; see Guide. */
  take(id, isText, aside) {
    if (isText || this.#isPlain) this.#think(id);
    this.#guide?.take(id, isText, aside);
  }

  /** Takes the token that ended the reply and is not part of it. */
  last(id) {
    if (this.#isPlain) this.#think(id);
  }

  #think(id) {
    if (this.#most !== undefined)
      this.#thoughts.push(thoughtOf(this.#engine, this.#sequence.logits().rows, id, this.#most));
  }

  /** Adds the new probabilities to an event of text. */
  told(event) {
    if (event.type !== 'text' || this.#told === this.#thoughts.length) return event;
    const fresh = this.#thoughts.slice(this.#told);
    this.#told = this.#thoughts.length;
    return { ...event, logprobs: fresh };
  }

  end() { this.#guide?.end(); }

  /**
   * The extra fields of the result. With `begun` the page makes the value from this and the text, since a deeply nested
   * value cannot be sent.
   * @param {string} text @param {boolean} byItself whether the reply was not cut off
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
