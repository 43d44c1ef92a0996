// SPDX-License-Identifier: MIT
// A store as the rest of the package sees it, whatever a store is: every call ends within a time limit, and everything thrown
// is an error of the group `storage`.

import { systemClock } from './clock.js';
import { QuernError } from './errors.js';

/** A store that has not answered after this many seconds will not. */
const PATIENCE_S = 15;

const CODES = {
  QuotaExceededError: 'storage/quota', ENOSPC: 'storage/quota', EDQUOT: 'storage/quota',
  NoModificationAllowedError: 'storage/busy', InvalidModificationError: 'storage/busy', EBUSY: 'storage/busy',
};

const SENTENCES = {
  'storage/quota': 'There is not enough space to keep the model',
  'storage/busy': 'Another tab or program is using the stored model',
  'storage/unavailable': 'Models cannot be kept here',
};

export const storageError = (code, why, cause) => new QuernError(code, `${SENTENCES[code]} (${why}).`, { phase: 'load', cause });

function asStorageError(error) {
  if (error instanceof QuernError) return error;
  const code = CODES[error?.code] ?? CODES[error?.name] ?? 'storage/unavailable';
  return storageError(code, String(error?.message || error).slice(0, 100), error);
}

/** Rejects when so many seconds have passed, counted in ticks: a machine that slept is not taken for a store that hangs. */
function deadline(clock, seconds) {
  let cancel;
  const passed = new Promise((_, reject) => {
    const tick = (left) => {
      if (left === 0) reject(storageError('storage/unavailable', `no answer for ${seconds} seconds`));
      else cancel = clock.after(1000, () => tick(left - 1));
    };
    tick(seconds);
  });
  return { passed, cancel: () => cancel() };
}

/** What a call gives; an answer at once costs no timer. */
async function within(clock, call) {
  let limit;
  try {
    const answer = call();
    if (typeof answer?.then !== 'function') return answer;
    limit = deadline(clock, PATIENCE_S);
    return await Promise.race([answer, limit.passed]);
  } catch (error) {
    throw asStorageError(error);
  } finally {
    limit?.cancel();
  }
}

/** Waiting for a lock is the one call that may take as long as it likes. */
const mayWait = (name, args) => name === 'lock' && args[1].wait;

/** @template T @param {T} thing a store, or a file of one @returns {T} whose calls return promises */
export function guarded(thing, clock = systemClock) {
  const call = (target, name) => async (...args) => {
    const work = () => target[name](...args);
    const answer = mayWait(name, args) ? await work() : await within(clock, work);
    return name === 'open' ? answer && guarded(answer, clock) : answer;
  };
  return new Proxy(thing, { get: (target, name) => (typeof target[name] === 'function' ? call(target, name) : target[name]) });
}
