// SPDX-License-Identifier: MIT
// What a model thinks of the tokens of a prompt, each after those before it: a sequence whose every row has logits,
// looked at after each step. Steps have few rows of it, since outputs take room, so nobody beside it waits longer than
// for other prompts. What it has read the reply need not read.

import { QuernError } from '../shared/errors.js';
import { thoughtOf } from './logprobs.js';

export class PromptScores {
  #engine;
  #ids;
  #most;
  #onRead;
  #sequence;
  #thoughts;

  /** Of its sequence. @type {{cacheScope?: number, priority?: 'normal' | 'background'}} */
  place;

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {Int32Array} ids one at least
   * @param {{most: number, cacheScope?: number, priority?: 'normal' | 'background', onRead: (done: number, began:
   *   number) => void}} how most: likeliest tokens
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
    sequence.set(this.#ids.subarray(0, -1), 'all');     // what may follow the last one is the reply's
  }

  /** @param {number} began when the step did @returns {object[] | null} one for each token, once all are there */
  look(began) {
    const part = this.#sequence.logits();
    if (!part) return null;
    const { vocabSize: width } = this.#engine.facts;
    for (let at = 0; at < part.rows.length; at += width)
      this.#think(part.first + at / width + 1, part.rows.subarray(at, at + width));
    this.#onRead(this.#thoughts.length - 1, began);
    return this.#thoughts.length === this.#ids.length ? this.#thoughts : null;
  }

  /** Each once. */
  #think(place, row) {
    if (place !== this.#thoughts.length) return;
    const thought = thoughtOf(this.#engine, row, this.#ids[place], this.#most);
    if (Number.isNaN(thought.logprob))
      throw new QuernError('model/nonfinite', 'The model produced invalid numbers; the file is probably damaged.');
    this.#thoughts.push(thought);
  }

  /** Those that are there: nobody waits for the others any more. */
  stop() { return this.#thoughts; }
}
