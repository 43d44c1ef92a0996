// SPDX-License-Identifier: MIT
// How a page's pictures and films are taken (media.js). A file of its own in the package, which comes with the first model that sees.

import { badParam } from '../shared/errors.js';
import { framesOf } from '../media/film.js';
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

/** Frames of the film that was played last, where it is a file: playing takes seconds, and each turn of its conversation asks for them. */
let last = null;

async function takeFilm(film, sample, signal) {
  const how = Object.values(sample).join();
  if (last?.film !== film || last.how !== how) {
    const played = await framesOf(isAddress(film) ? addressOf(film) : film, { ...sample, signal });
    if (!(film instanceof Blob)) return handedOver(played);
    for (const frame of last?.frames ?? []) frame.close();
    last = { film, how, ...played };
  }
  const { frames, timestamps } = last;
  return handedOver({ frames: await Promise.all(frames.map((frame) => createImageBitmap(frame, { premultiplyAlpha: 'none' }))), timestamps });
}

const handedOver = ({ frames, timestamps }) => ({ frames: frames.map((bitmap) => ({ bitmap })), timestamps });

export const reader = { takeImage, takeFilm };
