// SPDX-License-Identifier: MIT
// Turns errors into sentences. The library's errors have a code, an English sentence and a hint; other errors have only
// a message. In another language the table has a sentence for each code (languages/errors.json), and the library's own
// is a detail.
import { QuernError } from 'quern';
import { oneLine } from './format.js';
import { number, say, wordsOfCode } from './words.js';

/** The library's code, or '' (DOMException also has a `code`: a number of its own). */
export const codeOf = (error) => (error instanceof QuernError ? error.code : '');

export const isAbort = (error) => error?.name === 'AbortError';

/** Whether the same load may succeed if it is tried again. It cannot if another file, address or browser is needed. */
export function mayHelpAgain(error) {
  const code = codeOf(error);
  if (code === 'net/http') return error.retryable;
  return !code || /^(?:net|storage|engine)\/|^mem\/load$|^model\/integrity$/.test(code);
}

/** Sentences in place of those that the library addresses to programmers; none if they are fine. */
function forPeople({ code, detail }) {
  if (code === 'use/busy' && detail?.parallel) {
    return {
      message: say`Too many replies are requested at once.`,
      hint: say`Try again when one of them has ended, or stop one.`,
    };
  }
  if (code === 'model/unsupported' && detail?.rule === 'projector') {
    return {
      message: say`This file is the vision part of a model (a projector), or was taken for one.`,
      hint: say`Choose it together with the file of its language model.`,
    };
  }
  const isClosed = code === 'net/http' && [401, 403].includes(detail.status);
  if (!isClosed) return null;
  return {
    message: say`${detail.host} wants an access token for this file (${String(detail.status)}).`,
    hint: say`Accept its terms there, if any, and enter an access token of your account. It is kept until this page is closed.`,
  };
}

/** A part of the page that is fetched late could not be fetched; each browser has its own words. */
const isMissing = (error) => error instanceof TypeError && /import/i.test(error.message);

/** The library's words without the names of options, with numbers as people write them. */
const plain = (text, code) => {
  const line = oneLine(text, 500).replaceAll('contextSize', 'context size');
  return code === 'use/context' ? line.replaceAll(/\d{4,}/g, (n) => number(Number(n))) : line;
};

/**
 * The sentences about a failure, for the visitor.
 * @returns {{message: string, hint: string, detail: string, code: string}} detail: the library's English sentence if
 *   the message is in another language, or ''
 */
export function explain(error) {
  const code = codeOf(error);
  const missing = isMissing(error) && { message: say`This part of the page has to be fetched once, which needs a network.` };
  const own = code ? forPeople(error) : missing;
  const { message, hint } = own || error || {};
  const said = plain(message ?? error, code) || say`Something went wrong.`;
  const words = !own && wordsOfCode(code);
  const more = error?.advice ?? (words ? '' : plain(hint));
  return { message: words || said, hint: more, detail: words ? said : '', code };
}
