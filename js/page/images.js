// SPDX-License-Identifier: MIT
// Reads images and videos of messages in a page (media.js). A separate file of the package, which is loaded with the
// first model that has vision.

import { badParam } from '../shared/errors.js';
import { capture } from '../media/page-sources.js';
import { copyOf } from './media.js';

export { takeMedia, transferOf } from './media.js';
export { checkPart } from './parts.js';

const isAddress = (value) => typeof value === 'string' || value instanceof URL;

function addressOf(image) {
  try {
    return new URL(image, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  } catch {
    throw badParam('messages', `have an image with a bad address: '${String(image).slice(0, 64)}'`);
  }
}

/** Elements of the page are read when the call is made. */
function takeImage(image) {
  if (isAddress(image)) return { url: addressOf(image) };
  if (image instanceof Blob) return { blob: image };
  if (image.data) return { pixels: copyOf(image) };
  return capture(image).then((bitmap) => ({ bitmap }));
}

/** @param {{signal?: AbortSignal, videos: () => Promise<typeof import('./videos.js')>}} how */
async function takeVideo(video, sample, { signal, videos }) {
  const found = isAddress(video) ? addressOf(video) : video;
  const { takeVideo: take } = await videos();
  return take(found, sample, signal);
}

export const reader = { takeImage, takeVideo };
