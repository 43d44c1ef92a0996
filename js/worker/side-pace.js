// SPDX-License-Identifier: MIT
// How work beside the engine's worker goes. It looks at the time every few milliseconds: so it learns that it has to
// give up, and while the engine makes replies it pauses, so that it takes a quarter of a core and not all of it. Both
// need memory that is shared with the engine's worker; where there is none it works on, and is ended from outside
// (side-lane.js).

/** Looks come more often than this: what an interval is longer, the machine has not worked on it. */
const INTERVAL_MS = 5;

/** A pause, by the work before it, and the longest one. */
const PAUSE = 3;
const PAUSE_MOST_MS = 60;

/** Its large arrays are handed over, not copied. */
export const buffersOf = ({ bytes }) => (bytes ? [bytes.buffer] : []);

/** Of one job. */
export class Pace {
  spent = 0;              // milliseconds of work
  isOver = false;
  #id;
  #most;
  #busy;
  #stop;
  #at = performance.now();

  /**
   * @param {{id: number, most: number, words?: {busy: Int32Array, stop: Int32Array}}} job words: whether replies are
   * made; the job to give up
   */
  constructor({ id, most, words }) {
    this.#id = id;
    this.#most = most;
    this.#busy = words?.busy;
    this.#stop = words?.stop;
  }

  /** @returns {boolean} whether the job is to be given up */
  look = () => {
    const worked = this.worked(INTERVAL_MS);
    this.isOver ||= this.spent > this.#most || (this.#stop && Atomics.load(this.#stop, 0) === this.#id);
    if (!this.isOver) this.pause(worked);
    return this.isOver;
  };

  /** Since the last look. */
  worked(most = Infinity) {
    const ms = Math.min(performance.now() - this.#at, most);
    this.spent += ms;
    this.#at = performance.now();
    return ms;
  }

  /** While replies are made. */
  pause(worked) {
    if (this.#busy) Atomics.wait(this.#busy, 0, 1, Math.min(worked * PAUSE, PAUSE_MOST_MS));
    this.#at = performance.now();
  }
}
