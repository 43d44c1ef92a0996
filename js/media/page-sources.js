// SPDX-License-Identifier: MIT
// Copies elements of a page, as they are at the call, into a form that can be sent to the engine's worker. A worker of
// the page may call this too: it has canvases, bitmaps and frames, but no elements.

import { QuernError } from '../shared/errors.js';

/**
 * Whether the page may read these pixels. Pixels of another origin that does not allow it can be drawn, but not read.
 */
function mayBeRead(bitmap) {
  const context = new OffscreenCanvas(1, 1).getContext('2d');
  context.drawImage(bitmap, 0, 0, 1, 1);
  try {
    return context.getImageData(0, 0, 1, 1) !== null;
  } catch {
    return false;
  }
}

/**
 * Copies a source to a bitmap.
 * @param {any} source an image, a canvas, an ImageBitmap, a VideoFrame
 * @returns {Promise<ImageBitmap>}
 */
export async function capture(source) {
  const isLoading = source?.decode && !(source.complete && source.naturalWidth);    // an <img>
  try {
    if (isLoading) await source.decode();
    const bitmap = await createImageBitmap(source, { premultiplyAlpha: 'none' });
    if (mayBeRead(bitmap)) return bitmap;
    bitmap.close();
  } catch (error) {
    throw new QuernError('image/decode', `An image of the page cannot be read (${error.message}).`, { cause: error });
  }
  throw new QuernError(
    'image/decode',
    "An image of the page may not be read: it is another site's, which does not allow it (CORS, crossorigin).",
  );
}
