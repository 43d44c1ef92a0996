// SPDX-License-Identifier: MIT
// How large a picture's file may be.

import { QuernError } from './errors.js';

export const MOST_BYTES = 64 << 20;

export const tooLarge = (bytes) => new QuernError('image/size', `A picture's file has ${bytes} bytes, at most ${MOST_BYTES} are possible.`,
  { detail: { limit: MOST_BYTES, found: bytes } });
