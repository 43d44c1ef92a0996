// SPDX-License-Identifier: MIT
// How a page learns at once that a worker is gone. No event tells when a browser ends a worker (or it ends itself), but
// a lock that it holds is given back then. Without Web Locks, which insecure and opaque origins lack, the watchdog
// notices later.

const request = async (...args) => globalThis.navigator.locks.request(...args);

const ignore = () => {};

/** In the worker: takes a lock for life. `tell` gets its name once it is held. */
export function holdLifeline(tell) {
  const name = `quern-worker-${globalThis.crypto.randomUUID?.()}`;
  const held = () => {
    tell(name);
    return new Promise(ignore);
  };
  request(name, held).catch(ignore);
}

/** In the page: calls `gone` when the worker that holds it no longer exists. @returns {() => void} ends the wait */
export function followLifeline(name, gone) {
  const wait = new AbortController();
  request(name, { signal: wait.signal }, gone).catch(ignore);
  return () => wait.abort();
}
