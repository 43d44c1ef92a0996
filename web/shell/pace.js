// SPDX-License-Identifier: MIT
// The speed and the remaining time of a download: the mean over the last seconds, so that the numbers can be read, and
// nothing while there is too little data.

const WINDOW_MS = 8000;
const LEAST_MS = 1000;
const STALLED_MS = 4000;

export class Pace {
  #now;
  #seen = [];       // [time, bytes] of the last seconds; the first may be older if nothing has arrived since

  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /** Adds a measurement. */
  add(loaded) {
    const now = this.#now();
    this.#seen.push([now, loaded]);
    while (this.#seen.length > 2 && this.#seen[1][0] < now - WINDOW_MS) this.#seen.shift();
  }

  /** Forgets the measurements, because the bytes so far came from the disk. */
  reset() {
    this.#seen.length = 0;
  }

  /**
   * @returns {{speed: number, left: number, stalled: boolean} | null} bytes per second; ms until `total` (0: unknown)
   */
  read(total) {
    if (this.#seen.length === 0) return null;
    const now = this.#now();
    const [start, from] = this.#seen[0];
    const [latest, loaded] = this.#seen.at(-1);
    if (now - start < LEAST_MS) return null;
    const speed = (1000 * (loaded - from)) / (now - start);
    return {
      speed,
      left: total > loaded && speed > 0 ? (1000 * (total - loaded)) / speed : 0,
      stalled: now - latest >= STALLED_MS,
    };
  }
}
