// SPDX-License-Identifier: MIT
// Where a model's bytes come into the wasm memory: they are hashed there, and fed to the engine from there. Stored
// bytes are read straight into a room, some chunks at a time; there are two, so that one is read into while the
// engine's threads hash what lies in the other. Whatever else there is comes in by the entrance, of a chunk's size: a
// chunk that was hashed there, and that none has followed, is fed without being copied again.

import { CHUNK, CHUNKS, hex } from '../shared/chunk.js';

const ROOM = CHUNKS * CHUNK;
const HASH_BYTES = 16;

export class Staging {
  #wasm;
  #heap;
  #engine;
  #address;         // of the rooms, the entrance, and the hashes of what is in it and of the chunks of a room
  #entrance;
  #out;
  #hashed = null;   // what lies in the entrance and was hashed there
  #count = 0;       // of hashes that were begun

  /**
   * @param {object} wasm
   * @param {import('./heap.js').Heap} heap
   * @param {() => number} engine address of the one whose threads hash, once it is there
   */
  constructor(wasm, heap, engine) {
    this.#wasm = wasm;
    this.#heap = heap;
    this.#engine = engine;
    this.#address = heap.alloc(2 * ROOM + CHUNK + (1 + CHUNKS) * HASH_BYTES);
    this.#entrance = this.#address + 2 * ROOM;
    this.#out = this.#entrance + CHUNK;
  }

  /** Room in the shared memory, beside the one whose bytes are needed. */
  room(size = ROOM, needed) {
    return this.#heap.bytes(this.#address + (needed?.byteOffset === this.#address ? ROOM : 0), size);
  }

  /** Begins to hash the chunks of bytes in a room. */
  start({ byteOffset, length }, chunkSize) {
    this.#count = Math.ceil(length / chunkSize);
    this.#wasm._wasm_hash_begin(this.#engine(), byteOffset, length, chunkSize, this.#out + HASH_BYTES);
  }

  /** XXH3's 128 bits of each chunk, as 32 hexadecimal digits. */
  end() {
    this.#wasm._wasm_hash_end(this.#engine());
    return Array.from({ length: this.#count }, (_, i) => this.#hash(1 + i));
  }

  #hash(i) {
    return hex(this.#heap.copy(this.#out + i * HASH_BYTES, HASH_BYTES));
  }

  /** The same of one chunk, at once. Until it is fed its bytes stay as they are. */
  hash(bytes) {
    this.#wasm._wasm_hash(this.enter(bytes), bytes.length, this.#out);
    this.#hashed = bytes;
    return this.#hash(0);
  }

  /** The address of at most a chunk of bytes, which come in for it where they are not here. */
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
