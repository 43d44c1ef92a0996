// SPDX-License-Identifier: MIT
// Detects whether the browser ended this page the last time, as it does with tabs that need much memory. A mark in
// localStorage is removed when the page is left; it remains if the page had no time for that. A tab finds its last mark
// by a name in sessionStorage. (Firefox loses what a page writes there while it is left, if the next page runs in
// another process, as isolated pages do.) A duplicated tab begins with a copy of the name, but then the original tab
// still holds the lock of that name.

import { forget, read, write } from './storage.js';

const KEY = 'quern:life';

/** Marks of tabs that nobody has opened again are deleted after this time, in ms. */
const OLD_MS = 7 * 24 * 3600 * 1000;

const nothing = () => {};

const keyOf = (name) => `${KEY}:${name}`;

/** The mark of the last visit if the page was ended, or null. */
function readMark() {
  const name = read(KEY, 'sessionStorage');
  const { times, heavy } = (typeof name === 'string' && read(keyOf(name))) || {};
  return Number.isSafeInteger(times) ? { name, times, heavy: heavy === true } : null;
}

/** Deletes the old marks. */
function sweep() {
  const keys = [];
  try {
    keys.push(...Object.keys(localStorage));
  } catch {
    // blocked: there are none
  }
  for (const key of keys) if (key.startsWith(keyOf('')) && !(read(key)?.at > Date.now() - OLD_MS)) forget(key);
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

/** How long a mark may take to go, in ms, and how often it is looked for. */
const LATE_MS = 2000;
const LOOK_MS = 100;

/** Whether a mark stays. What a page writes while it is left may reach the next page's process only a moment later. */
async function stays(name) {
  for (let ms = 0; ms < LATE_MS; ms += LOOK_MS) {
    if (!read(keyOf(name))) return false;
    await new Promise((done) => { setTimeout(done, LOOK_MS); });
  }
  return true;
}

export class Life {
  #name = String(Math.random());
  #mark = { times: 0, heavy: false };

  /**
   * Begins a visit: from now on a sudden end will be detected.
   * @returns {Promise<{times: number, heavy: boolean}>} how often in a row the browser has ended the page; whether its
   *   model was a large one
   */
  async begin() {
    const last = readMark();
    sweep();
    addEventListener('pageshow', () => this.#write());
    addEventListener('pagehide', () => forget(keyOf(this.#name)));
    const ended = last !== null && await take(last.name) && await stays(last.name);
    if (ended) {
      this.#mark.times = last.times + 1;
      forget(keyOf(last.name));
    }
    await take(this.#name);
    write(KEY, this.#name, 'sessionStorage');   // without storage, no end is detected
    this.#write();
    return { times: this.#mark.times, heavy: ended && last.heavy };
  }

  /** Notes that a model is loaded. @param {boolean} heavy whether it needs more memory than the page itself */
  carry(heavy) {
    this.#mark.heavy = heavy;
    this.#write();
  }

  #write() {
    write(keyOf(this.#name), { ...this.#mark, at: Date.now() });
  }
}
