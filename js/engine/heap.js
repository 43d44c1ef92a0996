// SPDX-License-Identifier: MIT
// The wasm memory as engine.js uses it: buffers, strings, copies. An address is a plain number, whether the engine's
// addresses have 32 bits or 64. Growth replaces the buffer and memory may be shared, hence two rules: a view lives for
// one call, and what leaves is a copy (decoders refuse shared memory).

import { QuernError } from '../shared/errors.js';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export class Heap {
  #wasm;
  #memory;

  /** @param {object} wasm the exported functions @param {WebAssembly.Memory} memory */
  constructor(wasm, memory) {
    this.#wasm = wasm;
    this.#memory = memory;
  }

  get buffer() {
    return this.#memory.buffer;
  }

  /** Bytes from an address on: the rest of the memory, unless their number is given. */
  bytes(address, n) {
    return new Uint8Array(this.#memory.buffer, address, n);
  }

  int32(address, n) {
    return new Int32Array(this.#memory.buffer, address, n);
  }

  float32(address, n) {
    return new Float32Array(this.#memory.buffer, address, n);
  }

  float64(address, n) {
    return new Float64Array(this.#memory.buffer, address, n);
  }

  /** @returns {number} its address */
  alloc(size) {
    const address = this.#wasm._wasm_alloc(size);
    if (!address) throw new QuernError('mem/load', `There is not enough memory for ${size} more bytes.`);
    return address;
  }

  release(address) {
    this.#wasm._wasm_release(address);
  }

  /**
   * Where these bytes are in the memory; 0 when they are elsewhere. Shared memory stays valid when it grows, and
   * nothing else is shared. Pages that are not isolated have shared memory too, but no name for it.
   */
  addressOf(bytes) {
    return bytes.buffer.constructor === this.#memory.buffer.constructor ? bytes.byteOffset : 0;
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
    return this.bytes(address, size).slice();
  }

  text(address, size) {
    return decoder.decode(this.copy(address, size));
  }

  /** A text whose size stands elsewhere. */
  sized(address, size) {
    return this.text(address, this.int32(size, 1)[0]);
  }

  /** A string that ends with NUL. */
  cString(address) {
    return this.text(address, this.bytes(address).indexOf(0));
  }
}
