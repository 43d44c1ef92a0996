// SPDX-License-Identifier: MIT
// Whether the browser ended this page the last time, as it does to tabs that need much memory: a mark in the tab's own storage
// goes when the page is left, and is still there when the page had no time to leave. A duplicated tab begins with a copy
// of the mark, but the tab it was copied from still holds the lock of that name.

const KEY = 'quern:life';

const forget = () => {};

function read() {
  try {
    const { name, times, heavy } = JSON.parse(sessionStorage.getItem(KEY));
    return { name: String(name), times: Number(times) || 0, heavy: heavy === true };
  } catch {
    return null;
  }
}

/** Asks for the lock and keeps it while the page lives. @returns {Promise<boolean>} whether it was free */
const take = (name) => new Promise((done) => {
  const held = (lock) => {
    done(lock !== null);
    return lock && new Promise(forget);
  };
  if (navigator.locks) navigator.locks.request(`${KEY}:${name}`, { ifAvailable: true }, held).catch(() => done(true));
  else done(true);
});

export class Life {
  #mark = { name: String(Math.random()), times: 0, heavy: false };

  /**
   * From now on a sudden end will be known.
   * @returns {Promise<{times: number, heavy: boolean}>} how often in a row the browser has ended the page; whether its model was a large one
   */
  async begin() {
    const last = read();
    const ended = last !== null && await take(last.name);
    if (ended) this.#mark.times = last.times + 1;
    await take(this.#mark.name);
    this.#write();
    addEventListener('pageshow', () => this.#write());
    addEventListener('pagehide', () => this.#remove());
    return { times: this.#mark.times, heavy: ended && last.heavy };
  }

  /** A model is loaded. @param {boolean} heavy whether it needs more memory than the page itself */
  carry(heavy) {
    this.#mark.heavy = heavy;
    this.#write();
  }

  #write() {
    try {
      sessionStorage.setItem(KEY, JSON.stringify(this.#mark));
    } catch {
      // Without storage nothing is known.
    }
  }

  #remove() {
    try {
      sessionStorage.removeItem(KEY);
    } catch {
      // Nothing was written either.
    }
  }
}
