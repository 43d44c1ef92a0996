// SPDX-License-Identifier: MIT
// How images and videos are taken in Node (media.js).

import { fileURLToPath } from 'node:url';
import { badParam } from '../shared/errors.js';
import { MOST_BYTES, tooLarge } from '../shared/image.js';
import { copyOf } from './media.js';

export { takeMedia, transferOf } from './media.js';
export { checkPart } from './parts.js';

/**
 * An image's file is read in the worker where it has a path or an address. A Blob is read here: some crash Node 20 when
 * a worker reads them.
 */
function takeImage(image) {
  if (image instanceof Blob) return blobBytes(image);
  if (typeof image !== 'string' && !(image instanceof URL)) return { pixels: copyOf(image) };
  const text = String(image);
  if (/^(?:https?|blob|data):/i.test(text)) return { url: text };
  return { path: /^file:/i.test(text) ? fileURLToPath(text) : text };
}

async function blobBytes(blob) {
  if (blob.size > MOST_BYTES) throw tooLarge(blob.size);
  return { bytes: new Uint8Array(await blob.arrayBuffer()) };
}

async function takeVideo() {
  throw badParam(
    'messages',
    'have a video that is not { frames, fps }: Node has nothing that plays videos, so give its frames',
  );
}

export const reader = { takeImage, takeVideo };
