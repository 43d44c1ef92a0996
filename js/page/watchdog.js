// SPDX-License-Identifier: MIT
// Watches from the page whether a worker still lives, while an answer is pending. Every message of the worker is a sign
// of life. It answers pings between two layers while it computes. If one of its threads has ended, the worker itself
// notices and reports that.
//
// Only time in which the page was visible and running counts. A check that comes late (a sleeping machine, throttled
// timers, a debugger) counts as one interval, and one in a hidden page as none. A debugger that stops the worker alone
// looks like a hang.

import { every, systemClock } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';

/** Longest silence in ms of a worker that starts and of one that works, and the time between two checks. */
const LIMITS = { start: 10_000, hang: 30_000, look: 1000 };

export class Watchdog {
  #ask;
  #fail;
  #limits;
  #clock;
  #started = false;       // whether the worker ever gave a sign
  #asked = false;         // whether a ping is unanswered
  #silence = 0;           // ms of silence that count
  #end = null;            // ends the checks

  /**
   * @param {() => void} ask sends a ping; any message from the worker counts as the answer
   * @param {(error: QuernError) => void} fail called when the worker is dead
   */
  constructor({ ask, fail, limits, clock = systemClock }) {
    this.#ask = ask;
    this.#fail = fail;
    this.#limits = { ...LIMITS, ...limits };
    this.#clock = clock;
  }

  /** Starts watching: an answer is pending. */
  watch() {
    if (this.#end) return;
    this.#silence = 0;
    this.#asked = false;
    this.#end = every(this.#clock, this.#limits.look, () => this.#look());
  }

  /** Stops watching: no answer is pending. */
  rest() {
    this.#end?.();
    this.#end = null;
  }

  /** Records a sign of life of the worker. */
  sign() {
    this.#started = true;
    this.#asked = false;
    this.#silence = 0;
  }

  #look() {
    if (this.#clock.visible()) this.#silence += this.#limits.look;
    if (this.#silence >= this.#limit) return this.#fail(this.#silenced());
    if (this.#started && !this.#asked) this.#ask();
    this.#asked = true;
    return undefined;
  }

  get #limit() {
    return this.#started ? this.#limits.hang : this.#limits.start;
  }

  #silenced() {
    const seconds = this.#limit / 1000;
    return this.#started
      ? new QuernError('engine/hung', `The engine has not answered for ${seconds} seconds.`)
      : new QuernError('env/worker', `The engine's worker did not start within ${seconds} seconds.`, {
          phase: 'start',
        });
  }
}
