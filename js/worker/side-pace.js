// SPDX-License-Identifier: MIT
// The pace of a side worker. The work looks at the time every few milliseconds. There it learns whether to give up; and
// while the engine makes replies it pauses, so that it takes a quarter of a core instead of a whole one. Both need
// memory that is shared with the engine's worker. Without shared memory the work never pauses, and is ended from
// outside (side-lane.js).

/** Looks are more frequent than this. In a longer interval the machine was doing something else for the rest. */
const INTERVAL_MS = 5;

/** Length of a pause relative to the work before it, and the longest pause. */
const PAUSE = 3;
const PAUSE_MOST_MS = 60;

/** Buffers of a payload's large arrays, which are transferred instead of copied. */
export const buffersOf = ({ bytes }) => (bytes ? [bytes.buffer] : []);

/** The pace of one job. */
export class Pace {
  spent = 0;              // milliseconds of work
  isOver = false;
  #id;
  #most;
  #busy;
  #stop;
  #at = performance.now();

  /**
   * @param {{id: number, most: number, words?: {busy: Int32Array, stop: Int32Array}}} job busy: 1 while replies are
   *   made; stop: id of the job to give up
   */
  constructor({ id, most, words }) {
    this.#id = id;
    this.#most = most;
    this.#busy = words?.busy;
    this.#stop = words?.stop;
  }

  /** @returns {boolean} whether the job must be given up */
  look = () => {
    const worked = this.worked(INTERVAL_MS);
    this.isOver ||= this.spent > this.#most || (this.#stop && Atomics.load(this.#stop, 0) === this.#id);
    if (!this.isOver) this.pause(worked);
    return this.isOver;
  };

  /** Counts the time since the last look. */
  worked(most = Infinity) {
    const ms = Math.min(performance.now() - this.#at, most);
    this.spent += ms;
    this.#at = performance.now();
    return ms;
  }

  /** Pauses if replies are being made. */
  pause(worked) {
    if (this.#busy) Atomics.wait(this.#busy, 0, 1, Math.min(worked * PAUSE, PAUSE_MOST_MS));
    this.#at = performance.now();
  }
}
