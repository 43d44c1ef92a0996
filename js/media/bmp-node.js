// SPDX-License-Identifier: MIT
// BMP files in Node, those that are not compressed: 1 to 8 bits through a palette, 16 and 32 by masks, 24. As other decoders do, a fourth byte counts
// as alpha only where a mask says so.

import { undecoded } from './limits.js';

const [CORE, INFO, WITH_MASKS] = [12, 40, 56];      // sizes of headers; of those after the first, fields stand at the same places
const AT = 14;                      // where that header begins

const PLAIN = 0;
const MASKED = [3, 6];

/** What masks are where none are said. */
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
  return { start, size, width, height: Math.abs(height), isDown: height < 0, bits, packing, entry: 4, colors, hasAlpha };
}

/** Red, green, blue and alpha of a pixel by its number. @returns {(value: number) => number[]} */
function byMasks(view, { size, bits, packing }) {
  const isSaid = MASKED.includes(packing);
  const n = size > INFO + 12 || packing === 6 ? 4 : 3;
  const masks = isSaid ? Array.from({ length: n }, (_, i) => view.getUint32(AT + INFO + 4 * i, true)) : MASKS[bits];
  const shifts = masks.map((mask) => (mask ? 31 - Math.clz32(mask & -mask) : 0));
  const most = masks.map((mask, i) => mask >>> shifts[i]);
  const sample = (value, i) => (most[i] ? Math.round(((value & masks[i]) >>> shifts[i]) * 255 / most[i]) : 0);
  return (value) => [sample(value, 0), sample(value, 1), sample(value, 2), masks[3] ? sample(value, 3) : 255];
}

function byPalette(view, { start, size, bits, packing, entry, colors }) {
  const from = AT + size + (size === INFO && MASKED.includes(packing) ? 12 : 0);
  const n = Math.min(colors || 2 ** bits, 2 ** bits, Math.floor((start - from) / entry));
  const palette = Array.from({ length: Math.max(0, n) }, (_, i) => [2, 1, 0].map((c) => view.getUint8(from + entry * i + c)));
  return (value) => palette[value] ?? [0, 0, 0];
}

/** Numbers of a row's pixels. @returns {(row: number, x: number) => number} */
function pixelOf(view, bits) {
  if (bits === 32) return (row, x) => view.getUint32(row + 4 * x, true);
  if (bits === 24) return (row, x) => view.getUint16(row + 3 * x, true) | view.getUint8(row + 3 * x + 2) << 16;
  if (bits === 16) return (row, x) => view.getUint16(row + 2 * x, true);
  return (row, x) => (view.getUint8(row + (x * bits >> 3)) >> (8 - bits - (x * bits & 7))) & ((1 << bits) - 1);
}

/** @param {Uint8Array} bytes a file whose header is in order @returns {{data: Uint8Array, width: number, height: number}} RGB or RGBA */
export function readBmp(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const head = headOf(view);
  const { start, width, height, bits, packing } = head;
  if (packing !== PLAIN && !(MASKED.includes(packing) && bits >= 16)) throw undecoded('Compressed BMP files are not read in Node: save it as PNG.');
  const stride = Math.ceil(width * bits / 32) * 4;
  if (start + stride * height > bytes.length) throw undecoded('The BMP file ends too early.');
  const colorOf = bits < 16 ? byPalette(view, head) : byMasks(view, bits === 24 ? { ...head, bits: 32, packing: PLAIN } : head);
  const [pixel, channels] = [pixelOf(view, bits), head.hasAlpha ? 4 : 3];
  const data = new Uint8Array(channels * width * height);
  for (let y = 0, to = 0; y < height; y++) {
    const row = start + stride * (head.isDown ? y : height - 1 - y);
    for (let x = 0; x < width; x++, to += channels) {
      const color = colorOf(pixel(row, x));
      for (let c = 0; c < channels; c++) data[to + c] = color[c];
    }
  }
  return { data, width, height };
}
