// SPDX-License-Identifier: MIT
// The SHA-256 of bytes that come in pieces: the engine mixes whole blocks (src/sha256.c), here is what lies between them.

const BLOCK = 64;

export class Sha256 {
  #hasher;
  #state = Int32Array.of(0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19);
  #held = new Uint8Array(BLOCK);    // bytes that do not fill a block yet
  #length = 0;

  /** @param {import('./hasher.js').Hasher} hasher */
  constructor(hasher) {
    this.#hasher = hasher;
  }

  /** @param {Uint8Array} bytes */
  update(bytes) {
    const held = this.#length % BLOCK;
    const first = held ? Math.min(BLOCK - held, bytes.length) : 0;
    const end = bytes.length - ((bytes.length - first) % BLOCK);
    this.#length += bytes.length;
    this.#held.set(bytes.subarray(0, first), held);
    if (held && held + first === BLOCK) this.#hasher.mix(this.#state, this.#held);
    this.#hasher.mix(this.#state, bytes.subarray(first, end));
    this.#held.set(bytes.subarray(end));
  }

  /** Of everything so far, which is then at its end. @returns {string} 64 hexadecimal digits */
  digest() {
    const end = new Uint8Array(BLOCK + 8 - ((this.#length + 8) % BLOCK));
    end[0] = 0x80;
    new DataView(end.buffer).setBigUint64(end.length - 8, BigInt(8 * this.#length));
    this.update(end);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }
}
