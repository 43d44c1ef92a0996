// SPDX-License-Identifier: MIT
// How pictures and films are taken in Node (media.js).

import { fileURLToPath } from 'node:url';
import { badParam } from '../shared/errors.js';
import { MOST_BYTES, tooLarge } from '../shared/picture.js';
import { copyOf } from './media.js';

export { takeMedia, transferOf } from './media.js';
export { checkPart } from './parts.js';

/** A picture's file is read in the worker where it has a path or an address. A Blob is read here: some crash Node 20 when a worker reads them. */
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

async function takeFilm() {
  throw badParam('messages', 'have a film that is not { frames, fps }: Node has nothing that plays films, so give its frames');
}

export const reader = { takeImage, takeFilm };
