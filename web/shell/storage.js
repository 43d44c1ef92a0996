// SPDX-License-Identifier: MIT
// What the page keeps in localStorage. It is shared with everything else on this origin, so what is read back is checked by who
// asked for it, and no failure here (blocked, full, damaged) is more than a notice.

/** @returns {any} what was stored, null when there is nothing that can be read */
export function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key) ?? 'null');
  } catch {
    return null;
  }
}

/** @returns {boolean} whether it was stored */
export function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
