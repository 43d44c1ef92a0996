// SPDX-License-Identifier: MIT
// Every failure that leaves the library: one class with a stable code, a sentence that says what and where, and a
// hint that says what to do. Errors cross from the worker to the page as plain objects (toWire, fromWire).

/** What a person can do about it, by code. The message says what happened, so the hint does not repeat it. */
const HINTS = {
  'model/format': 'Choose a GGUF model file, or download it again.',
  'model/unsupported': 'Choose a Qwen3 model in a GGUF file with one of the supported weight types.',
  'model/inconsistent': 'The file is damaged or was converted wrongly; choose another one.',
  'model/nonfinite': 'The file is probably damaged; download it again or choose another one.',
  'net/offline': 'Connect to the network and try again. If the model was complete here, the browser has cleared it.',
  'net/http': 'Check the address and whether the file may be downloaded without signing in.',
  'net/unreachable': 'Check the address and the connection. The server may also forbid other sites to read the file (CORS), '
    + 'or a content blocker is in the way.',
  'net/truncated': 'Try again.',
  'net/stalled': 'Check the connection and try again.',
  'net/changed': 'Load the model again, from the start.',
  'net/range': 'Try again, or download the file and choose it from the disk.',
  'model/integrity': 'Load the model again: what did not match was not kept. Check the hash, if you gave one.',
  'storage/quota': 'Remove models that are not needed, or free some space; the model also runs without being kept.',
  'storage/unavailable': 'In a private window, or where the page\'s storage is blocked, models are downloaded anew each time.',
  'storage/busy': 'Close the other tabs of this page that use the model, or wait until they are done.',
  'storage/corrupt': 'Connect to the network and load the model again: only what is damaged will be fetched.',
  'mem/plan': 'Use a smaller model or a smaller contextSize.',
  'mem/load': 'Use a smaller model or a smaller contextSize, or close other tabs.',
  'mem/kv': 'Use a smaller contextSize or start a new conversation.',
  'env/simd': 'Use a current version of Chrome, Edge, Firefox or Safari.',
  'env/csp': 'The page\'s Content-Security-Policy must allow script-src \'wasm-unsafe-eval\', worker-src for the package\'s files (and blob: where '
    + 'they come from another origin), connect-src for the model\'s host and those that it redirects to, and of trusted-types the name quern.',
  'env/worker': 'Make sure that worker.js, thread.js, template.js and the quern-* files are served beside each other, or pass workerUrl.',
  'env/version': 'Reload the page; serve all files of the package from one version.',
  'engine/trap': 'Load the model again. If it happens again, please report it.',
  'engine/hung': 'Load the model again. If it happens again, please report it.',
  'engine/lost': 'Load the model again; the browser may have ended it to save memory.',
  'engine/disposed': 'Load the model again.',
  'use/context': 'Shorten the conversation, or load with a larger contextSize.',
};

const RETRYABLE = new Set(['net/offline', 'net/unreachable', 'net/truncated', 'net/stalled', 'net/changed', 'mem/load', 'engine/hung', 'engine/lost']);

export class QuernError extends Error {
  constructor(code, message, { phase = 'call', detail = {}, retryable = RETRYABLE.has(code), cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'QuernError';
    this.code = code;
    this.hint = HINTS[code] ?? '';
    this.phase = phase;
    this.retryable = retryable;
    this.detail = detail;
  }
}

/** Whether an error is one of ours and of this group. */
export const isOf = (group, error) => error instanceof QuernError && error.code.startsWith(`${group}/`);

/** A bad argument; `path` names it as the caller wrote it: `options.temperature`, `messages[3].role`. */
export function badParam(path, problem) {
  return new QuernError('use/param', `${path} ${problem}.`, { detail: { param: path } });
}

export function abortError() {
  return new DOMException('The work was aborted.', 'AbortError');
}

/** What Emscripten throws out of a call that waits for a thread, when it notices that one has crashed. */
const THREAD_CRASHED = 'unwind';

/** An error that is none of ours: memory the browser did not give, else a bug or a crash, after which the engine must not be entered again. */
function foreign(error, phase) {
  const text = error === THREAD_CRASHED ? 'one of its threads has ended' : (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, 200);
  if (error instanceof RangeError && /alloc|array length|string length/i.test(text)) {
    return new QuernError('mem/load', `The browser has not enough memory for this (${text}).`, { phase, cause: error });
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
