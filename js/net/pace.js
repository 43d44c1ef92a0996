// SPDX-License-Identifier: MIT
// Decides how many requests a download runs at a time: one at first, and one more after each measurement that shows a
// gain. The number stays when a measurement shows no gain, when the download waits for its consumer, or when the server
// objects.

const WARM_UP_MS = 500;        // slow start of a new connection
const MEASURE_MS = 2000;
const GAIN = 1.15;
const WAITING = 0.2;           // share of the time; above it the consumer is the slower side

export class Pace {
  #clock;
  #most;
  #least;
  #best = 0;
  #since;
  #bytes = 0;
  #waited = 0;
  lanes = 1;

  /** @param {number} most lanes @param {number} least bytes of a measurement */
  constructor(clock, most, least) {
    this.#clock = clock;
    this.#most = most;
    this.#least = least;
    this.#begin();
  }

  /** Records that the consumer delayed a request for this long. */
  waited(ms) {
    this.#waited += ms / this.lanes;
  }

  /** Counts bytes. Returns true if the number of lanes has changed. */
  count(bytes) {
    if (this.lanes === this.#most && this.#best === Infinity) return false;
    const passed = this.#clock.now() - this.#since;
    if (passed < 0) return false;
    this.#bytes += bytes;
    return passed >= MEASURE_MS && this.#bytes >= this.#least && this.#decide(this.#bytes / passed, passed);
  }

  /** Sets the final number of lanes. */
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
