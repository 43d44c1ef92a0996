// SPDX-License-Identifier: MIT
// Rows of PNG files as they come out of zlib, piece by piece: filters are undone, samples converted to bytes, and these
// put into their places. Only the image and two rows are in memory. Loops are simple and over bytes, since a large
// image has hundreds of millions of them.

import { undecoded } from './limits.js';

export const CHANNELS = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
const PALETTE = 3;
const MOST_COLORS = 256;

/** Start and steps of each pass of an interlaced image: x, y, dx, dy. */
const PASSES = [[0, 0, 8, 8], [4, 0, 8, 8], [0, 4, 4, 8], [2, 0, 4, 4], [0, 2, 2, 4], [1, 0, 2, 2], [0, 1, 1, 2]];

export const broken = (why, cause) => undecoded(`The PNG file is damaged: ${why}.`, cause);

// --- filters ---

function paeth(row, above, step) {
  for (let i = 0; i < step; i++) row[i] += above[i];
  for (let i = step, j = 0; i < row.length; i++, j++) {
    const c = above[j];
    const a = row[j];
    const b = above[i];
    const da = b - c;
    const db = a - c;
    const pa = da < 0 ? -da : da;
    const pb = db < 0 ? -db : db;
    const pc = da + db < 0 ? -da - db : da + db;
    row[i] += pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
  }
}

function average(row, above, step) {
  for (let i = 0; i < step; i++) row[i] += above[i] >> 1;
  for (let i = step; i < row.length; i++) row[i] += (row[i - step] + above[i]) >> 1;
}

/** Undoes a filter in place; `above` is the row before, or zeros. */
const UNFILTER = [
  () => {},
  (row, above, step) => { for (let i = step; i < row.length; i++) row[i] += row[i - step]; },
  (row, above) => { for (let i = 0; i < row.length; i++) row[i] += above[i]; },
  average, paeth,
];

// --- samples ---

/**
 * @typedef {(row: Uint8Array, bytes: Uint8Array) => void} Reader fills `bytes` with the samples of a row
 */

/** @type {Reader} */
function read16(row, bytes) {
  for (let i = 0; i < bytes.length; i++) bytes[i] = ((row[2 * i] << 8 | row[2 * i + 1]) * 255 + 32895) >>> 16;
}

/** @returns {Reader} for samples that share bytes; `scale` is 1 for indices of a palette */
function readSmall(depth, scale) {
  const mask = (1 << depth) - 1;
  return (row, bytes) => {
    for (let i = 0, bit = 0; i < bytes.length; i++, bit += depth)
      bytes[i] = ((row[bit >> 3] >> (8 - depth - (bit & 7))) & mask) * scale;
  };
}

function readerOf({ color, depth }) {
  if (depth === 16) return read16;
  if (depth === 8) return (row, bytes) => bytes.set(row);
  return readSmall(depth, color === PALETTE ? 1 : 255 / (2 ** depth - 1));
}

// --- colours ---

/**
 * @typedef {(bytes: Uint8Array, out: Uint8Array, to: number, by: number) => void} Writer writes the pixels of a row
 *   from `to` on, `by` apart
 */

/**
 * Writers by the number of samples of a pixel and its channels. The alpha of a colour is written elsewhere, if there is
 * one.
 * @type {Record<number, Writer>}
 */
const WRITERS = {
  1: (bytes, out, to, by) => {
    for (let i = 0; i < bytes.length; i++, to += by) out[to] = out[to + 1] = out[to + 2] = bytes[i];
  },
  2: (bytes, out, to, by) => {
    for (let i = 0; i < bytes.length; i += 2, to += by) {
      out[to] = out[to + 1] = out[to + 2] = bytes[i];
      out[to + 3] = bytes[i + 1];
    }
  },
  3: (bytes, out, to, by) => {
    for (let i = 0; i < bytes.length; i += 3, to += by) {
      out[to] = bytes[i];
      out[to + 1] = bytes[i + 1];
      out[to + 2] = bytes[i + 2];
    }
  },
  4: (bytes, out, to, by) => {
    for (let i = 0; i < bytes.length; i += 4, to += by) {
      out[to] = bytes[i];
      out[to + 1] = bytes[i + 1];
      out[to + 2] = bytes[i + 2];
      out[to + 3] = bytes[i + 3];
    }
  },
};

/** @returns {Writer} through a palette, with alphas if there are any */
function writerOfPalette(colors, alphas) {
  if (!colors?.length || colors.length % 3 || colors.length > 3 * MOST_COLORS)
    throw broken('its palette is missing or invalid');
  const [n, channels] = [colors.length / 3, alphas ? 4 : 3];
  const table = new Uint8Array(channels * n).fill(255);
  for (let i = 0; i < n; i++)
    for (let c = 0; c < channels; c++) table[channels * i + c] = c < 3 ? colors[3 * i + c] : (alphas[i] ?? 255);
  return (bytes, out, to, by) => {
    for (let i = 0; i < bytes.length; i++, to += by) {
      if (bytes[i] >= n) throw broken('a colour is not in its palette');
      for (let c = 0, from = channels * bytes[i]; c < channels; c++) out[to + c] = table[from + c];
    }
  };
}

