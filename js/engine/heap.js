// SPDX-License-Identifier: MIT
// The wasm memory: buffers, strings, copies. An address is a plain number, whether the engine's addresses have 32 bits
// or 64. The buffer is replaced when the memory grows, and the memory may be shared. Hence two rules: a view lives for
// one call only, and data leaves as a copy (decoders refuse shared memory).

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

  /** Bytes from an address on; without a number, the rest of the memory. */
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

  /** @returns {number} address of the new buffer */
  alloc(size) {
    const address = this.#wasm._wasm_alloc(size);
    if (!address) throw new QuernError('mem/load', `There is not enough memory for ${size} more bytes.`);
    return address;
  }

  release(address) {
    this.#wasm._wasm_release(address);
  }

  /**
   * The address of these bytes in the memory; 0 if they lie outside it. Shared memory stays valid when it grows, and
   * only the wasm memory is shared. Comparing constructors works in pages that are not isolated too: they have shared
   * memory, but no global name for its class.
   */
  addressOf(bytes) {
    return bytes.buffer.constructor === this.#memory.buffer.constructor ? bytes.byteOffset : 0;
  }

  /** Lends a buffer to `use`, and releases it afterwards. */
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

  /** A text whose size is stored at another address. */
  sized(address, size) {
    return this.text(address, this.int32(size, 1)[0]);
  }

  /** A string that ends with NUL. */
  cString(address) {
    return this.text(address, this.bytes(address).indexOf(0));
  }
}
