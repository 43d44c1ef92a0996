// SPDX-License-Identifier: MIT
// What the engine does with images before a model sees them (src/image/image.h): reading headers, putting white behind
// transparent pixels, resizing, choosing frames of videos. Large images go through the wasm memory in strips, because
// that memory never shrinks.

import { QuernError } from '../shared/errors.js';
import { oversized } from '../shared/image.js';

/** Bytes of pixels that lie in the wasm memory at a time, about. */
const STRIP = 2 ** 20;

/** Bytes that most headers fit into, and the most that are read of a file whose header does not fit. */
const HEAD = 2 ** 16;
const MOST_HEAD = 2 ** 22;

const isRiff = (bytes) => bytes[0] === 0x52;
const EXIF = 0x45584946;

/** Most chunks of a WebP file that are skipped in the search for EXIF. */
const MOST_CHUNKS = 2 ** 16;

/**
 * A WebP file without its pixels: the chunks before them, and EXIF, which follows them.
 * @param {Uint8Array} bytes longer than HEAD
 */
function withoutPixels(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const behind = (at) => at + 8 + view.getUint32(at + 4, true) + (view.getUint32(at + 4, true) & 1);
  const head = bytes.subarray(0, Math.min(behind(12), HEAD));
  let at = behind(12);
  for (let n = 0; n < MOST_CHUNKS && at + 8 <= bytes.length && view.getUint32(at) !== EXIF; n++) at = behind(at);
  const isThere = at + 8 <= bytes.length && view.getUint32(at) === EXIF;
  const exif = bytes.subarray(at, isThere ? Math.min(behind(at), at + MOST_HEAD) : at);
  const rest = new Uint8Array(head.length + exif.length);
  rest.set(head);
  rest.set(exif, head.length);
  const isWhole = at >= 8 + view.getUint32(4, true);
  if (isWhole) new DataView(rest.buffer).setUint32(4, rest.length - 8, true);
  return rest;
}

/** Names of the values of enum image_kind. */
const KINDS = ['PNG', 'JPEG', 'WebP', 'GIF', 'BMP', 'AVIF'];

const DECODE = -12;     // of src/base/base.h; image.h has two errors, and the other means oversized

const LABEL = 32;

const refusal = (status, [, width, height]) =>
  status === DECODE
    ? new QuernError('image/decode', `The file is no image that can be read: ${KINDS.join(', ')} can, whole ones.`)
    : oversized({ width, height });

/** Copies columns of RGB, from x on, between images of the given widths. */
function copyColumns(to, toWidth, toX, from, fromWidth, fromX, { columns, rows }) {
  for (let y = 0; y < rows; y++) {
    const at = 3 * (y * fromWidth + fromX);
    to.set(from.subarray(at, at + 3 * columns), 3 * (y * toWidth + toX));
  }
}

export class Images {
  #wasm;
  #heap;

  /** @param {{wasm: object, heap: import('./heap.js').Heap}} where */
  constructor({ wasm, heap }) {
    this.#wasm = wasm;
    this.#heap = heap;
  }

  /**
   * Reads a file's header; throws if it is damaged or oversized. The size is that of the upright image. `orientation`
   * tells how its pixels must still be turned (1: not at all).
   * @param {Uint8Array} bytes of the whole file
   * @returns {{kind: string, width: number, height: number, orientation: number}}
   */
  header(bytes) {
    let { status, numbers } = this.#header(bytes.subarray(0, HEAD));
    if (status === DECODE && bytes.length > HEAD) {
      ({ status, numbers } = this.#header(isRiff(bytes) ? withoutPixels(bytes) : bytes.subarray(0, MOST_HEAD)));
    }
    if (status) throw refusal(status, numbers);
    const [kind, width, height, orientation] = numbers;
    return { kind: KINDS[kind], width, height, orientation };
  }

  #header(bytes) {
    return this.#heap.lend(32 + bytes.length, (out) => {
      this.#heap.bytes(out + 32, bytes.length).set(bytes);
      const status = this.#wasm._wasm_image_header(out + 32, bytes.length, out);
      return { status, numbers: [...this.#heap.int32(out, 4)] };
    });
  }

  /**
   * Resizes an image, in steps of some milliseconds. Transparent parts become white first.
   * @param {Uint8Array | Uint8ClampedArray} data RGB or RGBA, told apart by its length
   * @param {{width: number, height: number}} from
   * @param {{width: number, height: number}} to
   * @returns {Generator<void, Uint8Array>} RGB
   */
  * resizing(data, from, to) {
    const channels = data.length / (from.width * from.height);
    const between = new Uint8Array(from.height * to.width * 3);
    const rows = Math.max(1, Math.floor(STRIP / (channels * Math.max(from.width, to.width))));
    for (let y = 0; y < from.height; y += rows) {
      const n = Math.min(rows, from.height - y);
      const strip = data.subarray(y * from.width * channels, (y + n) * from.width * channels);
      between.set(
        this.#resizeAtOnce(strip, { width: from.width, height: n }, { width: to.width, height: n }),
        y * to.width * 3,
      );
      yield;
    }
    return yield* this.#resizeColumns(between, { width: to.width, height: from.height }, to);
  }

  * #resizeColumns(data, from, to) {
    const columns = Math.max(1, Math.floor(STRIP / (3 * Math.max(from.height, to.height))));
    if (columns >= to.width || from.height === to.height) return this.#resizeAtOnce(data, from, to);
    const out = new Uint8Array(3 * to.width * to.height);
    for (let x = 0; x < to.width; x += columns) {
      const n = Math.min(columns, to.width - x);
      const strip = new Uint8Array(3 * n * from.height);
      copyColumns(strip, n, 0, data, to.width, x, { columns: n, rows: from.height });
      const resized = this.#resizeAtOnce(strip, { width: n, height: from.height }, { width: n, height: to.height });
      copyColumns(out, to.width, x, resized, n, 0, { columns: n, rows: to.height });
      yield;
    }
    return out;
  }

  #resizeAtOnce(data, from, to) {
    if (data.length === 3 * from.width * from.height && from.width === to.width && from.height === to.height)
      return data;
    const wasm = this.#wasm;
    const size = 3 * to.width * to.height;
    const scratch = Math.ceil(wasm._wasm_image_resize_cost(from.width, from.height, to.width, to.height) / 8) * 8;
    return this.#heap.lend(scratch + data.length + size, (address) => {
      const [pixels, out] = [address + scratch, address + scratch + data.length];
      this.#heap.bytes(pixels, data.length).set(data);
      if (data.length === 4 * from.width * from.height)
        wasm._wasm_image_opaque(pixels, from.width * from.height, pixels);
      wasm._wasm_image_resize(pixels, from.width, from.height, out, to.width, to.height, address);
      return this.#heap.copy(out, size);
    });
  }

  /** Chooses the frames of a video that the model gets. @returns {Int32Array} their numbers */
  sample(total, fps, perSecond, least, most) {
    return this.#heap.lend(4 * most, (indices) => (
      this.#heap.int32(indices, this.#wasm._wasm_image_sample(total, fps, perSecond, least, most, indices)).slice()
    ));
  }

  /** The text before a pair of frames, such as "<0.2 seconds>"; '' if the number of seconds is impossible. */
  label(seconds) {
    return this.#heap.lend(LABEL, (out) => this.#heap.text(out, this.#wasm._wasm_image_label(seconds, out)));
  }
}
