// SPDX-License-Identifier: MIT
// What batch.mjs asks of quern's engine, in a worker and in Node alike: replies side by side, as the package's runner has them made, without
// their text.
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

/** The likeliest token each time, whatever it is, and never an end. */
const LIKELIEST = { temperature: 0, topK: 1, topP: 1, minP: 0, repeatPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, seed: 0, priority: 'normal' };

export class Batches {
  #engine;

  /**
   * @param {object} options glue: Emscripten's factory; module: the compiled wasm; chunks: the file's, an async iterable of Uint8Array
   * @returns {Promise<Batches>} the model loaded and its kernels warm
   */
  static async open({ glue, module, threads, contextSize, parallel, size, chunks }) {
    const batches = new Batches();
    const { maximum, ...instance } = await instantiate(glue, module, threads, 32);
    const engine = new Engine(instance, { threads, contextSize, parallel, fileSize: size, memoryLimit: maximum });
    for await (const chunk of chunks) {
      engine.feed(chunk);
      engine.warm();
    }
    while (engine.warm()) await new Promise((done) => { setTimeout(done); });
    engine.finish();
    batches.#engine = engine;
    return batches;
  }

  get facts() {
    const { threads, variant } = this.#engine.facts;
    return { threads, variant };
  }

  #begin(ids) {
    const sequence = this.#engine.sequence();
    sequence.set(ids, 'held');
    sequence.begin({ ...LIKELIEST, bias: this.#engine.facts.endTokens.map((id) => [id, -Infinity]), silent: [], maxTokens: Infinity });
    return sequence;
  }

  /** Goes on until every one of the replies has written n tokens more. */
  #write(replies, n) {
    const lacking = new Map(replies.map(({ number }) => [number, n]));
    while (lacking.size) {
      this.#engine.step(0);
      for (const { type, number, token, error } of this.#engine.events()) {
        if (type === 'end') throw error ?? new Error(`a reply ended, at token ${token}`);
        if (type !== 'token' || !lacking.has(number)) continue;
        if (lacking.get(number) === 1) lacking.delete(number);
        else lacking.set(number, lacking.get(number) - 1);
      }
    }
  }

  /**
   * Begins `batch` replies, whose prompts have their first `shared` tokens in common; when each has its first token it is timed how they write
   * `generate` more, one each a step. @returns {number} tokens/s of all
   */
  run({ batch, shared = 0, prompt, generate, seed }) {
    const prefix = someTokens(shared, 1_000_000);
    const replies = Array.from({ length: batch }, (_, i) => this.#begin(Int32Array.of(...prefix, ...someTokens(prompt, 100 * seed + i))));
    this.#write(replies, 1);
    const start = performance.now();
    this.#write(replies, generate);
    const ms = performance.now() - start;
    for (const reply of replies) reply.free();
    return (1000 * batch * generate) / ms;
  }
}
