// SPDX-License-Identifier: MIT
// Decodes image files in Node, which has no decoders. PNG and BMP files are read here (png-node.js, bmp-node.js); for
// other formats the caller may have installed a package: sharp, which reads all of them, or jpeg-js, which is small and
// reads JPEG. Colour profiles are ignored.
//
// Decoding runs beside the engine (worker/aside.js), since it takes seconds for large images. Our own decoders work in
// slices of a millisecond or two; sharp works in threads of its own, with a time limit; jpeg-js can only be stopped by
// ending its worker, and gets fewer pixels.

import { readBmp } from './bmp-node.js';
import { QuernError } from '../shared/errors.js';
import { PATIENCE_MS, PIXELS_MOST, reducedSize, undecoded } from './limits.js';
import { readPng } from './png-node.js';
import { turned } from './turn.js';

/**
 * Limits for jpeg-js: it takes a second for 12 megapixels, blocks its worker in that time, and does not end for files
 * with false sizes.
 */
export const JPEG = { mostPixels: 40_000_000, mostMegabytes: 1024 };

/**
 * Imports an optional package. Its name is an argument, so that bundlers do not report it as missing.
 * @returns {Promise<any>} null: it is not installed
 */
async function installed(name) {
  try {
    return (await import(name)).default;
  } catch {
    return null;
  }
}

/** Pixels that are converted in one slice. */
const PART = 2 ** 17;

/** Converts CMYK to RGB: each colour is reduced by black. */
async function fromInks(data, slice) {
  const pixels = data.length / 4;
  const out = new Uint8Array(3 * pixels);
  for (let first = 0; first < pixels; first += PART) {
    await slice(() => {
      for (let i = first; i < Math.min(first + PART, pixels); i++) {
        const light = 255 - data[4 * i + 3];
        for (let c = 0; c < 3; c++) out[3 * i + c] = light - Math.round(data[4 * i + c] * light / 255);
      }
    });
  }
  return out;
}

/**
 * Applies the EXIF orientation. sharp would convert CMYK as a printer does; here it is converted as in other decoders.
 */
async function bySharp(sharp, bytes, found, { target, slice }) {
  const reduced = reducedSize(found, target);
  const options = { limitInputPixels: PIXELS_MOST, failOn: 'warning', ignoreIcc: true };
  const hasInks = (await sharp(bytes, options).metadata()).space === 'cmyk';
  let work = sharp(bytes, options).timeout({ seconds: PATIENCE_MS / 1000 }).rotate();
  if (reduced) work = work.resize({ ...reduced, fit: 'fill' });
  work = hasInks ? work.pipelineColourspace('cmyk').toColourspace('cmyk') : work.toColourspace('srgb');
  const { data, info: { width, height } } = await work.raw({ depth: 'uchar' }).toBuffer({ resolveWithObject: true });
  const from = reduced && { reduced: { width: found.width, height: found.height } };
  // a copy that can be transferred
  return { data: hasInks ? await fromInks(data, slice) : new Uint8Array(data), width, height, ...from };
}

async function byJpegJs(jpeg, bytes, { width: w, height: h, orientation }, slice) {
  if (w * h > JPEG.mostPixels) {
    throw new QuernError('image/size', `A JPEG file of ${w} x ${h} is too large for jpeg-js: install sharp.`, {
      detail: { width: w, height: h },
    });
  }
  const { data, width, height } = jpeg.decode(bytes, {
    useTArray: true,
    formatAsRGBA: false,
    tolerantDecoding: false,
    maxResolutionInMP: PIXELS_MOST / 1e6,
    maxMemoryUsageInMB: JPEG.mostMegabytes,
  });
  return turned({ data, width, height }, orientation, slice);
}

const missing = (kind, packages) => undecoded(`A ${kind} file needs a decoder that Node lacks: install ${packages}.`);

/** Whether an AVIF file is animated, from the brands in its first box, which begins with its size. */
function isAnimated({ buffer, byteOffset, length }) {
  const file = Buffer.from(buffer, byteOffset, length);
  return file.subarray(0, file.readUInt32BE()).includes('avis');
}

async function byPackage(bytes, found, { find, ...how }) {
  if (found.kind === 'AVIF' && isAnimated(bytes))
    throw undecoded('Animated AVIF files are not read in Node: save its first image as PNG.');
  const sharp = await find('sharp');
  if (sharp) return bySharp(sharp, bytes, found, how);
  if (found.kind !== 'JPEG') throw missing(found.kind, 'sharp');
  const jpeg = await find('jpeg-js');
  if (!jpeg) throw missing('JPEG', 'jpeg-js or sharp');
  return byJpegJs(jpeg, bytes, found, how.slice);
}

async function decodeAny(bytes, found, how) {
  if (found.kind === 'PNG') return turned(await readPng(bytes, how.slice), found.orientation, how.slice);
  if (found.kind === 'BMP') return readBmp(bytes, how.slice);
  return byPackage(bytes, found, how);
}

/**
 * @param {Uint8Array} bytes
 * @param {{kind: string, width: number, height: number, orientation: number}} found in the file's header
 * @param {{target: {width: number, height: number}, slice: import('./limits.js').Slice, find?: (name: string) =>
 *   Promise<any>}} how target: the size that the model will see; find: returns the package of a name, or null
 * @returns {Promise<{data: Uint8Array, width: number, height: number, reduced?: {width: number, height: number}}>} RGB,
 *   or RGBA that is still to be drawn on white; reduced: the original size
 */
export async function decode(bytes, found, { find = installed, ...how }) {
  try {
    return await decodeAny(bytes, found, { find, ...how });
  } catch (error) {
    if (error instanceof QuernError || error?.name === 'AbortError') throw error;
    throw undecoded(`The ${found.kind} file cannot be decoded (${String(error.message).split('\n')[0]}).`, error);
  }
}
