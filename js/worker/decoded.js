// SPDX-License-Identifier: MIT
// Remembers images that were decoded and resized, so that a conversation's next turn need not do it again. The key is
// the hash of all bytes of the file, since an address or a path may lead to another image today. A page that is not
// secure has no hash function, and remembers nothing.
//
// An image of one scope (cacheScope) is not found by another scope. When the space is used up, the scope that holds the
// most bytes loses its oldest image.

/** Bytes of pixels. A large image takes three megabytes, a usual one a quarter of that. */
const MOST = 24 << 20;

/** @returns {Promise<Uint8Array | null>} null: the source is no file */
async function fileOf(source) {
  if (source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  return source instanceof Uint8Array ? source : null;
}

const hashOf = async (bytes) => new Uint8Array(await globalThis.crypto.subtle.digest('SHA-256', bytes)).join();

/** The images of one scope. */
class Shelf {
  images = new Map();       // name -> pixels; the most recently used is last
  bytes = 0;

  take(name) {
    const pixels = this.images.get(name);
    if (this.images.delete(name)) this.bytes -= pixels.length;
    return pixels;
  }

  put(name, pixels) {
    this.take(name);        // another request may have added it meanwhile
    this.images.set(name, pixels);
    this.bytes += pixels.length;
  }
}

export class Decoded {
  #shelves = new Map();     // scope -> Shelf; never an empty one
  #most;

  /** @param {number} [most] bytes that are kept */
  constructor(most = MOST) {
    this.#most = most;
  }

  /**
   * The pixels that `make` makes of a source, or remembered ones.
   * @param {any} source as js/media takes it
   * @param {{how: string, scope: number}} which how: the sizes before and after resizing
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
