// SPDX-License-Identifier: MIT
// Who computes: replies and scores that are asked for together run side by side, in one loop of bounded steps. Each step is followed by a look
// at the worker's messages, so that a stop, another question or the end of the model is never far away. Whose turn it is the engine decides
// (src/engine/scheduler.h); here its events go to whom they belong, and whoever ends, however, leaves the others alone.

import { QuernError, asQuernError, isOf } from '../shared/errors.js';

/** Longest computation between two looks at the messages. Stops have to take effect within 200 ms. */
const BUDGET_MS = 50;

/** How many may wait beside those that run. */
const WAITING = 64;

/**
 * What is done with a sequence. A method that returns something ends the work with that as its result, one that throws with the error.
 * @typedef {object} Work
 * @property {{space?: number, priority?: 'normal' | 'background'}} place of its sequence
 * @property {(sequence: import('../engine/sequence.js').Sequence) => void} begin
 * @property {(event: import('../engine/engine.js').EngineEvent, began: number) => object | null} [take] began: when the event's step did
 * @property {() => object | null} [look] after every finished step, for sequences that have no events
 * @property {() => object} stop
 */

export class Runner {
  #engine;
  #rest;
  #runs = new Map();      // a sequence's number -> {sequence, work, resolve, reject}
  #loops = false;
  #dead = null;           // why the engine must not be entered again

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {() => void | Promise<void>} rest lets waiting messages in
   */
  constructor(engine, rest) {
    this.#engine = engine;
    this.#rest = rest;
  }

  /**
   * Runs it beside the others.
   * @param {Work} work
   * @param {{stopped: boolean, onStop: () => void}} job
   * @returns {Promise<object>} its result
   */
  async add(work, job) {
    if (this.#dead) throw this.#dead;
    if (job.stopped) return work.stop();
    this.#refuseMore();
    const sequence = this.#engine.sequence(work.place);
    const result = new Promise((resolve, reject) => { this.#runs.set(sequence.number, { sequence, work, resolve, reject }); });
    job.onStop = () => this.#do(sequence.number, () => work.stop());
    this.#do(sequence.number, () => work.begin(sequence));
    this.#loop();
    return result;
  }

  /** The engine has crashed. */
  crash(error) {
    this.#dead ??= error;
    for (const { reject } of this.#runs.values()) reject(error);
    this.#runs.clear();
  }

  #refuseMore() {
    const { parallel } = this.#engine.facts;
    if (this.#runs.size < parallel + WAITING) return;
    const message = `No more than ${parallel + WAITING} replies can be asked for at a time: ${parallel} that are made and ${WAITING} that wait.`;
    throw new QuernError('use/busy', message, { retryable: true, detail: { parallel, waiting: WAITING } });
  }

  async #loop() {
    if (this.#loops) return;
    this.#loops = true;
    for (let began; this.#runs.size > 0; await this.#rest()) {
      began ??= performance.now();
      if (this.#step(began)) began = undefined;
    }
    this.#loops = false;
  }

  /** Computes for a while. @returns {boolean} whether a step was finished */
  #step(began) {
    try {
      const finished = this.#engine.step(BUDGET_MS);
      for (const event of this.#engine.events()) this.#do(event.number, (work) => work.take?.(event, began));
      if (finished) this.#all((work) => work.look?.());
      return finished;
    } catch (thrown) {
      this.#all(() => { throw thrown; });
      return true;
    }
  }

  #all(act) {
    for (const number of [...this.#runs.keys()]) this.#do(number, act);
  }

  /** Does something for one of them, which may end by it. A crash ends all. */
  #do(number, act) {
    const run = this.#runs.get(number);
    if (!run) return;
    try {
      const result = act(run.work);
      if (result) this.#end(run, run.resolve, result);
    } catch (thrown) {
      const error = asQuernError(thrown, 'call');
      if (isOf('engine', error)) this.crash(error);
      else this.#end(run, run.reject, error);
    }
  }

  /** Its rows are let go at once, wherever they are. */
  #end({ sequence }, settle, value) {
    this.#runs.delete(sequence.number);
    sequence.free();
    settle(value);
  }
}
