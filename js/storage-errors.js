// SPDX-License-Identifier: MIT
// What goes wrong with a store, whatever a store is: every call has a time limit, and everything thrown becomes an error of
// the group `storage`.

import { QuernError } from './errors.js';

/** A store that has not answered after this many seconds will not. */
const PATIENCE_S = 15;

const CODES = {
  QuotaExceededError: 'storage/quota', ENOSPC: 'storage/quota', EDQUOT: 'storage/quota',
  NoModificationAllowedError: 'storage/busy', InvalidModificationError: 'storage/busy', EBUSY: 'storage/busy',
};

const SENTENCES = {
  'storage/quota': 'There is no space left to keep the model',
  'storage/busy': 'Another tab or program is using the stored model',
  'storage/unavailable': 'Models cannot be kept here',
  'storage/corrupt': 'The stored copy of the model is damaged',
};

export const storageError = (code, why, cause) => new QuernError(code, `${SENTENCES[code]} (${why}).`, { phase: 'load', cause });

/** What a store threw, as an error of ours. */
export function asStorageError(error) {
  if (error instanceof QuernError) return error;
  const code = CODES[error?.code] ?? CODES[error?.name] ?? 'storage/unavailable';
  return storageError(code, String(error?.message ?? error).slice(0, 100), error);
}

/** Counted in ticks, so that a machine that slept is not taken for a store that hangs. */
function deadline(seconds) {
  let timer;
  const passed = new Promise((_, reject) => {
    let left = seconds;
    timer = setInterval(() => { if (--left <= 0) reject(storageError('storage/unavailable', `no answer for ${seconds} seconds`)); }, 1000);
  });
  return { passed, end: () => clearInterval(timer) };
}

/** The result of a store's call, within the patience; synchronous answers cost nothing. */
export async function within(call) {
  let limit;
  try {
    const answer = call();
    if (typeof answer?.then !== 'function') return answer;
    limit = deadline(PATIENCE_S);
    return await Promise.race([answer, limit.passed]);
  } catch (error) {
    throw asStorageError(error);
  } finally {
    limit?.end();
  }
}
