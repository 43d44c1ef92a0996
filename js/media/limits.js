// SPDX-License-Identifier: MIT
// Limits of all images, wherever they come from, and of the time that a decoder may take. The engine checks files
// before (src/image).

import { abortable, deadline, systemClock } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';
import { oversized } from '../shared/image.js';

const SIDE_MOST = 16_384;
export const PIXELS_MOST = 100_000_000;

/** Pixels above which an image is reduced while it is decoded; a canvas in Safari cannot have more. */
export const LARGE = 2 ** 24;

export const PATIENCE_MS = 30_000;

export const undecoded = (message, cause) => new QuernError('image/decode', message, { cause });

/**
 * @param {{width: number, height: number}} image
 * @returns {{width: number, height: number}} its size, if it is possible
 */
export function checkedSize({ width, height }) {
  if (!(width >= 1 && height >= 1)) throw undecoded(`The image is ${width} x ${height}: it has no pixels.`);
  if (width > SIDE_MOST || height > SIDE_MOST || width * height > PIXELS_MOST) throw oversized({ width, height });
  return { width, height };
}

/** Most pixels that a byte of a JPEG file can stand for: a block of 64 takes at least one bit. */
const JPEG_MOST = 512;

/** Refuses a JPEG file whose size is impossible: decoding it would take long, and give grey. */
export function checkPromise({ kind, width, height }, { length }) {
  if (kind === 'JPEG' && width * height > JPEG_MOST * length) {
    throw undecoded(`The JPEG file is damaged: ${length} bytes are not ${width} x ${height} pixels.`);
  }
}

/** Pixels from the caller: RGB or RGBA, depending on their number. */
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

/**
 * Size to which a huge image is reduced while it is decoded: twice what the model will see. Undefined: it is not
 * reduced.
 */
export function reducedSize({ width, height }, target) {
  if (width * height <= LARGE) return undefined;
  return { width: Math.min(width, 2 * target.width), height: Math.min(height, 2 * target.height) };
}

/**
 * Runs a part of some work, of a millisecond or two, when it may run; throws if nobody waits for the work any more.
 * @typedef {(part: () => void) => void | Promise<void>} Slice
 */

/** Runs the part at once. @type {Slice} */
const now = (part) => part();

/**
 * Runs a decoder with a time limit.
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
    late.abort();       // ends work that still runs
  }
}
