// SPDX-License-Identifier: MIT
// How a page's pictures are taken, and who takes its films (media.js). A file of its own in the package, which comes with the first model that sees.

import { badParam } from '../shared/errors.js';
import { capture } from '../media/page-sources.js';
import { copyOf } from './media.js';

export { takeMedia, transferOf } from './media.js';
export { checkPart } from './parts.js';

const isAddress = (value) => typeof value === 'string' || value instanceof URL;

function addressOf(picture) {
  try {
    return new URL(picture, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  } catch {
    throw badParam('messages', `have a picture whose address is none: '${String(picture).slice(0, 64)}'`);
  }
}

/** What the page shows is read at the call. */
function takeImage(image) {
  if (isAddress(image)) return { url: addressOf(image) };
  if (image instanceof Blob) return { blob: image };
  if (image.data) return { pixels: copyOf(image) };
  return capture(image).then((bitmap) => ({ bitmap }));
}

/** @param {{signal?: AbortSignal, films: () => Promise<typeof import('./films.js')>}} how */
async function takeFilm(film, sample, { signal, films }) {
  const found = isAddress(film) ? addressOf(film) : film;
  const { takeFilm: take } = await films();
  return take(found, sample, signal);
}

export const reader = { takeImage, takeFilm };
