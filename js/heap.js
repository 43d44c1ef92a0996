// SPDX-License-Identifier: MIT
// The wasm memory as engine.js uses it: buffers, strings, copies. Growth replaces the buffer and memory may be
// shared, hence two rules: a view lives for one call, and what leaves is a copy (decoders refuse shared memory).

import { QuernError } from './errors.js';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export class Heap {
  #wasm;
  #memory;
  #bytes;

  /** @param {object} wasm the exported functions @param {WebAssembly.Memory} memory */
  constructor(wasm, memory) {
    this.#wasm = wasm;
    this.#memory = memory;
    this.#bytes = new Uint8Array(memory.buffer);
  }

  get buffer() {
    return this.#memory.buffer;
  }

  /** All of the memory, as of now. */
  get bytes() {
    if (this.#bytes.buffer !== this.#memory.buffer) this.#bytes = new Uint8Array(this.#memory.buffer);
    return this.#bytes;
  }

  int32(address, n) {
    return new Int32Array(this.#memory.buffer, address, n);
  }

  float32(address, n) {
    return new Float32Array(this.#memory.buffer, address, n);
  }

  /** @returns {number} its address; above 2^31 too, where wasm says a negative number */
  alloc(size) {
    // A larger size would wrap on its way into 32 bits.
    const address = size < 2 ** 32 ? this.#wasm._wasm_alloc(size) >>> 0 : 0;
    if (!address) throw new QuernError('mem/load', `There is not enough memory for ${size} more bytes.`);
    return address;
  }

  release(address) {
    this.#wasm._wasm_release(address);
  }

  /** Where these bytes are in the memory; 0 when they are elsewhere. Shared memory stays valid when it grows, and nothing else is shared. */
  addressOf(bytes) {
    return bytes.buffer instanceof ArrayBuffer ? 0 : bytes.byteOffset;   // a page that is not isolated does not know SharedArrayBuffer by name
  }

  /** Lends a buffer to `use`. */
  lend(size, use) {
    const address = this.alloc(Math.max(size, 8));
    try {
      return use(address);
    } finally {
      this.release(address);
    }
  }

  copy(address, size) {
    const start = address >>> 0;
    return this.bytes.slice(start, start + size);
  }

  text(address, size) {
    return decoder.decode(this.copy(address, size));
  }

  /** A string that ends with NUL. */
  cString(address) {
    const start = address >>> 0;
    return this.text(start, this.bytes.indexOf(0, start) - start);
  }
}
