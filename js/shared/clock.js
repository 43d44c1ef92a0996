// SPDX-License-Identifier: MIT
// Time for downloads, deadlines and the watchdog. Code that waits takes a clock, so that tests can replace it: `now()`
// in milliseconds since 1970; `after(ms, work)`, which returns a function that cancels it; `online()`; `visible()`; and
// `random()` for jitter.
//
// Silence and deadlines are counted in ticks of our own timers (`every`). After a machine slept, or a browser froze the
// page in the background, there is one late tick, which counts as one tick and not as hours without data.

import { abortError } from './errors.js';

export const systemClock = {
  now: () => Date.now(),
  random: () => Math.random(),
  online: () => globalThis.navigator?.onLine !== false,   // Node does not tell
  visible: () => globalThis.document?.visibilityState !== 'hidden',
  after(ms, work) {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};

/** Calls `work` repeatedly, at least `ms` after the previous call. @returns {() => void} ends it */
export function every(clock, ms, work) {
  let cancel;
  const next = () => {
    cancel = clock.after(ms, () => {
      next();
      work();
    });
  };
  next();
  return () => cancel();
}

const COUNT_MS = 500;

/** Calls `work` when `ms` milliseconds have passed, counted in ticks. @returns {() => void} cancels it */
export function deadline(ms, work, clock = systemClock) {
  let left = ms / COUNT_MS;
  const cancel = every(clock, COUNT_MS, () => {
    if (--left > 0) return;
    cancel();
    work();
  });
  return cancel;
}

/** The error with which work ends when its signal aborts. */
export const reasonOf = (signal) => signal.reason ?? abortError();

/**
 * Returns the promise's outcome, or throws the signal's reason as soon as it aborts. A later outcome of the promise is
 * ignored.
 */
export async function abortable(promise, signal) {
  if (signal.aborted) {
    Promise.resolve(promise).catch(() => {});
    throw reasonOf(signal);
  }
  let onAbort;
  const aborted = new Promise((_, reject) => {
    onAbort = () => reject(reasonOf(signal));
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Waits. If the signal aborts, throws its reason at once. */
export async function sleep(clock, ms, signal) {
  let cancel;
  try {
    await abortable(new Promise((resolve) => { cancel = clock.after(ms, resolve); }), signal);
  } finally {
    cancel();
  }
}

const TICK_MS = 1000;
const STALL_MS = 30_000;

/** Calls `onStall` when nothing has arrived for half a minute, in ticks, although something was awaited. */
export class Watch {
  #clock;
  #onStall;
  #cancel = null;
  #silent = 0;
  #waiting = 0;

  constructor(clock, onStall) {
    this.#clock = clock;
    this.#onStall = onStall;
  }

  /** Returns the outcome of a promise that is watched while it is pending. */
  async during(promise) {
    this.#silent = 0;
    this.#waiting++;
    this.#cancel ??= every(this.#clock, TICK_MS, () => this.#tick());
    try {
      return await promise;
    } finally {
      this.#waiting--;
    }
  }

  end() {
    this.#cancel?.();
    this.#cancel = null;
  }

  #tick() {
    if (!this.#waiting) return this.end();
    this.#silent += TICK_MS;
    if (this.#silent < STALL_MS) return undefined;
    this.end();
    return this.#onStall(this.#silent);
  }
}
