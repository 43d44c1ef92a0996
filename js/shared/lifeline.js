// SPDX-License-Identifier: MIT
// Tells a page at once when a worker is gone. No event reports that a browser has ended a worker (or that it ended
// itself), but a lock held by the worker is released then. Without Web Locks, which insecure and opaque origins lack,
// the watchdog notices later.

const request = async (...args) => globalThis.navigator.locks.request(...args);

const ignore = () => {};

/** In the worker: takes a lock for its lifetime. `tell` gets the lock's name once it is held. */
export function holdLifeline(tell) {
  const name = `quern-worker-${globalThis.crypto.randomUUID?.()}`;
  const held = () => {
    tell(name);
    return new Promise(ignore);
  };
  request(name, held).catch(ignore);
}

/**
 * In the page: calls `gone` when the worker that holds the lock no longer exists.
 * @returns {() => void} ends the wait
 */
export function followLifeline(name, gone) {
  const wait = new AbortController();
  request(name, { signal: wait.signal }, gone).catch(ignore);
  return () => wait.abort();
}
