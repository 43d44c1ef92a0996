// SPDX-License-Identifier: MIT
// What an engine has for vectors alone: the weights by which a hidden state becomes a score, and the prompt of files
// that rank.

import { QuernError } from '../shared/errors.js';

export class Rows {
  #wasm;
  #heap;
  #engine;
  #out;

  /** @param {{wasm: object, heap: import('./heap.js').Heap, engine: number, out: number}} where */
  constructor({ wasm, heap, engine, out }) {
    this.#wasm = wasm;
    this.#heap = heap;
    this.#engine = engine;
    this.#out = out;
  }

  /** '' where the file has none. */
  template() { return this.#heap.sized(this.#wasm._wasm_chat_template(this.#engine, 1, this.#out), this.#out); }

  /** The weights of a token's logit; with an id of -1 - i of class i. @returns {Float32Array} [dim] */
  row(id, dim) {
    return this.#heap.lend(4 * dim, (address) => {
      if (this.#wasm._wasm_output_row(this.#engine, id, address)) return this.#heap.float32(address, dim).slice();
      throw new QuernError('model/unsupported', `The model has no output ${id} here.`, { detail: { rule: 'rank' } });
    });
  }
}
