// SPDX-License-Identifier: MIT
// Reading errors: the library's own have a code, a sentence and a hint; all others only what they happen to say.
import { QuernError } from 'quern';
import { oneLine } from './format.js';

/** The library's code, or '' (DOMException also has a `code`: a number of its own). */
export const codeOf = (error) => (error instanceof QuernError ? error.code : '');

export const isAbort = (error) => error?.name === 'AbortError';

/**
 * Whether the same load may succeed when it is tried again; what another file, place or browser has to cure does not.
 */
export function mayHelpAgain(error) {
  const code = codeOf(error);
  if (code === 'net/http') return error.retryable;
  return !code || /^(?:net|storage|engine)\/|^mem\/load$|^model\/integrity$/.test(code);
}

/** Where the library advises those who write programs. */
function forPeople({ message, hint, code, detail }) {
  if (code === 'use/busy' && detail?.parallel) {
    return {
      message: 'Too many replies are asked for at once.',
      hint: 'Try again when one of them has ended, or stop one.',
    };
  }
  const isClosed = code === 'net/http' && [401, 403].includes(detail.status);
  if (!isClosed) return { message, hint };
  return {
    message: `${detail.host} gives this file only to those whom it knows (${detail.status}).`,
    hint: 'Accept its terms there, if it has some, and give an access token of your account. It is kept until this page is closed.',
  };
}

/** What a failure says to a person. */
export function explain(error) {
  const { message, hint } = codeOf(error) ? forPeople(error) : error ?? {};
  const said = oneLine(message ?? error, 500).replaceAll('contextSize', 'context size') || 'Something went wrong.';
  return { message: said, hint: oneLine(hint, 500).replaceAll('contextSize', 'context size'), code: codeOf(error) };
}