/**
 * Makes a writer of a row's alphas if one colour is transparent; it compares samples as they are stored.
 * @returns {(samples: Uint8Array, out: Uint8Array, to: number, by: number) => void}
 */
function keyWriter({ color, depth }, key, scale) {
  const n = CHANNELS[color];
  if (key.length < 2 * n) throw broken('its transparent colour is invalid');
  const storedAt = (at) => (depth === 16 ? [key[at], key[at + 1]] : [(key[at] << 8 | key[at + 1]) * scale]);
  const stored = Array.from({ length: n }, (_, c) => storedAt(2 * c)).flat();
  return (samples, out, to, by) => {
    for (let at = 0; at < samples.length; to += by) {
      let isKey = true;
      for (let c = 0; c < stored.length; c++, at++) isKey = samples[at] === stored[c] && isKey;
      out[to + 3] = isKey ? 0 : 255;
    }
  };
}

/**
 * @returns {{channels: number, write: (row: Uint8Array, bytes: Uint8Array, out: Uint8Array, to: number, by: number) =>
 * void}}
 */
function colorsOf(head, { PLTE, tRNS }) {
  const { color, depth } = head;
  const channels = color >= 4 || tRNS ? 4 : 3;
  if (color === PALETTE) {
    const write = writerOfPalette(PLTE, tRNS);
    return { channels, write: (row, bytes, out, to, by) => write(bytes, out, to, by) };
  }
  const write = WRITERS[CHANNELS[color]];
  if (!tRNS || color >= 4) return { channels, write: (row, bytes, out, to, by) => write(bytes, out, to, by) };
  const writeAlphas = keyWriter(head, tRNS, 255 / (2 ** Math.min(depth, 8) - 1));
  return { channels, write(row, bytes, out, to, by) {
    write(bytes, out, to, by);
    writeAlphas(depth === 16 ? row : bytes, out, to, by);
  } };
}

// --- rows ---

/** Passes with the sizes of their rows; an image that is not interlaced has one. Empty passes are left out. */
function passesOf({ width, height, depth, color, interlaced }) {
  const bits = CHANNELS[color] * depth;
  return (interlaced ? PASSES : [[0, 0, 1, 1]]).map(([x, y, dx, dy]) => {
    const columns = Math.max(0, Math.ceil((width - x) / dx));
    const rows = Math.max(0, Math.ceil((height - y) / dy));
    return { x, y, dx, dy, columns, rows, size: Math.ceil(columns * bits / 8), step: Math.max(1, bits >> 3) };
  }).filter(({ columns, rows }) => columns && rows);
}

/** Makes pixels of an image from the bytes of its rows. */
export class Rows {
  #head;
  #colors;
  #read;
  #passes;
  #pass;
  #row;             // the current row, with its filter type first
  #filled = 0;
  #above;
  #bytes;           // samples of the row
  #left;            // remaining rows of the pass
  #out;

  constructor(head, chunks) {
    this.#head = head;
    this.#colors = colorsOf(head, chunks);
    this.#read = readerOf(head);
    this.#passes = passesOf(head);
    this.#out = new Uint8Array(head.width * head.height * this.#colors.channels);
    this.#next();
  }

  /** RGB or RGBA. */
  get pixels() { return this.#out; }

  /** Whether all pixels have arrived. */
  get isWhole() { return !this.#pass; }

  /** @param {Uint8Array} piece the next bytes */
  take(piece) {
    for (let at = 0; at < piece.length;) {
      if (!this.#pass) throw broken('it has too many pixels');
      const n = Math.min(this.#row.length - this.#filled, piece.length - at);
      this.#row.set(piece.subarray(at, at + n), this.#filled);
      this.#filled += n;
      at += n;
      if (this.#filled === this.#row.length) this.#finish();
    }
  }

  #next() {
    this.#pass = this.#passes.shift();
    if (!this.#pass) return;
    const { size, rows, columns } = this.#pass;
    this.#row = new Uint8Array(size + 1);
    this.#above = new Uint8Array(size + 1);
    this.#bytes = new Uint8Array(columns * CHANNELS[this.#head.color]);
    this.#left = rows;
  }

  #finish() {
    const { x, y, dx, dy, rows, step } = this.#pass;
    const [filter] = this.#row;
    if (!UNFILTER[filter]) throw broken(`unknown filter ${filter}`);
    const row = this.#row.subarray(1);
    UNFILTER[filter](row, this.#above.subarray(1), step);
    const { channels, write } = this.#colors;
    const at = (y + (rows - this.#left) * dy) * this.#head.width + x;
    this.#read(row, this.#bytes);
    write(row, this.#bytes, this.#out, channels * at, channels * dx);
    [this.#row, this.#above, this.#filled] = [this.#above, this.#row, 0];
    if (--this.#left === 0) this.#next();
  }
}
