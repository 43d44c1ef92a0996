// SPDX-License-Identifier: MIT
// A chunk's place in the wasm memory: stored bytes are read straight into it, hashed there, and fed to the engine from there.
// There are two places, so that one chunk can be read while another is hashed by a thread of the engine's.

import { Heap } from './heap.js';
import { CHUNK, hex } from './journal.js';

const HASH_BYTES = 16;

export class Hasher {
  #wasm;
  #heap;
  #address;
  #out;

  /** Whose threads hash; null: the caller's does. */
  engine = null;

  /** What lies in a room and was not asked for yet; the loader knows what it is. */
  ahead = null;

  /** @param {{wasm: object, memory: WebAssembly.Memory}} instance */
  constructor(instance) {
    this.#enter(instance);
  }

  #enter({ wasm, memory }) {
    this.#wasm = wasm;
    this.#heap = new Heap(wasm, memory);
    this.#address = this.#heap.alloc(2 * CHUNK + HASH_BYTES);
    this.#out = this.#address + 2 * CHUNK;
  }

  /** Room for one chunk in the shared memory, beside one whose bytes are needed. */
  room(size = CHUNK, needed) {
    return this.#heap.bytes(this.#address + (needed?.byteOffset === this.#address ? CHUNK : 0), size);
  }

  /** These bytes in a room. @param {Uint8Array} bytes of a chunk, from anywhere */
  take(bytes) {
    const room = this.room(bytes.length, this.ahead?.bytes);
    room.set(bytes);
    return room;
  }

  /** Begins to hash bytes in a room. */
  start({ byteOffset, length }) {
    if (this.engine) this.engine.startHash(byteOffset, length, this.#out);
    else this.#wasm._wasm_hash(byteOffset, length, this.#out);
  }

  /** XXH3's 128 bits of what was begun last, as 32 hexadecimal digits. */
  end() {
    this.engine?.endHash();
    return hex(this.#heap.copy(this.#out, HASH_BYTES));
  }

  hash(bytes) {
    this.start(bytes);
    return this.end();
  }

  /** Another instance takes over; views of the old rooms stay valid. */
  move(instance) {
    this.close();
    this.#enter(instance);
    this.ahead = null;
  }

  close() {
    this.#heap.release(this.#address);
  }
}
