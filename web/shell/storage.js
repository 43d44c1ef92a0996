// SPDX-License-Identifier: MIT
// What the page keeps in localStorage, and a tab in sessionStorage. It is shared with everything else on this origin,
// so what is read back is checked by who asked for it, and no failure here (blocked, full, damaged) is more than a
// notice.

/** @returns {any} what was stored, null when there is nothing that can be read */
export function read(key, storage = 'localStorage') {
  try {
    return JSON.parse(globalThis[storage].getItem(key) ?? 'null');
  } catch {
    return null;
  }
}

/** What is not there, or may not be touched, needs no forgetting. */
export function forget(key, storage = 'localStorage') {
  try {
    globalThis[storage].removeItem(key);
  } catch {
    // as said
  }
}

/** @returns {boolean} whether it was stored */
export function write(key, value, storage = 'localStorage') {
  try {
    globalThis[storage].setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
