// SPDX-License-Identifier: MIT
// Images' pixels in Node, which has no decoders. PNG and BMP files are read here (png-node.js, bmp-node.js); for others there are packages that the
// caller may have installed: sharp, which reads all of them, or jpeg-js, which is small and reads JPEG. Colour profiles are ignored.

import { readBmp } from './bmp-node.js';
import { QuernError } from '../shared/errors.js';
import { checkPromise, checkedSize, isRaw, rawPixels, reducedSize, undecoded, withPatience } from './limits.js';
import { readPng } from './png-node.js';
import { turned } from './turn.js';

const PIXELS_MOST = 100_000_000;

/** What jpeg-js can be trusted with: it takes a second for 12 megapixels, in which nothing else goes on, and has no end for files that lie. */
const JPEG = { mostPixels: 40_000_000, mostMegabytes: 1024 };

const bytesOf = async (source) => (source instanceof Blob ? new Uint8Array(await source.arrayBuffer()) : source);

/** A package that need not be there. Its name comes as an argument, so that no bundler misses it. @returns {Promise<any>} null: it is not */
async function installed(name) {
  try {
    return (await import(name)).default;
  } catch {
    return null;
  }
}

/** Inks as light: each of three colours through what black leaves. */
function fromInks(data) {
  const out = new Uint8Array(data.length / 4 * 3);
  for (let i = 0, to = 0; i < data.length; i += 4) {
    const light = 255 - data[i + 3];
    for (let c = 0; c < 3; c++) out[to++] = light - Math.round(data[i + c] * light / 255);
  }
  return out;
}

/** Turned as EXIF says. sharp would show inks as some printer does; here they are as in other decoders. */
async function bySharp(sharp, bytes, found, target) {
  const reduced = reducedSize(found, target);
  const options = { limitInputPixels: PIXELS_MOST, failOn: 'warning', ignoreIcc: true };
  const hasInks = (await sharp(bytes, options).metadata()).space === 'cmyk';
  let work = sharp(bytes, options).rotate();
  if (reduced) work = work.resize({ ...reduced, fit: 'fill' });
  work = hasInks ? work.pipelineColourspace('cmyk').toColourspace('cmyk') : work.toColourspace('srgb');
  const { data, info: { width, height } } = await work.raw({ depth: 'uchar' }).toBuffer({ resolveWithObject: true });
  return { data: hasInks ? fromInks(data) : data, width, height, ...reduced && { reduced: { width: found.width, height: found.height } } };
}

function byJpegJs(jpeg, bytes, { width: w, height: h, orientation }) {
  if (w * h > JPEG.mostPixels) {
    throw new QuernError('image/size', `A JPEG file of ${w} x ${h} is too large for jpeg-js: install sharp.`, { detail: { width: w, height: h } });
  }
  const { data, width, height } = jpeg.decode(bytes, {
    useTArray: true, formatAsRGBA: false, tolerantDecoding: false, maxResolutionInMP: PIXELS_MOST / 1e6, maxMemoryUsageInMB: JPEG.mostMegabytes,
  });
  return turned({ data, width, height }, orientation);
}

const missing = (kind, packages) => undecoded(`A ${kind} file needs a decoder that Node has not: install ${packages}.`);

/** By the brands of an AVIF file, which stand in its first box; that begins with its size. */
function isAnimated({ buffer, byteOffset, length }) {
  const file = Buffer.from(buffer, byteOffset, length);
  return file.subarray(0, file.readUInt32BE()).includes('avis');
}

async function decode(bytes, found, { target, find = installed }) {
  if (found.kind === 'PNG') return turned(await readPng(bytes), found.orientation);
  if (found.kind === 'BMP') return readBmp(bytes);
  if (found.kind === 'AVIF' && isAnimated(bytes)) throw undecoded('Animated AVIF files are not read in Node: save its first image as PNG.');
  const sharp = await find('sharp');
  if (sharp) return bySharp(sharp, bytes, found, target);
  if (found.kind !== 'JPEG') throw missing(found.kind, 'sharp');
  const jpeg = await find('jpeg-js');
  if (!jpeg) throw missing('JPEG', 'jpeg-js or sharp');
  return byJpegJs(jpeg, bytes, found);
}

async function filePixels(bytes, how) {
  const found = how.header(bytes);
  checkPromise(found, bytes);
  try {
    return await withPatience(decode(bytes, found, how), how);
  } catch (error) {
    if (error instanceof QuernError || how.signal?.aborted) throw error;
    throw undecoded(`The ${found.kind} file cannot be decoded (${String(error.message).split('\n')[0]}).`, error);
  }
}

/**
 * How large an image is as it is seen; of a file the header is read only.
 * @param {Uint8Array | Blob | {data: Uint8Array, width: number, height: number}} source
 * @param {(bytes: Uint8Array) => {kind: string, width: number, height: number, orientation: number}} header the engine's
 * @returns {Promise<{width: number, height: number}>}
 */
export async function sizeOf(source, header) {
  const { width, height } = isRaw(source) ? checkedSize(rawPixels(source)) : header(await bytesOf(source));
  return { width, height };
}

/**
 * RGB, or RGBA with the white still to be laid behind it.
 * @param {Uint8Array | Blob | {data: Uint8Array, width: number, height: number}} source
 * @param {{header: Function, target: {width: number, height: number}, signal?: AbortSignal, clock?: any, find?: (name: string) => Promise<any>}} how
 *   target: what the model will see; find: the package of a name, or null
 * @returns {Promise<{data: Uint8Array, width: number, height: number, reduced?: {width: number, height: number}}>} reduced: from what size
 */
export async function pixelsOf(source, how) {
  return isRaw(source) ? rawPixels(source) : filePixels(await bytesOf(source), how);
}
