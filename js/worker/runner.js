// SPDX-License-Identifier: MIT
// Runs replies and scores side by side, in one loop of bounded steps. After each step the worker's messages are
// handled, so that a stop, another request or the end of the model takes effect soon. The engine decides whose turn it
// is (src/engine/scheduler.h). Here its events go to the work that they belong to, and work that ends, for whatever
// reason, leaves the others alone. The tokens that may follow a reply's token are computed right after its step
// (pursuit.js).

import { QuernError, asQuernError, isOf } from '../shared/errors.js';
import { WAITING, WAITING_BEHIND } from '../shared/waiting.js';
import { Pursuit, countOwners } from './pursuit.js';
import { Turns } from './turns.js';

/** The longest computation before messages are handled again. Stops have to take effect within 200 ms. */
const BUDGET_MS = 50;

/**
 * Work with a sequence. If a method returns an object, the work ends with it as its result; if a method throws, the
 * work ends with the error.
 * @typedef {object} Work
 * @property {{cacheScope?: number, guest?: number, priority?: 'normal' | 'background'}} place options of its sequence,
 *   and its owner
 * @property {(sequence: import('../engine/sequence.js').Sequence) => void} [hold] sets the sequence's tokens
 * @property {(slice: import('../reply/guide.js').Slice) => Promise<void> | undefined} [prepare] prepares the work while
 *   others go on
 * @property {(sequence: import('../engine/sequence.js').Sequence) => void} begin
 * @property {boolean} [isBehind] the tokens that may follow are not known yet: the work waits, and calls of pursue()
 *   compute them, for `ms` milliseconds each
 * @property {(ms: number) => void} [pursue]
 * @property {(event: import('../engine/engine.js').EngineEvent, began: number) => object | null} [take] takes an event;
 *   began: when the event's step began
 * @property {(began: number) => object | null} [look] called after every finished step, for sequences without events
 * @property {() => object} stop
 */

export class Runner {
  #engine;
  #busy;
  #runs = new Map();      // a sequence's number -> {sequence, work, resolve, reject}
  #loops = false;
  #dead = null;           // why the engine must not be entered again
  #pursuit;
  #answering = null;      // while a device's answer is awaited

  /** Turns of all work beside the steps. */
  turns;

