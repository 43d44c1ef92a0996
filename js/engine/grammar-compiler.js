// SPDX-License-Identifier: MIT
// Compiles the format of a reply (a schema, a pattern, a grammar) to a block of bytes (src/grammar/saved.h), which
// grammar.js loads. Compiling needs neither a model nor a vocabulary, so it can run outside the engine's worker. Its
// instance of dist/grammar.wasm has a memory of its own.

import { QuernError } from '../shared/errors.js';

/** Kinds of formats, with their numbers in face.c. */
export const KINDS = { schema: 0, regex: 1, grammar: 2, choices: 3, json: 4, calls: 5, taggedCalls: 6 };

/** Error codes of the statuses (src/base/base.h) that are not the format's fault. */
const CODES = { [-6]: 'mem/load', [-8]: 'use/param' };

const decoder = new TextDecoder();

export function textAt(wasm, address) {
  const bytes = new Uint8Array(wasm.memory.buffer, address);
  return decoder.decode(bytes.subarray(0, bytes.indexOf(0)));
}

/** Returns the status, or throws if it is an error. */
export function checked(wasm, status) {
  if (status >= 0) return status;
  const rule = textAt(wasm, wasm.grammar_error_rule());
  const detail = { ...(rule && { rule }), offset: wasm.grammar_error_offset() };
  throw new QuernError(CODES[status] ?? 'use/schema', textAt(wasm, wasm.grammar_error_message()), { detail });
}

/** Reserves the buffer that passes data to or from the next call. @returns {number} its address */
export function room(wasm, size) {
  const address = wasm.grammar_room(size);
  if (!address) throw new QuernError('mem/load', `There is not enough memory for ${size} bytes of a grammar.`);
  return address;
}

/** Copies bytes into that buffer. @returns {number} its address */
export function given(wasm, bytes) {
  const address = room(wasm, bytes.length);
  new Uint8Array(wasm.memory.buffer, address, bytes.length).set(bytes);
  return address;
}

/**
 * Makes an instance of the module.
 * @param {WebAssembly.Module} module @param {number} [limit] most bytes of its memory
 * @param {() => boolean} [pace] called every few milliseconds while a grammar is compiled; true ends the compilation
 */
export async function opened(module, limit, pace = () => false) {
  /** @type {any} */
  const { exports } = await WebAssembly.instantiate(module, { env: { pace: () => Number(pace()) } });
  exports._initialize();      // initialises the allocator's heap
  if (limit) exports.grammar_limit(limit);
  return exports;
}

/** Makes the error for a crash of the module. Such a crash ends one reply and does not harm the engine. */
export function tooMuch(message, cause) {
  return new QuernError('use/schema', `What the reply is to look like was too much (${message}).`, {
    detail: { rule: 'limit' },
    cause,
  });
}

function compile(wasm, { kind, bytes, flags }) {
  const handle = checked(wasm, wasm.grammar_compile(KINDS[kind], given(wasm, bytes), bytes.length, flags));
  const size = wasm.grammar_saved_size(handle);
  try {
    const address = room(wasm, size);
    wasm.grammar_save(handle, address);
    return new Uint8Array(wasm.memory.buffer, address, size).slice();
  } finally {
    wasm.grammar_release(handle);
    wasm.grammar_room(0);
  }
}

/**
 * Opens a compiler that can be called repeatedly. It replaces its instance after a crash.
 * @param {{module: WebAssembly.Module, limit?: number}} means
 * @returns {(asked: {kind: string, bytes: Uint8Array, flags: number}, pace?: () => boolean) => Promise<{value:
 *   Uint8Array, held: number}>} held: size of the instance's memory, in bytes
 */
export function openCompiler({ module, limit }) {
  let wasm;
  let pace;
  return async (asked, isOver) => {
    pace = isOver;
    wasm ??= await opened(module, limit, () => pace?.());
    try {
      return { value: compile(wasm, asked), held: wasm.memory.buffer.byteLength };
    } catch (error) {
      if (error instanceof QuernError) throw error;
      wasm = undefined;
      throw tooMuch(error.message, error);
    }
  };
}
