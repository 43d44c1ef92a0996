// SPDX-License-Identifier: MIT
// Where chunks are hashed: in the wasm memory. Stored bytes are read straight into it, some chunks at a time, and fed to the
// engine from there; there are two such rooms, so that one is read into while the engine's threads hash what lies in the
// other. A chunk from a server, which may come at any time, has a place of its own.

import { CHUNK, CHUNKS, hex } from '../shared/chunk.js';
import { Heap } from './heap.js';

const ROOM = CHUNKS * CHUNK;
const HASH_BYTES = 16;

export class Hasher {
  #wasm;
  #heap;
  #address;     // of the rooms, the place for one chunk, and the hashes of that and of the chunks of a room
  #place;
  #out;
  #count = 0;   // of hashes that were begun

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
    this.#address = this.#heap.alloc(2 * ROOM + CHUNK + (1 + CHUNKS) * HASH_BYTES);
    this.#place = this.#address + 2 * ROOM;
    this.#out = this.#place + CHUNK;
  }

  /** Room in the shared memory, beside the one whose bytes are needed. */
  room(size = ROOM, needed) {
    return this.#heap.bytes(this.#address + (needed?.byteOffset === this.#address ? ROOM : 0), size);
  }

  /** Begins to hash the chunks of bytes in a room. */
  start({ byteOffset, length }, chunkSize) {
    this.#count = Math.ceil(length / chunkSize);
    const out = this.#out + HASH_BYTES;
    if (this.engine) this.engine.startHash(byteOffset, length, chunkSize, out);
    else {
      for (let i = 0; i < this.#count; i++) {
        this.#wasm._wasm_hash(byteOffset + i * chunkSize, Math.min(chunkSize, length - i * chunkSize), out + i * HASH_BYTES);
      }
    }
  }

  /** XXH3's 128 bits of each chunk, as 32 hexadecimal digits. */
  end() {
    this.engine?.endHash();
    return Array.from({ length: this.#count }, (_, i) => this.#hash(1 + i));
  }

  #hash(i) {
    return hex(this.#heap.copy(this.#out + i * HASH_BYTES, HASH_BYTES));
  }

  /** The same of a chunk from anywhere, at once. */
  hash(bytes) {
    this.#heap.bytes(this.#place, bytes.length).set(bytes);
    this.#wasm._wasm_hash(this.#place, bytes.length, this.#out);
    return this.#hash(0);
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
