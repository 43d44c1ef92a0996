// SPDX-License-Identifier: MIT
// Images' files that were decoded and resized before, so that a conversation's next turn does neither again. Known by
// the hash of all their bytes: what comes from an address or a path may be another image today. A page that is not
// secure has no such hash, and remembers nothing.
//
// What one scope (cacheScope) has shown no other one finds here; where there is no more room, the scope with the most
// gives up its oldest.

/** Bytes of pixels: three megabytes are an image that is looked at closely, a quarter of that a usual one. */
const MOST = 24 << 20;

/** @returns {Promise<Uint8Array | null>} null: no file */
async function fileOf(source) {
  if (source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  return source instanceof Uint8Array ? source : null;
}

const hashOf = async (bytes) => new Uint8Array(await globalThis.crypto.subtle.digest('SHA-256', bytes)).join();

/** Of one scope. */
class Shelf {
  images = new Map();       // name -> pixels; what was used last is last
  bytes = 0;

  take(name) {
    const pixels = this.images.get(name);
    if (this.images.delete(name)) this.bytes -= pixels.length;
    return pixels;
  }

  put(name, pixels) {
    this.take(name);        // somebody else may have made it meanwhile
    this.images.set(name, pixels);
    this.bytes += pixels.length;
  }
}

export class Decoded {
  #shelves = new Map();     // scope -> Shelf; none is empty
  #most;

  /** @param {number} [most] bytes that are kept */
  constructor(most = MOST) {
    this.#most = most;
  }

  /**
   * What is made of a source, unless it is there.
   * @param {any} source as js/media takes it
   * @param {{how: string, scope: number}} which how: the sizes, before and after
   * @param {(source: any) => Promise<Uint8Array>} make
   */
  async pixels(source, { how, scope }, make) {
    const file = globalThis.crypto?.subtle ? await fileOf(source) : null;
    if (!file) return make(source);
    const name = `${await hashOf(file)} ${how}`;
    const pixels = this.#shelves.get(scope)?.take(name) ?? await make(file);
    this.#keep(scope, name, pixels);
    return pixels;
  }

  #keep(scope, name, pixels) {
    if (pixels.length > this.#most) return;
    if (!this.#shelves.has(scope)) this.#shelves.set(scope, new Shelf());
    this.#shelves.get(scope).put(name, pixels);
    for (let sum = this.#bytes; sum > this.#most; sum = this.#bytes) this.#giveUp();
  }

  get #bytes() { return [...this.#shelves.values()].reduce((sum, { bytes }) => sum + bytes, 0); }

  #giveUp() {
    const [scope, shelf] = [...this.#shelves].reduce((most, one) => (one[1].bytes > most[1].bytes ? one : most));
    shelf.take(shelf.images.keys().next().value);
    if (shelf.bytes === 0) this.#shelves.delete(scope);
  }
}
