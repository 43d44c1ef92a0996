// SPDX-License-Identifier: MIT
// Pixels of images in a browser, from the browser's own decoders: a file becomes an ImageBitmap, turned according to
// EXIF, which is drawn on white and read back. Runs in the engine's worker; DOM objects arrive as ImageBitmaps
// (page-sources.js).
//
// Some browsers alter the pixels read from a canvas to prevent fingerprinting; a model would see noise. So a known
// pattern is read back first. If it is altered, or there is no canvas, bitmaps are read through the frames of
// WebCodecs, if those are correct.

import { QuernError } from '../shared/errors.js';
import { LARGE, checkPromise, checkedSize, isRaw, rawPixels, reducedSize, undecoded, withPatience } from './limits.js';
import { turned } from './turn.js';
import { isWhole } from './whole.js';

const MIME = {
  PNG: 'image/png',
  JPEG: 'image/jpeg',
  WebP: 'image/webp',
  GIF: 'image/gif',
  BMP: 'image/bmp',
  AVIF: 'image/avif',
};

const isBitmap = (source) => source instanceof ImageBitmap;

const bytesOf = async (source) => (source instanceof Blob ? new Uint8Array(await source.arrayBuffer()) : source);

// --- from a bitmap to bytes ---

/** Pixels that are drawn and read back at once: some milliseconds. */
const STRIP = 2 ** 18;

/**
 * Reads in strips, between which other work runs.
 * @param {ImageBitmap} bitmap
 * @returns {Promise<Uint8Array>} RGBA, drawn on white
 */
async function readCanvas(bitmap, slice) {
  const { width, height } = bitmap;
  const rows = Math.max(1, Math.min(height, Math.floor(STRIP / width)));
  const context = new OffscreenCanvas(width, rows).getContext('2d', { willReadFrequently: true });
  context.fillStyle = '#fff';
  const data = new Uint8Array(4 * width * height);
  for (let y = 0; y < height; y += rows) {
    await slice(() => {
      const n = Math.min(rows, height - y);
      context.fillRect(0, 0, width, n);
      context.drawImage(bitmap, 0, y, width, n, 0, 0, width, n);
      data.set(context.getImageData(0, 0, width, n).data, 4 * width * y);
    });
  }
  return data;
}

/** @param {ImageBitmap} bitmap with unpremultiplied colours, or opaque @returns {Promise<Uint8Array>} RGBA */
async function readFrame(bitmap) {
  const frame = new VideoFrame(bitmap, { timestamp: 0 });
  try {
    const options = { format: 'RGBA', colorSpace: 'srgb', layout: [{ offset: 0, stride: 4 * bitmap.width }] };
    const data = new Uint8Array(frame.allocationSize(options));
    await frame.copyTo(data, options);
    return data;
  } finally {
    frame.close();
  }
}

/** Side of the test image. Some browsers that alter large canvases leave small ones alone. */
const PROBE = 64;

/** Opaque noise, always the same. */
function pattern() {
  const image = new ImageData(PROBE, PROBE);
  for (let i = 0, random = 1; i < image.data.length; i++) {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
    image.data[i] = i % 4 === 3 ? 255 : random >>> 24;
  }
  return image;
}

async function chooseReader() {
  const drawn = pattern();
  const bitmap = await createImageBitmap(drawn);
  for (const read of [readCanvas, readFrame]) {
    const found = await (async () => read(bitmap, (part) => part()))().catch(() => []);
    if (found.length === drawn.data.length && drawn.data.every((value, i) => value === found[i])) return read;
  }
  throw new QuernError(
    'env/canvas',
    'This browser alters what is read from a canvas, or has none in workers.',
  );
}

let reader;     // promise; created where the time is limited

// --- sources ---

const resized = (size) => size && { resizeWidth: size.width, resizeHeight: size.height, resizeQuality: 'high' };

/** @param {ImageBitmap} bitmap is closed afterwards */
async function read(bitmap, from, reduced, slice) {
  try {
    const { width, height } = checkedSize(bitmap);
    reader ??= chooseReader();
    return {
      data: await (await reader)(bitmap, slice),
      width,
      height,
      ...(reduced && { reduced: { width: from.width, height: from.height } }),
    };
  } finally {
    bitmap.close();
  }
}

/** Marks of EXIF, which is before or after the pixels. */
const EXIF = { JPEG: ['Exif\0\0', 1], WebP: ['EXIF', -1] };

/** Removes the EXIF chunk from a PNG file; renaming it would break its checksum. */
function withoutChunk(bytes) {
  const { buffer, byteOffset, length } = bytes;
  const view = new DataView(buffer, byteOffset, length);
  let at = 8;
  while (view.getUint32(at + 4) !== 0x65584966) at += 12 + view.getUint32(at);
  const copy = bytes.slice(0, length - 12 - view.getUint32(at));
  copy.set(bytes.subarray(length - copy.length + at), at);
  return copy;
}

/**
 * Copies a file so that no EXIF is found in it: some browsers apply it in WebP and PNG, others do not, and bitmaps that
 * are only marked as turned cause trouble.
 * @returns {Uint8Array | null} null: the file has no EXIF
 */
