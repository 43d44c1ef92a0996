// SPDX-License-Identifier: MIT
// quern_media.h as a JavaScript object: plans the size and the number of tokens of an image, passes its bytes to the
// encoder, and reads the encoder's result. image.js prepares the pixels.

const KINDS = ['image', 'video'];

/** Fields of struct image_grid. */
const GRID = ['height', 'width', 'frames', 'rows', 'cols'];

const ID_BYTES = 8;

/**
 * @typedef {object} Grid
 * @property {number} height pixels after resizing
 * @property {number} width
 * @property {number} frames 1 for an image; an even number for a video
 * @property {number} rows visual tokens of one image or one pair of frames
 * @property {number} cols
 */

export class Media {
  #wasm;
  #heap;
  #engine;
  #out;
  #check;

  /**
   * @param {{wasm: object, heap: import('./heap.js').Heap, engine: number, out: number, check: (status: number) =>
   * number}} where
   */
  constructor({ wasm, heap, engine, out, check }) {
    this.#wasm = wasm;
    this.#heap = heap;
    this.#engine = engine;
    this.#out = out;
    this.#check = check;
  }

  /** The token that stands for a patch of an image or of a video. @param {'image' | 'video'} kind */
  pad(kind) { return this.#wasm._wasm_media_pad(this.#engine, KINDS.indexOf(kind)); }

  /**
   * @param {'image' | 'video'} kind
   * @param {{width: number, height: number, frames?: number}} size
   * @param {{low: number, high: number}} limits pixels of all frames together
   * @returns {Grid}
   */
  plan(kind, { width, height, frames = 1 }, { low, high }) {
    this.#check(
      this.#wasm._wasm_media_plan(this.#engine, KINDS.indexOf(kind), width, height, frames, low, high, this.#out),
    );
    const numbers = this.#heap.int32(this.#out, GRID.length);
    return /** @type {any} */ (Object.fromEntries(GRID.map((name, i) => [name, numbers[i]])));
  }

  /**
   * Adds an image, or a pair of a video's frames.
   * @param {Grid} grid
   * @param {Uint8Array[]} frames one or two, resized, RGB
   * @param {number} [cacheScope] the scope that owns the image; a sequence that uses the image has the same scope
   * @returns {Uint8Array} its id, which the caller releases
   */
  add({ height, width, rows, cols }, frames, cacheScope = 0) {
    const size = 3 * height * width;
    return this.#heap.lend(size * frames.length, (address) => {
      frames.forEach((frame, i) => this.#heap.bytes(address + i * size, size).set(frame));
      this.#heap.int32(this.#out, GRID.length).set([height, width, frames.length, rows, cols]);
      const id = this.#out + 4 * GRID.length + 4; // aligned
      this.#check(
        this.#wasm._wasm_media_add(
          this.#engine,
          this.#out,
          address,
          frames.length > 1 ? address + size : 0,
          cacheScope,
          id,
        ),
      );
      return this.#heap.copy(id, ID_BYTES);
    });
  }

  release(id) {
    this.#heap.bytes(this.#out, ID_BYTES).set(id);
    this.#wasm._wasm_media_release(this.#engine, this.#out);
  }

  /**
   * Continues to encode for about that time.
   * @returns {{values: Float32Array, tokens: number, width: number} | null} null: not done yet
   */
  look(id, budgetMs) {
    const result = this.#out + ID_BYTES;
    this.#heap.bytes(this.#out, ID_BYTES).set(id);
    if (this.#check(this.#wasm._wasm_media_encode(this.#engine, this.#out, budgetMs, result)) !== 0) return null;
    const [address, tokens, width] = this.#heap.float64(result, 3);
    return { values: this.#heap.float32(address, tokens * width).slice(), tokens, width };
  }
}
