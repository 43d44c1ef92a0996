// SPDX-License-Identifier: MIT
// The logits of every token of a text: a sequence of its own that is computed behind all replies, and looked at after each step.

export class Scores {
  #ids;
  #width;
  #sequence;
  #all;

  place = { priority: 'background' };

  /** @param {Int32Array} ids one at least @param {number} width of a row */
  constructor(ids, width) {
    this.#ids = ids;
    this.#width = width;
  }

  /** @param {import('../engine/sequence.js').Sequence} sequence */
  begin(sequence) {
    this.#all = new Float32Array(this.#ids.length * this.#width);
    this.#sequence = sequence;
    sequence.set(this.#ids, 'all');
  }

  /** @returns {Float32Array | null} [ids.length, width], once all are there */
  look() {
    const part = this.#sequence.logits();
    if (part) this.#all.set(part.rows, part.first * this.#width);
    return this.#sequence.pending > 0 ? null : this.#all;
  }

  /** Nobody waits for them any more. */
  stop() {
    return new Float32Array(0);
  }
}
