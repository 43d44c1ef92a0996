// SPDX-License-Identifier: MIT
// How many requests a download runs at a time: one at first, one more after each measurement that shows a gain, and
// never more again once one shows none, once the consumer is what it waits for, or once the server objects.

const WARM_UP_MS = 500;        // of a new connection, which starts slowly
const MEASURE_MS = 2000;
const GAIN = 1.15;
const WAITING = 0.2;           // share of the time at which the consumer is the slower one

export class Pace {
  #clock;
  #most;
  #least;
  #best = 0;
  #since;
  #bytes = 0;
  #waited = 0;
  lanes = 1;

  /** @param {number} most lanes @param {number} least bytes that a measurement takes */
  constructor(clock, most, least) {
    this.#clock = clock;
    this.#most = most;
    this.#least = least;
    this.#begin();
  }

  /** The consumer held a request up for so long. */
  waited(ms) {
    this.#waited += ms / this.lanes;
  }

  /** Counts bytes; true when the number of lanes is another one now. */
  count(bytes) {
    if (this.lanes === this.#most && this.#best === Infinity) return false;
    const passed = this.#clock.now() - this.#since;
    if (passed < 0) return false;
    this.#bytes += bytes;
    return passed >= MEASURE_MS && this.#bytes >= this.#least && this.#decide(this.#bytes / passed, passed);
  }

  /** The number that it stays at. */
  settle(lanes) {
    this.lanes = lanes;
    this.#most = lanes;
    this.#best = Infinity;
    return true;
  }

  #begin() {
    this.#since = this.#clock.now() + WARM_UP_MS;
    this.#bytes = 0;
    this.#waited = 0;
  }

  #decide(rate, passed) {
    const helped = rate > GAIN * this.#best;
    if (!helped && this.lanes > 1) return this.settle(this.lanes - 1);
    if (this.lanes === this.#most || this.#waited > WAITING * passed) return this.settle(this.lanes);
    this.#best = rate;
    this.lanes++;
    this.#begin();
    return true;
  }
}
