// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4) of bytes that come piece by piece, which crypto.subtle cannot do. For hashes that others publish; what the
// store keeps is checked by the engine's faster one.

import { hex } from './journal.js';

const BLOCK = 64;

/** The first 32 bits of the fractional part of a root of n: the standard's constants are those of the first primes. */
const fraction = (root, n) => ((root(n) % 1) * 2 ** 32) | 0;
const PRIMES = Array.from({ length: 310 }, (_, i) => i + 2).filter((n, _, all) => all.every((d) => d >= n || n % d));
const K = Int32Array.from(PRIMES.slice(0, 64), (n) => fraction(Math.cbrt, n));

const rotated = (x, n) => (x >>> n) | (x << (32 - n));

/** Takes whole blocks. */
function compress(s, w, bytes, from, to) {
  for (let at = from; at < to; at += BLOCK) {
    for (let i = 0, p = at; i < 16; i++, p += 4) w[i] = (bytes[p] << 24) | (bytes[p + 1] << 16) | (bytes[p + 2] << 8) | bytes[p + 3];
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15];
      const y = w[i - 2];
      w[i] = (w[i - 16] + (rotated(x, 7) ^ rotated(x, 18) ^ (x >>> 3)) + w[i - 7] + (rotated(y, 17) ^ rotated(y, 19) ^ (y >>> 10))) | 0;
    }
    let [a, b, c, d] = [s[0], s[1], s[2], s[3]];      // taking them out of `s` itself would be slow
    let [e, f, g, h] = [s[4], s[5], s[6], s[7]];
    for (let i = 0; i < 64; i++) {
      const u = (h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
      const t = ((rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + u) | 0; d = c; c = b; b = a; a = (u + t) | 0;
    }
    s[0] += a; s[1] += b; s[2] += c; s[3] += d; s[4] += e; s[5] += f; s[6] += g; s[7] += h;
  }
}

export class Sha256 {
  #state = Int32Array.from(PRIMES.slice(0, 8), (n) => fraction(Math.sqrt, n));
  #words = new Int32Array(64);
  #rest = new Uint8Array(BLOCK);
  #size = 0;

  /** @param {Uint8Array} bytes */
  update(bytes) {
    let at = 0;
    const held = this.#size % BLOCK;
    this.#size += bytes.length;
    if (held) {
      at = Math.min(BLOCK - held, bytes.length);
      this.#rest.set(bytes.subarray(0, at), held);
      if (held + at < BLOCK) return this;
      compress(this.#state, this.#words, this.#rest, 0, BLOCK);
    }
    const end = bytes.length - (bytes.length - at) % BLOCK;
    compress(this.#state, this.#words, bytes, at, end);
    this.#rest.set(bytes.subarray(end));
    return this;
  }

  /** The hash in hexadecimal digits; nothing can be added afterwards. */
  digest() {
    const size = this.#size;
    const end = new Uint8Array(BLOCK + 8 - ((size + 8) % BLOCK));   // a bit, zeros, and the length at the end of a block
    end[0] = 0x80;
    new DataView(end.buffer).setBigUint64(end.length - 8, BigInt(size) * 8n);
    this.update(end);
    return hex(Uint8Array.from({ length: 32 }, (_, i) => this.#state[i >> 2] >>> (24 - 8 * (i & 3))));
  }
}
