// SPDX-License-Identifier: MIT
// What batch.mjs asks of quern's engine, in a worker and in Node alike: sequences side by side that their owner drives, without text and without
// sampling. The package has no call for that, so this goes by the engine itself.
import { Engine } from '../../../js/engine/engine.js';
import { instantiate } from '../../../js/engine/instance.js';

/** A row of ids that differs from every other one from its first token on (Lehmer's generator), of common tokens. */
function someTokens(n, seed) {
  let state = 48271 * (seed + 1);
  return Int32Array.from({ length: n }, () => {
    state = (state * 48271) % 0x7fffffff;
    return 1000 + (state % 20_000);
  });
}

export class Batches {
  #wasm;
  #memory;
  #address;          // of the engine
  #engine;
  #sequences = [];   // addresses

  /**
   * @param {object} options glue: Emscripten's factory; module: the compiled wasm; chunks: the file's, an async iterable of Uint8Array
   * @returns {Promise<Batches>} the model loaded and its kernels warm
   */
  static async open({ glue, module, threads, contextSize, parallel, size, chunks }) {
    const batches = new Batches();
    const { wasm, memory, maximum } = await instantiate(glue, module, threads, 32);
    const start = (table) => (batches.#address = wasm._wasm_new(table));
    batches.#wasm = Object.assign(Object.create(wasm), { _wasm_new: start });
    batches.#memory = memory;
    batches.#engine = new Engine({ wasm: batches.#wasm, memory }, { threads, contextSize, parallel, fileSize: size, memorySize: maximum });
    for await (const chunk of chunks) {
      batches.#engine.feed(chunk);
      batches.#engine.warm();
    }
    while (batches.#engine.warm()) await new Promise((done) => { setTimeout(done); });
    batches.#engine.finish();
    return batches;
  }

  get facts() {
    const { threads, variant } = this.#engine.facts;
    return { threads, variant };
  }

  #set(sequence, ids) {
    const address = this.#wasm._wasm_alloc(4 * ids.length);
    new Int32Array(this.#memory.buffer, address, ids.length).set(ids);
    const status = this.#wasm._wasm_sequence_set(sequence, address, ids.length, 0);
    this.#wasm._wasm_release(address);
    if (status < 0) throw new Error(`set: status ${status}`);
  }

  /** Computes what was set and pushed. */
  #compute(sequences) {
    while (sequences.some((sequence) => this.#wasm._wasm_sequence_pending(sequence) > 0)) {
      const status = this.#wasm._wasm_step(this.#address, 0);
      if (status < 0) throw new Error(`step: status ${status}`);
    }
  }

  /** Reads a prompt for each of `batch` sequences, then writes `generate` tokens of each, a step for all of them. @returns {number} tokens/s of all */
  run({ batch, prompt, generate, seed }) {
    while (this.#sequences.length < batch) this.#sequences.push(this.#wasm._wasm_sequence_new(this.#address));
    const sequences = this.#sequences.slice(0, batch);
    for (const [i, sequence] of sequences.entries()) this.#set(sequence, someTokens(prompt, 100 * seed + i));
    this.#compute(sequences);
    const written = sequences.map((_, i) => someTokens(generate, 100 * seed + i + 50));
    const start = performance.now();
    for (let n = 0; n < generate; n++) {
      for (const [i, sequence] of sequences.entries()) this.#wasm._wasm_sequence_push(sequence, written[i][n]);
      this.#compute(sequences);
    }
    return (1000 * batch * generate) / (performance.now() - start);
  }
}
