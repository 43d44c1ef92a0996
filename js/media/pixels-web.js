// SPDX-License-Identifier: MIT
// Pictures' pixels in a browser, whose own decoders do the work: a file becomes an ImageBitmap, that is drawn on white and read back. Runs in the
// engine's worker; DOM objects come as ImageBitmaps (page-sources.js). Some browsers alter what is read back from a canvas, so that nobody can be
// told by it: a model would see noise. So a known pattern is read back first, and where it comes back altered, WebCodecs decode.
// That EXIF is followed is the browser's doing; where it does not (there are some for PNG), the header's orientation tells.

import { QuernError } from '../shared/errors.js';
import { checkedSize, isRaw, rawPixels, reducedSize, undecoded, withPatience } from './limits.js';
import { turned } from './turn.js';

const MIME = { PNG: 'image/png', JPEG: 'image/jpeg', WebP: 'image/webp', GIF: 'image/gif', BMP: 'image/bmp', AVIF: 'image/avif' };

const isBitmap = (source) => source instanceof ImageBitmap;

const bytesOf = async (source) => (source instanceof Blob ? new Uint8Array(await source.arrayBuffer()) : source);

// --- canvases ---

function canvasOf({ width, height }) {
  const context = globalThis.OffscreenCanvas && new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  if (!context) throw new QuernError('env/canvas', 'This browser has no canvas that a worker could draw on.');
  return context;
}

const PROBE = 64;

/** Whether what is drawn is what is read. Small canvases are left alone by some who alter large ones. */
function canvasTellsTruth() {
  const context = canvasOf({ width: PROBE, height: PROBE });
  const drawn = context.createImageData(PROBE, PROBE);
  for (let i = 0, random = 1; i < drawn.data.length; i++) {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
    drawn.data[i] = i % 4 === 3 ? 255 : random >>> 24;
  }
  context.putImageData(drawn, 0, 0);
  const { data } = context.getImageData(0, 0, PROBE, PROBE);
  return data.every((value, i) => value === drawn.data[i]);
}

let truth;      // of this worker's canvases

/** Drawn on white. @param {{width: number, height: number}} size */
function readCanvas(bitmap, { width, height }) {
  const context = canvasOf({ width, height });
  context.fillStyle = '#fff';
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = 'high';
  context.drawImage(bitmap, 0, 0, width, height);
  return { data: new Uint8Array(context.getImageData(0, 0, width, height).data.buffer), width, height };
}

// --- WebCodecs ---

const altered = (cause) => new QuernError('env/canvas', 'This browser alters what is read from a canvas, and has no other decoder.', { cause });

async function readFrame(frame) {
  try {
    const { width, height } = frame.visibleRect;
    const options = { format: 'RGBA', colorSpace: 'srgb', layout: [{ offset: 0, stride: 4 * width }] };
    const data = new Uint8Array(frame.allocationSize(options));
    await frame.copyTo(data, options);
    return { data, width, height };
  } catch (error) {
    throw altered(error);
  } finally {
    frame.close();
  }
}

/** As it is stored. */
async function decodeFrame(bytes, { kind }) {
  if (!globalThis.ImageDecoder || !await ImageDecoder.isTypeSupported(MIME[kind])) throw altered();
  const decoder = new ImageDecoder({ data: bytes, type: MIME[kind], premultiplyAlpha: 'none' });
  try {
    const { image } = await decoder.decode();
    return await readFrame(image);
  } finally {
    decoder.close();
  }
}

// --- files ---

/** @returns {Promise<ImageBitmap>} */
function decodeBitmap(bytes, { kind }, reduced) {
  const smaller = reduced && { resizeWidth: reduced.width, resizeHeight: reduced.height, resizeQuality: 'high' };
  return createImageBitmap(new Blob([bytes], { type: MIME[kind] }), { imageOrientation: 'from-image', premultiplyAlpha: 'none', ...smaller });
}

async function decoded(bytes, found, reduced) {
  if (!truth) return decodeFrame(bytes, found);
  const bitmap = await decodeBitmap(bytes, found, reduced);
  try {
    return readCanvas(bitmap, checkedSize(bitmap));
  } finally {
    bitmap.close();
  }
}

const isOnItsSide = (pixels, { width, height }) => width !== height && pixels.width === height && pixels.height === width;

async function filePixels(bytes, { header, target, signal }) {
  const found = header(bytes);
  const reduced = truth ? reducedSize(found, target) : undefined;
  try {
    const pixels = await withPatience(decoded(bytes, found, reduced), signal);
    const upright = !reduced && isOnItsSide(pixels, found) ? turned(pixels, found.orientation) : pixels;
    return { ...upright, ...reduced && { reduced: { width: found.width, height: found.height } } };
  } catch (error) {
    if (error instanceof QuernError || signal?.aborted) throw error;
    throw undecoded(`The browser cannot decode this ${found.kind} file (${error.message}).`, error);
  }
}

async function bitmapPixels(bitmap, { target }) {
  const size = checkedSize(bitmap);
  if (!truth) return readFrame(new VideoFrame(bitmap, { timestamp: 0 }));
  const reduced = reducedSize(size, target);
  return { ...readCanvas(bitmap, reduced ?? size), ...reduced && { reduced: size } };
}

// --- what is asked for ---

/**
 * How large a picture is as it is seen; of a file the header is read only.
 * @param {Uint8Array | Blob | ImageBitmap | {data: Uint8Array, width: number, height: number}} source
 * @param {(bytes: Uint8Array) => {kind: string, width: number, height: number, orientation: number}} header the engine's
 * @returns {Promise<{width: number, height: number}>}
 */
export async function sizeOf(source, header) {
  if (isRaw(source)) return checkedSize(rawPixels(source));
  const { width, height } = isBitmap(source) ? checkedSize(source) : header(await bytesOf(source));
  return { width, height };
}

/**
 * RGB, or RGBA with the white still to be laid behind it.
 * @param {Uint8Array | Blob | ImageBitmap | {data: Uint8Array, width: number, height: number}} source
 * @param {{header: Function, target: {width: number, height: number}, signal?: AbortSignal}} how target: what the model will see
 * @returns {Promise<{data: Uint8Array, width: number, height: number, reduced?: {width: number, height: number}}>} reduced: from what size
 */
export async function pixelsOf(source, how) {
  if (isRaw(source)) return rawPixels(source);
  truth ??= canvasTellsTruth();
  if (isBitmap(source)) return bitmapPixels(source, how);
  return filePixels(await bytesOf(source), how);
}
