// SPDX-License-Identifier: MIT
// Computes the logits of every token of a text, with a sequence in the background that is read after each step.

export class Scores {
  #prompt;
  #width;
  #sequence;
  #all;

  /** Place of its sequence. @type {{cacheScope?: number, guest?: number, priority: 'background'}} */
  place;

  /**
   * @param {{ids: Int32Array, media?: Uint8Array[]}} prompt at least one id; `media` may be set until begin()
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

  /** @returns {Float32Array | null} [ids.length, width], once all rows are there */
  look() {
    const part = this.#sequence.logits();
    if (part) this.#all.set(part.rows, part.first * this.#width);
    return this.#sequence.pending > 0 ? null : this.#all;
  }

  /** Its result is not wanted any more. */
  stop() {
    return new Float32Array(0);
  }
}
