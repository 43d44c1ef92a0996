// SPDX-License-Identifier: MIT
// Turns errors into sentences. The library's errors have a code, a sentence and a hint; other errors have only a
// message.
import { QuernError } from 'quern';
import { count, oneLine } from './format.js';

/** The library's code, or '' (DOMException also has a `code`: a number of its own). */
export const codeOf = (error) => (error instanceof QuernError ? error.code : '');

export const isAbort = (error) => error?.name === 'AbortError';

/** Whether the same load may succeed if it is tried again. It cannot if another file, address or browser is needed. */
export function mayHelpAgain(error) {
  const code = codeOf(error);
  if (code === 'net/http') return error.retryable;
  return !code || /^(?:net|storage|engine)\/|^mem\/load$|^model\/integrity$/.test(code);
}

/** Replaces sentences that the library addresses to programmers. */
function forPeople({ message, hint, code, detail }) {
  if (code === 'use/busy' && detail?.parallel) {
    return {
      message: 'Too many replies are requested at once.',
      hint: 'Try again when one of them has ended, or stop one.',
    };
  }
  if (code === 'model/unsupported' && detail?.rule === 'projector') {
    return {
      message: 'This file is the vision part of a model (a projector), or was taken for one.',
      hint: 'Choose it together with the file of its language model.',
    };
  }
  if (code === 'use/context') return { message: message.replaceAll(/\d{4,}/g, (n) => count(Number(n))), hint };
  const isClosed = code === 'net/http' && [401, 403].includes(detail.status);
  if (!isClosed) return { message, hint };
  return {
    message: `${detail.host} wants an access token for this file (${detail.status}).`,
    hint: 'Accept its terms there, if any, and enter an access token of your account. It is kept until this page is closed.',
  };
}

/** A part of the page that is fetched late could not be fetched; each browser has its own words. */
const isMissing = (error) => error instanceof TypeError && /import/i.test(error.message);

const MISSING = { message: 'This part of the page has to be fetched once, which needs a network.' };

/** The sentences about a failure, for the visitor. */
export function explain(error) {
  const { message, hint } = codeOf(error) ? forPeople(error) : (isMissing(error) ? MISSING : error ?? {});
  const said = oneLine(message ?? error, 500).replaceAll('contextSize', 'context size') || 'Something went wrong.';
  return { message: said, hint: oneLine(hint, 500).replaceAll('contextSize', 'context size'), code: codeOf(error) };
}
