// SPDX-License-Identifier: MIT
// What no image may exceed, wherever it comes from, and how long a decoder may take. Files are looked at by the engine
// before (src/image).

import { abortable, deadline, systemClock } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';
import { oversized } from '../shared/image.js';

const SIDE_MOST = 16_384;
export const PIXELS_MOST = 100_000_000;

/** Pixels above which an image is made smaller while it is decoded; no canvas of Safari has more. */
export const LARGE = 2 ** 24;

export const PATIENCE_MS = 30_000;

export const undecoded = (message, cause) => new QuernError('image/decode', message, { cause });

/**
 * @param {{width: number, height: number}} image
 * @returns {{width: number, height: number}} its size, which is possible
 */
export function checkedSize({ width, height }) {
  if (!(width >= 1 && height >= 1)) throw undecoded(`The image is ${width} x ${height}: it has no pixels.`);
  if (width > SIDE_MOST || height > SIDE_MOST || width * height > PIXELS_MOST) throw oversized({ width, height });
  return { width, height };
}

/** Pixels that a byte of a JPEG file can stand for: a block of 64 has a bit at least. */
const JPEG_MOST = 512;

/** A file that says more than it can have is long in decoding, and grey. */
export function checkPromise({ kind, width, height }, { length }) {
  if (kind === 'JPEG' && width * height > JPEG_MOST * length) {
    throw undecoded(`The JPEG file is damaged: ${length} bytes are not ${width} x ${height} pixels.`);
  }
}

/** Pixels that the caller has: RGB or RGBA, by their length. */
export const isRaw = (source) => ArrayBuffer.isView(source?.data);

export function rawPixels({ data, width, height }) {
  checkedSize({ width, height });
  if (data.length !== 3 * width * height && data.length !== 4 * width * height) {
    const [rgb, rgba] = [3, 4].map((channels) => channels * width * height);
    throw new QuernError(
      'use/param',
      `An image of ${width} x ${height} has ${rgb} bytes of RGB or ${rgba} of RGBA, not ${data.length}.`,
      { detail: { param: 'messages' } },
    );
  }
  return { data, width, height };
}

/** What a huge image becomes while it is decoded: twice what the model will see. Undefined: it stays. */
export function reducedSize({ width, height }, target) {
  if (width * height <= LARGE) return undefined;
  return { width: Math.min(width, 2 * target.width), height: Math.min(height, 2 * target.height) };
}

/**
 * Does a part of some work, of a millisecond or two, when it may; throws when nobody waits for it any more.
 * @typedef {(part: () => void) => void | Promise<void>} Slice
 */

/** At once. @type {Slice} */
const now = (part) => part();

/**
 * What a decoder promises, but not forever.
 * @template T
 * @param {(slice: Slice) => Promise<T>} work
 * @param {{signal?: AbortSignal, clock?: typeof systemClock, slice?: Slice}} how
 * @returns {Promise<T>}
 */
export async function withPatience(work, { signal, clock = systemClock, slice = now }) {
  const late = new AbortController();
  const cancel = deadline(
    PATIENCE_MS,
    () => late.abort(undecoded(`The decoder has not answered within ${PATIENCE_MS / 1000} seconds.`)),
    clock,
  );
  const over = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
  try {
    return await abortable(work(async (part) => {
      over.throwIfAborted();
      await slice(part);
    }), over);
  } finally {
    cancel();
    late.abort();       // what still works ends
  }
}
