// SPDX-License-Identifier: MIT
// The area of the wasm memory where a model's bytes arrive. They are hashed there and fed to the engine from there.
// Stored bytes are read straight into a room, which has space for several chunks. There are two rooms: while one is
// filled, the engine's threads hash the other. All other bytes come through the entrance, which has space for one
// chunk. A chunk that was hashed in the entrance, and not overwritten since, is fed without another copy.

import { CHUNK, CHUNKS, hex } from '../shared/chunk.js';

const ROOM = CHUNKS * CHUNK;
const HASH_BYTES = 16;

export class Staging {
  #wasm;
  #heap;
  #engine;
  #address;         // of the two rooms, the entrance, the entrance's hash and the hashes of a room's chunks
  #entrance;
  #out;
  #hashed = null;   // the bytes that lie in the entrance and were hashed there
  #count = 0;       // number of hashes under way

  /**
   * @param {object} wasm
   * @param {import('./heap.js').Heap} heap
   * @param {() => number} engine address of the engine whose threads hash, once it exists
   */
  constructor(wasm, heap, engine) {
    this.#wasm = wasm;
    this.#heap = heap;
    this.#engine = engine;
    this.#address = heap.alloc(2 * ROOM + CHUNK + (1 + CHUNKS) * HASH_BYTES);
    this.#entrance = this.#address + 2 * ROOM;
    this.#out = this.#entrance + CHUNK;
  }

  /** A room in the shared memory, other than the one that `needed` lies in. */
  room(size = ROOM, needed) {
    return this.#heap.bytes(this.#address + (needed?.byteOffset === this.#address ? ROOM : 0), size);
  }

  /** Begins to hash the chunks of a room. */
  start({ byteOffset, length }, chunkSize) {
    this.#count = Math.ceil(length / chunkSize);
    this.#wasm._wasm_hash_begin(this.#engine(), byteOffset, length, chunkSize, this.#out + HASH_BYTES);
  }

  /** Waits for the hashes: XXH3's 128 bits of each chunk, as 32 hexadecimal digits. */
  end() {
    this.#wasm._wasm_hash_end(this.#engine());
    return Array.from({ length: this.#count }, (_, i) => this.#hash(1 + i));
  }

  #hash(i) {
    return hex(this.#heap.copy(this.#out + i * HASH_BYTES, HASH_BYTES));
  }

  /** Hashes one chunk at once. The chunk's bytes must not change until it is fed. */
  hash(bytes) {
    this.#wasm._wasm_hash(this.enter(bytes), bytes.length, this.#out);
    this.#hashed = bytes;
    return this.#hash(0);
  }

  /** The address of at most one chunk of bytes. Bytes that lie outside the wasm memory are copied into the entrance. */
  enter(bytes) {
    const here = this.#heap.addressOf(bytes);
    if (here) return here;
    if (this.#hashed !== bytes) this.#heap.bytes(this.#entrance, bytes.length).set(bytes);
    this.#hashed = null;
    return this.#entrance;
  }

  close() {
    this.#heap.release(this.#address);
  }
}