function withoutExif(bytes, { kind, orientation }) {
  if (orientation === 1) return null;
  if (kind === 'PNG') return withoutChunk(bytes);
  const [mark, step] = EXIF[kind] ?? [];
  if (!mark) return null;
  const letters = Array.from(mark, (letter) => letter.charCodeAt(0));
  const next = (from) => (step > 0 ? bytes.indexOf(letters[0], from) : bytes.lastIndexOf(letters[0], from));
  let at = next(step > 0 ? 0 : bytes.length - letters.length);
  while (at > 0 && !letters.every((code, i) => bytes[at + i] === code)) at = next(at + step);
  const copy = bytes.slice();
  copy[at] = 0x78;
  return copy;
}

/** Most chunks of a PNG file before its pixels. */
const MOST_CHUNKS = 1000;

/** Whether a PNG file without alpha channel has no transparent colour either; this is known before its pixels. */
function isOpaquePng(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 8;
  if (![0, 2].includes(bytes[25])) return false;
  for (let n = 0; n < MOST_CHUNKS && at + 8 <= bytes.length; n++, at += 12 + view.getUint32(at)) {
    if (view.getUint32(at + 4) === 0x49444154) return true;      // IDAT
    if (view.getUint32(at + 4) === 0x74524E53) return false;     // tRNS
  }
  return false;
}

/**
 * An opaque file need not be decoded with unpremultiplied colours: undoing the multiplication blocks a worker of
 * Chromium for a tenth of a second for a large image.
 */
const alphaOf = (bytes, kind) => (kind === 'JPEG' || (kind === 'PNG' && isOpaquePng(bytes)) ? 'default' : 'none');

async function decodeFile(bytes, found, reduced, slice) {
  const { kind, orientation } = found;
  const plain = withoutExif(bytes, found);
  const stored = plain && orientation > 4 && reduced ? { width: reduced.height, height: reduced.width } : reduced;
  const options = { imageOrientation: 'from-image', premultiplyAlpha: alphaOf(bytes, kind), ...resized(stored) };
  const pixels = await read(
    await createImageBitmap(new Blob([plain ?? bytes], { type: MIME[kind] }), options),
    found,
    reduced,
    slice,
  );
  return plain ? { ...pixels, ...(await turned(pixels, orientation, slice)) } : pixels;
}

async function filePixels(bytes, how) {
  const found = how.header(bytes);
  checkPromise(found, bytes);
  try {
    return await withPatience(async (slice) => {
      if (!await isWhole(bytes, found.kind, slice)) throw undecoded(`The ${found.kind} file ends too early.`);
      return decodeFile(bytes, found, reducedSize(found, how.target), slice);
    }, how);
  } catch (error) {
    if (error instanceof QuernError || how.signal?.aborted) throw error;
    throw undecoded(`The browser cannot decode this ${found.kind} file (${error.message}).`, error);
  }
}

/** Reads a bitmap of the caller, which stays open. */
async function bitmapPixels(bitmap, how) {
  const size = checkedSize(bitmap);
  const reduced = reducedSize(size, how.target);
  const copy = createImageBitmap(bitmap, { premultiplyAlpha: 'none', ...resized(reduced) });
  return withPatience(async (slice) => read(await copy, size, reduced, slice), how);
}

// --- exports ---

/**
 * Bytes of memory for each pixel while a bitmap is decoded, and while it is read. A bitmap with more than LARGE pixels
 * is reduced before it is read.
 */
const [DECODED, READ] = [4, 12];

const costOf = ({ width, height }, length) =>
  length + width * height * DECODED + Math.min(width * height, LARGE) * READ;

/**
 * The visible size of an image, and the bytes that decoding takes. Of a file only the header is read.
 * @param {Uint8Array | Blob | ImageBitmap | {data: Uint8Array, width: number, height: number}} source
 * @param {(bytes: Uint8Array) => {kind: string, width: number, height: number, orientation: number}} header the
 *   engine's function
 * @returns {Promise<{width: number, height: number, bytes: number}>}
 */
export async function sizeOf(source, header) {
  if (isRaw(source)) return { ...checkedSize(rawPixels(source)), bytes: 0 };
  if (isBitmap(source)) return { ...checkedSize(source), bytes: costOf(source, 0) };
  const file = await bytesOf(source);
  const { width, height } = header(file);
  return { width, height, bytes: costOf({ width, height }, file.length) };
}

/**
 * Returns RGB, or RGBA that is still to be drawn on white.
 * @param {Uint8Array | Blob | ImageBitmap | {data: Uint8Array, width: number, height: number}} source
 * @param {{header: Function, target: {width: number, height: number}, signal?: AbortSignal, clock?: any, slice?:
 *   import('./limits.js').Slice}} how target: the size that the model will see
 * @returns {Promise<{data: Uint8Array, width: number, height: number, reduced?: {width: number, height: number}}>}
 *   reduced: the original size
 */
export async function pixelsOf(source, how) {
  if (isRaw(source)) return rawPixels(source);
  if (isBitmap(source)) return bitmapPixels(source, how);
  return filePixels(await bytesOf(source), how);
}
