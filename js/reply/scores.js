// SPDX-License-Identifier: MIT
// The logits of every token of a text: a sequence of its own that is computed behind all replies, and looked at after
// each step.

export class Scores {
  #prompt;
  #width;
  #sequence;
  #all;

  /** Of its sequence. @type {{cacheScope?: number, guest?: number, priority: 'background'}} */
  place;

  /**
   * @param {{ids: Int32Array, media?: Uint8Array[]}} prompt one id at least; of its images once it begins
   * @param {number} width of a row
   */
  constructor(prompt, width, { cacheScope, guest } = /** @type {{cacheScope?: number, guest?: number}} */ ({})) {
    this.place = { cacheScope, guest, priority: 'background' };
    this.#prompt = prompt;
    this.#width = width;
  }

  /** @param {import('../engine/sequence.js').Sequence} sequence */
  begin(sequence) {
    const { ids, media } = this.#prompt;
    this.#all = new Float32Array(ids.length * this.#width);
    this.#sequence = sequence;
    sequence.set(ids, 'all', media);
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
