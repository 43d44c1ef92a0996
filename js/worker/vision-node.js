// SPDX-License-Identifier: MIT
// The code that an engine's worker in Node loads for a model with vision.

import { readFile } from 'node:fs/promises';
import { find } from './host-node.js';
import { pixelsOf as pixelsHere } from '../media/pixels-node.js';
import { unreadable } from '../shared/path-node.js';
import { MOST_BYTES, tooLarge } from '../shared/image.js';
import { decoderBeside } from './side-decode-node.js';

export { sizeOf } from '../media/pixels-node.js';
export { MediaLoader } from './media-loader.js';

/** Decodes files in side workers. */
export function pixelsOf(source, { host, owner, ...how }) {
  return pixelsHere(source, { ...how, beside: decoderBeside(host, { owner, signal: how.signal }) });
}

/** Reads the file of an image. */
export async function readImage(path) {
  const { size } = await find(path, 'messages');
  if (size > MOST_BYTES) throw tooLarge(size);
  return readFile(path).catch((error) => { throw unreadable(path, error, 'messages'); });
}
