// SPDX-License-Identifier: MIT
// Reading errors: the library's own have a code, a sentence and a hint; all others only what they happen to say.
import { QuernError } from 'quern';
import { oneLine } from './format.js';

/** The library's code, or '' (DOMException also has a `code`: a number of its own). */
export const codeOf = (error) => (error instanceof QuernError ? error.code : '');

export const isAbort = (error) => error?.name === 'AbortError';

/** What a failure says to a person. */
export function explain(error) {
  const message = oneLine(error?.message ?? error, 500) || 'Something went wrong.';
  return { message, hint: oneLine(error?.hint, 500), code: codeOf(error) };
}
