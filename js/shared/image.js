// SPDX-License-Identifier: MIT
// Limits of images and their files.

import { QuernError } from './errors.js';

export const MOST_BYTES = 64 << 20;

export const tooLarge = (bytes) =>
  new QuernError('image/size', `An image's file has ${bytes} bytes, at most ${MOST_BYTES} are possible.`, {
    detail: { limit: MOST_BYTES, found: bytes },
  });

export const oversized = ({ width, height }) =>
  new QuernError(
    'image/size',
    `The image is ${width} x ${height}; at most 16,384 a side and 100 million pixels can be read.`,
    { detail: { width, height } },
  );
