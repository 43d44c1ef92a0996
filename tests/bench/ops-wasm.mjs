// SPDX-License-Identifier: MIT
// The operations of ops.c as wasm, in Node or in a browser's worker: the glue's factory becomes something to ask for cells.

/** Must equal the link's -sINITIAL_MEMORY and -sMAXIMUM_MEMORY, in pages of 64 KiB. */
const PAGES = { initial: 512, maximum: 65536, shared: true };

/** A NUL-terminated text; shared memory must be copied first. */
function cString(memory, address) {
  const bytes = new Uint8Array(memory.buffer);
  return new TextDecoder().decode(bytes.slice(address, bytes.indexOf(0, address)));
}

/**
 * @param {Function} glue the factory that Emscripten made @param {number} threads
 * @returns {Promise<{facts: {variant: string, threads: number}, cell: (series: number, length: number, budgetMs: number) => object}>}
 */
export async function openOps(glue, threads) {
  const memory = new WebAssembly.Memory(PAGES);
  const wasm = await glue({ nThreads: threads - 1, wasmMemory: memory });
  const bench = wasm._ops_open(threads);
  if (!bench) throw new Error('not enough memory');
  const cell = (series, length, budgetMs) => JSON.parse(cString(memory, wasm._ops_cell(bench, series, length, budgetMs)));
  return { facts: { variant: cString(memory, wasm._ops_name(bench)), threads: wasm._ops_threads(bench) }, cell };
}
