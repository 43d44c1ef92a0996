// SPDX-License-Identifier: MIT
// What a page shows, as it is at the call, in a form that the engine's worker can be given. A worker of the page's may
// call this too: it has canvases, bitmaps and frames, but no elements.

import { QuernError } from '../shared/errors.js';

/**
 * Whether the page may read these pixels: those of another origin that does not allow it can be drawn, but not read.
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
 * A copy of it.
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
