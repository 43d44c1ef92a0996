// SPDX-License-Identifier: MIT
// The parts of an engine that only vectors need: the weights that turn a hidden state into a score, and the prompt
// template of a file that ranks.

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

  /** The prompt template for ranking; '' if the file has none. */
  template() { return this.#heap.sized(this.#wasm._wasm_chat_template(this.#engine, 1, this.#out), this.#out); }

  /** The weights of a token's logit; an id of -1 - i means class i. @returns {Float32Array} [dim] */
  row(id, dim) {
    return this.#heap.lend(4 * dim, (address) => {
      if (this.#wasm._wasm_output_row(this.#engine, id, address)) return this.#heap.float32(address, dim).slice();
      throw new QuernError('model/unsupported', `The model has no output ${id} here.`, { detail: { rule: 'rank' } });
    });
  }
}
