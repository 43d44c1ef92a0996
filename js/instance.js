// SPDX-License-Identifier: MIT
// From a wasm file to a running instance with its threads. All threads exist before the first call: one that is
// created inside a call which then blocks would never start in Chromium.
// The glue (quern-simd.mjs) serves both builds: their glue files differ in the wasm file's name only, and the file is
// fetched here, so that what goes wrong has a name.

import { QuernError } from './errors.js';

/** The version of src/wasm.c's interface, which stands in a custom section of the file. */
const VERSION = '5';

/** Must equal the link's -sINITIAL_MEMORY: 32 MiB in pages of 64 KiB. */
const INITIAL_PAGES = 512;

/** What to ask for, in pages: wasm32's most, then less for machines that cannot even reserve that. */
const MAXIMUM_PAGES = [65536, 32768, 16384, 8192, 4096];

const THREADS_DEADLINE_MS = 10_000;

const startError = (code, message, cause) => new QuernError(code, message, { phase: 'start', cause });

function checkVersion(module) {
  const [section] = WebAssembly.Module.customSections(module, 'quern');
  const found = section ? new TextDecoder().decode(section).slice(0, 16) : 'none';
  if (found !== VERSION) throw startError('env/version', `The engine's wasm file has interface ${found}, but ${VERSION} is needed.`);
}

function newMemory() {
  let cause;
  for (const maximum of MAXIMUM_PAGES) {
    try {
      return new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum, shared: true });
    } catch (error) {
      cause = error;
    }
  }
  throw startError('mem/load', 'The browser grants no memory for the engine.', cause);
}

/** What a failed compilation or instantiation means. */
export function wasmFailure(error) {
  if (error instanceof QuernError) return error;
  const text = String(error?.message ?? error);
  if (/content security policy|unsafe-eval/i.test(text)) return startError('env/csp', 'The page\'s policy forbids WebAssembly.', error);
  if (error instanceof RangeError) return startError('mem/load', `There is not enough memory to start the engine (${text}).`, error);
  return startError('env/version', `The engine's wasm file cannot be used (${text.slice(0, 150)}).`, error);
}

/**
 * Rejects when the threads are late, or as soon as one fails: in browsers the glue throws a thread's error once more, which
 * would reach the page as a crash of the engine. After a failure this goes on, since the other threads fail one by one.
 */
function watchThreads() {
  let stop;
  const failure = new Promise((_, reject) => {
    const fail = (event) => {
      event?.preventDefault();
      reject(startError('env/worker', 'The engine\'s threads did not start.'));
    };
    const timer = setTimeout(fail, THREADS_DEADLINE_MS);
    globalThis.addEventListener?.('error', fail);
    stop = () => {
      clearTimeout(timer);
      globalThis.removeEventListener?.('error', fail);
    };
  });
  return { failure, stop };
}

/**
 * @param {Function} glue the factory that Emscripten made
 * @param {WebAssembly.Module} module
 * @param {number} threads the calling one included
 * @returns {Promise<{wasm: object, memory: WebAssembly.Memory}>}
 */
export async function instantiate(glue, module, threads) {
  checkVersion(module);
  const memory = newMemory();
  const watch = watchThreads();
  const started = new Promise((resolve, reject) => {
    glue({
      nThreads: threads - 1,
      wasmMemory: memory,
      instantiateWasm(imports, receive) {
        WebAssembly.instantiate(module, imports).then((instance) => receive(instance, module)).catch(reject);
        return {};
      },
    }).then(resolve, reject);
  });
  try {
    const wasm = await Promise.race([started, watch.failure]);
    watch.stop();
    return { wasm, memory };
  } catch (error) {
    throw wasmFailure(error);
  }
}
