// SPDX-License-Identifier: MIT
// A file ends where its header says, whatever its server claims or sends: what goes on is neither fetched nor kept.

import { QuernError } from '../shared/errors.js';

/** Bytes that may stand behind the contents: the largest alignment that a file can have. */
const PADDING = 1 << 16;

/**
 * @param {string} host where it comes from
 * @param {number} size the file's bytes as they are claimed, or those that have come
 * @param {number | null} end of the contents; null: not known yet
 */
export function checkTrailing(host, size, end) {
  if (end === null || size <= end + PADDING) return;
  throw new QuernError(
    'model/inconsistent',
    `${host} says or sends ${size} bytes, but by its header the file ends after ${end}.`,
    {
      phase: 'load',
      detail: { rule: 'trailing', host, expected: end, found: size },
    },
  );
}
