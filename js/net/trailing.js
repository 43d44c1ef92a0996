// SPDX-License-Identifier: MIT
// A file ends where its header says, whatever its server claims or sends: bytes after the end are neither fetched nor
// stored.

import { QuernError } from '../shared/errors.js';

/** Bytes that may follow the contents: the largest alignment of a file. */
const PADDING = 1 << 16;

/**
 * @param {string} host that the file comes from
 * @param {number} size the claimed bytes of the file, or those received so far
 * @param {number | null} end of the contents; null: not known yet
 */
export function checkTrailing(host, size, end) {
  if (end === null || size <= end + PADDING) return;
  throw new QuernError(
    'model/inconsistent',
    `${host} has ${size} bytes, but by its header the file ends after ${end}.`,
    {
      phase: 'load',
      detail: { rule: 'trailing', host, expected: end, found: size },
    },
  );
}
