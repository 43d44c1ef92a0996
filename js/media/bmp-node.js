// SPDX-License-Identifier: MIT
// Reads uncompressed BMP files in Node: 1 to 8 bits with a palette, 16 and 32 bits with masks, 24 bits. As in other
// decoders, a fourth byte counts as alpha only if a mask says so.

import { undecoded } from './limits.js';

// Sizes of headers. The fields of the later ones are at the same offsets.
const [CORE, INFO, WITH_MASKS] = [12, 40, 56];
const AT = 14;                      // where that header begins

const PLAIN = 0;
const MASKED = [3, 6];

/** Masks to use if the file has none. */
const MASKS = { 16: [0x7C00, 0x3E0, 0x1F, 0], 32: [0xFF0000, 0xFF00, 0xFF, 0] };

function headOf(view) {
  const size = view.getUint32(AT, true);
  const start = view.getUint32(10, true);
  if (size === CORE) {
    const [width, height, bits] = [18, 20, 24].map((at) => view.getUint16(at, true));
    return { start, size, width, height, bits, packing: PLAIN, entry: 3, colors: 0, hasAlpha: false };
  }
  const [width, height] = [18, 22].map((at) => view.getInt32(at, true));
  const [packing, colors] = [30, 46].map((at) => view.getUint32(at, true));
  const bits = view.getUint16(28, true);
  const hasAlpha = size >= WITH_MASKS && bits === 32 && view.getUint32(66, true) !== 0;
  return {
    start,
    size,
    width,
    height: Math.abs(height),
    isDown: height < 0,
    bits,
    packing,
    entry: 4,
    colors,
    hasAlpha,
  };
}

/** Number of values from which a table would cost more than dividing. */
const MOST_KNOWN = 2 ** 16;

/**
 * @typedef {(values: Uint32Array, out: Uint8Array, to: number) => void} Writer writes the pixels of a row, given
 *   as numbers, from `to` on
 */

/**
 * Makes a writer of one channel: cuts it out by a mask and scales it to a byte.
 * @returns {(values: Uint32Array, out: Uint8Array, to: number, channels: number) => void}
 */
function byMask(mask) {
  const shift = mask ? 31 - Math.clz32(mask & -mask) : 0;
  const most = mask >>> shift;
  const byte = (value) => (most ? Math.round(value * 255 / most) : 0);
  const table = most < MOST_KNOWN ? Uint8Array.from({ length: most + 1 }, (_, value) => byte(value)) : null;
  return (values, out, to, channels) => {
    for (let i = 0; i < values.length; i++, to += channels) {
      const value = (values[i] & mask) >>> shift;
      out[to] = table ? table[value] : byte(value);
    }
  };
}

function opaque(values, out, to, channels) {
  for (let i = 0; i < values.length; i++, to += channels) out[to] = 255;
}

/** @returns {Writer} */
function byMasks(view, { size, bits, packing }, channels) {
  const isSaid = MASKED.includes(packing);
  const n = size > INFO + 12 || packing === 6 ? 4 : 3;
  const masks = isSaid ? Array.from({ length: n }, (_, i) => view.getUint32(AT + INFO + 4 * i, true)) : MASKS[bits];
  const writers = masks.slice(0, channels).map((mask, c) => (mask || c < 3 ? byMask(mask) : opaque));
  return (values, out, to) => writers.forEach((write, c) => write(values, out, to + c, channels));
}

/** @returns {Writer} */
function byPalette(view, { start, size, bits, packing, entry, colors }) {
  const from = AT + size + (size === INFO && MASKED.includes(packing) ? 12 : 0);
  const n = Math.min(colors || 2 ** bits, 2 ** bits, Math.floor((start - from) / entry));
  const palette = new Uint8Array(3 * 2 ** bits);      // missing entries are black
  for (let i = 0; i < n; i++) for (let c = 0; c < 3; c++) palette[3 * i + c] = view.getUint8(from + entry * i + 2 - c);
  return (values, out, to) => {
    for (let i = 0; i < values.length; i++, to += 3) {
      out[to] = palette[3 * values[i]];
      out[to + 1] = palette[3 * values[i] + 1];
      out[to + 2] = palette[3 * values[i] + 2];
    }
  };
}

/** Makes a reader of the pixel values of a row. @returns {(row: number, values: Uint32Array) => void} */
function readerOf(view, bits) {
  if (bits === 32)
    return (row, values) => {
      for (let i = 0; i < values.length; i++) values[i] = view.getUint32(row + 4 * i, true);
    };
  if (bits === 24) {
    return (row, values) => {
      for (let i = 0, at = row; i < values.length; i++, at += 3)
        values[i] = view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
    };
  }
  if (bits === 16)
    return (row, values) => {
      for (let i = 0; i < values.length; i++) values[i] = view.getUint16(row + 2 * i, true);
    };
  const mask = (1 << bits) - 1;
  return (row, values) => {
    for (let i = 0, bit = 0; i < values.length; i++, bit += bits)
      values[i] = (view.getUint8(row + (bit >> 3)) >> (8 - bits - (bit & 7))) & mask;
  };
}

/** Pixels that are converted in one slice. */
const PART = 2 ** 17;

/**
 * @param {Uint8Array} bytes a file with a valid header
 * @param {import('./limits.js').Slice} slice
 * @returns {Promise<{data: Uint8Array, width: number, height: number}>} RGB or RGBA
 */
export async function readBmp(bytes, slice) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const head = headOf(view);
  const { start, width, height, bits, packing } = head;
  if (packing !== PLAIN && !(MASKED.includes(packing) && bits >= 16))
    throw undecoded('Compressed BMP files are not read in Node: save it as PNG.');
  const stride = Math.ceil((width * bits) / 32) * 4;
  if (start + stride * height > bytes.length) throw undecoded('The BMP file ends too early.');
  const channels = head.hasAlpha ? 4 : 3;
  const write =
    bits < 16
      ? byPalette(view, head)
      : byMasks(view, bits === 24 ? { ...head, bits: 32, packing: PLAIN } : head, channels);
  const [read, values] = [readerOf(view, bits), new Uint32Array(width)];
  const data = new Uint8Array(channels * width * height);
  const rows = Math.ceil(PART / width);
  for (let first = 0; first < height; first += rows) {
    await slice(() => {
      for (let y = first; y < Math.min(first + rows, height); y++) {
        read(start + stride * (head.isDown ? y : height - 1 - y), values);
        write(values, data, channels * width * y);
      }
    });
  }
  return { data, width, height };
}
