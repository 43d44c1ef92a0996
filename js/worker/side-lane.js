// SPDX-License-Identifier: MIT
// One side worker (side-worker.js) as the engine's worker sees it. It is started for a job, and again after it has
// ended. Each job gets an outcome, even if the side worker crashes, hangs or never starts.

import { sharedWord } from '../shared/shared-word.js';
import { buffersOf } from './side-pace.js';

/**
 * Milliseconds for a side worker to start, and to give up a job. A worker that takes PATIENCE times the time of its job
 * does not look at the time, and is ended.
 */
const START_MS = 10_000;
const GRACE_MS = 100;
const PATIENCE = 10;

/**
 * The connection to a side worker.
 * @typedef {object} SidePort
 * @property {(message: object, transfer: any[]) => void} post
 * @property {(receive: (message: any) => void, fail: (error: Error) => void) => void} listen fail: called if the worker
 *   crashes or cannot be started
 * @property {() => void} end
 *
 * @typedef {object} SideHost
 * @property {(() => SidePort) | null} [aside] starts a side worker; null: side workers are not available
 * @property {Int32Array} [busy] shared: 1 while replies are made
 * @property {() => void | Promise<void>} rest lets waiting messages in
 *
 * @typedef {object} Job
 * @property {import('./side-worker.js').SideKind} kind
 * @property {any} payload
 * @property {() => object} setup
 * @property {import('./shares.js').Owner} owner
 * @property {number} most
 * @property {boolean} isLong
 * @property {boolean} isStopped
 * @property {number} id
 * @property {(value: any) => void} resolve
 * @property {(error: Error) => void} reject
 */

/** One side worker, started when a job needs it. */
export class Lane {
  /** @type {Job | null} */
  job = null;
  held = 0;               // bytes of the side worker's memory
  hasStarted = false;     // at least once
  #start;
  #settle;
  #budget;
  #port = null;
  #isReady = false;
  #known = new Set();     // kinds that it was opened for
  #words;
  #timer;

  /**
   * @param {SideHost} host
   * @param {number} budget milliseconds of work for one job
   * @param {(lane: Lane, outcome: any) => void} settle gets the outcome of a job: an answer or a failure
   */
  constructor({ aside, busy }, budget, settle) {
    this.#start = aside;
    this.#budget = budget;
    this.#settle = settle;
    this.#words = busy && { busy, stop: sharedWord() };
  }

  /** @param {Job} job */
  give(job) {
    this.job = job;
    if (this.#isReady) this.#post();
    else this.#open();
  }

  #open() {
    if (this.#port) return;
    const ifMine = (port, act) => (value) => { if (port === this.#port) act(value); };
    try {
      const port = this.#start();
      this.#port = port;
      port.listen(ifMine(port, (message) => this.#receive(message)), ifMine(port, (error) => this.#fail(error)));
      this.#wait(START_MS, () => this.#fail(new Error('it does not start')));
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Tells the side worker to give up its job. */
  stop() {
    if (this.#words) Atomics.store(this.#words.stop, 0, this.job.id);
    this.#wait(GRACE_MS, () => this.#over({}));
  }

  end() {
    clearTimeout(this.#timer);
    this.#port?.end();
    this.#port = null;
    this.#isReady = false;
    this.#known.clear();
    this.held = 0;
  }

  #post() {
    const { id, kind: { name }, setup, payload, most } = this.job;
    const message = { id, kind: name, payload, most: Math.min(most, this.#budget), words: this.#words };
    if (!this.#known.has(name)) Object.assign(message, { setup: setup() });
    this.#known.add(name);
    this.#wait(most * PATIENCE, () => this.#over({}));
    this.#port.post(message, buffersOf(payload));
  }

  #wait(ms, then) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(then, ms);
  }

  #receive(message) {
    clearTimeout(this.#timer);
    if (!message.ready) {
      this.held = message.held ?? this.held;
      this.#settle(this, message);
    } else {
      this.#isReady = true;
      this.hasStarted = true;
      if (this.job) this.#post();
    }
  }

  #over(outcome) {
    this.end();
    this.#settle(this, outcome);
  }

  #fail(failure) { this.#over({ failure }); }
}
