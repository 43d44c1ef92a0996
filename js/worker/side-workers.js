// SPDX-License-Identifier: MIT
// Runs work outside the engine's worker: jobs that cannot be cut into slices and need no engine, above all compiling
// grammars. There are at most two side workers. A job starts in the first one unless it is known to be long. A job that
// takes longer than a moment is given up there and begun again in the second one, so a small schema never waits for a
// large one. Among waiting jobs, the owner that has used the least time recently comes first. If no side worker can be
// started, the engine's worker does the jobs itself.

import { fromWire } from '../shared/errors.js';
import { Shares } from './shares.js';
import { Lane } from './side-lane.js';
import { Pace } from './side-pace.js';

/**
 * Longest work of a job in the first side worker, and of any job. A grammar's compilation is also limited by steps,
 * which end earlier.
 */
const MOMENT_MS = 50;
const MOST_MS = 10_000;

/** Memory above which an idle side worker is ended. */
const LARGE = 16 * 2 ** 20;

/** @import { Job, SideHost } from './side-lane.js' */

/** Tells why a job has no result. isStopped: it was stopped; isLate: it takes too long. */
export class SideEnd extends Error {
  constructor(message, why = {}) {
    super(message);
    Object.assign(this, { isStopped: false, isLate: false, ...why });
  }
}

const stopped = () => new SideEnd('stopped', { isStopped: true });
const late = () => new SideEnd('it takes too long', { isLate: true });

export class SideWorkers {
  #host;
  #lanes;
  #waiting = [];
  #shares = new Shares();
  #lastId = 0;
  #isHere;                // no side worker can be started
  #isBusyHere = false;
  #opened = new Map();    // kind -> function that does such jobs here

  /** @param {SideHost} host */
  constructor(host) {
    this.#host = host;
    this.#isHere = !host.aside;
    this.#lanes = [MOMENT_MS, Infinity].map(
      (budget) => new Lane(host, budget, (lane, outcome) => this.#settled(lane, outcome)),
    );
  }

  /** Bytes of the side workers' memory. */
  get held() { return this.#lanes.reduce((sum, { held }) => sum + held, 0); }

  /**
   * Does a job. Rejects with a SideEnd if it has no result.
   * @param {import('./side-worker.js').SideKind} kind
   * @param {any} payload its `bytes` are transferred, not copied
   * @param {{setup?: () => object, owner: import('./shares.js').Owner, job: {stopped: boolean, onStop(): void}, most?:
   *   number, isLong?: boolean}} how setup: argument for opening the kind, once per side worker; most: milliseconds of
   *   work; isLong: the job surely takes longer than a moment
   */
  run(kind, payload, { setup = () => ({}), owner, job, most = MOST_MS, isLong = false }) {
    if (job.stopped) return Promise.reject(stopped());
    const done = new Promise((resolve, reject) => {
      const work = { kind, payload, setup, owner, most, isLong, isStopped: false, id: ++this.#lastId, resolve, reject };
      job.onStop = () => this.#stop(work);
      this.#waiting.push(work);
      this.#next();
    });
    return done.finally(() => { job.onStop = () => {}; });
  }

  #stop(work) {
    work.isStopped = true;
    work.reject(stopped());
    this.#waiting = this.#waiting.filter((other) => other !== work);
    for (const lane of this.#lanes) if (lane.job === work) lane.stop();
  }

  /** Takes the waiting job whose owner has used the least time. */
  #take(isFit) {
    const [next] = this.#waiting.filter(isFit).sort((a, b) => this.#shares.compare(a.owner, b.owner));
    this.#waiting = this.#waiting.filter((other) => other !== next);
    return next;
  }

  #next() {
    if (this.#isHere) this.#doHere();
    else this.#lanes.forEach((lane, i) => this.#fill(lane, i === 1));
  }

  #fill(lane, isLong) {
    if (lane.job) return;
    const work = this.#take((other) => other.isLong === isLong);
    if (work) lane.give(work);
    else if (isLong || lane.held > LARGE) lane.end();
  }

  #settled(lane, { failure, error, payload, spent = 0, ...outcome }) {
    const { job } = lane;
    const cannotStart = failure && !this.#lanes.some(({ hasStarted }) => hasStarted);
    lane.job = null;
    if (cannotStart) this.#isHere = true;
    if (job) {
      this.#shares.charge(job.owner, spent);
      if (cannotStart) this.#waiting.unshift(job);
      else if (failure) job.reject(new SideEnd(failure.message));
      else if (error) job.reject(fromWire(error));
      else if ('value' in outcome) job.resolve(outcome.value);
      else if (payload && !job.isLong && !job.isStopped)
        this.#waiting.push(Object.assign(job, { payload, isLong: true }));
      else job.reject(late());
    }
    this.#next();
  }

  async #doHere() {
    const work = this.#isBusyHere ? undefined : this.#take(() => true);
    if (!work) return;
    this.#isBusyHere = true;
    await this.#host.rest();
    const { kind, setup, payload, owner, most, resolve, reject } = work;
    const pace = new Pace({ id: work.id, most });
    try {
      if (!this.#opened.has(kind)) this.#opened.set(kind, kind.open(setup()));
      resolve((await this.#opened.get(kind)(payload, pace.look)).value);
    } catch (error) {
      reject(pace.isOver ? late() : error);
    }
    pace.worked();
    this.#shares.charge(owner, pace.spent);
    this.#isBusyHere = false;
    this.#doHere();
  }
}

/** The side workers of each host. @type {WeakMap<object, SideWorkers>} */
const all = new WeakMap();

/** @param {SideHost} host @returns {SideWorkers} */
export function sideWorkersOf(host) {
  if (!all.has(host)) all.set(host, new SideWorkers(host));
  return all.get(host);
}
