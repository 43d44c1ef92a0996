// SPDX-License-Identifier: MIT
// Who asks for something, and what the work for him is done with, a little at a time: his turns (turns.js), and the
// engine's tokenizer in them.

import { ownerOf } from './shares.js';

export class Asker {
  #engine;
  #turns;

  /** @type {import('./shares.js').Owner} */
  owner;

  /** After which nobody wants anything of it. @type {AbortSignal | undefined} */
  signal;

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {import('./turns.js').Turns} turns
   * @param {{cacheScope?: number, guest?: number}} options of the request
   * @param {AbortSignal} [signal]
   */
  constructor(engine, turns, options = {}, signal = undefined) {
    this.#engine = engine;
    this.#turns = turns;
    this.signal = signal;
    this.owner = ownerOf(options);
  }

  /** Does a little work. @template T @param {() => T} work @returns {Promise<Awaited<T>>} */
  run = (work) => this.#turns.run(this.owner, () => {
    this.signal?.throwIfAborted();
    return work();
  });

  /**
   * Takes all the steps of some work.
   * @param {Iterator<unknown, any, void>} steps
   * @returns {Promise<any>} what the last of them returns
   */
  through = (steps) => this.#turns.through(this.owner, steps, this.signal);

  /**
   * The tokens of a text. A word, or whatever the tokenizer takes as one, that is very long takes many times its
   * memory, so these come one at a time.
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
