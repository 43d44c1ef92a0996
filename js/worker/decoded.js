// SPDX-License-Identifier: MIT
// Images' files that were decoded and resized before, so that a conversation's next turn does neither again. Known by the hash of all their bytes:
// what comes from an address or a path may be another image today. A page that is not secure has no such hash, and remembers nothing.

/** Bytes of pixels: three megabytes are an image that is looked at closely, a quarter of that a usual one. */
const MOST = 24 << 20;

/** @returns {Promise<Uint8Array | null>} null: no file */
async function fileOf(source) {
  if (source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  return source instanceof Uint8Array ? source : null;
}

const hashOf = async (bytes) => new Uint8Array(await globalThis.crypto.subtle.digest('SHA-256', bytes)).join();

export class Decoded {
  #images = new Map();      // name -> pixels; what was used last is last
  #bytes = 0;
  #most;

  /** @param {number} [most] bytes that are kept */
  constructor(most = MOST) {
    this.#most = most;
  }

  /**
   * What is made of a source, unless it is there.
   * @param {any} source as js/media takes it
   * @param {string} how they are made: the sizes, before and after
   * @param {(source: any) => Promise<Uint8Array>} make
   */
  async pixels(source, how, make) {
    const file = globalThis.crypto?.subtle ? await fileOf(source) : null;
    if (!file) return make(source);
    const name = `${await hashOf(file)} ${how}`;
    const pixels = this.#take(name) ?? await make(file);
    this.#keep(name, pixels);
    return pixels;
  }

  #take(name) {
    const pixels = this.#images.get(name);
    if (this.#images.delete(name)) this.#bytes -= pixels.length;
    return pixels;
  }

  #keep(name, pixels) {
    this.#take(name);     // somebody else may have made it meanwhile
    if (pixels.length > this.#most) return;
    this.#images.set(name, pixels);
    this.#bytes += pixels.length;
    for (const oldest of this.#images.keys()) {
      if (this.#bytes <= this.#most) return;
      this.#take(oldest);
    }
  }
}
