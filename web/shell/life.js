// SPDX-License-Identifier: MIT
// Detects whether the browser ended this page the last time, as it does with tabs that need much memory. A mark in
// sessionStorage is removed when the page is left; it remains if the page had no time for that. A duplicated tab begins
// with a copy of the mark, but then the original tab still holds the lock of that name.

import { forget, read, write } from './storage.js';

const KEY = 'quern:life';

const nothing = () => {};

/** The mark of the last visit if the page was ended, or null. */
function readMark() {
  const { name, times, heavy } = read(KEY, 'sessionStorage') ?? {};
  return typeof name === 'string'
    ? { name, times: Number.isSafeInteger(times) ? times : 0, heavy: heavy === true }
    : null;
}

/** Requests a lock and holds it while the page lives. @returns {Promise<boolean>} whether it was free */
const take = (name) => new Promise((done) => {
  const held = (lock) => {
    done(lock !== null);
    return lock && new Promise(nothing);
  };
  if (navigator.locks) navigator.locks.request(`${KEY}:${name}`, { ifAvailable: true }, held).catch(() => done(true));
  else done(true);
});

export class Life {
  #mark = { name: String(Math.random()), times: 0, heavy: false };

  /**
   * Begins a visit: from now on a sudden end will be detected.
   * @returns {Promise<{times: number, heavy: boolean}>} how often in a row the browser has ended the page; whether its
   *   model was a large one
   */
  async begin() {
    const last = readMark();
    const ended = last !== null && await take(last.name);
    if (ended) this.#mark.times = last.times + 1;
    await take(this.#mark.name);
    this.#write();
    addEventListener('pageshow', () => this.#write());
    addEventListener('pagehide', () => forget(KEY, 'sessionStorage'));
    return { times: this.#mark.times, heavy: ended && last.heavy };
  }

  /** Notes that a model is loaded. @param {boolean} heavy whether it needs more memory than the page itself */
  carry(heavy) {
    this.#mark.heavy = heavy;
    this.#write();
  }

  #write() {
    write(KEY, this.#mark, 'sessionStorage');   // without storage, no end is detected
  }
}
