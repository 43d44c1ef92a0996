// SPDX-License-Identifier: MIT
// The engine's worker's end of one side worker (side-worker.js): started for a job, and again after it has ended.
// Whatever it does, crash, hang or never start, each job that it was given has an outcome.

import { sharedWord } from '../shared/shared-word.js';
import { buffersOf } from './side-pace.js';

/**
 * How long a worker has to start, and to give up a job; longer than most of a job that pauses is a worker that looks at
 * no time.
 */
const START_MS = 10_000;
const GRACE_MS = 100;
const PATIENCE = 10;

/**
 * A worker's end here.
 * @typedef {object} SidePort
 * @property {(message: object, transfer: any[]) => void} post
 * @property {(receive: (message: any) => void, fail: (error: Error) => void) => void} listen fail: it has crashed, or
 *   cannot be started
 * @property {() => void} end
 *
 * @typedef {object} SideHost
 * @property {(() => SidePort) | null} [aside] starts a side worker; null: there cannot be any
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

/** One side worker, which is started for a job, and again after it has ended. */
export class Lane {
  /** @type {Job | null} */
  job = null;
  held = 0;               // bytes of its memory
  hasStarted = false;     // ever
  #start;
  #settle;
  #budget;
  #port = null;
  #isReady = false;
  #known = new Set();     // kinds that it has been set up for
  #words;
  #timer;

  /**
   * @param {SideHost} host
   * @param {number} budget milliseconds of work for one job
   * @param {(lane: Lane, outcome: any) => void} settle is told what came of its job: the answer, or a failure
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

  /** The job is to be given up. */
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
