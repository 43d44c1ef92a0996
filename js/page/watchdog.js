// SPDX-License-Identifier: MIT
// Tells from the page whether a worker still lives, while something is awaited from it. Signs of life are its messages:
// it answers pings, between two layers while it computes. When one of its threads has ended, it notices that itself,
// and says so.
//
// Only time in which the page was visible and ran counts: a look that comes late (a sleeping machine, throttled timers,
// a debugger) is worth one interval, and a hidden page's is worth none. A debugger that stops the worker alone looks
// like a hang.

import { every, systemClock } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';

/** Longest silence in ms of a worker that starts and of one that works, and the time between two looks. */
const LIMITS = { start: 10_000, hang: 30_000, look: 1000 };

export class Watchdog {
  #ask;
  #fail;
  #limits;
  #clock;
  #started = false;       // whether there was ever a sign
  #asked = false;         // whether a ping is unanswered
  #silence = 0;           // ms that count
  #end = null;            // ends the looks

  /**
   * @param {() => void} ask sends a ping: any message from the worker is the answer
   * @param {(error: QuernError) => void} fail what to do when it is dead
   */
  constructor({ ask, fail, limits, clock = systemClock }) {
    this.#ask = ask;
    this.#fail = fail;
    this.#limits = { ...LIMITS, ...limits };
    this.#clock = clock;
  }

  /** From now on something is awaited. */
  watch() {
    if (this.#end) return;
    this.#silence = 0;
    this.#asked = false;
    this.#end = every(this.#clock, this.#limits.look, () => this.#look());
  }

  /** Nothing is awaited any more. */
  rest() {
    this.#end?.();
    this.#end = null;
  }

  /** The worker has given a sign of life. */
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
