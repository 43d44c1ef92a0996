// SPDX-License-Identifier: MIT
// Reads the beginning of a file on a server, for callers that need only its header: piece by piece, on demand, without
// storing anything.

import { openRemote } from './download.js';
import { Runs } from './runs.js';

/** Bytes of one request: a Qwen3 file's header has about 6 MB, most of it the vocabulary. */
const PIECE = 1 << 20;

/** Uses one request if the server does not support ranges. @param {object} options of openRemote */
export async function* headerBytes(url, options) {
  const remote = await openRemote(url, {
    chunkSize: PIECE,
    ...options,
    first: { from: 0, to: options.chunkSize ?? PIECE },
  });
  try {
    if (!remote.ranges || remote.size === null) for await (const { bytes } of remote.chunks()) yield bytes;
    else for (let i = 0; i < remote.count; i++) for await (const { bytes } of remote.chunks(Runs.of(i))) yield bytes;
  } finally {
    remote.close();
  }
}
