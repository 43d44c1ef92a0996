// SPDX-License-Identifier: MIT
// Checks whether an image's file is complete. Some browsers show the beginning of a truncated file, and grey below; a
// model would describe the grey. Only lengths are followed, so the check costs next to nothing compared with decoding.

const u16 = (view, at) => view.getUint16(at);

/** Lengths that are followed in one slice. */
const PART = 2 ** 15;

/** @typedef {Generator<void, number>} End the position where a file ends, after steps that follow one length each */

/** Parts of length, type, data and checksum; the last one is IEND. @returns {End} */
function* png(view) {
  let at = 8;
  for (; view.getUint32(at + 4) !== 0x49454E44; at += 12 + view.getUint32(at)) yield;
  return at + 12;
}

/**
 * Segments up to the end marker. After a scan's segment come pixels, in which only 0 or a restart follows 0xFF.
 * @returns {End}
 */
function* jpeg(view, bytes) {
  for (let at = 2; ; yield) {
    at = bytes.indexOf(0xFF, at);
    if (at < 0) return Infinity;
    const marker = view.getUint8(at + 1);
    if (marker === 0xD9) return at + 2;
    at += marker === 0xFF ? 1 : 2;
    if (marker > 1 && marker !== 0xFF && !(marker >= 0xD0 && marker <= 0xD8)) at += u16(view, at);
  }
}

const colors = (flags) => (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0);

/** Blocks up to the end of the first image. @returns {End} */
function* gif(view) {
  let at = 13 + colors(view.getUint8(10));
  for (;;) {
    const isImage = view.getUint8(at) === 0x2C;
    at += isImage ? 11 + colors(view.getUint8(at + 9)) : 2;
    for (; view.getUint8(at); at += 1 + view.getUint8(at)) yield;
    at++;
    if (isImage) return at;
  }
}

const UNPACKED = [0, 3, 6];     // plain pixels, with masks or without

function bmp(view) {
  const start = view.getUint32(10, true);
  const isCore = view.getUint32(14, true) === 12;
  if (!isCore && !UNPACKED.includes(view.getUint32(30, true))) return start + view.getUint32(34, true);
  const [width, height, bits] = isCore ? [18, 20, 24].map((at) => view.getUint16(at, true))
    : [view.getInt32(18, true), Math.abs(view.getInt32(22, true)), view.getUint16(28, true)];
  return start + Math.ceil(width * bits / 32) * 4 * height;
}

const webp = (view) => 8 + view.getUint32(4, true);

/** Formats whose lengths are followed one after the other, and formats that tell where they end. */
const WALKS = { PNG: png, JPEG: jpeg, GIF: gif };
const ENDS = { BMP: bmp, WebP: webp };

async function endOf(kind, view, bytes, slice) {
  if (!WALKS[kind]) return ENDS[kind]?.(view) ?? 0;
  const walk = WALKS[kind](view, bytes);
  for (let step; ;) {
    await slice(() => {
      for (let n = 0; n < PART && !step?.done; n++) step = walk.next();
    });
    if (step.done) return step.value;
  }
}

/**
 * @param {Uint8Array} bytes with a valid header
 * @param {string} kind the engine's name of the format
 * @param {import('./limits.js').Slice} slice
 */
export async function isWhole(bytes, kind, slice) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    return await endOf(kind, view, bytes, slice) <= bytes.length;
  } catch (error) {
    if (error instanceof RangeError) return false;      // a length leads out of the file
    throw error;
  }
}
