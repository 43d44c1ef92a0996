// SPDX-License-Identifier: MIT
// Wraps a store of any kind for the rest of the package: every call ends within a time limit, every answer has the
// right form, and every exception is an error of the group `storage`.

import { deadline, systemClock } from '../shared/clock.js';
import { QuernError, isOf } from '../shared/errors.js';

/** Seconds after which a store is considered unresponsive. */
const PATIENCE_S = 15;

const CODES = new Map(
  Object.entries({
    QuotaExceededError: 'storage/quota',
    ENOSPC: 'storage/quota',
    EDQUOT: 'storage/quota',
    NS_ERROR_FILE_NO_DEVICE_SPACE: 'storage/quota',
    NoModificationAllowedError: 'storage/busy',
    InvalidModificationError: 'storage/busy',
    EBUSY: 'storage/busy',
  }),
);

const SENTENCES = {
  'storage/quota': 'There is not enough space to store the model',
  'storage/busy': 'Another tab or program is using the stored model',
  'storage/unavailable': 'Models cannot be stored here',
};

export const storageError = (code, why, cause) =>
  new QuernError(code, `${SENTENCES[code]} (${why}).`, { phase: 'load', cause });

/** Converts anything thrown; even reading it may throw. */
function asStorageError(error) {
  try {
    if (isOf('storage', error)) return error;
    const code = CODES.get(error.code) ?? CODES.get(error.name) ?? 'storage/unavailable';
    return storageError(code, String(error.message || error).slice(0, 100), error);
  } catch {
    return storageError('storage/unavailable', 'for an unknown reason');
  }
}

/** A promise that rejects when the time is up. */
function patience(clock) {
  let cancel;
  const passed = new Promise((_, reject) => {
    const late = () => reject(storageError('storage/unavailable', `no answer for ${PATIENCE_S} seconds`));
    cancel = deadline(1000 * PATIENCE_S, late, clock);
  });
  return { passed, cancel };
}

/** The limit of a call that waits for a lock, which may take any time. */
const leave = (signal) => ({
  passed: new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  }),
});

/** Closes a file or releases a lock, as soon as it is there. Errors no longer matter then. */
export async function letGo(coming) {
  try {
    const thing = await coming;
    await (typeof thing === 'function' ? thing() : thing?.close?.());
  } catch {
    // ignored
  }
}

// --- conversions of answers, by call; undefined: the answer is invalid ---

const isAmount = (n) => typeof n === 'number' && n >= 0;
const count = (n, most = Infinity) => (Number.isSafeInteger(n) && n >= 0 && n <= most ? n : undefined);
const none = (value) => (value === null || value === undefined ? null : undefined);
const anything = () => null;

const FILE = {
  size: (n) => count(n),
  /**
   * The package's own stores return bytes, which are copied here: a late answer must not overwrite newer contents of
   * the target.
   */
  read(n, [, target]) {
    if (!(n instanceof Uint8Array)) return count(n, target.length);
    target.set(n);
    return n.length;
  },
  write: (n, [, bytes]) => count(n, bytes.length),
  truncate: anything, flush: anything, close: anything,
};

const STORE = {
  list: (names) => (Array.isArray(names) && [...names].every((name) => typeof name === 'string') ? names : undefined),
  /** Copies, because a store keeps ownership of its bytes. */
  read: (bytes) => (bytes instanceof Uint8Array ? new Uint8Array(bytes) : none(bytes)),
  open(file, [, { write }], clock) {
    if (file) return guard(file, FILE, clock);
    return write ? undefined : none(file);
  },
  remove: anything,
  lock(release, [, { wait }]) {
    if (typeof release === 'function') return () => { letGo(release); };
    return wait ? undefined : none(release);
  },
  usage: (usage) => (isAmount(usage?.used) && isAmount(usage.quota) ? usage : undefined),
  persist: Boolean,
};

/** Makes a call and checks its answer. A synchronous answer costs no timer; a late one is closed or released. */
async function ask(thing, name, args, clock, form) {
  let answer;
  let limit;
  try {
    answer = thing[name]?.(...args);
    let value = answer;
    if (typeof answer?.then === 'function') {
      limit = args[1]?.wait ? leave(args[1].signal) : patience(clock);
      value = await Promise.race([answer, limit.passed]);
    }
    value = form(value, args, clock);
    if (value === undefined) throw storageError('storage/unavailable', `the store's ${name}() gave an invalid answer`);
    return value;
  } catch (error) {
    letGo(answer);
    throw asStorageError(error);
  } finally {
    limit?.cancel?.();
  }
}

function guard(thing, forms, clock) {
  return Object.fromEntries(
    Object.entries(forms).map(([name, form]) => [name, (...args) => ask(thing, name, args, clock, form)]),
  );
}

/**
 * Does something while holding a lock alone; fails with `busy` if the lock is not free within the time.
 * @param {object} store guarded
 * @param {{patienceMs: number, busy: Error}} how
 */
export async function alone(store, name, { patienceMs, busy }, work) {
  const impatience = new AbortController();
  const cancel = deadline(patienceMs, () => impatience.abort(busy));
  const release = await store.lock(name, { wait: patienceMs > 0, signal: impatience.signal }).finally(cancel);
  if (!release) throw busy;
  try {
    return await work();
  } finally {
    release();
  }
}

/**
 * @returns {object} a store whose calls return promises; files that it opens are guarded too. Waiting for a lock ends
 *   only when its signal aborts
 */
export const guarded = (store, clock = systemClock) => guard(store, STORE, clock);
