// SPDX-License-Identifier: MIT
// What an engine's worker in Node needs for a model that sees.

import { readFile } from 'node:fs/promises';
import { find } from './host-node.js';
import { pixelsOf as pixelsHere } from '../media/pixels-node.js';
import { unreadable } from '../shared/path-node.js';
import { MOST_BYTES, tooLarge } from '../shared/image.js';
import { decoderBeside } from './side-decode-node.js';

export { sizeOf } from '../media/pixels-node.js';
export { Sight } from './sight.js';

/** Files are decoded beside the engine. */
export function pixelsOf(source, { host, owner, ...how }) {
  return pixelsHere(source, { ...how, beside: decoderBeside(host, { owner, signal: how.signal }) });
}

/** An image's file. */
export async function readImage(path) {
  const { size } = await find(path, 'messages');
  if (size > MOST_BYTES) throw tooLarge(size);
  return readFile(path).catch((error) => { throw unreadable(path, error, 'messages'); });
}