  /** Drafts for replies by another model (drafter.js), if there is one. @type {any} */
  drafter;

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {() => void | Promise<void>} rest lets the worker handle waiting messages
   * @param {Int32Array} [busy] shared with side workers: 1 while steps are computed
   */
  constructor(engine, rest, busy) {
    this.#engine = engine;
    this.#busy = busy;
    this.turns = new Turns(async () => {
      await rest();
      if (engine.awaits) await this.#answered(performance.now());      // a slice has asked a device
    });
    this.#pursuit = new Pursuit({
      turns: this.turns,
      rest,
      runs: this.#runs,
      act: (...what) => this.#do(...what),
      found: () => this.#loop(),
    });
  }

  #tell(isBusy) {
    if (!this.#busy) return;
    Atomics.store(this.#busy, 0, isBusy);
    Atomics.notify(this.#busy, 0);
  }

  /**
   * Runs work beside the others.
   * @param {Work} work
   * @param {{stopped: boolean, onStop: () => void}} job
   * @param {(sequence: import('../engine/sequence.js').Sequence, isOver: () => boolean) => Promise<void>} [prepare]
   *   prepares the held sequence while others go on; isOver: whether the sequence has ended
   * @returns {Promise<object>} the work's result
   */
  async add(work, job, prepare) {
    if (this.#dead) throw this.#dead;
    if (job.stopped) return work.stop();
    this.#refuseMore(work);
    const sequence = this.#engine.sequence(work.place);
    const run = { sequence, work, begun: false };
    const result = new Promise((resolve, reject) => {
      this.#runs.set(sequence.number, Object.assign(run, { resolve, reject }));
    });
    job.onStop = () => this.#do(sequence.number, () => work.stop());
    this.#do(sequence.number, () => { work.hold?.(sequence); });
    const begin = () => {
      run.begun = true;
      this.#do(sequence.number, () => { work.begin(sequence); });
      this.#pursuit.one(run);
      this.#loop();
    };
    const before = work.prepare?.((act) => this.#pursuit.slice(run, act));
    if (before || prepare) this.#prepared(run, before, prepare).then(begin);
    else begin();
    return result;
  }

  async #prepared(run, before, prepare) {
    try {
      await before;
    } catch (error) {
      this.#do(run.sequence.number, () => { throw error; });
    }
    await prepare?.(run.sequence, () => !this.#has(run));
  }

  #has(run) { return this.#runs.get(run.sequence.number) === run; }

  get isDead() { return this.#dead !== null; }

  /** Ends everything, since the engine has crashed. */
  crash(error) {
    this.#dead ??= error;
    this.turns.crash(error);
    for (const { reject } of this.#runs.values()) reject(error);
    this.#runs.clear();
  }

  #refuseMore({ place }) {
    const { parallel } = this.#engine.facts;
    const isBehind = place.priority === 'background';
    const waiting = isBehind ? WAITING_BEHIND : WAITING;
    const alike = isBehind
      ? [...this.#runs.values()].filter(({ work }) => work.place.priority === 'background').length
      : 0;
    if (this.#runs.size < parallel + WAITING && alike < parallel + WAITING_BEHIND) return;
    const what = isBehind ? 'replies and texts in the background' : 'replies';
    const message = `No more than ${parallel + waiting} ${what} can be requested at a time: ${parallel} that run and ${waiting} that wait.`;
    throw new QuernError('use/busy', message, { retryable: true, detail: { parallel, waiting } });
  }

  async #loop() {
    if (this.#loops) return;
    this.#loops = true;
    this.#tell(1);
    this.turns.begin();
    for (let began; this.#runsAny;) {
      const now = performance.now();
      began ??= now;
      const finished = this.#step(began);
      if (this.#engine.awaits) await this.#answered(began);
      else if (finished) this.#look(began);
      const ms = performance.now() - now;
      if (finished) {
        const stepMs = performance.now() - began;
        await this.#pursuit.all(stepMs);
        await this.drafter?.draft(this.#runs, stepMs);
        began = undefined;
      }
      await this.turns.after(ms, countOwners(this.#runs.values()));
    }
    this.#loops = false;
    this.#tell(0);
    this.turns.end();
  }

  /** Whether any work computes: none that is being prepared, nor one that waits with only its last token unread. */
  get #runsAny() {
    for (const { begun, work, sequence } of this.#runs.values())
      if (begun && !(work.isBehind && sequence.pending <= 1)) return true;
    return false;
  }

  /** Computes for a while. @returns {boolean} whether a step was finished */
  #step(began) {
    try {
      const finished = this.#engine.step(BUDGET_MS);
      this.#tellEvents(began);
      return finished;
    } catch (thrown) {
      this.#all(() => { throw thrown; });
      return true;
    }
  }

  /**
   * Waits until a device has answered or is lost, and handles the results: once, though a step and a slice may wait for
   * the same answer.
   */
  #answered(began) {
    this.#answering ??= this.#take(began).finally(() => { this.#answering = null; });
    return this.#answering;
  }

  async #take(began) {
    const isThere = await this.#engine.answer();
    if (this.#dead) return;
    this.#tellEvents(began);
    if (isThere) this.#look(began);
  }

  #tellEvents(began) {
    for (const event of this.#engine.events()) this.#do(event.number, (work) => work.take?.(event, began));
  }

  #look(began) { this.#all((work) => work.look?.(began)); }

  #all(act) {
    for (const number of [...this.#runs.keys()]) this.#do(number, act);
  }

  /**
   * Does something for one run. If that ends the run, its rows leave the step at once. A crash ends all runs.
   */
  #do(number, act) {
    const run = this.#runs.get(number);
    if (!run) return;
    try {
      const settle = outcome(run, act);
      if (!settle) return;
      run.sequence.free();
      this.#runs.delete(number);
      settle();
    } catch (thrown) {
      this.crash(asQuernError(thrown, 'call'));
    }
  }
}

/** Acts for a run. Returns what settles the run, or null if it goes on. Throws if the engine has crashed. */
function outcome({ work, resolve, reject }, act) {
  try {
    const result = act(work);
    return result ? () => resolve(result) : null;
  } catch (thrown) {
    const error = asQuernError(thrown, 'call');
    if (isOf('engine', error)) throw error;
    return () => reject(error);
  }
}
