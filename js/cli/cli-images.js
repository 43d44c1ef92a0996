// SPDX-License-Identifier: MIT
// Reads the images and videos that the command line names, as parts of a message.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { numberOf } from './cli-values.js';
import { badParam } from '../shared/errors.js';

const FRAME = /\.(?:png|jpe?g|webp|gif|bmp|avif)$/i;

/** The images of a folder, by name. */
async function framesIn(folder) {
  const refuse = (why) => { throw badParam('--video', `must be a folder of images; '${folder.slice(-64)}' ${why}`); };
  const names = await readdir(folder).catch((error) => refuse(`cannot be read (${error.code})`));
  const frames = names.filter((name) => FRAME.test(name)).sort().map((name) => join(folder, name));
  if (frames.length === 0) refuse('has none');
  return frames;
}

/**
 * @param {{image?: string[], video?: string[], fps?: string}} values
 * @returns {Promise<import('../index.d.ts').Part[]>} images, then videos
 */
export async function mediaParts({ image = [], video = [], fps }) {
  const rate = numberOf(fps, '--fps');
  const videos = video.map(async (folder) => ({
    type: /** @type {const} */ ('video'),
    video: { frames: await framesIn(folder), sample: true, ...(rate !== undefined && { fps: rate }) },
  }));
  return [
    ...image.map((path) => ({ type: /** @type {const} */ ('image'), image: path })),
    ...(await Promise.all(videos)),
  ];
}

/** A content with media before the question. */
export const contentOf = (parts, text) => (parts.length ? [...parts, { type: 'text', text }] : text);
