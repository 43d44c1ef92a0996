// SPDX-License-Identifier: MIT
// Pixels of images in Node, for the engine's worker. Headers, and the cost of decoding, are examined here; decoding
// runs beside the engine (decode-node.js).

import { JPEG, decode } from './decode-node.js';
import { checkPromise, checkedSize, isRaw, rawPixels, withPatience } from './limits.js';

const bytesOf = async (source) => (source instanceof Blob ? new Uint8Array(await source.arrayBuffer()) : source);

/**
 * Most bytes of memory that decoders take for each pixel, measured, including the result. PNG and BMP take twice as
 * much if the image must be turned.
 */
const EACH = { PNG: 4, BMP: 4, JPEG: 36, AVIF: 20, other: 12 };

/** Most bytes that decoding takes. JPEG files that are too large for jpeg-js are decoded by sharp. */
function costOf({ kind, width, height, orientation }, { length }) {
  const pixels = width * height;
  const each = kind === 'JPEG' && pixels > JPEG.mostPixels ? EACH.other : (EACH[kind] ?? EACH.other);
  return length + pixels * each * (orientation > 1 && each === EACH.PNG ? 2 : 1);
}

/**
 * The visible size of an image, and the bytes that decoding takes. Of a file only the header is read.
 * @param {Uint8Array | Blob | {data: Uint8Array, width: number, height: number}} source
 * @param {(bytes: Uint8Array) => {kind: string, width: number, height: number, orientation: number}} header the
 *   engine's function
 * @returns {Promise<{width: number, height: number, bytes: number}>}
 */
export async function sizeOf(source, header) {
  if (isRaw(source)) return { ...checkedSize(rawPixels(source)), bytes: 0 };
  const file = await bytesOf(source);
  const found = header(file);
  checkPromise(found, file);
  return { width: found.width, height: found.height, bytes: costOf(found, file) };
}

/**
 * Returns RGB, or RGBA that is still to be drawn on white.
 * @param {Uint8Array | Blob | {data: Uint8Array, width: number, height: number}} source
 * @param {{header: Function, target: {width: number, height: number}, signal?: AbortSignal, clock?: any, slice?:
 *   import('./limits.js').Slice, find?: (name: string) => Promise<any>, beside?: (job: {bytes: Uint8Array, found:
 *   object, target: object}) => Promise<any>}} how target: the size that the model will see; find: returns the package
 *   of a name, or null; beside: decodes elsewhere
 * @returns {Promise<{data: Uint8Array, width: number, height: number, reduced?: {width: number, height: number}}>}
 *   reduced: the original size
 */
export async function pixelsOf(source, { header, target, find, beside, ...how }) {
  if (isRaw(source)) return rawPixels(source);
  const bytes = await bytesOf(source);
  const found = header(bytes);
  checkPromise(found, bytes);
  return beside
    ? beside({ bytes, found, target })
    : withPatience((slice) => decode(bytes, found, { target, slice, find }), how);
}
