// SPDX-License-Identifier: MIT
// Does the work for one request a little at a time, in the turns of its owner (turns.js), including the engine's
// tokenizer.

import { ownerOf } from './shares.js';

export class Asker {
  #engine;
  #turns;

  /** @type {import('./shares.js').Owner} */
  owner;

  /** Aborts the work. @type {AbortSignal | undefined} */
  signal;

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {import('./turns.js').Turns} turns
   * @param {{cacheScope?: number, guest?: number}} options those of the request
   * @param {AbortSignal} [signal]
   */
  constructor(engine, turns, options = {}, signal = undefined) {
    this.#engine = engine;
    this.#turns = turns;
    this.signal = signal;
    this.owner = ownerOf(options);
  }

  /** Does a short piece of work in a turn. @template T @param {() => T} work @returns {Promise<Awaited<T>>} */
  run = (work) => this.#turns.run(this.owner, () => {
    this.signal?.throwIfAborted();
    return work();
  });

  /**
   * Does all steps of some work.
   * @param {Iterator<unknown, any, void>} steps
   * @returns {Promise<any>} the return value of the iterator
   */
  through = (steps) => this.#turns.through(this.owner, steps, this.signal);

  /**
   * The tokens of a text. A very long word, or what the tokenizer takes as a word, needs many times its size in memory,
   * so such words are tokenized one at a time in the whole engine.
   * @param {string | Uint8Array} text @param {'plain' | 'text' | 'chat'} [mode] @param {number} [sentinel]
   */
  tokens = async (text, mode, sentinel) => {
    let run;
    let leave = null;
    const work = (ms) => {
      this.signal?.throwIfAborted();
      run ??= this.#engine.tokenizing(text, mode, sentinel);
      return run.work(ms, leave !== null);
    };
    try {
      for (;;) {
        const state = await this.#turns.run(this.owner, work);
        if (state === 'done') return run.ids;
        if (state === 'long') leave ??= await this.#turns.alone(this.owner);
        else if (leave) leave = leave();
      }
    } finally {
      leave?.();
      if (!this.#turns.isDead) run?.end();
    }
  };
}
