// SPDX-License-Identifier: MIT
// Plays a browser that refuses its store, as in private windows, or that lacks a part of it, if the worker's address
// says so.
const define = (name, property) => Object.defineProperty(navigator, name, property);
const refuse = () => { throw new DOMException('The operation is insecure.', 'SecurityError'); };

const WAYS = {
  '': () => { StorageManager.prototype.getDirectory = async () => refuse(); },
  '?no-storage': () => define('storage', { value: undefined }),
  '?storage-throws': () => define('storage', { get: refuse }),
  '?no-locks': () => define('locks', { value: undefined }),
  '?locks-throw': () => define('locks', { get: refuse }),
  '?request-throws': () => { LockManager.prototype.request = refuse; },
};

WAYS[globalThis.location.search]();
