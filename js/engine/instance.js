// SPDX-License-Identifier: MIT
// Makes a running instance with its threads from a wasm file. All threads exist before the first call: in Chromium, a
// thread that is created inside a blocking call would never start. One glue (quern-simd.mjs, quern-simd64.mjs) serves
// all builds of its address size, because their glue files differ only in the wasm file's name. The wasm file is
// fetched here, so that each failure gets an error code.

import { deadline } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';
import { HOST } from '../shared/host.js';
import { newMemory } from '../shared/variant.js';

/** The version of src/wasm.c's interface, which the file has in a custom section. */
const VERSION = '20';

const PAGE = 2 ** 16;

/** Must equal the link's -sINITIAL_MEMORY: 32 MiB. */
const INITIAL_PAGES = 512;

/** Pages to ask for: the most that can be addressed, then less for machines that cannot even reserve that. */
const MAXIMUM_PAGES = {
  32: [65536, 49152, 32768, 24576, 16384, 8192, 4096],
  64: [262144, 196608, 131072, 98304, 65536, 32768],
};

const THREADS_DEADLINE_MS = 10_000;

const startError = (code, message, cause) => new QuernError(code, message, { phase: 'start', cause });

/** @returns {boolean} whether it is the text build (src/engine/text_build.c) */
function checkVersion(module) {
  const [section] = WebAssembly.Module.customSections(module, 'quern');
  const found = section ? new TextDecoder().decode(section).slice(0, 16) : 'none';
  const isText = found === `${VERSION} text`;
  if (found !== VERSION && !isText)
    throw startError('env/version', `The engine's wasm file has interface ${found}, but ${VERSION} is needed.`);
  return isText;
}

function reserve(address) {
  let cause;
  for (const maximum of MAXIMUM_PAGES[address]) {
    try {
      return { memory: newMemory(address, INITIAL_PAGES, maximum), maximum: maximum * PAGE };
    } catch (error) {
      cause = error;
    }
  }
  throw startError('mem/load', `This ${HOST} grants no memory for the engine.`, cause);
}

/** Turns a failed compilation or instantiation into an error. */
export function wasmFailure(error) {
  if (error instanceof QuernError) return error;
  const text = String(error?.message ?? error);
  if (/security policy|unsafe-eval|CSP/i.test(text)) {
    return startError(
      'env/csp',
      "The page's policy (script-src without 'wasm-unsafe-eval') forbids WebAssembly.",
      error,
    );
  }
  if (error instanceof RangeError)
    return startError('mem/load', `There is not enough memory to start the engine (${text}).`, error);
  return startError('env/version', `The engine's wasm file cannot be used (${text.slice(0, 150)}).`, error);
}

/**
 * Rejects when the threads are late, or as soon as one fails. In browsers the glue throws a thread's error once more,
 * and the page would take that for a crash of the engine. The listener stays after a failure, since the other threads
 * fail one by one: an instance without threads (the next try) must not see their errors.
 */
function watchThreads(threads) {
  if (threads === 1) return { failure: new Promise(() => {}), stop() {} };
  let stop;
  const failure = new Promise((_, reject) => {
    const fail = (event) => {
      event?.preventDefault();
      reject(startError('env/worker', 'The engine\'s threads did not start.'));
    };
    const cancel = deadline(THREADS_DEADLINE_MS, fail);
    globalThis.addEventListener?.('error', fail);
    stop = () => {
      cancel();
      globalThis.removeEventListener?.('error', fail);
    };
  });
  return { failure, stop };
}

/**
 * @param {Function} glue the factory that Emscripten made
 * @param {WebAssembly.Module} module
 * @param {number} threads including the calling one
 * @param {32 | 64} address bits of the module's addresses
 * @param {{memory: WebAssembly.Memory}} [gpu] the device of the GPU's build (js/gpu/device.js)
 * @returns {Promise<{wasm: object, memory: WebAssembly.Memory, maximum: number, isText: boolean}>} maximum:
 *   bytes that the memory can grow to; isText: whether it is the text build
 */
export async function instantiate(glue, module, threads, address, gpu) {
  const isText = checkVersion(module);
  const { memory, maximum } = reserve(address);
  if (gpu) gpu.memory = memory;
  const watch = watchThreads(threads);
  const started = new Promise((resolve, reject) => {
    glue({
      nThreads: threads - 1,
      wasmMemory: memory,
      gpu,
      instantiateWasm(imports, receive) {
        WebAssembly.instantiate(module, imports).then((instance) => receive(instance, module)).catch(reject);
        return {};
      },
    }).then(resolve, reject);
  });
  try {
    const wasm = await Promise.race([started, watch.failure]);
    watch.stop();
    return { wasm, memory, maximum, isText };
  } catch (error) {
    throw wasmFailure(error);
  }
}
