// SPDX-License-Identifier: MIT
// Every failure that leaves the library is of one class, with a stable code, a sentence that tells what happened and
// where, and a hint that tells what to do. Errors cross from the worker to the page as plain objects (toWire,
// fromWire). They get their hints there: the worker is built without these sentences.

import { hintOf } from './hints.js';
import { HOST } from './host.js';

const RETRYABLE = new Set([
  'net/offline',
  'net/unreachable',
  'net/truncated',
  'net/stalled',
  'net/changed',
  'mem/load',
  'engine/hung',
  'engine/lost',
]);

/**
 * Characters that control a terminal or change the order of text: control characters, bidirectional controls, unusual
 * line ends.
 */
const STEERING = /[\0-\x08\v\f\x0e-\x1f\x7f-\x9f\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * Removes control characters from foreign text that is only shown; lines and tabs stay. The result does not depend on
 * how the text is cut into pieces.
 */
export const harmless = (text) => text.replace(/\r/g, '').replace(STEERING, '\uFFFD');

/** Marks the class below in all of its copies: other entries of the package have a copy of their own. */
const OURS = Symbol.for('quern.error');

export class QuernError extends Error {
  static [Symbol.hasInstance](value) { return value?.[OURS] === true; }

  /**
   * @param {string} code
   * @param {string} message
   * @param {{phase?: string, detail?: object, retryable?: boolean, cause?: unknown, hint?: string}} [options] hint:
   *   replaces the hint of the code
   */
  constructor(code, message, { phase = 'call', detail = {}, retryable = RETRYABLE.has(code), cause, hint } = {}) {
    super(harmless(String(message)), cause === undefined ? undefined : { cause });
    this.name = 'QuernError';
    this.code = code;
    this.hint = hint ?? hintOf(code, detail);
    this.phase = phase;
    this.retryable = retryable;
    this.detail = detail;
  }

  get [OURS]() { return true; }

  toJSON() {
    const { name, hint, cause } = this;
    return { name, ...toWire(this), hint, ...(cause !== undefined && { cause: String(cause) }) };
  }
}

/** Whether an error is a QuernError whose code is of this group. */
export const isOf = (group, error) => error instanceof QuernError && error.code.startsWith(`${group}/`);

/**
 * Makes the error for a bad argument. `path` names it as the caller wrote it: `options.temperature`,
 * `messages[3].role`.
 * @param {object} [more] further fields of `detail`
 */
export function badParam(path, problem, more) {
  return new QuernError('use/param', `${path} ${problem}.`, { detail: { param: path, ...more } });
}

/**
 * Makes the error for an unknown name. called.js adds which of the known names is meant.
 * @param {string[]} known the names that exist
 */
export const unknownName = (path, known, what = 'option') =>
  badParam(path, `is not ${what === 'option' ? 'an' : 'a'} ${what} here`, { known });

export function abortError() {
  return new DOMException('The work was aborted.', 'AbortError');
}

/** Emscripten throws this from a call that waits for a thread, when it notices that a thread has crashed. */
const THREAD_CRASHED = 'unwind';

/**
 * Converts a foreign error: it means that memory was refused, or else a bug or a crash, after which the engine must not
 * be called again.
 */
function foreign(error, phase) {
  const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const text = error === THREAD_CRASHED ? 'one of its threads has ended' : said.slice(0, 200);
  if (error instanceof RangeError && /alloc|array length|string length/i.test(text)) {
    return new QuernError('mem/load', `There is not enough memory in this ${HOST} (${text}).`, {
      phase,
      cause: error,
    });
  }
  return new QuernError('engine/trap', `The engine crashed (${text}).`, { phase, cause: error });
}

export function asQuernError(error, phase) {
  return error instanceof QuernError ? error : foreign(error, phase);
}

export function toWire(error) {
  const { code, message, phase, retryable, detail } = error;
  return { code, message, phase, retryable, detail };
}

export function fromWire({ code, message, phase, retryable, detail }) {
  return new QuernError(code, message, { phase, retryable, detail });
}
