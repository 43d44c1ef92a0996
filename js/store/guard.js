// SPDX-License-Identifier: MIT
// A store as the rest of the package sees it, whatever a store is: every call ends within a time limit, every answer
// has the form that it should have, and everything thrown is an error of the group `storage`.

import { deadline, systemClock } from '../shared/clock.js';
import { QuernError, isOf } from '../shared/errors.js';

/** A store that has not answered after this many seconds will not. */
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
  'storage/quota': 'There is not enough space to keep the model',
  'storage/busy': 'Another tab or program is using the stored model',
  'storage/unavailable': 'Models cannot be kept here',
};

export const storageError = (code, why, cause) =>
  new QuernError(code, `${SENTENCES[code]} (${why}).`, { phase: 'load', cause });

/** Whatever was thrown: reading it may throw too. */
function asStorageError(error) {
  try {
    if (isOf('storage', error)) return error;
    const code = CODES.get(error.code) ?? CODES.get(error.name) ?? 'storage/unavailable';
    return storageError(code, String(error.message || error).slice(0, 100), error);
  } catch {
    return storageError('storage/unavailable', 'the store does not say why');
  }
}

/** Rejects when the time is up. */
function patience(clock) {
  let cancel;
  const passed = new Promise((_, reject) => {
    const late = () => reject(storageError('storage/unavailable', `no answer for ${PATIENCE_S} seconds`));
    cancel = deadline(1000 * PATIENCE_S, late, clock);
  });
  return { passed, cancel };
}

/** For whoever waits for a lock, which may take as long as it likes. */
const leave = (signal) => ({
  passed: new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  }),
});

/** Closes a file or gives a lock back, as soon as it is there. What goes wrong then concerns nobody any more. */
export async function letGo(coming) {
  try {
    const thing = await coming;
    await (typeof thing === 'function' ? thing() : thing?.close?.());
  } catch {
    // as said
  }
}

// --- answers as they are used, by call; undefined: this is none ---

const isAmount = (n) => typeof n === 'number' && n >= 0;
const count = (n, most = Infinity) => (Number.isSafeInteger(n) && n >= 0 && n <= most ? n : undefined);
const none = (value) => (value === null || value === undefined ? null : undefined);
const anything = () => null;

const FILE = {
  size: (n) => count(n),
  /**
   * The package's own stores give bytes, which are copied here: what comes too late must not overwrite what was put
   * there since.
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
  /** A copy: what a store gave stays its own. */
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

/** A call's answer in its form. One that is given at once costs no timer; one that comes too late is let go of. */
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
    if (value === undefined) throw storageError('storage/unavailable', `the store's ${name}() gave no proper answer`);
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
 * Does something as the only holder of a name; who is not that after this time fails with `busy`.
 * @param {object} store guarded @param {{patienceMs: number, busy: Error}} how
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
 * @returns {object} a store whose calls return promises; a file that it opens is guarded too. Waiting for a lock lasts
 * until its signal aborts
 */
export const guarded = (store, clock = systemClock) => guard(store, STORE, clock);
