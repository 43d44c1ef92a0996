// SPDX-License-Identifier: MIT
// Reads images and videos of messages in Node (media.js).

import { fileURLToPath } from 'node:url';
import { badParam } from '../shared/errors.js';
import { MOST_BYTES, tooLarge } from '../shared/image.js';
import { copyOf } from './media.js';

export { takeMedia, transferOf } from './media.js';
export { checkPart } from './parts.js';

/**
 * If an image is given by path or address, the worker reads its file. A Blob is read here, because some Blobs crash
 * Node 20 when a worker reads them.
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
    'have a video that is not { frames, fps }: Node cannot play videos, so give its frames',
  );
}

export const reader = { takeImage, takeVideo };
