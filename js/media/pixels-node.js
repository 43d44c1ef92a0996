// SPDX-License-Identifier: MIT
// Images' pixels in Node, as the engine's worker asks for them: headers, and what decoding will take, are looked at
// here, decoding itself goes on beside it (decode-node.js).

import { JPEG, decode } from './decode-node.js';
import { checkPromise, checkedSize, isRaw, rawPixels, withPatience } from './limits.js';

const bytesOf = async (source) => (source instanceof Blob ? new Uint8Array(await source.arrayBuffer()) : source);

/**
 * Bytes of memory for each pixel that decoders take at most, measured, with what they give. PNG and BMP have theirs
 * twice where they are turned.
 */
const EACH = { PNG: 4, BMP: 4, JPEG: 36, AVIF: 20, other: 12 };

/** What decoding takes at most, in bytes; JPEG files that are too large for jpeg-js are sharp's. */
function costOf({ kind, width, height, orientation }, { length }) {
  const pixels = width * height;
  const each = kind === 'JPEG' && pixels > JPEG.mostPixels ? EACH.other : (EACH[kind] ?? EACH.other);
  return length + pixels * each * (orientation > 1 && each === EACH.PNG ? 2 : 1);
}

/**
 * How large an image is as it is seen, and what decoding it takes; of a file the header is read only.
 * @param {Uint8Array | Blob | {data: Uint8Array, width: number, height: number}} source
 * @param {(bytes: Uint8Array) => {kind: string, width: number, height: number, orientation: number}} header the
 *   engine's
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
 * RGB, or RGBA with the white still to be laid behind it.
 * @param {Uint8Array | Blob | {data: Uint8Array, width: number, height: number}} source
 * @param {{header: Function, target: {width: number, height: number}, signal?: AbortSignal, clock?: any, slice?:
 *   import('./limits.js').Slice, find?: (name: string) => Promise<any>, beside?: (job: {bytes: Uint8Array, found:
 *   object, target: object}) => Promise<any>}} how target: what the model will see; find: the package of a name, or
 *   null; beside: decodes elsewhere
 * @returns {Promise<{data: Uint8Array, width: number, height: number, reduced?: {width: number, height: number}}>}
 *   reduced: from what size
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
