// SPDX-License-Identifier: MIT
// Computes the probabilities of a prompt's tokens, each after those before it, with a sequence whose rows all have
// logits. They are read after each step. A step takes few of its rows, since outputs need memory, so other guests wait
// no longer than for other prompts. The reply need not read these tokens again.

import { QuernError } from '../shared/errors.js';
import { thoughtOf } from './logprobs.js';

export class PromptScores {
  #engine;
  #ids;
  #most;
  #onRead;
  #sequence;
  #thoughts;

  /** Place of its sequence. @type {{cacheScope?: number, priority?: 'normal' | 'background'}} */
  place;

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {Int32Array} ids at least one
   * @param {{most: number, cacheScope?: number, priority?: 'normal' | 'background', onRead: (done: number, began:
   *   number) => void}} how most: number of likeliest tokens
   */
  constructor(engine, ids, { most, cacheScope, priority, onRead }) {
    this.#engine = engine;
    this.#ids = ids;
    this.#most = most;
    this.#onRead = onRead;
    this.place = { cacheScope, priority };
    this.#thoughts = [{ id: ids[0], text: engine.detokenize([ids[0]]), logprob: null, top: [] }];
  }

  /** @param {import('../engine/sequence.js').Sequence} sequence */
  begin(sequence) {
    this.#sequence = sequence;
    sequence.set(this.#ids.subarray(0, -1), 'all');     // the reply itself computes the logits after the last token
  }

  /** @param {number} began when the step began @returns {object[] | null} one for each token, once all are there */
  look(began) {
    const part = this.#sequence.logits();
    if (!part) return null;
    const { vocabSize: width } = this.#engine.facts;
    for (let at = 0; at < part.rows.length; at += width)
      this.#think(part.first + at / width + 1, part.rows.subarray(at, at + width));
    this.#onRead(this.#thoughts.length - 1, began);
    return this.#thoughts.length === this.#ids.length ? this.#thoughts : null;
  }

  /** Adds each token once. */
  #think(place, row) {
    if (place !== this.#thoughts.length) return;
    const thought = thoughtOf(this.#engine, row, this.#ids[place], this.#most);
    if (Number.isNaN(thought.logprob))
      throw new QuernError('model/nonfinite', 'The model produced invalid numbers; the file is probably damaged.');
    this.#thoughts.push(thought);
  }

  /** Returns the probabilities so far. */
  stop() { return this.#thoughts; }
}
