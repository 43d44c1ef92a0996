// SPDX-License-Identifier: MIT
// A chunk's place in the wasm memory: stored bytes are read straight into it, hashed there, and fed to the engine from there.

import { Heap } from './heap.js';
import { CHUNK, hex } from './journal.js';

const HASH_BYTES = 16;

export class Hasher {
  #wasm;
  #heap;
  #address;
  #out;

  /** @param {{wasm: object, memory: WebAssembly.Memory}} instance */
  constructor(instance) {
    this.#enter(instance);
  }

  #enter({ wasm, memory }) {
    this.#wasm = wasm;
    this.#heap = new Heap(wasm, memory);
    this.#address = this.#heap.alloc(CHUNK + HASH_BYTES);
    this.#out = this.#address + CHUNK;
  }

  /** Room for one chunk in the shared memory. */
  room(size = CHUNK) {
    return this.#heap.bytes(this.#address, size);
  }

  /** These bytes in the room. @param {Uint8Array} bytes of a chunk, from anywhere */
  take(bytes) {
    const room = this.room(bytes.length);
    room.set(bytes);
    return room;
  }

  /** XXH3's 128 bits of the first `size` bytes in the room, as 32 hexadecimal digits. */
  hash(size) {
    this.#wasm._wasm_hash(this.#address, size, this.#out);
    return hex(this.#heap.copy(this.#out, HASH_BYTES));
  }

  /** Another instance takes over; views of the old room stay valid. */
  move(instance) {
    this.close();
    this.#enter(instance);
  }

  close() {
    this.#heap.release(this.#address);
  }
}
