// SPDX-License-Identifier: MIT
// Values in localStorage, and of one tab in sessionStorage. Other pages of this origin share the storage, so callers
// check what they read. A failure (blocked, full, damaged) is never more than a notice.

/** @returns {any} the stored value; null if there is none or it cannot be read */
export function read(key, storage = 'localStorage') {
  try {
    return JSON.parse(globalThis[storage].getItem(key) ?? 'null');
  } catch {
    return null;
  }
}

/** Removes a value, if possible. */
export function forget(key, storage = 'localStorage') {
  try {
    globalThis[storage].removeItem(key);
  } catch {
    // blocked: nothing is stored
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
